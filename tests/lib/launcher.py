# SPDX-License-Identifier: Apache-2.0
"""A launcher of its own for a test: own programs' directory (with the line agent in soma-guest's place), own state, own sockets."""
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
import time

import control

BUILD = pathlib.Path(os.environ.get("SOMA_BUILD_DIR", pathlib.Path(__file__).resolve().parent.parent.parent / "build/dev"))
BIN = pathlib.Path(os.environ.get("SOMA_BIN_DIR", BUILD / "bin"))
TESTCASES = BUILD / "testcases"
FIRST_ID = 0x70000000  # src/launcher/ids.h
LAST_ID = 0x7FFFFFFF


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def short_name(path):
    value = 0xCBF29CE484222325
    for byte in str(path).encode():
        value = ((value ^ byte) * 0x100000001B3) % (1 << 64)
    return value.to_bytes(8, "little").hex()


class Sandbox:
    def __init__(self, launcher, name, token, reply):
        self.launcher = launcher
        self.name = name
        self.token = token
        self.fds = reply.fds
        self.agent = control.Agent(reply.fds["wire"][0])
        import socket
        self.monitor = control.Connection(socket.socket(fileno=reply.fds["monitor"][0]))

    def run(self, command, uid=1000):
        return self.agent.run(command, uid)

    def close(self):
        """As a server that dies does."""
        self.agent.close()
        self.monitor.close()
        for kind, fds in self.fds.items():
            if kind not in ("wire", "monitor"):
                for fd in fds:
                    os.close(fd)


class Launcher:
    def __init__(self, *, server_uid=0, arguments=(), environment=None, uid=0, capability=None):
        """uid: who the launcher runs as; not 0 is the rootless regime, and the server is that user too. capability: one of root's that it
        has all the same."""
        self.capability = capability
        self.uid = uid
        server_uid = uid or server_uid
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="soma-l-", dir="/var/tmp"))
        self.home.chmod(0o755)
        self.programs = self.home / "programs"
        self.programs.mkdir()
        for program in ("soma-launcher", "soma-monitor"):
            shutil.copy(BIN / program, self.programs / program)
        shutil.copy(TESTCASES / "line_agent", self.programs / "soma-guest")
        self.state = self.home / "state/launcher"
        self.runtime = self.home / "run"
        self.arguments = ["--server-user", str(server_uid), *arguments]
        self.environment = {"SOMA_STATE_DIR": str(self.home / "state"), "SOMA_RUNTIME_DIR": str(self.runtime),
                            "PATH": os.environ["PATH"], **(environment or {})}
        self.process = None
        self.log = open(self.home / "log", "w+")

    def add_template(self, name="tiny", erofs=False):
        home = self.state / "templates" / name
        home.mkdir(parents=True)
        control.make_tree(home / "tree", TESTCASES)
        if erofs:
            subprocess.run(["mkfs.erofs", "-zlz4", home / "root.erofs", home / "tree"], check=True, capture_output=True)
            shutil.rmtree(home / "tree")

    def start(self):
        command = [str(self.programs / "soma-launcher"), *self.arguments]
        if self.uid != os.geteuid():
            for folder in (self.home / "state", self.runtime):
                folder.mkdir(exist_ok=True)
                subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", folder], check=True)
            kept = f",+{self.capability}" if self.capability else ""
            command = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", f"--inh-caps=-all{kept}",
                       f"--ambient-caps=-all{kept}", "--", *command]
        self.process = subprocess.Popen(command, env=self.environment, stderr=self.log, stdin=subprocess.DEVNULL)
        return wait_until(self.try_connect, "the launcher's socket")

    def try_connect(self):
        """None while it isn't there yet, or only the file of an earlier launcher that was killed."""
        assert self.process.poll() is None, "the launcher has ended: " + self.log_text()
        try:
            return self.connect()
        except (FileNotFoundError, ConnectionRefusedError):
            return None

    def log_text(self):
        return pathlib.Path(self.log.name).read_text()

    @property
    def socket(self):
        return self.runtime / "launcher.sock"

    def connect(self):
        """As the launcher's own user: another one is not answered."""
        before = os.geteuid()
        if self.uid != before:
            os.seteuid(self.uid)
        try:
            return control.Connection(self.socket)
        finally:
            if self.uid != before:
                os.seteuid(before)

    def worker(self):
        """The pid of the worker. Connects queue before there is one, so it may take a moment."""
        return wait_until(self.find_worker, "a worker")

    def find_worker(self):
        """From the parent's children; None between two workers."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            try:
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "soma-worker":
                    return int(child)
            except OSError:
                pass
        return None

    def sandbox(self, connection, name=None, **fields):
        name = name or f"t{secrets.token_hex(8)}"
        token = secrets.token_bytes(32)
        fields.setdefault("template", "tiny")
        return Sandbox(self, name, token, connection.ask("start", name, token=token, **fields))

    def cgroups(self):
        """Directories of slots; what the launcher keeps ready is among them."""
        top = f"soma-{short_name(self.state)}"
        # os.walk doesn't mind what disappears meanwhile.
        return sorted(os.path.join(where, name) for where, folders, _ in os.walk("/sys/fs/cgroup") if os.path.basename(where) == top
                      for name in folders if name.startswith("slot-"))

    def processes(self):
        """Pids that run our programs from this launcher's own directory, or with ids of its range inside its cgroups."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                program = os.readlink(entry / "exe")
            except OSError:
                continue
            if program.startswith(str(self.programs)):
                found.append(int(entry.name))
        # Zombies have no program and nothing else of a process.
        for cgroup in self.cgroups():
            try:
                found += [int(pid) for pid in pathlib.Path(cgroup, "cgroup.procs").read_text().split()]
            except OSError:
                pass
        return sorted(set(found))

    def loops(self):
        """Loop devices whose file is ours."""
        found = []
        for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
            try:
                if str(self.state) in path.read_text():
                    found.append(path.parts[3])
            except OSError:
                pass
        return found

    def files(self):
        return sorted(str(path.relative_to(self.home)) for folder in (self.runtime, self.state / "uppers")
                      for path in folder.rglob("*") if not path.is_dir())

    def stop(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def kill_everything(self):
        """For the end of a test that has failed: nothing may stay on the machine."""
        for _ in range(50):
            pids = self.processes()
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if self.process is not None:
                self.process.poll()
            if not pids:
                break
            time.sleep(0.1)
        tops = set()
        for path in self.cgroups():
            tops.add(os.path.dirname(path))
            try:
                os.rmdir(path)
            except OSError:
                pass
        for top in tops | {str(p) for p in pathlib.Path("/sys/fs/cgroup").glob(f"**/soma-{short_name(self.state)}")}:
            for path in (f"{top}/home", top):
                try:
                    os.rmdir(path)
                except OSError:
                    pass

    def close(self):
        try:
            self.stop()
        finally:
            self.kill_everything()
            self.log.close()
            shutil.rmtree(self.home, ignore_errors=True)
