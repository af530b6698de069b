# SPDX-License-Identifier: Apache-2.0
"""However a task ends, nothing of it is left: no process, mount, cgroup or file. The launcher is killed at random moments of its work."""
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import conftest
from walls_helpers import RUNNER, need_user_namespaces, shell, walls

CYCLES = int(os.environ.get("SOMA_CYCLES", "100"))
MARK = "7657"  # an argument that only our sleeps have


def left_processes(caller):
    """Ours: the sleeps, and launchers and inits that still carry the words of their start. (An init hides them just before it starts the
    command, so one that is left then shows by its sleeps.)"""
    words = (MARK.encode(), str(caller.home).encode())
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if any(word in line for word in words):
            found.append(f"{path.parent.name}: {line!r}")
    return found


def left_cgroups():
    return {os.path.join(top, name) for top, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith("soma-run-")}


def left_mounts(caller):
    return [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if str(caller.home) in line]


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def kill_cycles(caller, options, command, cycles):
    before_cgroups = left_cgroups()
    dice = random.Random(7)
    for _ in range(cycles):
        process = caller.popen([RUNNER, "--workspace", caller.home / "work", "--home", caller.home, *options, "--", *command],
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert wait_until(lambda: not left_processes(caller)), f"processes left: {left_processes(caller)}"
    assert wait_until(lambda: left_cgroups() <= before_cgroups), "cgroups left"
    assert not left_mounts(caller)
    assert not list((caller.home / "work").iterdir())


COMMAND = shell(f"sleep {MARK} & (setsid sleep {MARK} &); exec sleep {MARK}")


def test_sigkill_of_the_launcher(caller):
    need_user_namespaces(caller)
    kill_cycles(caller, [], COMMAND, CYCLES)


def test_sigkill_of_the_launcher_on_the_second_path(user):
    kill_cycles(user, ["--second-path", "--host-network"], COMMAND, 30)


def test_sigkill_of_the_launcher_with_cgroups(root):
    need_user_namespaces(root)
    probe = walls(root, ["true"], options=["--memory", str(64 << 20), "--pids", "50"])
    if probe.returncode != 0:
        conftest.skip(f"no cgroup can be made here: {probe.stderr.strip()}")
    kill_cycles(root, ["--memory", str(64 << 20), "--pids", "50"], COMMAND, 20)


def test_an_empty_cgroup_whose_keeper_was_killed_too_is_swept_by_the_next_run(root):
    need_user_namespaces(root)
    before = left_cgroups()
    report = root.home / "report.json"
    run = [conftest.BIN / "soma", "run", "--pids", "50", "--report", report, "--"]
    done = root.run([*run, "true"], cwd=root.home / "work")
    if json.loads(report.read_text())["limits_regime"] != "cgroup":
        conftest.skip("no cgroup can be made here")
    assert done.returncode == 0 and left_cgroups() <= before
    process = root.popen([*run, "sh", "-c", "echo up; read line"], cwd=root.home / "work", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    made = [path for path in left_cgroups() - before if path.endswith(f"-{process.pid}")]
    assert made
    keepers = [int(child) for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
               if pathlib.Path(f"/proc/{child}/comm").read_text() == "soma-keeper\n"]
    for pid in (*keepers, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert wait_until(lambda: not any(pathlib.Path(path, "cgroup.procs").read_text() for path in made))
    assert set(made) <= left_cgroups(), "somebody else removed it: this shows nothing"
    # One that is younger may be somebody's in another pid namespace who is just starting; one of a living process is that one's.
    own = os.path.join(os.path.dirname(made[0]), f"soma-run-{os.getpid()}")
    os.mkdir(own)
    try:
        os.utime(own, (1, 1))
        assert root.run([*run, "true"], cwd=root.home / "work").returncode == 0
        assert set(made) <= left_cgroups()
        for path in made:
            os.utime(path, (1, 1))
        assert root.run([*run, "true"], cwd=root.home / "work").returncode == 0
        assert left_cgroups() - before == {own}
    finally:
        os.rmdir(own)


def test_cgroup_limits_hold(root):
    need_user_namespaces(root)
    options = ["--memory", str(64 << 20), "--pids", "50"]
    probe = walls(root, ["true"], options=options)
    if probe.returncode != 0:
        conftest.skip(f"no cgroup can be made here: {probe.stderr.strip()}")
    before = left_cgroups()
    assert walls(root, ["/usr/bin/python3", "-I", "-S", "-c", "x = bytearray(200 << 20)"], options=options).returncode == 137
    forks = "import os\nn = 0\ntry:\n  while n < 200:\n    if os.fork() == 0: import time; time.sleep(20); os._exit(0)\n    n += 1\nexcept OSError: pass\nprint(n)"
    done = walls(root, ["/usr/bin/python3", "-I", "-S", "-c", forks], options=options)
    assert 10 < int(done.stdout) < 50
    assert left_cgroups() <= before
