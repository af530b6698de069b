# SPDX-License-Identifier: Apache-2.0
"""The control protocol of src/control/messages.h, spoken by tests: a second implementation from the header alone."""
import dataclasses
import os
import pathlib
import socket
import struct

MESSAGE_BYTES = 256
MAGIC = 0x434D4F53
VERSION = 1
VERBS = ["", "hello", "allocate", "start", "freeze", "thaw", "kill", "reap", "renew", "attach", "list", "snapshot", "status",
         "sockets", "event"]
STATES = ["none", "starting", "running", "frozen", "exited", "killed", "expired", "lost"]
CODES = ["invalid_argument", "not_found", "already_exists", "permission_denied", "unauthenticated", "resource_exhausted",
         "failed_precondition", "unavailable", "deadline_exceeded", "cancelled", "unimplemented", "data_loss", "out_of_range",
         "internal"]
KINDS = ["", "wire", "monitor", "listen_http", "qmp", "capture_tcp4", "capture_tcp6", "capture_dns_udp", "capture_dns_tcp"]
LEVELS = {"container": 1, "emulated": 2, "microvm": 3}
PROFILES = {"strict": 1, "rooted": 2}
MIB = 1 << 20


class Refused(Exception):
    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


@dataclasses.dataclass
class Reply:
    verb: str
    sequence: int
    ok: bool
    code: str
    detail: str
    sandbox: str
    state: str
    lease_remaining_ms: int
    exit_code: int
    exit_signal: int
    sandboxes: int
    epoch: int
    fds: dict

    def close(self):
        for fds in self.fds.values():
            for fd in fds:
                os.close(fd)


def encode(verb, sequence, sandbox="", *, template="", level="container", profile="rooted", memory=256 * MIB, pids=128,
           cpu_millis=1000, disk=64 * MIB, inodes=4096, lease=60, count=0, token=bytes(32)):
    start = verb == "start"
    uses_disk = verb in ("start", "allocate")
    uses_lease = verb in ("start", "renew")
    uses_token = verb in ("start", "attach")
    uses_sandbox = verb not in ("hello", "allocate", "sockets")
    name = sandbox.encode() if uses_sandbox else b""
    of = template.encode() if start else b""
    body = struct.pack("<IHBBHI", MAGIC, VERSION, 1, 0, VERBS.index(verb), sequence)
    body += struct.pack("<B32s", len(name), name) + struct.pack("<B64s", len(of), of)
    body += struct.pack("<BBQII", *((LEVELS[level], PROFILES[profile], memory, pids, cpu_millis) if start else (0, 0, 0, 0, 0)))
    body += struct.pack("<QQ", *((disk, inodes) if uses_disk else (0, 0)))
    body += struct.pack("<II", lease if uses_lease else 0, count if verb == "allocate" else 0)
    body += token if uses_token else bytes(32)
    return body.ljust(MESSAGE_BYTES, b"\0")


def decode(packet, fds):
    assert len(packet) == MESSAGE_BYTES, f"a reply of {len(packet)} bytes"
    magic, version, direction, _, verb, sequence = struct.unpack_from("<IHBBHI", packet, 0)
    assert (magic, version, direction) == (MAGIC, VERSION, 2)
    ok, code, detail_size = struct.unpack_from("<BBB", packet, 14)
    detail = packet[17:17 + detail_size].decode()
    at = 17 + 120
    name_size = packet[at]
    sandbox = packet[at + 1:at + 1 + name_size].decode()
    at += 33
    state, _level, lease, exit_code, exit_signal = struct.unpack_from("<BBIBB", packet, at)
    at += 8
    _regime, _levels, sandboxes, _max, epoch, count = struct.unpack_from("<BBIIIB", packet, at)
    at += 15
    assert count == len(fds), "the packet says another number of descriptors"
    kinds = {}
    for kind, fd in zip(packet[at:at + count], fds):
        kinds.setdefault(KINDS[kind], []).append(fd)
    return Reply(VERBS[verb], sequence, bool(ok), "" if ok else CODES[code], detail, sandbox, STATES[state], lease, exit_code,
                 exit_signal, sandboxes, epoch, kinds)


