# SPDX-License-Identifier: Apache-2.0
"""`soma run --isolation container|emulated`: one command in a sandbox of its own, from the outside."""
import fcntl
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import base_template  # noqa: E402
from conftest import BIN, skip  # noqa: E402

TESTCASES = pathlib.Path(os.environ.get("SOMA_BUILD_DIR", BIN.parent)) / "testcases"

# An emulated machine beside other tests takes its time; nothing here asserts how long.
PATIENCE = 600


@pytest.fixture(scope="module")
def template():
    return base_template.launcher_state()


def own_programs(home):
    """The programs under a name that no other test's processes have."""
    (home / "bin").mkdir()
    for name in ("soma", "soma-tools", "soma-launcher", "soma-monitor", "soma-guest"):
        try:
            os.link(BIN / name, home / "bin" / name)
        except OSError:
            shutil.copy2(BIN / name, home / "bin" / name)


def left_behind(home):
    left = [line.split()[4] for line in open("/proc/self/mountinfo") if str(home) in line]
    for entry in pathlib.Path("/proc").iterdir():
        try:
            program = os.readlink(entry / "exe") if entry.name.isdigit() else ""
        except OSError:
            continue
        if program.startswith(str(home)):
            left.append(f"{entry.name}:{program}")
    return left + [str(path) for name in ("sandboxes", "monitors", "run-launcher") for path in (home / "run").glob(f"{name}/*")]


def launchers(home):
    return [one for one in left_behind(home) if one.endswith("/soma-launcher")]


@pytest.fixture
def place(root, template):
    """The caller with the template linked in and a workspace."""
    base_template.link_into(root.home / "state")
    own_programs(root.home)
    (root.home / "work/sub").mkdir()
    (root.home / "work/hello.txt").write_text("from the host\n")
    yield root
    assert not left_behind(root.home)
    assert not (root.home / "run/run-launcher").exists(), "a launcher is still noted"


@pytest.fixture(params=["container", "emulated"])
def level(request):
    if request.param == "emulated" and not os.access("/usr/bin/qemu-system-x86_64", os.X_OK):
        skip("no qemu-system-x86_64")
    return request.param


def program(place):
    own = place.home / "bin/soma"
    return own if own.exists() else BIN / "soma"


def run(place, level, *command, options=(), **more):
    more.setdefault("cwd", place.home / "work")
    return place.run([program(place), "run", "--isolation", level, *options, "--", *command], timeout=PATIENCE, **more)


def test_one_run_shows_what_the_level_promises(place, level):
    """One start for many questions: a machine under emulation boots for seconds."""
    marker = subprocess.Popen(["sleep", "86399"])  # must not be seen inside
    script = ("echo kernel=$(uname -r); echo user=$(id -un); echo where=$(pwd); cat hello.txt; "
              "echo changed > hello.txt; echo new > new.txt; echo caps=$(grep CapEff /proc/self/status | cut -f2); "
              "grep -al 86399 /proc/[0-9]*/cmdline | wc -l | sed s/^/seen=/; ls -a | sort | tr '\\n' ' '; "
              "echo oops >&2; exit 7")
    (place.home / "work/link").symlink_to(place.home / ".ssh/id_ed25519")
    try:
        done = run(place, level, "sh", "-c", script.replace("86399", "8639[9]"))
    finally:
        marker.kill()
        marker.wait()
    assert done.returncode == 7, done.stderr
    lines = done.stdout.splitlines()
    host = os.uname().release
    kernel = [line for line in lines if line.startswith("kernel=")][0].removeprefix("kernel=")
    assert (kernel == host) == (level == "container"), f"{kernel} on {host}"
    assert "user=user" in lines
    assert "where=/home/user/work" in lines
    assert "from the host" in lines
    assert "caps=0000000000000000" in lines
    assert "seen=0" in lines
    assert "hello.txt link new.txt sub" in lines[-1]
    assert "oops\n" in done.stderr
    assert "dropped at the end" in done.stderr
    assert ("not a hardware boundary" in done.stderr) == (level == "emulated")
    # Nothing of it reaches the host, and the link's target did not come along.
    assert (place.home / "work/hello.txt").read_text() == "from the host\n"
    assert not (place.home / "work/new.txt").exists()
    assert "SECRET" not in done.stdout


