# SPDX-License-Identifier: Apache-2.0
"""Root inside a container tries to get out. In pairs where one wall stands in the way: without it (SOMA_TEST_WITHOUT, test builds only)
the same attempt goes through, so it is that wall which holds."""
import contextlib
import ctypes
import functools
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import launcher as launcher_lib  # noqa: E402
from conftest import skip  # noqa: E402
from conftest import without as switched_off  # noqa: E402
from walls_helpers import assert_pair  # noqa: E402

MADE = []


@functools.cache
def user_namespaces():
    return subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode == 0


def make(without=""):
    if os.geteuid() != 0:
        skip("containers with a range of ids need the launcher that runs as root")
    if not user_namespaces():
        skip("user namespaces are forbidden here, even to root: there are no containers")
    made = launcher_lib.Launcher(environment=switched_off(without), arguments=["--ready", "1"])
    MADE.append(made)
    made.add_template()
    return made


@pytest.fixture(autouse=True)
def close_all():
    yield
    while MADE:
        MADE.pop().close()


def start(profile="rooted", without=""):
    made = make(without)
    return made.sandbox(made.start(), profile=profile)


@pytest.fixture
def box():
    return start()


def refused(result):
    status, output = result
    assert status != 0, output
    return output


def test_setuid_makes_root_inside_rooted_only():
    rooted = start("rooted")
    assert rooted.run("become_root") == (0, "euid=0\n")
    assert rooted.run("id -u", uid=0)[1] == "0\n"
    strict = start("strict")
    assert refused(strict.run("become_root")) == "euid=1000\n"


def test_root_inside_is_nobody_outside(box):
    box.run("sleep 600 > /dev/null 2>&1 &", uid=0)
    for pid in box.launcher.processes():
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            program = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if program.endswith("/sleep"):
            uid = int(status.split("Uid:")[1].split()[0])
            assert launcher_lib.FIRST_ID <= uid <= launcher_lib.LAST_ID


def test_no_mounts(box):
    for command in ("mount -t tmpfs none /tmp", "mount -t proc none /proc", "mount --bind / /tmp", "umount /proc",
                    "mount -o remount,rw /sys"):
        refused(box.run(command, uid=0))


def test_no_block_devices(box):
    refused(box.run("mknod /tmp/disk b 254 0", uid=0))
    refused(box.run("mknod /tmp/memory c 1 1", uid=0))
    assert "vda" not in box.run("ls /dev")[1]
    refused(box.run("mount /dev/vda /tmp", uid=0))


def test_no_new_namespaces(box):
    for command in ("unshare -U true", "unshare -m true", "unshare -n true", "unshare -r true"):
        refused(box.run(command, uid=0))
        refused(box.run(command))


def test_no_netfilter_and_no_addresses(box):
    refused(box.run("nft list ruleset && nft flush ruleset", uid=0))
    refused(box.run("ip link add x type dummy", uid=0))
    refused(box.run("ip addr add 10.9.9.9/8 dev lo", uid=0))
    refused(box.run("ip route add default dev lo", uid=0))
    refused(box.run("ip link set lo down", uid=0))


def test_no_host_settings(box):
    before = pathlib.Path("/proc/sys/kernel/core_pattern").read_text()
    refused(box.run("echo '|/tmp/x' > /proc/sys/kernel/core_pattern", uid=0))
    assert pathlib.Path("/proc/sys/kernel/core_pattern").read_text() == before
    refused(box.run("echo 1 > /proc/sys/net/ipv4/ip_forward", uid=0))
    refused(box.run("echo h > /proc/sysrq-trigger", uid=0))
    refused(box.run("head -c 1 /proc/kcore", uid=0))
    refused(box.run("dmesg", uid=0))
    refused(box.run("date -s 2001-01-01", uid=0))


def test_no_host_processes(box):
    processes = box.run("ps ax -o pid,args", uid=0)[1].splitlines()
    assert len(processes) <= 4, processes
    assert box.run("ls -d /proc/[0-9]* | wc -l", uid=0)[1].strip() in ("2", "3", "4")


def test_pid_one_is_out_of_reach(box):
    refused(box.run("cat /proc/1/environ", uid=0))
    refused(box.run("ls /proc/1/root/", uid=0))
    refused(box.run("ls -l /proc/1/fd/", uid=0))
    refused(box.run("head -c 4 /proc/1/exe", uid=0))
    box.run("kill -9 1; kill -TERM 1", uid=0)
    assert box.run("echo alive")[1] == "alive\n"


def test_the_view_names_no_host_path(box):
    mounts = box.run("cat /proc/self/mountinfo; cat /proc/self/cgroup", uid=0)[1]
    assert str(box.launcher.home) not in mounts and "/var/" not in mounts, mounts
    assert "soma" not in box.run("cat /proc/self/cgroup")[1]


