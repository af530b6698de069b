# SPDX-License-Identifier: Apache-2.0
"""What our own processes may do, read off the living ones from outside: whoever breaks into one of them has no more than that."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "lib"), str(pathlib.Path(__file__).resolve().parent.parent)]
import base_template  # noqa: E402
import launcher as launcher_lib  # noqa: E402
import serving  # noqa: E402
from conftest import BIN, skip  # noqa: E402
from launcher import wait_until  # noqa: E402
from traces import Traces, running, status  # noqa: E402

SERVICE_USER = 0x78010000  # src/sys/service_user.h
# src/launcher/lock_down.cc, by the numbers of linux/capability.h.
WORKER_KEEPS = {0, 1, 3, 4, 5, 6, 7, 8, 18, 19, 21, 24}
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def bits(text):
    value = int(text, 16)
    return {bit for bit in range(64) if value >> bit & 1}


def assert_powerless(pid, uid, bounded=True):
    facts = status(pid)
    assert facts["Uid"].split() == [str(uid)] * 4 and facts["Gid"].split() == [str(uid)] * 4, facts
    assert facts["Groups"] == ""
    for one in SETS if bounded else [one for one in SETS if one != "CapBnd"]:
        assert bits(facts[one]) == set(), (one, facts[one])
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"
    # Nobody reads its memory: not even the own user may trace what isn't dumpable.
    assert os.stat(f"/proc/{pid}/maps").st_uid == 0


@pytest.fixture(scope="module")
def served():
    if os.geteuid() != 0:
        skip("only root has privileges to give up")
    with serving.Server(level="container") as server:
        server.traces = Traces(BIN, server.home)
        server.box = server.create()
        yield server


def test_the_server_is_nobody(served):
    pid = served.server_pid()
    assert_powerless(pid, SERVICE_USER)
    for folder in ("server", "journal"):
        for path in [served.home / "state" / folder, *(served.home / "state" / folder).rglob("*")]:
            assert path.stat().st_uid == SERVICE_USER, path
    # It reaches none of the launcher's files.
    done = subprocess.run(["setpriv", f"--reuid={SERVICE_USER}", f"--regid={SERVICE_USER}", "--clear-groups", "ls",
                           served.home / "state/launcher"], capture_output=True, text=True)
    assert done.returncode != 0 and "Permission denied" in done.stderr


def test_the_server_still_serves(served):
    assert served.box.run("echo works; id -un") == (0, "works\nuser\n")
    assert served.box.files("POST", "/tmp/f", b"written", {"Content-Type": "application/octet-stream"})[0] == 200
    assert served.box.files("GET", "/tmp/f")[2] == "written"
    done = subprocess.run([BIN / "soma-tools", "audit", "verify"], env=served.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_worker_keeps_what_building_takes(served):
    [parent] = [pid for pid in children(served.process.pid) if status(pid)["Name"] == "soma-launcher"]
    [worker] = [pid for pid in children(parent) if status(pid)["Name"] == "soma-worker"]
    facts = status(worker)
    for one in ("CapPrm", "CapEff", "CapBnd"):
        assert bits(facts[one]) <= WORKER_KEEPS, (one, facts[one])
    assert bits(facts["CapInh"]) == bits(facts["CapAmb"]) == set()
    assert facts["Seccomp"] == "2"
    # Beside it, without that: what root has here.
    assert bits(status(os.getpid())["CapBnd"]) - WORKER_KEEPS


def test_the_monitor_is_nobody(served):
    monitors = [pid for pid, name in running(BIN).items() if name == "soma-monitor" and status(pid)["Uid"].split()[0] != "0"
                and any(running(BIN).get(child) == "soma-guest" for child in children(pid))]
    assert monitors
    for pid in monitors:
        uid = int(status(pid)["Uid"].split()[0])
        assert launcher_lib.FIRST_ID + 2048 * 65536 <= uid < SERVICE_USER
        assert_powerless(pid, uid, bounded=False)


@pytest.mark.parametrize("who", ["root", "user"])
def test_the_broker_is_nobody(who, request):
    caller = request.getfixturevalue(who)
    traces = Traces(BIN, caller.home)
    process = caller.popen([BIN / "soma", "run", "--allow-net", "example.com:443", "--", "sleep", "60"], cwd=caller.home / "work",
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        def ready():
            assert process.poll() is None, process.stderr.read()
            return [pid for pid in traces.named("soma-tools") if status(pid)["Seccomp"] == "2"]

        [broker] = wait_until(ready, "the broker")
        assert_powerless(broker, SERVICE_USER if who == "root" else caller.uid)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    wait_until(lambda: not traces.processes(), "the broker ends with its run")


def open_files(pid):
    return {int(entry.name): os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()}


@pytest.mark.parametrize("who", ["root", "user"])
def test_what_reads_a_guests_bytes_is_nobody(who, request, tmp_path_factory):
    """`soma run` above `process`: what parses the guest agent's bytes and answers for its network holds nothing of the caller's."""
    caller = request.getfixturevalue(who)
    if who == "root":
        base_template.link_into(caller.home / "state")
    else:
        published = tmp_path_factory.mktemp("published")
        for at in (published, *list(published.parents)[:2]):
            at.chmod(0o755)
        for name in ("root.erofs", "manifest.json"):
            shutil.copy2(base_template.launcher_state() / "templates/base" / name, published / name)
            (published / name).chmod(0o644)
        caller.run([BIN / "soma-tools", "template", "import", published], check=True)
    traces = Traces(BIN, caller.home)
    (caller.home / "work/kept").write_text("the caller's own\n")
    (caller.home / "work/kept").chmod(0o600)
    caller.own(caller.home / "work")
    command = [BIN / "soma", "run", "-q", "--isolation", "container", "--", "sh", "-c", "cat kept; read line; exit 4"]
    process = caller.popen(command, cwd=caller.home / "work", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "the caller's own\n"
        [attendant] = [pid for pid in children(process.pid) if status(pid)["Name"] == "soma-attendant"]
        assert_powerless(attendant, SERVICE_USER if who == "root" else caller.uid)
        # No file or folder of the caller's, and no lock of the launcher's users: the journal only.
        held = [path for number, path in open_files(attendant).items() if number > 2 and path.startswith("/")]
        assert held and all(path.startswith(str(caller.home / "state/journal")) for path in held), held
        # The other half reads nothing of the guest's: it has no wire, and no connection but the one to the attendant.
        assert status(process.pid)["Threads"] == "1"
        out, _ = process.communicate("\n", timeout=60)
        assert process.returncode == 4
    finally:
        process.kill()
        process.communicate()
    wait_until(lambda: not traces.processes(), "everything ends with the run")


def test_a_killed_attendant_ends_the_run(root):
    base_template.link_into(root.home / "state")
    traces = Traces(BIN, root.home)
    process = root.popen([BIN / "soma", "run", "--isolation", "container", "--", "sh", "-c", "echo ready; read line"], cwd=root.home / "work",
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    [attendant] = [pid for pid in children(process.pid) if status(pid)["Name"] == "soma-attendant"]
    os.kill(attendant, 9)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 125 and "attendant was killed by signal 9" in said, said
    wait_until(lambda: not traces.processes(), "everything ends with the run")


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_the_session_keyring_stays_outside(user, where):
    """Both without the filter that refuses the calls: a key of the caller's session is found by it outside, and not inside."""
    source = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(250, 1, None) < 0 or libc.syscall(248, b"user", b"soma-canary", b"x", 1, -3) < 0:
    print("no keyrings here"); sys.exit()
