# SPDX-License-Identifier: Apache-2.0
"""Our own processes are killed with -9, alone and together: nothing of theirs stays on the machine."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent)]
import base_template  # noqa: E402
import serving  # noqa: E402
from conftest import BIN, skip  # noqa: E402
from launcher import wait_until  # noqa: E402
from traces import Traces, status  # noqa: E402

KILLS = int(os.environ.get("SOMA_KILLS", "12"))
SECONDS = 30  # what is promised with a lease of 5; it takes a few


@pytest.fixture(params=["container", "emulated"])
def level(request):
    if os.geteuid() != 0:
        skip("the levels above process need root here")
    if request.param == "emulated" and not os.access("/usr/bin/qemu-system-x86_64", os.X_OK):
        skip("no qemu-system-x86_64")
    return request.param


class Served:
    def __init__(self, level):
        self.server = serving.Server(level=level)
        self.traces = Traces(BIN, self.server.home)
        self.server.__enter__()

    def launcher(self):
        """(pid of the launcher's parent, pid of its worker)"""
        def find():
            pids = {status(pid)["Name"]: pid for pid in self.traces.named("soma-launcher")}
            return (pids["soma-launcher"], pids["soma-worker"]) if len(pids) == 2 else None

        return wait_until(find, "launcher and worker")

    def running_box(self, **fields):
        box = self.server.create(**fields)
        box.start("sleep 4321 & exec sleep 4321").close()
        return box


@pytest.fixture
def served(level):
    made = Served(level)
    try:
        yield made
    finally:
        made.server.close()
        for pid in made.traces.processes():
            os.kill(pid, signal.SIGKILL)


def left_of(served):
    left = {"processes": served.traces.processes(), "mounts": served.traces.mounts(), "cgroups": served.traces.cgroups(),
            "loops": served.traces.loops(), **served.traces.sandboxes()}
    return {kind: things for kind, things in left.items() if things}


def gone(served):
    return not left_of(served)


def test_soma_serve(served):
    served.running_box()
    served.server.process.kill()
    served.server.process.wait()
    wait_until(lambda: gone(served), "launcher, server and sandboxes end with soma serve", SECONDS)


def test_server_and_worker_after_a_timeout_was_set(served):
    served.running_box(timeout=5)
    _, worker = served.launcher()
    os.kill(served.server.server_pid(), signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not served.traces.sandboxes(), "the lease ends the sandbox, the next worker sweeps", SECONDS)
    assert not served.traces.mounts()
    # Both are there again.
    wait_until(lambda: served.server.request("GET", "/health", key=None)[0] == 200, "the next server", SECONDS)


def test_the_launcher_s_parent_too(served):
    served.running_box(timeout=5)
    parent, worker = served.launcher()
    for pid in (served.server.server_pid(), worker, parent):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not served.traces.processes(), "no process is left", SECONDS)
    served.server.process.wait()
    # A next launcher of the same state sweeps the rest.
    environment = served.server.environment
    with subprocess.Popen([BIN / "soma-launcher", "--ready", "0"], env=environment, stderr=subprocess.DEVNULL) as launcher:
        try:
            wait_until(lambda: not served.traces.sandboxes(), "the rest is gone after the next start", SECONDS)
        finally:
            launcher.terminate()
    wait_until(lambda: gone(served), "nothing at all", SECONDS)


def test_soma_run(root, level):
    base_template.link_into(root.home / "state")
    traces = Traces(BIN, root.home)
    argv = [BIN / "soma", "run", "--isolation", level, "--quiet", "--", "sh", "-c", "echo ready; exec sleep 4321"]
    run = root.popen(argv, cwd=root.home / "work", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n", run.stderr.read()
    assert traces.sandboxes()
    run.kill()
    run.wait()
    run.stdout.close()
    run.stderr.close()
    wait_until(lambda: not traces.sandboxes(), "the sandbox ends with its client", SECONDS)
    # Nobody needs the launcher that it had started.
    wait_until(lambda: not traces.processes(), "the launcher ends when nobody is left", SECONDS)
    assert not traces.mounts() and not traces.cgroups() and not traces.loops()


def try_create(server):
    """None while the server is on its way back. When the worker dies between a start and its answer nobody knows the sandbox; then its
    lease ends it, so that is short."""
    try:
        return serving.Box(server, server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 30})[2])
    except (OSError, KeyError, TypeError, ValueError):
        return None


def end_all(server):
    """True when the server lists no sandbox any more."""
    try:
        listed = server.request("GET", "/v2/sandboxes")[2]
        for box in listed:
            server.request("DELETE", f"/sandboxes/{box['sandboxID']}")
        return listed == []
    except (OSError, TypeError, ValueError):
        return False


def tree(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(os.geteuid() != 0, reason="the levels above process need root here")
def test_random_kills():
    """One of our processes after the other: soma run, its broker, the server, the launcher's worker, monitors, agents."""
    dice = random.Random(23)
    served = Served("container")
    server, traces = served.server, served.traces
    work = server.home / "work"
    work.mkdir()
    (work / "kept").write_text("as before")
    before = tree(work)
    kinds = {}
    server_killed = 0.0
    try:
        parent, _ = served.launcher()
        for _ in range(KILLS):
            box = try_create(server)
            run = subprocess.Popen([BIN / "soma", "run", "--quiet", "--allow-net", "example.com:443", "--", "sleep", "4321"], cwd=work,
                                   env=server.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_until(lambda: run.poll() is not None or set(traces.named("soma-tools")) - {server.process.pid}, "soma run and its broker")
            candidates = {pid: name for pid, name in traces.processes().items() if pid not in (parent, server.process.pid)}
            # soma serve gives a server up that dies again and again within its first two seconds, and then ends everything.
            if time.monotonic() < server_killed + 5:
                candidates = {pid: name for pid, name in candidates.items() if name != "soma-server"}
            by_kind = {name: sorted(pid for pid in candidates if candidates[pid] == name) for name in sorted(candidates.values())}
            # The kind that was killed least, so that every kind has its turn; of several the dice's.
            fewest = min(kinds.get(name, 0) for name in by_kind)
            kind = dice.choice([name for name in by_kind if kinds.get(name, 0) == fewest])
            victim = dice.choice(by_kind[kind])
            if kind == "soma-server":
                server_killed = time.monotonic()
            kinds[kind] = kinds.get(kind, 0) + 1
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
            run.terminate()
            run.wait(60)
            if box:
                try:
                    box.kill()
                except OSError:
                    pass
        print(f"killed: {kinds}")
        assert set(kinds) >= {"soma", "soma-tools", "soma-server", "soma-launcher", "soma-monitor", "soma-guest"}
        assert server.process.poll() is None, server.text()
        wait_until(lambda: end_all(server), "the server has no sandbox any more", SECONDS)
        wait_until(lambda: not traces.sandboxes(), "no sandbox is left", SECONDS)
        left = {name for name in traces.processes().values()}
        assert left <= {"soma-tools", "soma-launcher", "soma-server", "soma-monitor"}, traces.processes()
        assert tree(work) == before
    finally:
        server.process.terminate()
        try:
            wait_until(lambda: gone(served), "everything ends with soma serve", SECONDS)
        finally:
            print(f"left: {left_of(served)}\n{server.text()[-4000:]}")
            server.close()
            for pid in traces.processes():
                os.kill(pid, signal.SIGKILL)
