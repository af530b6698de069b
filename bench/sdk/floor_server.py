# SPDX-License-Identifier: Apache-2.0
"""A server that answers what the SDKs ask at once, with nothing behind it: what is left is the SDK's own time.

Knows the calls of bench/run_sdk_latency: create, Process/Start, kill, health. Prints its port.
"""
import asyncio
import json
import sys

MADE = {"templateID": "base", "sandboxID": "floor", "clientID": "floor", "envdVersion": "0.5.7", "envdAccessToken": "token",
        "trafficAccessToken": "token", "domain": None, "alias": "base"}


def envelope(flags, message):
    body = json.dumps(message).encode()
    return bytes([flags]) + len(body).to_bytes(4, "big") + body


def answer(method, path):
    """(status, content type, body)."""
    if path.endswith("/Start"):
        return 200, "application/connect+json", (
            envelope(0, {"event": {"start": {"pid": 1}}}) + envelope(0, {"event": {"data": {"stdout": "aGkK"}}})
            + envelope(0, {"event": {"end": {"exitCode": 0, "exited": True, "status": "exit status 0"}}}) + envelope(2, {}))
    if method == "POST":
        return 201, "application/json", json.dumps(MADE).encode()
    if method == "DELETE":
        return 204, "application/json", b""
    return 200, "application/json", b"{}"


async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = head.split(" ", 2)
            fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            if "content-length" in fields:
                await reader.readexactly(int(fields["content-length"]))
            elif fields.get("transfer-encoding") == "chunked":
                while size := int((await reader.readline()).strip() or b"0", 16):
                    await reader.readexactly(size + 2)
                await reader.readline()
            status, kind, body = answer(method, path.split("?")[0])
            writer.write(f"HTTP/1.1 {status} OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(0)
