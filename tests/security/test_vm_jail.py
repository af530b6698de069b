# SPDX-License-Identifier: Apache-2.0
"""The level `emulated` without launcher and server: a machine boots inside its jail, and the jail holds.

The monitor is the attacker here: whoever breaks out of the guest is inside QEMU. So the walls are read off the running process, from
outside, beside those of a process without them.
"""
import os
import pathlib
import re
import signal
import subprocess
import time

import base_template
import pytest

FIRST_ID = 0x7FFE0000  # soma-vm-run's default
PATIENCE = 180  # seconds: a boot takes two, this guards "it ends"


class Machine:
    def __init__(self, soma_bin, folder, state, scratch_mib=64):
        self.scratch = folder / "scratch.img"
        self.kernel, self.root = state / "kernel", state / "templates/base/root.erofs"
        self.program = soma_bin / "soma-vm-run"
        with open(self.scratch, "wb") as image:
            image.truncate(scratch_mib << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", self.scratch], check=True)

    def argv(self, *command):
        return [self.program, "--kernel", self.kernel, "--root", self.root, "--scratch", self.scratch, "--", *command]

    def run(self, *command):
        return subprocess.run(self.argv(*command), capture_output=True, text=True, timeout=PATIENCE)

    def start(self, *command):
        return subprocess.Popen(self.argv(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def state():
    return base_template.launcher_state()


@pytest.fixture
def machine(soma_bin, tmp_path, state):
    return Machine(soma_bin, tmp_path, state)


def monitor_of(process):
    """The pid of QEMU: the only child."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children and os.readlink(f"/proc/{children[0]}/exe").endswith("qemu-system-x86_64"):
            return int(children[0])
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    raise AssertionError("no monitor")


def status(pid):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def test_runs_a_command_on_its_own_kernel(machine):
    done = machine.run("/bin/sh", "-c", "uname -r; id -un; ls /sys/class/net; sudo -n id -u; exit 7")
    assert done.returncode == 7, done.stderr
    release, user, network, root = done.stdout.split()
    assert release != os.uname().release and release == (machine.kernel / "release").read_text().strip()
    assert (user, network, root) == ("user", "lo", "0")


def test_the_scratch_disk_ends_at_its_size(machine):
    done = machine.run("/bin/sh", "-c", "dd if=/dev/zero of=big bs=1M count=500 2>&1; ls -s big | cut -d' ' -f1")
    assert "No space left on device" in done.stdout, done.stdout + done.stderr
    assert machine.scratch.stat().st_size == 64 << 20


def test_the_monitor_has_nothing(machine):
    with machine.start("/bin/sleep", "600") as process:
        try:
            pid = monitor_of(process)
            # The machine is up: whatever the monitor needs for starting, it has had.
            # Before that, the guest's first program has said how long its stages took.
            first, second = process.stderr.readline(), process.stderr.readline()
            assert first.startswith("soma-vm-init: ms at the end of: kernel ") and "ready" in second
            facts, own = status(pid), status(os.getpid())
            assert facts["Uid"].split() == [str(FIRST_ID + 1)] * 4 and facts["Gid"].split() == [str(FIRST_ID + 1)] * 4
            assert facts["Groups"].strip() == ""
            for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                assert int(facts[kind], 16) == 0, kind
            assert int(own["CapBnd"], 16) != 0  # without the wall
            assert facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2"
            assert int(facts["Seccomp_filters"]) >= int(own.get("Seccomp_filters", "0")) + 2  # ours and QEMU's own
            for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
                assert os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"), kind
            check_view(pid)
            check_descriptors(pid)
        finally:
            process.kill()


def check_view(pid):
    root = pathlib.Path(f"/proc/{pid}/root")
    assert sorted(p.name for p in root.iterdir()) == ["dev", "lib", "lib64", "machine", "usr"]
    assert sorted(p.name for p in (root / "usr/bin").iterdir()) == ["qemu-system-x86_64"]
    assert not any((root / name).exists() for name in ("proc/self", "etc/passwd", "bin/sh", "home"))
    for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        fields = line.split()
        if not fields[4].startswith("/dev"):
            assert "ro" in fields[5].split(","), line
        assert "nosuid" in fields[5].split(","), line


def check_descriptors(pid):
    kinds = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(entry)
        kinds.add(re.sub(r"\d+|/.*/", "", target).split(":")[0] if not target.startswith("/") else os.path.basename(target))
    allowed = {"null", "root.erofs", "scratch.img", "socket", "pipe", "anon_inode"}
    assert {kind for kind in kinds if not any(kind.startswith(a) for a in allowed)} == set()


def test_the_monitor_dies_with_its_parent(machine):
    process = machine.start("/bin/sleep", "600")
    pid = monitor_of(process)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}")


def test_a_dead_guest_ends_the_machine(machine):
    done = machine.run("/usr/bin/sudo", "/bin/sh", "-c", "echo c > /proc/sysrq-trigger")
    assert done.returncode == 125
    assert "machine" in done.stderr or "wire" in done.stderr
