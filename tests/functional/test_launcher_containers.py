# SPDX-License-Identifier: Apache-2.0
"""Containers by launcher and monitor: start, limits, freeze, kill, lease, taking over, and nothing left at the end."""
import fcntl
import os
import pathlib
import random
import signal
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import control  # noqa: E402
import launcher as launcher_lib  # noqa: E402
from conftest import skip  # noqa: E402
from launcher import wait_until  # noqa: E402

MIB = control.MIB
CYCLES = int(os.environ.get("SOMA_CYCLES", "60"))
KILLS = int(os.environ.get("SOMA_KILLS", "25"))


@pytest.fixture
def launcher():
    if os.geteuid() != 0:
        skip("containers with a range of ids need the launcher that runs as root")
    made = launcher_lib.Launcher()
    made.add_template()
    try:
        yield made
    finally:
        made.close()


def assert_nothing_left(launcher):
    launcher.stop()
    wait_until(lambda: not launcher.processes(), "no process is left")
    assert launcher.cgroups() == []
    wait_until(lambda: not launcher.loops(), "no loop device is left")
    assert launcher.files() == ["run/launcher.sock"] or launcher.files() == []


def test_a_command_runs_inside(launcher):
    box = launcher.sandbox(launcher.start())
    assert box.run("id -u; hostname")[1] == f"1000\n{box.name}\n"
    assert box.run("id -u; cat /proc/self/uid_map", uid=0)[1].split()[0] == "0"
    status, processes = box.run("ps ax -o pid,args")
    assert status == 0 and "soma-guest" in processes and "python" not in processes
    assert_nothing_left(launcher)


def test_from_an_erofs_image(launcher):
    launcher.add_template("image", erofs=True)
    box = launcher.sandbox(launcher.start(), template="image")
    assert box.run("cat /etc/group; touch /home/user/new && ls /home/user") == (0, "root:x:0:\nuser:x:1000:\nnew\n")
    assert box.run("stat -c %U /bin/sh")[1] == "root\n"
    assert_nothing_left(launcher)


def test_two_sandboxes_do_not_see_each_other(launcher):
    connection = launcher.start()
    one = launcher.sandbox(connection)
    two = launcher.sandbox(connection)
    assert one.run("echo one > /tmp/file; id -u")[0] == 0
    assert two.run("ls /tmp/file")[0] != 0
    maps = {box.run("cat /proc/1/uid_map", uid=0)[1] for box in (one, two)}
    assert len(maps) == 1  # in the sandbox's own numbers
    outside = {int((pathlib.Path("/proc") / str(pid) / "status").read_text().split("Uid:")[1].split()[0])
               for pid in sandbox_pids(launcher)}
    assert len(outside) == 2


def sandbox_pids(launcher):
    """Pids 1 of the sandboxes: their program is soma-guest."""
    found = []
    for pid in launcher.processes():
        try:
            if os.readlink(f"/proc/{pid}/exe").endswith("soma-guest"):
                found.append(pid)
        except OSError:
            pass
    return found


def test_the_template_stays_as_it_is(launcher):
    connection = launcher.start()
    first = launcher.sandbox(connection)
    assert first.run("rm /bin/cat; echo x > /etc/passwd", uid=0)[0] == 0
    second = launcher.sandbox(connection)
    assert second.run("cat /etc/passwd")[1].startswith("root:")


def test_a_disk_filler_gets_enospc_and_a_neighbour_does_not(launcher):
    connection = launcher.start()
    filler = launcher.sandbox(connection, disk=32 * MIB)
    neighbour = launcher.sandbox(connection, disk=32 * MIB)
    status, output = filler.run("dd if=/dev/zero of=/tmp/big bs=1M count=64")
    assert status != 0 and "No space left" in output
    size = int(filler.run("stat -c %s /tmp/big")[1])
    assert 20 * MIB < size < 32 * MIB
    assert neighbour.run("dd if=/dev/zero of=/tmp/small bs=1M count=8")[0] == 0
    assert filler.run("rm /tmp/big && echo again > /tmp/fits")[0] == 0


