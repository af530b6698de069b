# SPDX-License-Identifier: Apache-2.0
"""`soma serve` as its user starts it: what it refuses, and that two of them on one state never share anything."""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "lib"), str(ROOT)]
from conftest import BIN, skip  # noqa: E402
from serving import Server, free_port  # noqa: E402
from traces import running  # noqa: E402

IDLE_KIB_MAX = 2048  # SPECIFICATION.md: monitor and guest agent of one sandbox together


def serve(environment, *options, level="container"):
    return subprocess.run([BIN / "soma-tools", "serve", "--level", level, *options], env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60)


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.0.0.1", "127.0.0.1:70000", "127.0.0.1:x"])
def test_an_address_without_a_port_is_refused(tmp_path, listen):
    done = serve({"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SOMA_STATE_DIR": str(tmp_path / "state")}, "--listen", listen)
    assert done.returncode == 125 and listen in done.stderr and "port" in done.stderr
    assert not (tmp_path / "state").exists()


def test_a_level_that_the_machine_does_not_prove_is_refused_with_the_figure(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SOMA_STATE_DIR": str(tmp_path / "state")}
    levels = json.loads(subprocess.run([BIN / "soma-tools", "doctor", "--json"], env=environment, capture_output=True, text=True).stdout)
    if [level for level in levels["levels"] if level["name"] == "microvm" and level["possible"]]:
        skip("this machine proves KVM")
    done = serve(environment, level="microvm")
    [kvm] = [row for row in levels["features"] if row["name"] == "kvm"]
    # The figure itself is measured anew each time.
    words = kvm["evidence"].split()[:2]
    assert done.returncode == 125 and " ".join(words) in done.stderr and "--level emulated" in done.stderr, (done.stderr, kvm)
    done = serve(environment, level="vm")
    assert done.returncode == 125 and "there are auto, container, emulated and microvm" in done.stderr
    assert not (tmp_path / "state").exists()


def test_the_key_on_the_disk_is_for_its_owner_only():
    if os.geteuid() != 0:
        skip("containers with a range of ids need the launcher that runs as root")
    with Server("container") as server:
        path = server.home / "state/server/serve.key"
        assert path.read_text() == server.key
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        owner = int(pathlib.Path(f"/proc/{server.server_pid()}/status").read_text().split("Uid:")[1].split()[0])
        assert path.stat().st_uid == owner


def test_metrics_are_the_sandbox_s_not_the_machine_s():
    if os.geteuid() != 0:
        skip("containers with a range of ids need the launcher that runs as root")
    with Server("container") as server:
        box = server.create()
        [before] = server.request("GET", f"/sandboxes/{box.id}/metrics")[2]
        machine = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) * 1024
        assert before["memTotal"] < machine and 0 < before["memUsed"] < before["memTotal"]
        # Half a second of work of its own, and 30 MiB that it holds.
        status, _ = box.run("timeout 0.5 sh -c 'while :; do :; done'; head -c 30m /dev/zero > /dev/shm/held")
        assert status == 0
        [after] = server.request("GET", f"/sandboxes/{box.id}/metrics")[2]
        held = after["memUsed"] + after["memCache"] - before["memUsed"] - before["memCache"]
        assert held >= 25 << 20
        assert after["cpuUsedPct"] > before["cpuUsedPct"] or after["cpuUsedPct"] > 1
        assert 0 < after["diskUsed"] < after["diskTotal"] <= 4 << 30


def test_a_second_one_on_the_same_state_leaves_the_first_alone():
    if os.geteuid() != 0:
        skip("containers with a range of ids need the launcher that runs as root")
    with Server("container") as first:
        box = first.create()
        for port in (first.port, free_port()):
            second = serve(first.environment, "--listen", f"127.0.0.1:{port}")
            assert second.returncode == 125 and "another launcher" in second.stderr and "export" not in second.stdout
        assert box.run("echo still here") == (0, "still here\n")
        listed = first.request("GET", "/v2/sandboxes")[2]
        assert [one["sandboxID"] for one in listed] == [box.id]


def test_in_a_chroot_the_launcher_says_so_at_once(tmp_path):
    if os.geteuid() != 0:
        skip("chroot needs root")
    shutil.copy2(BIN / "soma-launcher", tmp_path / "soma-launcher")
    done = subprocess.run(["/usr/sbin/chroot", tmp_path, "/soma-launcher"], env={"HOME": "/", "SOMA_STATE_DIR": "/state", "SOMA_RUNTIME_DIR": "/run"},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 125 and "chroot" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert os.listdir(tmp_path) == ["soma-launcher"]


def private_kib(pids):
    """What these processes have in memory that they share with nobody."""
    return sum(int(line.split()[1]) for pid in pids for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
               if line.startswith(("Private_Clean", "Private_Dirty")))


def test_an_idle_sandbox_costs_little():
    if os.geteuid() != 0:
        skip("containers with a range of ids need the launcher that runs as root")
    before = set(running(BIN))
    with Server("container") as server:
        assert server.create().run("echo hello") == (0, "hello\n")
        ours = {pid: name for pid, name in running(BIN).items() if pid not in before}
        agents = [pid for pid, name in ours.items() if name == "soma-guest"]
        # Another one may wait in its slot for the next sandbox.
        monitors = [pid for pid, name in ours.items() if name == "soma-monitor"]
        assert len(agents) == 1 and monitors
        costs = [private_kib([*agents, monitor]) for monitor in monitors]
        print(f"monitor and guest: {costs} KiB")
        assert max(costs) <= IDLE_KIB_MAX
