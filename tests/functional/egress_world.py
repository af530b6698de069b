# SPDX-License-Identifier: Apache-2.0
"""A small internet for the egress tests, in a network namespace of its own: run by `unshare -rn`, so it needs no root.

Usage: egress_world.py COMMAND…: sets up addresses and a web server that answers on port 8080 of all of them, runs the command there and
ends with its exit code. The server says which address it was reached at.

93.184.216.0/24 is a public network, 10.1.0.0/16 a private one, 169.254.169.254 the metadata service; none of them is an address of an
interface. 93.184.217.1 is one: the machine's own.
"""
import http.server
import subprocess
import sys
import threading

SETUP = """
ip link set lo up
ip route add local 93.184.216.0/24 dev lo
ip route add local 10.1.0.0/16 dev lo
ip route add local 169.254.169.254/32 dev lo
ip addr add 93.184.217.1/32 dev lo
"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"reached {self.connection.getsockname()[0]}\n".encode()
        if self.path.startswith("/large/"):
            body = b"x" * int(self.path.split("/")[2])
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        left = int(self.headers["Content-Length"])
        total = 0
        while left > 0:
            part = self.rfile.read(min(left, 1 << 16))
            if not part:
                break
            left -= len(part)
            total += len(part)
        body = f"got {total}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    subprocess.run(["sh", "-e", "-c", SETUP], check=True)
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.exit(subprocess.run(sys.argv[1:]).returncode)


main()