def test_an_inode_filler_gets_enospc(launcher):
    box = launcher.sandbox(launcher.start(), inodes=1024, disk=64 * MIB)
    status, output = box.run("i=0; while true; do touch /tmp/f$i || break; i=$((i+1)); done; echo made $i")
    assert "No space left" in output
    made = int(output.rsplit("made ", 1)[1])
    assert 500 < made <= 1100


def test_a_fork_bomb_and_a_memory_hog_stay_inside(launcher):
    box = launcher.sandbox(launcher.start(), pids=40, memory=48 * MIB)
    status, output = box.run("for i in $(seq 100); do sleep 100 & done; echo done")
    assert "ork" in output  # "Cannot fork", "fork: retry"
    assert box.run("kill -9 -1; true")[0] in (0, 137)
    # dd's block is one allocation.
    status, _output = box.run("dd if=/dev/zero of=/dev/null bs=200M count=1")
    assert status != 0
    assert box.run("echo alive")[1] == "alive\n"


def test_freeze_and_thaw(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection)
    box.run("(while true; do date +%s%N > /tmp/now; done) > /dev/null 2>&1 &")
    connection.ask("freeze", box.name)
    assert connection.ask("status", box.name).state == "frozen"
    frozen = [pid for pid in sandbox_pids(launcher)]
    cpu = [pathlib.Path(f"/proc/{pid}/stat").read_text().split()[13:15] for pid in frozen]
    time.sleep(0.2)
    assert cpu == [pathlib.Path(f"/proc/{pid}/stat").read_text().split()[13:15] for pid in frozen]
    connection.ask("thaw", box.name)
    assert box.run("echo thawed")[1] == "thawed\n"
    connection.ask("freeze", box.name)
    assert connection.ask("kill", box.name).state == "killed", "a frozen sandbox can be killed"
    assert_nothing_left(launcher)


def test_kill_and_reap(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection)
    box.run("sleep 1000 > /dev/null 2>&1 &")
    assert connection.ask("kill", box.name).state == "killed"
    assert box.monitor.next_event().state == "killed"
    with pytest.raises(control.Refused) as refused:
        launcher.sandbox(connection, box.name)
    assert refused.value.code == "already_exists"
    assert connection.ask("reap", box.name).state == "killed"
    with pytest.raises(control.Refused) as refused:
        connection.ask("status", box.name)
    assert refused.value.code == "not_found"
    assert not sandbox_pids(launcher)
    assert_nothing_left(launcher)


def monitor_of(pid):
    monitor = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    assert os.readlink(f"/proc/{monitor}/exe").endswith("soma-monitor")
    return monitor