def test_codes_of_the_shell(place):
    assert run(place, "container", "no-such-program").returncode == 127
    (place.home / "work/plain").write_text("not a program")
    done = run(place, "container", "./plain")
    assert done.returncode == 126, done.stderr
    assert run(place, "container", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_streams_pass_without_loss(place):
    data = os.urandom(3 << 20)
    done = subprocess.run([program(place), "run", "-q", "--isolation", "container", "--", "cat"], input=data, capture_output=True,
                          cwd=place.home / "work", env=place.environment(), timeout=PATIENCE)
    assert done.returncode == 0
    assert done.stdout == data
    assert done.stderr == b""


def test_starts_where_the_caller_stands(place):
    done = run(place, "container", "pwd", cwd=place.home / "work/sub", options=["-C", place.home / "work"])
    assert done.stdout == "/home/user/work/sub\n", done.stderr


def test_what_the_policy_hides_is_not_copied(place):
    (place.home / "work/secret").mkdir()
    (place.home / "work/secret/key").write_text("TOP")
    (place.home / "work/soma.toml").write_text("")
    policy = place.home / "hide.toml"
    policy.write_text(f'[filesystem]\nhide = ["{place.home}/work/secret"]\n')
    done = run(place, "container", "ls", options=["--policy", policy])
    assert done.returncode == 0, done.stderr
    assert "secret" not in done.stdout
    assert "hello.txt" in done.stdout


def read_until(terminal, wanted):
    seen = b""
    while wanted not in seen:
        try:
            part = os.read(terminal, 4096) if select.select([terminal], [], [], 120)[0] else b""
        except OSError:
            part = b""
        assert part, f"ended before {wanted}: {seen}"
        seen += part
    return seen


def test_a_terminal_is_a_terminal(place, level):
    """Size, resizing, an interrupt typed by a person, and the exit code, through every pty on the way."""
    script = ("trap 'echo caught' INT; test -t 0 && test -t 1 && echo is-tty; stty size; read line; stty size; echo got-$line;"
              " read line; exit 9")
    outer, inner = pty.openpty()
    fcntl.ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 91, 0, 0))
    command = [program(place), "run", "-t", "-q", "--isolation", level, "--", "sh", "-c", script]
    with place.popen(command, cwd=place.home / "work", stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
                     preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) as started:
        os.close(inner)
        try:
            assert b"is-tty" in read_until(outer, b"31 91")
            fcntl.ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            os.write(outer, b"hello\n")
            assert b"40 120" in read_until(outer, b"got-hello")
            os.write(outer, b"\x03")
            read_until(outer, b"caught")
            os.write(outer, b"\n")
            assert started.wait(PATIENCE) == 9
        finally:
            os.close(outer)  # hangs up, which ends what still runs


def test_a_time_limit_kills(place):
    done = run(place, "container", "sleep", "600", options=["--timeout", "2s"])
    assert done.returncode == 128 + 9, done.stderr
    assert "its time is over (time = 2s, " in done.stderr


def test_a_time_limit_holds_for_an_agent_that_ends_nothing(place):
    agent = place.home / "bin/soma-guest"
    agent.unlink()
    shutil.copy2(TESTCASES / "hostile_agent", agent)
    done = run(place, "container", "sleep", "600", options=["--timeout", "1s"])
    assert done.returncode == 128 + 9, done.stderr
    assert "its time is over (time = 1s, " in done.stderr


