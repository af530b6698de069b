# SPDX-License-Identifier: Apache-2.0
"""Exit codes, signals, streams and terminals of `soma run` behave as if the sandbox were not there."""
import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest


def run(caller, *words, **options):
    return caller.run(["soma", "run", *words], cwd=caller.home / "work", **options)


@pytest.mark.parametrize("code", [0, 1, 42, 125, 255])
def test_exit_code_is_the_commands_own(user, code):
    assert run(user, "--", "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV"])
def test_a_signal_gives_128_and_its_number(user, name):
    done = run(user, "--", "sh", "-c", f"kill -{name} $$")
    assert done.returncode == 128 + getattr(signal, f"SIG{name}")


def test_not_found_and_not_executable(caller):
    missing = run(caller, "--", "no-such-command")
    assert missing.returncode == 127 and "no-such-command" in missing.stderr
    (caller.home / "work/plain").write_text("x")
    caller.own(caller.home / "work")
    assert run(caller, "--", "./plain").returncode == 126


@pytest.mark.parametrize("words, message", [
    (["--read", "/", "--", "true"], "whole tree"),
    ([], "no command given"), (["--"], "no command given"), (["--nope", "x"], "--nope is no option"),
    (["--memory", "lots", "x"], "--memory must be a size"), (["--isolation", "vm", "x"], "--isolation must be"),
    (["--read", "/a", "--write", "/a", "x"], "contradicts"), (["--policy", "/no/such", "x"], "does not exist"),
    (["--profile", "x", "x"], "no built-in profile"), (["-C", "/", "x"], "root of the file system"),
    (["-C", "", "x"], "-C needs a value that is not empty"), (["--read=", "x"], "--read needs a value"),
    (["-C", "/no/such/dir", "x"], "No such file"), (["-C", "/etc/passwd", "x"], "not a directory")])
def test_bad_usage_is_one_clear_line_and_125(user, words, message):
    done = run(user, *words)
    assert done.returncode == 125
    assert message in done.stderr and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name, text, message", [
    ("a.toml", "[network\n", "a.toml:1: "), ("a.toml", "x = 1\n", 'a.toml:1: unknown key "x"'),
    ("a.json", '{\n"network": {"allow": [1]}}', "a.json:2: "), ("a.toml", "[limits]\npids = 0\n", "a.toml:2: "),
    ("a.toml", "[filesystem]\nread=['/x']\nhide=['/x']\n", "a.toml:3: "), ("a.toml", "\0", "a.toml:1: ")])
def test_bad_policy_files_are_named_with_their_line(user, name, text, message):
    path = user.home / "run" / name
    path.write_text(text)
    user.own(path.parent)
    done = run(user, "--policy", path, "--", "true")
    assert done.returncode == 125 and message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_workspaces_that_are_none(user):
    work = user.home / "work"
    (work / "real").mkdir()
    (work / "link").symlink_to("real")
    newline = work / "a\nb"
    newline.mkdir()
    user.own(work)
    bad = os.fsencode(work) + b"/\xff"
    os.mkdir(bad)
    for place, message in [(work / "link", "is a symbolic link to real"), (newline, "control character"),
                           (os.fsdecode(bad), "not valid UTF-8"), (user.home, "is the home directory")]:
        done = run(user, "-C", place, "--", "true")
        assert done.returncode == 125 and message in done.stderr, (place, done.stderr)
        assert len(done.stderr.splitlines()) == 1


def test_a_project_file_cannot_widen(user, canary):
    (user.home / "work/.soma.toml").write_text(f'[filesystem]\nwrite = ["{canary}"]\n[isolation]\nlevel = "none"\n')
    user.own(user.home / "work")
    done = run(user, "--", "touch", f"{canary}/new")
    assert done.returncode != 0 and not (canary / "new").exists()
    assert ".soma.toml:2" in done.stderr and "can only narrow" in done.stderr


def test_a_minimum_without_kvm_refuses_with_figure_and_way_out(user):
    policy = user.home / "run/p.toml"
    policy.write_text('[isolation]\nminimum = "microvm"\n')
    user.own(policy.parent)
    done = run(user, "--policy", policy, "--", "true")
    if done.returncode == 0:
        pytest.skip("this machine has KVM")
    assert done.returncode == 125
    assert "--isolation emulated" in done.stderr and "not a hardware boundary" in done.stderr


