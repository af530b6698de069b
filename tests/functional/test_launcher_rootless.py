# SPDX-License-Identifier: Apache-2.0
"""Containers for an ordinary user: one id, rlimits, a plain directory; the same launcher, monitor and messages."""
import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import control  # noqa: E402
import launcher as launcher_lib  # noqa: E402
from conftest import ORDINARY_UID, skip, user_namespaces_work  # noqa: E402
from launcher import wait_until  # noqa: E402


@pytest.fixture
def launcher():
    uid = os.geteuid() or ORDINARY_UID
    if not user_namespaces_work(uid):
        skip("this machine forbids user namespaces to ordinary users")
    made = launcher_lib.Launcher(uid=uid)
    made.add_template()
    try:
        yield made
    finally:
        made.close()


def test_a_command_runs_inside(launcher):
    box = launcher.sandbox(launcher.start())
    assert box.run("id -u; hostname; cat /etc/hostname", uid=0)[1] == f"0\n{box.name}\n{box.name}\n"
    inside, outside, count = box.run("cat /proc/self/uid_map", uid=0)[1].split()
    assert (inside, int(outside), count) == ("0", launcher.uid, "1")
    assert box.run("echo x > /tmp/file && cat /tmp/file", uid=0) == (0, "x\n")
    assert "python" not in box.run("ps ax -o args", uid=0)[1]


def test_root_inside_gains_nothing(launcher):
    box = launcher.sandbox(launcher.start())
    for command in ("mount -t tmpfs none /tmp", "unshare -U true", "mknod /tmp/x b 8 0", "ip link set lo down", "nft list ruleset",
                    "echo x > /proc/sys/kernel/core_pattern", f"cat {launcher.home}/log", "dmesg"):
        status, output = box.run(command, uid=0)
        assert status != 0, output


def test_a_capability_of_root_s_is_dropped():
    if os.geteuid() != 0:
        skip("only root can give a capability away")
    made = launcher_lib.Launcher(uid=ORDINARY_UID, capability="net_bind_service")
    try:
        made.start().ask("hello")
        status = pathlib.Path(f"/proc/{made.worker()}/status").read_text()
        for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert f"{kind}:\t{0:016x}" in status, status
    finally:
        made.close()


def test_processes_are_limited(launcher):
    box = launcher.sandbox(launcher.start(), pids=20)
    _status, output = box.run("for i in $(seq 60); do sleep 100 & done; echo done", uid=0)
    assert "ork" in output  # "Cannot fork"


def test_nothing_is_left(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection)
    box.run("mkdir -p /tmp/a/b/c; echo x > /tmp/a/b/c/d; chmod 0 /tmp/a/b /tmp/a; sleep 600 > /dev/null 2>&1 &", uid=0)
    assert connection.ask("kill", box.name).state == "killed"
    wait_until(lambda: not list((launcher.state / "trees").iterdir()), "what it wrote is removed")
    launcher.stop()
    wait_until(lambda: not launcher.processes(), "no process is left")
    assert launcher.files() == []


def test_what_root_only_can_is_refused_in_words(launcher):
    connection = launcher.start()
    with pytest.raises(control.Refused) as refused:
        launcher.sandbox(connection, level="emulated")
    assert "root" in refused.value.detail
    box = launcher.sandbox(connection)
    with pytest.raises(control.Refused) as refused:
        connection.ask("freeze", box.name)
    assert refused.value.code == "unimplemented"


def test_worker_and_parent_killed_the_lease_ends_it_and_the_next_start_sweeps(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection, lease=2)
    box.close()
    connection.close()
    launcher.process.send_signal(signal.SIGKILL)
    launcher.process.wait()
    wait_until(lambda: not launcher.processes(), "no process is left")
    launcher.start()
    wait_until(lambda: not list((launcher.state / "trees").iterdir()), "what it wrote is removed")