def test_a_kill_does_not_wait_for_the_disk(launcher):
    """Unmounting writes a disk out: the monitor's end does it, after the answer, not the end of pid 1, which a kill waits for."""
    connection = launcher.start()
    box = launcher.sandbox(connection)
    # Its own, and two ready ones of its size and of the usual size.
    wait_until(lambda: len(launcher.loops()) == 5, "all disks are made")
    [pid] = sandbox_pids(launcher)
    monitor = monitor_of(pid)
    os.kill(monitor, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "State:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text(), "pid 1 has ended")
    assert len(launcher.loops()) == 5
    os.kill(monitor, signal.SIGCONT)
    wait_until(lambda: len(launcher.loops()) == 4, "its disk is gone")
    assert connection.ask("status", box.name).state == "exited"
    assert_nothing_left(launcher)


def test_exit_codes_arrive(launcher):
    connection = launcher.start()
    for _ in range(10):  # so soon after the start its monitor still sits in the sandbox's cgroup
        box = launcher.sandbox(connection)
        box.agent.stream.write(b"exit 7\n")
        box.agent.stream.flush()
        event = box.monitor.next_event()
        assert (event.state, event.exit_code, event.exit_signal) == ("exited", 7, 0)
        wait_until(lambda: connection.ask("status", box.name).state == "exited", "the launcher knows it too")


def test_the_lease_ends_a_sandbox(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection, lease=1)
    renewed = launcher.sandbox(connection, lease=1)
    renewed.monitor.ask("renew", renewed.name, lease=600)
    assert box.monitor.next_event().state == "expired"
    assert connection.ask("status", renewed.name).lease_remaining_ms > 500_000
    assert renewed.run("echo on")[1] == "on\n"


def test_list_names_all_in_order(launcher):
    connection = launcher.start()
    names = sorted(launcher.sandbox(connection, name).name for name in ("b2", "a1", "c3"))
    seen = []
    after = ""
    while True:
        try:
            after = connection.ask("list", after).sandbox
        except control.Refused as refused:
            assert refused.code == "not_found"
            break
        seen.append(after)
    assert seen == names


def test_a_start_that_fails_leaves_nothing(launcher):
    connection = launcher.start()
    for fields in ({"template": "absent"}, {"level": "emulated", "template": "absent"}):
        with pytest.raises(control.Refused):
            launcher.sandbox(connection, "doomed", **fields)
    (launcher.programs / "soma-guest").write_text("not a program\n")
    with pytest.raises(control.Refused) as refused:
        launcher.sandbox(connection, "doomed2")
    assert "ENOEXEC" in refused.value.detail or "xec" in refused.value.detail
    assert_nothing_left(launcher)


def test_a_new_server_takes_over_with_the_token_only(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection)
    box.run("echo kept > /tmp/file")
    with pytest.raises(control.Refused) as refused:
        connection.ask("attach", box.name, token=box.token)
    assert refused.value.code == "failed_precondition", "one server at a time"
    box.close()
    connection.close()
    connection = launcher.connect()
    with pytest.raises(control.Refused) as refused:
        connection.ask("attach", box.name, token=bytes(32))
    assert refused.value.code == "unauthenticated"
    again = launcher_lib.Sandbox(launcher, box.name, box.token,
                                 wait_until(lambda: try_attach(connection, box), "the wire is free"))
    assert again.run("cat /tmp/file")[1] == "kept\n"
    assert again.monitor.ask("kill", box.name).ok


def try_attach(connection, box):
    try:
        return connection.ask("attach", box.name, token=box.token)
    except control.Refused as refused:
        assert refused.code == "failed_precondition"
        return None


def test_a_killed_worker_is_replaced_and_adopts(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection)
    os.kill(launcher.worker(), signal.SIGKILL)
    connection = launcher.connect()  # queues until the next worker is there
    assert connection.ask("status", box.name).state == "running"
    assert box.run("echo alive")[1] == "alive\n"
    assert box.monitor.ask("status", box.name).ok
    connection.ask("freeze", box.name)
    connection.ask("thaw", box.name)
    assert connection.ask("kill", box.name).state == "killed"
    assert_nothing_left(launcher)


def test_server_and_worker_killed_the_lease_cleans_up(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection, lease=2)
    box.close()
    connection.close()
    os.kill(launcher.worker(), signal.SIGKILL)
    wait_until(lambda: not sandbox_pids(launcher), "the lease ends the sandbox")
    wait_until(lambda: launcher.files() == ["run/launcher.sock"], "its record and socket are removed")
    assert_nothing_left(launcher)


def test_parent_killed_too_no_process_is_left_and_the_next_start_sweeps(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection, lease=2)
    box.close()
    connection.close()
    worker = launcher.worker()
    launcher.process.kill()
    launcher.process.wait()
    wait_until(lambda: not pathlib.Path(f"/proc/{worker}").exists(), "the worker ends with its parent")
    wait_until(lambda: not launcher.processes(), "no process is left")
    connection = launcher.start()
    wait_until(lambda: launcher.files() == ["run/launcher.sock"], "the rest is swept")
    assert_nothing_left(launcher)


def test_a_killed_monitor_takes_its_sandbox_along(launcher):
    connection = launcher.start()
    box = launcher.sandbox(connection)
    [pid] = sandbox_pids(launcher)
    os.kill(monitor_of(pid), signal.SIGKILL)
    wait_until(lambda: not sandbox_pids(launcher), "pid 1 ends")
    wait_until(lambda: connection.ask("status", box.name).state == "lost", "the launcher knows")
    assert_nothing_left(launcher)


def test_the_monitor_has_nothing(launcher):
    connection = launcher.start()
    launcher.sandbox(connection)
    [pid] = sandbox_pids(launcher)
    monitor = monitor_of(pid)
    status = pathlib.Path(f"/proc/{monitor}/status").read_text()
    uids = set(status.split("Uid:")[1].split("\n")[0].split())
    assert len(uids) == 1 and int(uids.pop()) >= launcher_lib.FIRST_ID + 2048 * 65536
    for line in status.splitlines():
        if line.startswith(("CapInh", "CapPrm", "CapEff", "CapAmb")):
            assert int(line.split()[1], 16) == 0, line
    assert "NoNewPrivs:\t1" in status
    wait_until(lambda: "/home" in pathlib.Path(f"/proc/{monitor}/cgroup").read_text(), "it leaves the sandbox's cgroup")
    private = sum(int(line.split()[1]) for path in (monitor, pid)
                  for line in pathlib.Path(f"/proc/{path}/smaps_rollup").read_text().splitlines()
                  if line.startswith(("Private_Clean", "Private_Dirty")))
    print(f"monitor and stand-in guest: {private} KiB private")
    assert private < 2048


def machine():
    """What of the whole machine must be as before; other tests run beside us, so counted coarsely where they share."""
    return len(os.listdir(f"/proc/{os.getpid()}/fd"))


def test_many_cycles_leave_nothing(launcher):
    connection = launcher.start()
    worker = launcher.worker()

    def cycle():
        box = launcher.sandbox(connection)
        assert box.run("echo x > /tmp/x; echo $$")[0] == 0
        connection.ask("kill", box.name)
        connection.ask("reap", box.name)
        box.close()

    def settled():
        return len(launcher.cgroups()), len(launcher.processes()), len(os.listdir(f"/proc/{worker}/fd"))

    for _ in range(3):
        cycle()
    time.sleep(1)
    before = settled()
    mounts = len(pathlib.Path(f"/proc/{worker}/mountinfo").read_text().splitlines())
    own = machine()
    for _ in range(CYCLES):
        cycle()
    wait_until(lambda: settled() == before, "cgroups, processes and descriptors as before")
    assert len(pathlib.Path(f"/proc/{worker}/mountinfo").read_text().splitlines()) == mounts
    assert machine() == own
    assert launcher.worker() == worker
    assert_nothing_left(launcher)


def test_a_launcher_that_nobody_needs_waits_for_who_looks_for_it():
    if os.geteuid() != 0:
        skip("containers with a range of ids need the launcher that runs as root")
    made = launcher_lib.Launcher(arguments=["--idle-exit", "1"])
    try:
        made.start().close()
        with open(made.runtime / "run-gate.lock", encoding="utf-8") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)  # as `soma run` does
            time.sleep(3)  # that nothing happens can only be waited for
            assert made.process.poll() is None
            connection = made.connect()
            assert connection.ask("hello").ok
        connection.close()
        wait_until(lambda: made.process.poll() == 0, "it leaves")
        # Who looked meanwhile was kept out until it had gone.
        with open(made.runtime / "run-gate.lock", encoding="utf-8") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert not made.socket.exists()
    finally:
        made.close()


def test_random_kills_leave_nothing(launcher):
    generator = random.Random(11)
    connection = launcher.start()
    for round_number in range(KILLS):
        boxes = []
        for _ in range(2):
            try:
                boxes.append(launcher.sandbox(connection, lease=600))
            except (control.Refused, EOFError, OSError):
                connection.close()
                connection = launcher.connect()
        victims = [pid for pid in launcher.processes() if pid != launcher.process.pid]
        for pid in generator.sample(victims, min(len(victims), generator.randint(1, 2))):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for box in boxes:
            try:
                connection.ask("kill", box.name)
            except control.Refused as refused:
                assert refused.code in ("not_found", "unavailable", "failed_precondition"), refused
            except (EOFError, OSError):
                connection.close()
                connection = launcher.connect()
                try:
                    connection.ask("kill", box.name)
                except control.Refused:
                    pass
            box.close()
    connection.close()
    connection = launcher.connect()
    after = ""
    while True:
        try:
            after = connection.ask("list", after).sandbox
            connection.ask("kill", after)
        except control.Refused:
            break
    wait_until(lambda: not sandbox_pids(launcher), "no sandbox is left")
    assert_nothing_left(launcher)
