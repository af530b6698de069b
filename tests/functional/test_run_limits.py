# SPDX-License-Identifier: Apache-2.0
"""A fork bomb and a memory hog inside `soma run` are stopped, with the limit and the means named; CPUs are not taken away."""
import json
import os
import pathlib
import subprocess


def run(caller, *words, **options):
    return caller.run(["soma", "run", *words], cwd=caller.home / "work", **options)


FORKS = """
import os, time
made = 0
try:
    while made < 2000:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError as error:
    print('stopped', made, error.errno)
    raise SystemExit(3)
"""

HOG = """
blocks = []
try:
    while len(blocks) < 4096:
        blocks.append(b'x' * (1 << 20))
except MemoryError:
    print('no memory', len(blocks))
    raise SystemExit(3)
"""


def test_fork_bomb(caller, no_residue):
    report = caller.home / "report.json"
    done = run(caller, "--pids", "60", "--report", report, "--", "python3", "-c", FORKS)
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("stopped ") and int(done.stdout.split()[1]) <= 60
    said = json.loads(report.read_text())
    if said["limits_regime"] == "cgroup":
        assert "to start one more process (pids = 60" in done.stderr
    else:
        assert any("limits: rlimit" in note for note in said["notes"])


def test_memory_hog(caller, no_residue):
    report = caller.home / "report.json"
    done = run(caller, "--memory", "150M", "--report", report, "--", "python3", "-c", HOG)
    assert done.returncode in (3, 137), done.stderr
    assert "memory (memory = 150M" in done.stderr
    said = json.loads(report.read_text())
    assert ("by cgroup" if said["limits_regime"] == "cgroup" else "by rlimit") in done.stderr


def test_tmp_is_bounded(caller):
    policy = caller.home / "run/p.toml"
    policy.write_text('[limits]\ntmp = "4M"\n')
    caller.own(policy.parent)
    done = run(caller, "--policy", policy, "--", "dd", "if=/dev/zero", "of=/tmp/x", "bs=1M", "count=20")
    assert done.returncode == 1 and "No space left" in done.stderr


def test_the_command_may_use_every_cpu_of_its_caller(caller):
    """The launch keeps itself on one CPU; the command, and what it starts at once, must not inherit that."""
    cpus = "import os; print(sorted(os.sched_getaffinity(0)))"
    outside = caller.run(["python3", "-c", cpus]).stdout
    inside = run(caller, "--", "sh", "-c", f'python3 -c "{cpus}" & python3 -c "{cpus}"; wait')
    assert inside.stdout == outside * 2, inside.stderr


def test_what_lives_beside_the_command_may_use_every_cpu_too(caller):
    """The broker is started by the process that keeps itself on one CPU for the launch."""
    running = caller.popen(["soma", "run", "--allow-net", "example.test", "--", "sh", "-c", "echo up; read line"],
                           cwd=caller.home / "work", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert running.stdout.readline() == "up\n"
        children = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        broker = [int(pid) for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text() == "soma-tools\n"]
        assert broker, children
        for pid in (running.pid, *broker):
            assert os.sched_getaffinity(pid) == os.sched_getaffinity(0)
    finally:
        running.communicate("\n", timeout=60)
