# SPDX-License-Identifier: Apache-2.0
"""E2B's unmodified SDKs against our server: the quickstarts that a reader runs, and a server that dies in the middle of a stream."""
import http.client
import os
import pathlib
import signal
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests")]
import sdk  # noqa: E402
from conftest import skip  # noqa: E402
from serving import Server, output_of  # noqa: E402

SDKS = [(language, generation) for language in ("js", "py") for generation in ("newest", "previous")]


def serve(level):
    if level != "none" and os.geteuid() != 0:
        skip("containers with a range of ids need the launcher that runs as root")
    return Server(level)


@pytest.fixture(scope="module", params=["none", "container", "emulated"])
def server(request):
    """Level none is the fake: the guest agent without walls."""
    if request.param == "emulated" and os.environ.get("SOMA_TEST_EMULATED") != "1":
        pytest.skip("emulated machines are slow: SOMA_TEST_EMULATED=1 runs these")
    with serve(request.param) as made:
        yield made


@pytest.mark.parametrize("language,generation", SDKS)
def test_the_quickstart_runs_unchanged(server, language, generation):
    script = ROOT / "examples" / ("quickstart.mjs" if language == "js" else "quickstart.py")
    try:
        done = sdk.run_script(language, generation, script, server.sdk_environment())
    except sdk.NotInstalled as why:
        skip(f"the SDK cannot be installed: {why}")
    assert done.returncode == 0, done.stdout + done.stderr + server.text()
    assert done.stdout.rstrip().endswith("killed; all good")


RESTART_JS = """
import { Sandbox } from 'e2b'
const sandbox = await Sandbox.connect(process.env.SANDBOX)
const handle = await sandbox.commands.connect(Number(process.env.PID))
const done = await handle.wait().catch((error) => error)
console.log(JSON.stringify({ stdout: done.stdout, exitCode: done.exitCode }))
"""
RESTART_PY = """
import json, os
from e2b import CommandExitException, Sandbox
handle = Sandbox.connect(os.environ["SANDBOX"]).commands.connect(int(os.environ["PID"]))
try:
    done = handle.wait()
except CommandExitException as error:
    done = error
print(json.dumps({"stdout": done.stdout, "exitCode": done.exit_code}))
"""


def test_a_server_killed_in_the_middle_of_a_stream_loses_nothing(tmp_path):
    with serve("container") as server:
        box = server.create()
        stream = box.start("for i in $(seq 1 60); do echo line $i; sleep 0.1; done; exit 7")
        events = stream.events()
        pid = next(events)["start"]["pid"]
        assert output_of([next(events)]) == "line 1\n"
        victim = server.server_pid()
        os.kill(victim, signal.SIGKILL)
        with pytest.raises((OSError, http.client.HTTPException)):
            list(events)
        # The socket stays open: this queues until the next server takes it.
        again = box.stream("process.Process/Connect", {"process": {"pid": pid}})
        seen = list(again.events())
        assert server.server_pid() != victim
        wanted = "".join(f"line {i}\n" for i in range(1, 61))
        assert "start" in seen[0] and output_of(seen) == wanted
        assert seen[-1]["end"]["exitCode"] == 7 and again.trailer == {}
        # A finished command stays connectable for a while, and the SDKs read the same.
        environment = {**server.sdk_environment(), "SANDBOX": box.id, "PID": str(pid)}
        for language, text in (("js", RESTART_JS), ("py", RESTART_PY)):
            script = tmp_path / ("restart.mjs" if language == "js" else "restart.py")
            script.write_text(text)
            try:
                done = sdk.run_script(language, "newest", script, environment)
            except sdk.NotInstalled as why:
                skip(f"the SDK cannot be installed: {why}")
            import json
            assert json.loads(done.stdout) == {"stdout": wanted, "exitCode": 7}, done.stderr
        assert box.kill() == 204


def test_a_sandbox_ends_at_its_time_although_no_server_lives():
    with serve("container") as server:
        box = server.create(timeout=4)
        box.start("exec sleep 1000").close()
        os.kill(server.process.pid, signal.SIGSTOP)  # so that no new server is started
        os.kill(server.server_pid(), signal.SIGKILL)
        records = server.home / "run/sandboxes"
        end = time.monotonic() + 30
        try:
            while any(p.name == box.id for p in records.glob("*")) and time.monotonic() < end:
                time.sleep(0.2)
            assert not [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if _is(p, b"sleep\x001000\x00")]
        finally:
            os.kill(server.process.pid, signal.SIGCONT)


def _is(path, wanted):
    try:
        return path.read_bytes() == wanted
    except OSError:
        return False
