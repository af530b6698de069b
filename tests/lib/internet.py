# SPDX-License-Identifier: Apache-2.0
"""A small internet in the calling thread's network namespace: public, private and special addresses, web servers, and package indices.

93.184.216.0/24 is a public network, 10.1.0.0/16 a private one, 169.254.169.254 the metadata service; none of them is an address of an
interface. 93.184.217.1 is one: the machine's own. Names come from HOSTS, which the broker of a test build reads (SOMA_TEST_HOSTS).

A server says which address it was reached at (port 8080), or serves a folder a host name (port 80).
"""
import contextlib
import ctypes
import functools
import http.server
import os
import pathlib
import subprocess
import threading

SETUP = """
ip link set lo up
ip route add local 93.184.216.0/24 dev lo
ip route add local 10.1.0.0/16 dev lo
ip route add local 169.254.169.254/32 dev lo
ip addr add 93.184.217.1/32 dev lo
"""
HOSTS = """
93.184.216.1 allowed.test
93.184.216.2 other.test
93.184.216.3 a.wild.test
10.1.2.3 private.test
127.0.0.1 loop.test
169.254.169.254 meta.test
64:ff9b::a01:203 nat64.test
93.184.217.1 own.test
93.184.216.9 mixed.test
10.1.2.3 mixed.test
93.184.216.66 denied-net.test
93.184.216.10 pypi.test
93.184.216.11 npm.test
93.184.216.12 deb.test
93.184.216.13 git.test
"""


class Reached(http.server.BaseHTTPRequestHandler):
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/large/"):
            return self.answer(b"x" * int(self.path.split("/")[2]))
        return self.answer(f"reached {self.connection.getsockname()[0]}\n".encode())

    def do_POST(self):
        left = int(self.headers["Content-Length"])
        total = 0
        while left > 0:
            part = self.rfile.read(min(left, 1 << 16))
            if not part:
                break
            left -= len(part)
            total += len(part)
        self.answer(f"got {total}\n".encode())

    def log_message(self, *_):
        pass


class Tree(http.server.SimpleHTTPRequestHandler):
    """Files below tree/<host>."""

    def __init__(self, *arguments, tree, **named):
        self.tree = tree
        super().__init__(*arguments, directory=str(tree), **named)

    def translate_path(self, path):
        host = (self.headers.get("Host") or "none").split(":")[0]
        self.directory = str(self.tree / pathlib.PurePath(host).name)
        return super().translate_path(path)

    def log_message(self, *_):
        pass


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def set_up(tree=None):
    """Addresses and servers, in this thread's network namespace, which must be new. Gives the servers."""
    subprocess.run(["sh", "-e", "-c", SETUP], check=True)
    handlers = {8080: Reached}
    if tree is not None:
        handlers[80] = functools.partial(Tree, tree=pathlib.Path(tree))
    servers = [Listener(("0.0.0.0", port), handler) for port, handler in handlers.items()]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    return servers


def _must(answer):
    if answer != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def entered(tree=None):
    """Moves the calling thread, and with it whatever it starts, into a network namespace with this internet. Needs root.

    What must come from the real one (templates, SDKs) has to be there before.
    """
    clone_newnet = 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", "rb") as home:
        _must(libc.unshare(clone_newnet))
        servers = []
        try:
            servers = set_up(tree)
            yield
        finally:
            for server in servers:
                server.shutdown()
                server.server_close()
            _must(libc.setns(home.fileno(), clone_newnet))