find = "import ctypes; print(ctypes.CDLL(None).syscall(250, 10, -3, b'user', b'soma-canary', 0) > 0)"
words = [*sys.argv[1:], "/usr/bin/python3", "-I", "-S", "-c", find]
print(subprocess.run(words, capture_output=True, text=True, env={**os.environ, "SOMA_TEST_WITHOUT": "seccomp"}).stdout)
"""
    runner = [BIN / "soma-walls-run", "--workspace", user.home / "work", "--home", user.home, "--"] if where == "inside" else []
    done = user.run(["/usr/bin/python3", "-c", source, *runner])
    if "no keyrings" in done.stdout:
        skip("no keyring can be made here")
    assert done.stdout.strip() == ("True" if where == "outside" else "False"), done.stdout + done.stderr


def test_a_link_in_the_journal_leads_root_nowhere(root, canary):
    """The service's user owns the journal and plants links where root's programs write next."""
    journal = root.home / "state/journal"
    assert root.run([BIN / "soma-tools", "key", "list"]).returncode == 0
    (journal / "segments").mkdir(exist_ok=True)
    (journal / "segments/0").symlink_to(canary)
    (journal / "head.jsonl").symlink_to(canary / "kept")
    for path in (journal, journal / "segments", journal / "segments/0", journal / "head.jsonl"):
        os.lchown(path, SERVICE_USER, SERVICE_USER)
    done = root.run([BIN / "soma", "run", "--", "true"], cwd=root.home / "work")
    assert done.returncode == 125, done.stderr
    assert sorted(path.name for path in canary.iterdir()) == ["kept"] and (canary / "kept").read_text() == "untouched"
