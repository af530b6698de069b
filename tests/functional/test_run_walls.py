# SPDX-License-Identifier: Apache-2.0
"""`soma run` on a small real project: what a coding agent needs works, what it must not do is refused and says why."""
import json
import subprocess

import pytest


def run(caller, *words, **options):
    return caller.run(["soma", "run", *words], cwd=caller.home / "work", **options)


@pytest.fixture
def project(caller):
    """A git repository with Python and C sources in the caller's workspace."""
    work = caller.home / "work"
    (work / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (work / "test_calc.py").write_text("import unittest, calc\nclass T(unittest.TestCase):\n"
                                       "    def test_add(self):\n        self.assertEqual(calc.add(2, 3), 5)\n")
    (work / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hello from C"); return 0; }\n')
    (work / "Makefile").write_text("hello: hello.c\n\tcc -O1 -o hello hello.c\n")
    caller.own(work)
    made = caller.run(["git", "init", "-q", "-b", "main", "."], cwd=work)
    assert made.returncode == 0, made.stderr
    return work


GIT = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com"]


def test_edit_build_test_and_commit(caller, project):
    done = run(caller, "--", "sh", "-ec", """
        sed -i 's/hello from C/hello from inside/' hello.c
        make -s hello && ./hello
        python3 -m unittest -q
        git add -A && git -c user.name=A -c user.email=a@example.com commit -qm first && git log --format=%s
    """)
    assert done.returncode == 0, done.stderr
    assert "hello from inside" in done.stdout and "first" in done.stdout
    assert "hello from inside" in (project / "hello.c").read_text()
    for path in (project / "hello", project / ".git/index"):
        assert path.stat().st_uid == caller.uid  # the files stay the caller's
    assert caller.run(["git", "status", "--porcelain"], cwd=project).stdout == ""


def test_keys_in_the_home_directory_are_not_there(caller):
    done = run(caller, "--", "sh", "-c", "cat ~/.ssh/id_ed25519; ls -a ~/.ssh ~; cat ~/state/* 2>/dev/null")
    assert "SECRET" not in done.stdout + done.stderr
    assert "id_ed25519" not in done.stdout


def test_a_command_that_names_what_is_hidden_is_told(caller):
    secret = caller.home / ".ssh/id_ed25519"
    done = run(caller, "--", "cat", secret)
    assert done.returncode == 1
    assert f"the command names {secret}, which is hidden from it\nsoma:     rule: hide " in done.stderr
    assert "built-in dev:" in done.stderr and "--read" in done.stderr
    # Not when all went well, and not of what isn't there.
    assert "hidden" not in run(caller, "--", "sh", "-c", f"cat {secret} || true").stderr.replace("Permission denied", "")
    assert "which is hidden" not in run(caller, "--", "cat", caller.home / ".ssh/none").stderr


def test_hidden_places_are_in_the_report(caller):
    report = caller.home / "report.json"
    assert run(caller, "--report", report, "--", "true").returncode == 0
    hidden = {entry["path"]: entry["rule"] for entry in json.loads(report.read_text())["hidden"]}
    assert hidden[str(caller.home / ".ssh")].startswith("built-in dev:")


def test_write_outside_is_refused_and_reported(caller, canary):
    done = run(caller, "--write", canary, "--read", canary / "kept", "--", "sh", "-c",
               f"echo x > {canary}/kept; echo y > {canary}/new; echo z > /etc/soma-canary")
    assert done.returncode != 0
    assert (canary / "kept").read_text() == "untouched"
    assert (canary / "new").read_text() == "y\n"
    assert "/etc/soma-canary" in done.stderr and "--write /etc/soma-canary" in done.stderr
    assert f"{canary}/kept" in done.stderr and "(--read)" in done.stderr
    # Nothing of it on stdout.
    assert done.stdout == ""


def test_the_remedy_of_the_report_helps(caller, canary):
    refused = run(caller, "--", "touch", f"{canary}/new")
    assert refused.returncode != 0 and f"--write {canary}/new" in refused.stderr
    # The path doesn't exist yet, so its directory is what can be shown.
    assert run(caller, "--write", canary, "--", "touch", f"{canary}/new").returncode == 0
    assert (canary / "new").exists()


def test_connect_out_is_refused_and_reported(caller):
    done = run(caller, "--", "python3", "-c",
               "import socket; s = socket.socket(); s.settimeout(5); s.connect(('192.0.2.1', 80))")
    assert done.returncode == 1
    assert "ConnectionRefusedError" in done.stderr
    assert "connect 192.0.2.1:80" in done.stderr and "--allow-net 192.0.2.1:80" in done.stderr


def test_a_name_lookup_is_refused_with_the_way_out(caller):
    done = run(caller, "--", "python3", "-c", "import socket; socket.getaddrinfo('example.com', 80)")
    assert done.returncode == 1


def test_loopback_inside_works(caller):
    done = run(caller, "--", "python3", "-c", """
import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
peer, _ = server.accept()
client.sendall(b'hi'); print(peer.recv(2).decode())
""")
    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr


def test_only_harmless_variables_are_passed(caller):
    done = run(caller, "-e", "GIVEN=1", "--", "env", env={"AWS_SECRET_ACCESS_KEY": "canary", "LD_PRELOAD": "", "LC_TIME": "C"})
    assert "canary" not in done.stdout
    assert "GIVEN=1" in done.stdout and "LC_TIME=C" in done.stdout and f"HOME={caller.home}" in done.stdout


def test_nothing_of_it_stays(caller, no_residue):
    before = sorted(path.name for path in caller.home.iterdir())
    assert run(caller, "--", "sh", "-c", "echo x > ~/left; echo y > /tmp/soma-left; sleep 100 &").returncode == 0
    assert sorted(path.name for path in caller.home.iterdir()) == before
    assert not subprocess.run(["ls", "/tmp/soma-left"], capture_output=True).stdout


def test_the_run_is_in_the_journal(caller):
    run(caller, "--", "sh", "-c", "echo x > /etc/soma-canary")
    journal = caller.home / "state/journal/segments"
    records = "".join(path.read_text() for path in sorted(journal.rglob("*.jsonl")))
    for kind in ('"kind":"policy', '"kind":"start"', '"kind":"refusal"', '"kind":"end"'):
        assert kind in records
    assert "/etc/soma-canary" in records


def test_without_a_journal_nothing_starts(caller, canary):
    (caller.home / "state").rmdir()
    (caller.home / "state").write_text("in the way")
    done = run(caller, "--write", canary, "--", "touch", f"{canary}/started")
    assert done.returncode == 125 and len(done.stderr.splitlines()) == 1
    assert not (canary / "started").exists()


def test_a_report_goes_where_its_folder_was_at_the_start(caller, canary):
    """The command may swap the folder for a link; what holds the report's place is the folder, not its name."""
    work = caller.home / "work"
    folder = work / "out"
    folder.mkdir()
    caller.own(work)
    (canary / "r.json").write_text("precious")
    done = run(caller, "--report", folder / "r.json", "--", "sh", "-c", f"mv out away && ln -s {canary} out")
    assert done.returncode == 0, done.stderr
    assert (canary / "r.json").read_text() == "precious"
    assert json.loads((work / "away/r.json").read_text())["exit_code"] == 0
    done = run(caller, "--report", work / "gone/r.json", "--", "touch", "started")
    assert done.returncode == 125 and "gone/r.json" in done.stderr and not (work / "started").exists()
    done = run(caller, "--report", work / "lost.json", "--", "rm", "-f", "lost.json")
    assert done.returncode == 125 and "removed by the command" in done.stderr


def test_a_refused_run_is_in_the_record(caller):
    done = run(caller, "--profile", "enterprise", "--isolation", "process", "--", "true")
    assert done.returncode == 125
    tail = caller.run(["soma", "audit", "tail", "--json", "-n", "1"])
    event = json.loads(tail.stdout)
    assert (event["kind"], event["verdict"], event["subject"]) == ("policy_decision", "deny", "true"), event
    assert event["rule"] and event["rule"] in done.stderr


def test_what_is_somas_own_is_never_writable(caller, canary):
    """Its policy decides about the next run, its journal says what this one did."""
    state = caller.home / "state"
    state.mkdir(exist_ok=True)
    caller.own(state)
    for words in (["-C", str(state)], ["--write", str(state)], ["--write", str(caller.home)]):
        done = run(caller, *words, "--", "touch", canary / "made")
        assert done.returncode == 125 and "Soma's own" in done.stderr, done.stderr
        assert not (canary / "made").exists()
    (state / "journal").mkdir(exist_ok=True)
    caller.own(state)
    for words in (["--write", str(state / "journal")], ["-C", str(state / "journal")]):
        done = run(caller, *words, "--", "true")
        assert done.returncode == 125 and "Soma's own" in done.stderr, (words, done.stderr)
    config = caller.home / ".config/soma"
    config.mkdir(parents=True)
    caller.own(caller.home / ".config")
    assert run(caller, "-C", str(config.parent), "--", "true").returncode == 125
    assert run(caller, "--", "true").returncode == 0


def test_a_hidden_name_can_not_be_kept_out_of_sight(caller):
    """A glob that can't be followed everywhere hides nothing for certain: then nothing starts."""
    work = caller.home / "work"
    policy = caller.home / "hide.toml"
    policy.write_text('[filesystem]\nhide = ["**/.env"]\n')
    deep = work / "/".join(["d"] * 66)
    deep.mkdir(parents=True)
    (deep / ".env").write_text("secret")
    caller.own(work)
    done = run(caller, "--policy", str(policy), "--", "cat", str(deep / ".env"))
    assert done.returncode == 125 and "deeper" in done.stderr and "secret" not in done.stdout
    if caller.uid == 0:
        return  # no directory is closed to root
    (work / "d").rename(work / "closed")
    (work / "closed").chmod(0o311)
    done = run(caller, "--policy", str(policy), "--", "true")
    (work / "closed").chmod(0o755)
    assert done.returncode == 125 and "closed" in done.stderr, done.stderr


def test_shared_memory_has_the_limit_of_tmp(caller):
    script = "import os\nwith open('/dev/shm/x', 'wb') as f:\n    f.write(bytes(8 << 20))\n"
    policy = caller.home / "small.toml"
    policy.write_text('[limits]\ntmp = "4M"\n')
    done = run(caller, "--policy", str(policy), "--", "python3", "-c", script)
    assert done.returncode == 1 and "No space left" in done.stderr, done.stderr


def test_too_few_descriptors_are_no_reason_for_weaker_walls(caller):
    for count in range(8, 16):
        done = run_limited(caller, count)
        assert "second path" not in done.stderr and done.returncode in (0, 125), (count, done.stderr)


def run_limited(caller, descriptors):
    command = f"ulimit -n {descriptors}; exec soma run -- true"
    return caller.run(["bash", "-c", command], cwd=caller.home / "work")
