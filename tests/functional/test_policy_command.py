# SPDX-License-Identifier: Apache-2.0
"""`soma policy check` and `soma policy explain` say what a policy means before anything runs."""
import json


def policy(caller, *words, **options):
    return caller.run(["soma", "policy", *words], cwd=caller.home / "work", **options)


def write(caller, name, text):
    path = caller.home / "run" / name
    path.write_text(text)
    caller.own(path.parent)
    return path


def test_check_names_the_line(user):
    good = write(user, "good.toml", '[network]\nallow = ["a.com"]\n')
    bad = write(user, "bad.json", '{\n"nope": 1}')
    assert policy(user, "check", good).returncode == 0
    done = policy(user, "check", good, bad)
    assert done.returncode == 1
    assert f"{good}: ok" in done.stdout and f'{bad}:2: unknown key "nope"' in done.stdout
    answers = [json.loads(line) for line in policy(user, "check", "--json", good, bad).stdout.splitlines()]
    assert [answer["ok"] for answer in answers] == [True, False]


def test_explain_says_what_holds_and_where_it_is_written(user):
    (user.home / "work/.soma.toml").write_text('[filesystem]\nhide = [".env"]\n')
    user.own(user.home / "work")
    done = policy(user, "explain")
    assert done.returncode == 0, done.stderr
    assert "network: nothing gets out" in done.stdout
    assert f"hide {user.home}/work/.env" in done.stdout and ".soma.toml:2" in done.stdout
    assert json.loads(policy(user, "explain", "--json").stdout)["profile"] == "dev"


def test_explain_answers_a_question(user):
    extra = write(user, "net.toml", '[network]\nallow = ["a.com:443"]\n')
    done = policy(user, "explain", "--path", "/etc/hosts", "--connect", "a.com:443", "--policy", extra)
    assert done.returncode == 1  # one of the answers is no
    assert "read /etc/hosts: allowed by" in done.stdout
    assert "write /etc/hosts: refused by" in done.stdout and "--write /etc/hosts" in done.stdout
    assert "connect a.com:443: allowed by" in done.stdout


def test_a_question_about_a_relative_path_is_none(user):
    done = policy(user, "explain", "--path", "hosts")
    assert done.returncode == 125 and "--path hosts" in done.stderr and "absolute" in done.stderr


def test_every_command_has_an_example_in_its_help(user):
    for words in ([], ["run"], ["policy"], ["policy", "check"], ["audit"], ["key"], ["template"], ["serve"], ["doctor"]):
        shown = user.run(["soma", *words, "--help"]).stdout
        example = shown.split("Example", 1)
        assert len(example) == 2 and "soma" in example[1], words


def test_profiles(user):
    for name, minimum in (("dev", "none"), ("enterprise", "container"), ("consumer", "process")):
        assert json.loads(policy(user, "explain", "--json", "--profile", name).stdout)["minimum"] == minimum