def test_no_host_file_is_there(box):
    secret = box.launcher.home / "secret"
    secret.write_text("of the host")
    refused(box.run(f"cat {secret}", uid=0))
    refused(box.run(f"cat /proc/1/root{secret}", uid=0))
    refused(box.run("ls /sys/kernel", uid=0))


def test_no_capability_beyond_the_list(box):
    effective = int(box.run("cat /proc/self/status", uid=0)[1].split("CapBnd:")[1].split()[0], 16)
    allowed = sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 31))
    assert effective & ~allowed == 0, hex(effective)


def test_strict_has_no_capability_for_tasks():
    strict = start("strict")
    status = strict.run("cat /proc/self/status")[1]
    assert int(status.split("CapEff:")[1].split()[0], 16) == 0
    assert status.split("NoNewPrivs:")[1].split()[0] == "1"
    assert status.split("Seccomp:")[1].split()[0] == "2"


def interfaces(text):
    return {line.split(":")[0].strip() for line in text.splitlines() if ":" in line}


# --- one wall each, by name --------------------------------------------------------------------------------------------

def attacked(attack, wall, profile="rooted", uid=0):
    """`attack(run, launcher)` in a container with all walls fails, in one without this one it succeeds."""
    def attempt(without):
        one = start(profile, without)
        return attack(lambda command: one.run(command, uid), one.launcher)

    assert_pair(attempt, wall)


def test_user_namespace_keeps_root_from_kernel_settings():
    # Opened, not written: without the wall it is the host's.
    attacked(lambda run, _: run(": >> /proc/sys/kernel/core_pattern")[0] == 0, "user")


def test_mount_view_keeps_files_of_the_host_out():
    def attack(run, launcher):
        (launcher.home / "canary").write_text("OF-THE-HOST")
        return "OF-THE-HOST" in run(f"cat {launcher.home}/canary")[1]

    attacked(attack, "mount")


def test_pid_namespace_keeps_host_processes_out():
    attacked(lambda run, _: run(f"ls -d /proc/{os.getpid()}")[0] == 0, "pid")


def test_network_namespace_keeps_host_interfaces_out():
    of_the_host = interfaces(pathlib.Path("/proc/net/dev").read_text())
    if of_the_host == {"lo"}:
        skip("this machine has no network interface to be hidden")
    attacked(lambda run, _: interfaces(run("cat /proc/net/dev")[1]) == of_the_host, "network")


@contextlib.contextmanager
def shared_memory():
    """The number of a System V segment of the host."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.shmget(0x50A1000 + os.getpid() % 0xFFF, 4096, 0o1666)
    assert number >= 0
    try:
        yield str(number)
    finally:
        libc.shmctl(number, 0, None)  # IPC_RMID


def test_ipc_namespace_keeps_shared_memory_out():
    with shared_memory() as number:
        attacked(lambda run, _: any(line.split()[1] == number for line in run("cat /proc/sysvipc/shm")[1].splitlines()), "ipc")


def test_uts_namespace_keeps_the_host_name_out():
    attacked(lambda run, _: run("hostname")[1].strip() == os.uname().nodename, "uts")


def test_cgroup_namespace_keeps_the_place_in_the_tree_out():
    attacked(lambda run, _: "soma-" in run("cat /proc/self/cgroup")[1], "cgroup-namespace")


def test_seccomp_keeps_new_namespaces_out():
    attacked(lambda run, _: run("unshare -U true")[0] == 0, "seccomp")


def test_bounding_set_keeps_pid_one_out_of_reach():
    # CAP_SYS_PTRACE over the agent would be its wire.
    attacked(lambda run, _: len(run("head -c 4 /proc/1/exe 2> /dev/null")[1]) == 4, "capabilities")


def test_limits_keep_core_files_out():
    attacked(lambda run, _: run("ulimit -H -c")[1] == "unlimited\n", "limits")


def test_hidden_files_of_proc():
    attacked(lambda run, _: run("cat /proc/key-users")[0] == 0, "hide")


def test_read_only_sys():
    attacked(lambda run, _: run("touch /sys/made")[0] == 0, "read-only")


@pytest.mark.parametrize("wall", ["nosuid", "no-new-privs"])
def test_setuid_program_of_a_strict_container(wall):
    """Two walls stand before it and each alone holds, so each is tried where the other is off."""
    other = {"nosuid": "no-new-privs", "no-new-privs": "nosuid"}[wall]

    def attack(without):
        return start("strict", without).run("become_root")[1] == "euid=0\n"

    assert attack("nosuid,no-new-privs"), f"the attack fails even without {wall}: it proves nothing"
    assert not attack(other), f"the attack got through all walls but {other}"