class Connection:
    """One SEQPACKET connection to a launcher or a monitor."""

    def __init__(self, where, timeout=30):
        if isinstance(where, socket.socket):
            self.socket = where
        else:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.socket.connect(str(where))
        self.socket.settimeout(timeout)
        self.sequence = 0
        self.events = []

    def close(self):
        self.socket.close()

    def receive(self):
        packet, fds, _flags, _address = socket.recv_fds(self.socket, MESSAGE_BYTES + 1, 16)
        if not packet:
            raise EOFError
        return decode(packet, fds)

    def ask(self, verb, sandbox="", **fields):
        """Sends, waits for the answer (keeping events that come meanwhile), raises Refused."""
        self.sequence += 1
        self.socket.send(encode(verb, self.sequence, sandbox, **fields))
        while True:
            reply = self.receive()
            if reply.verb == "event":
                self.events.append(reply)
                continue
            assert (reply.verb, reply.sequence) == (verb, self.sequence), reply
            if not reply.ok:
                raise Refused(reply.code, reply.detail)
            return reply

    def next_event(self):
        return self.events.pop(0) if self.events else self.receive()


class Agent:
    """The host's end of a wire whose other end is testcases/line_agent."""

    def __init__(self, fd, timeout=60):
        self.socket = socket.socket(fileno=fd)
        self.socket.settimeout(timeout)
        self.stream = self.socket.makefile("rwb")

    def run(self, command, uid=1000):
        assert "\n" not in command
        self.stream.write(f"{uid} {command}\n".encode())
        self.stream.flush()
        head = self.stream.readline()
        if not head:
            raise EOFError("the agent is gone")
        status, size = head.split()
        return int(status), self.stream.read(int(size)).decode(errors="replace")

    def close(self):
        self.stream.close()
        self.socket.close()


TREE = []  # the one that is linked from, made once in a process


def make_tree(target, testcases):
    """A root for containers from the host's own programs: a shell, coreutils and what they link. Nobody may change its files: they are
    linked, because finding the libraries of thirty programs takes a quarter of a minute under emulation."""
    import atexit
    import shutil
    import tempfile

    if not TREE:
        TREE.append(pathlib.Path(tempfile.mkdtemp(prefix="soma-tree-", dir="/var/tmp")))
        atexit.register(shutil.rmtree, TREE[0], ignore_errors=True)
        fill_tree(TREE[0], testcases)
    shutil.copytree(TREE[0], target, copy_function=os.link, dirs_exist_ok=True)
    os.chown(target / "home/user", 1000, 1000)


def fill_tree(target, testcases):
    import shutil
    import subprocess

    for folder in ("bin", "etc", "tmp", "proc", "dev", "sys", "home/user", "usr/bin", "lib", "lib64", "root"):
        (target / folder).mkdir(parents=True)
    (target / "tmp").chmod(0o1777)
    (target / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n")
    (target / "etc/group").write_text("root:x:0:\nuser:x:1000:\n")
    programs = ["sh", "cat", "id", "uname", "ls", "touch", "mkdir", "dd", "rm", "sleep", "mount", "umount", "hostname", "stat", "ps",
                "kill", "readlink", "env", "chown", "mknod", "head", "wc", "df", "nft", "ip", "unshare", "true", "seq", "dmesg", "date"]
    found = {program: shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") for program in programs}
    found = {program: path for program, path in found.items() if path}
    for program, path in found.items():
        shutil.copy(os.path.realpath(path), target / "bin" / program)
    listing = subprocess.run(["ldd", *found.values()], capture_output=True, text=True).stdout
    for library in {word for word in listing.split() if word.startswith("/") and not word.endswith(":")}:
        copy = pathlib.Path(str(target) + library)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)
    shutil.copy(testcases / "become_root", target / "bin/become_root")
    (target / "bin/become_root").chmod(0o4755)
    os.chown(target / "home/user", 1000, 1000)