HOG = "blocks = []\nwhile len(blocks) < 4096: blocks.append(b'x' * (1 << 20))"
FORKS = """
import os, signal, time
made = []
try:
    while True:
        made.append(os.fork())
        if made[-1] == 0:
            time.sleep(600)
except OSError:
    for pid in made:
        os.kill(pid, signal.SIGKILL)
    raise SystemExit(3)
"""


@pytest.mark.parametrize("option, value, source, code, said", [
    ("--memory", "100M", HOG, 137, "killed: out of memory (memory = 100M, --memory, by cgroup"),
    ("--pids", "40", FORKS, 3, "times to start one more process (pids = 40, --pids, by cgroup")])
def test_a_limit_that_was_hit_is_named(place, option, value, source, code, said):
    report = place.home / "report.json"
    done = run(place, "container", "python3", "-c", source, options=[option, value, "--report", report])
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert any(said in line for line in json.loads(report.read_text())["limits"])


def test_explaining_runs_nothing(place, level):
    done = run(place, level, "sh", "-c", "echo ran", options=["--explain"])
    assert done.returncode == 0, done.stderr
    assert "ran" not in done.stdout.splitlines()
    lines = done.stdout.splitlines()
    assert lines[0] == f"level: {level} (--isolation)" and any(line.startswith("walls: ") for line in lines)
    assert not (place.home / "run").exists() or not list((place.home / "run").glob("launcher*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_command(place, number):
    script = "trap 'echo caught; exit 5' INT TERM; echo ready; while :; do sleep 0.1; done"
    command = [program(place), "run", "-q", "--isolation", "container", "--", "sh", "-c", script]
    with place.popen(command, cwd=place.home / "work", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout.readline() == "ready\n"
        started.send_signal(number)
        out, _ = started.communicate(timeout=PATIENCE)
    assert (out, started.returncode) == ("caught\n", 5)


def test_two_runs_share_a_launcher_and_the_last_one_stops_it(place):
    def start(script):
        command = [program(place), "run", "-q", "--isolation", "container", "--", "sh", "-c", script]
        return place.popen(command, cwd=place.home / "work", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with start("echo ready; read line") as first:
        assert first.stdout.readline() == "ready\n"
        with start("echo ready; read line; exit 3") as second:
            assert second.stdout.readline() == "ready\n"
            first.communicate("\n", timeout=PATIENCE)
            # The first one started the launcher and is through with its end; the second one's sandbox lives on.
            assert launchers(place.home)
            assert second.poll() is None
            second.communicate("\n", timeout=PATIENCE)
            # Nobody is left, so the second one stopped it before it ended.
            assert not launchers(place.home)
    assert (first.returncode, second.returncode) == (0, 3)


def test_the_journal_has_start_and_end(place):
    report = place.home / "report.json"
    done = run(place, "container", "true", options=["--report", report])
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())
    assert (told["level"], told["exit_code"]) == ("container", 0)
    events = [json.loads(line) for path in sorted((place.home / "state/journal/segments").glob("*/*.jsonl"))
              for line in path.read_text().splitlines()]
    kinds = [event["kind"] for event in events if event.get("run") == told["run"]]
    assert "start" in kinds and "end" in kinds


def test_without_the_template_it_says_what_to_do(root):
    done = run(root, "container", "true")
    assert done.returncode == 125
    assert "soma template build base" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_ordinary_user_is_told(user):
    done = run(user, "container", "true")
    assert done.returncode == 125
    assert "soma template import" in done.stderr
    done = run(user, "emulated", "true")
    assert done.returncode == 125
    assert "needs root" in done.stderr
    policy = user.home / "rooted.toml"
    policy.write_text('[task]\nprofile = "rooted"\n')
    done = run(user, "container", "true", options=["--policy", policy])
    assert done.returncode == 125
    assert "an ordinary user has one" in done.stderr


def test_a_container_may_use_every_cpu_of_its_caller(place):
    done = run(place, "container", "python3", "-c", "import os; print(sorted(os.sched_getaffinity(0)))")
    assert done.stdout.strip() == str(sorted(os.sched_getaffinity(0))), done.stderr
