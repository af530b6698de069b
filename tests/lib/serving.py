# SPDX-License-Identifier: Apache-2.0
"""A server of its own for a test, with its state in a directory of its own.

Level `none` is soma-server alone with the guest agent as a plain child (only test builds have it); the other levels are what
`soma serve` starts, with the base template that all tests share (tests/base_template.py).
"""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("SOMA_BUILD_DIR", pathlib.Path(__file__).resolve().parent.parent.parent / "build/dev"))
BIN = pathlib.Path(os.environ.get("SOMA_BIN_DIR", BUILD / "bin"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Use as a context manager."""

    def __init__(self, level="none", options=(), environment=None):
        self.level = level
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="soma-serve-", dir="/var/tmp"))
        self.home.chmod(0o711)
        self.port = free_port()
        self.options = list(options)
        for folder in ("state", "run"):
            (self.home / folder).mkdir(mode=0o700)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8",
                            "SOMA_STATE_DIR": str(self.home / "state"), "SOMA_RUNTIME_DIR": str(self.home / "run"), **(environment or {})}
        self.process = None
        self.log = open(self.home / "log", "w+", encoding="utf-8")

    def __enter__(self):
        try:
            if self.level == "none":
                self._start_fake()
            else:
                self._start_served()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _popen(self, argv, **options):
        return subprocess.Popen([str(a) for a in argv], env=self.environment, stderr=self.log, stdin=subprocess.DEVNULL, **options)

    def _start_fake(self):
        self.key = self.make_key()
        self.start_alone()

    def start_alone(self):
        user = ["--default-user", "root"] if os.geteuid() == 0 else ["--default-user", ""]
        self.process = self._popen([BIN / "soma-server", "--level", "none", "--listen", f"127.0.0.1:{self.port}", *user,
                                    *self.options])
        self.wait_healthy()

    def _start_served(self):
        import base_template
        base_template.link_into(self.home / "state")
        self.process = self._popen([BIN / "soma-tools", "serve", "--level", self.level, "--listen", f"127.0.0.1:{self.port}",
                                    *self.options], stdout=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline() for _ in range(3)]
        assert lines[2].startswith("export E2B_API_KEY="), f"{lines}\n{self.text()}"
        self.key = lines[2].strip().split("=", 1)[1]

    def make_key(self, tenant="default"):
        argv = [str(BIN / "soma-tools"), "key", "create", "--tenant", tenant]
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def text(self):
        self.log.flush()
        return (self.home / "log").read_text(encoding="utf-8")

    def wait_healthy(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            assert self.process.poll() is None, self.text()
            try:
                if self.request("GET", "/health", key=None)[0] == 200:
                    return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("no server answers\n" + self.text())

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def sdk_environment(self):
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "E2B_API_URL": self.url, "E2B_SANDBOX_URL": self.url,
                "E2B_API_KEY": self.key}

    def connection(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, key="", headers=None):
        """(status, headers, parsed JSON or text). `key` "" is this server's own, None sends none."""
        connection = self.connection()
        sent = dict(headers or {})
        if key is not None:
            sent.setdefault("X-API-KEY", key or self.key)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        parsed = json.loads(text) if "json" in (answer.getheader("content-type") or "") and text else text.decode("utf-8", "replace")
        return answer.status, answer.headers, parsed

    def create(self, **fields):
        status, _, made = self.request("POST", "/v2/sandboxes", {"templateID": "base", **fields})
        assert status == 201, made
        return Box(self, made)

    def server_pid(self):
        """Of soma-server, which under `soma serve` is a child of ours."""
        if self.level == "none":
            return self.process.pid
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "soma-server":
                return int(child)
        raise AssertionError("no soma-server runs")

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process and self.process.stdout:
            self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)


class Box:
    """One sandbox, by plain HTTP."""

    def __init__(self, server, made):
        self.server = server
        self.made = made
        self.id = made["sandboxID"]

    def headers(self, port=49983):
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(port), "X-Access-Token": self.made.get("envdAccessToken", "")}

    def rpc(self, method, body, headers=None):
        sent = {**self.headers(), "Content-Type": "application/json", "Connect-Protocol-Version": "1", **(headers or {})}
        return self.server.request("POST", "/" + method, body, key=None, headers=sent)

    def stream(self, method, body, headers=None):
        """An open Stream of a server-streaming call."""
        payload = json.dumps(body).encode()
        sent = {**self.headers(), "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1", **(headers or {})}
        connection = self.server.connection()
        connection.request("POST", "/" + method, body=b"\0" + len(payload).to_bytes(4, "big") + payload, headers=sent)
        return Stream(connection)

    def start(self, command, headers=None, **fields):
        return self.stream("process.Process/Start", {"process": {"cmd": "/bin/bash", "args": ["-c", command]}, "stdin": False, **fields},
                           headers)

    def run(self, command, **fields):
        """(exit code, standard output)."""
        stream = self.start(command, **fields)
        events = list(stream.events())
        stream.close()
        end = [e["end"] for e in events if "end" in e]
        assert end, (events, stream.trailer)
        return end[0].get("exitCode", 0), output_of(events)

    def files(self, method, path, body=None, headers=None, **query):
        from urllib.parse import urlencode
        return self.server.request(method, "/files?" + urlencode({"path": path, **query}), body, key=None,
                                   headers={**self.headers(), **(headers or {})})

    def kill(self):
        return self.server.request("DELETE", f"/sandboxes/{self.id}")[0]


def output_of(events, kind="stdout"):
    import base64
    return b"".join(base64.b64decode(e["data"][kind]) for e in events if kind in e.get("data", {})).decode()


class Stream:
    def __init__(self, connection):
        self.connection = connection
        self.answer = connection.getresponse()
        self.status = self.answer.status
        self.trailer = None

    def events(self):
        """Yields the events until the trailer, which is kept. Raises when the connection breaks before it."""
        while True:
            head = self.answer.read(5)
            if len(head) < 5:
                raise ConnectionError("the stream ended without its trailer")
            message = json.loads(self.answer.read(int.from_bytes(head[1:], "big")))
            if head[0] == 2:
                self.trailer = message
                return
            yield message["event"]

    def close(self):
        self.connection.close()