@pytest.mark.parametrize("field", ["CapInh", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Groups"])
def test_level_none_takes_nothing_away(caller, field):
    """What the caller may do, the command may: root keeps its capabilities and groups."""
    def value(done):
        return next(line for line in done.stdout.splitlines() if line.startswith(field + ":"))

    assert value(run(caller, "--isolation", "none", "--", "cat", "/proc/self/status")) == value(caller.run(["cat", "/proc/self/status"]))


def test_none_only_by_its_word_and_recorded(user):
    done = run(user, "--isolation", "none", "--", "sh", "-c", "cat ~/.ssh/id_ed25519; exit 3")
    assert done.returncode == 3 and "SECRET" in done.stdout
    records = "".join(path.read_text() for path in (user.home / "state/journal").rglob("*.jsonl"))
    assert '"level":"none"' in records or "none" in records
    policy = user.home / "run/p.toml"
    policy.write_text('[isolation]\nminimum = "process"\n')
    user.own(policy.parent)
    assert run(user, "--policy", policy, "--isolation", "none", "--", "true").returncode == 125


def test_no_descriptors_left(user):
    done = user.run(["sh", "-c", "ulimit -n 4; exec soma run -- true"], cwd=user.home / "work")
    assert done.returncode == 125 and len(done.stderr.splitlines()) == 1


def test_streams_are_the_commands_alone(caller):
    done = run(caller, "--", "sh", "-c", "cat; echo err >&2", input="in\n")
    assert (done.stdout, done.stderr, done.returncode) == ("in\n", "err\n", 0)


def test_signals_are_forwarded(user):
    child = user.popen(["soma", "run", "--", "sh", "-c", "trap 'echo got; exit 7' TERM; echo ready; while :; do sleep 0.1; done"],
                       cwd=user.home / "work", stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=30)
        assert (out, child.returncode) == ("got\n", 7)
    finally:
        child.kill()
        child.wait()


def test_killed_soma_takes_the_task_along(user, no_residue):
    child = user.popen(["soma", "run", "--", "sh", "-c", "echo ready; exec sleep 1000"], cwd=user.home / "work",
                       stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    child.kill()
    child.wait()
    assert child.stdout.read() == ""  # ends when the last process that holds the pipe is gone


def test_timeout_kills_and_says_so(user):
    done = run(user, "--timeout", "1s", "--", "sleep", "600")
    assert done.returncode == 137 and "its time is over (time = 1s" in done.stderr


def _in_a_terminal(caller, words):
    """Runs words with a terminal on all three streams; gives (exit code, what was shown)."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(caller.home / "work")
        argv = caller.wrap(words)
        os.execvpe(argv[0], argv, caller.environment())
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([master], [], [], 1)[0]:
            try:
                chunk = os.read(master, 4096)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_a_terminal_of_its_own(caller):
    code, shown = _in_a_terminal(caller, ["soma", "run", "-it", "--", "sh", "-c",
                                          "test -t 0 && test -t 1 && test -t 2 && tty && stty size; exit 5"])
    assert code == 5 and "/dev/pts/" in shown, shown


def test_interrupt_reaches_the_command_in_a_terminal(user):
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(user.home / "work")
        argv = user.wrap(["soma", "run", "-it", "--", "sh", "-c", "trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.1; done"])
        os.execvpe(argv[0], argv, user.environment())
    shown = b""
    while b"ready" not in shown:
        shown += os.read(master, 4096)
    os.write(master, b"\x03")
    try:
        while b"interrupted" not in shown:
            shown += os.read(master, 4096)
    except OSError:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, shown
    os.close(master)


@pytest.mark.parametrize("words", [["run", "--help"], ["run", "--explain", "--", "true"], ["--help"], ["doctor"], ["audit", "tail"],
                                   ["policy", "explain"], ["key", "create", "--tenant", "acme"]])
def test_an_answer_that_does_not_arrive_is_a_failure(user, words):
    """The disk behind standard output is full."""
    assert run(user, "--", "true").returncode == 0  # so that there is a journal
    with open("/dev/full", "w") as full:
        done = subprocess.run(user.wrap(["soma", *words]), env=user.environment(), cwd=user.home / "work", stdin=subprocess.DEVNULL,
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 125 and "standard output" in done.stderr, done.stderr


def test_json_before_the_command_means_the_same(user):
    for words in (["--json", "run"], ["run", "--json"]):
        done = user.run(["soma", *words, "--", "echo", "out"], cwd=user.home / "work")
        assert (done.returncode, done.stdout) == (0, "out\n"), done.stderr
        assert json.loads(done.stderr)["exit_code"] == 0


def test_a_path_that_is_not_there_is_said_to_open_nothing(user):
    done = run(user, "--read", "/no/such/place", "--", "true")
    assert done.returncode == 0
    assert done.stderr == "soma: --read /no/such/place: there is nothing of that name, so it opens nothing\n"
