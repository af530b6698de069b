# SPDX-License-Identifier: Apache-2.0
"""The HTTP faces by plain HTTP at the fake level: what SDKs rely on without saying so, and what must be refused."""
import base64
import hashlib
import os
import pathlib
import signal
import socket
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from serving import Box, Server, output_of  # noqa: E402


@pytest.fixture(scope="module")
def server():
    with Server("none", options=["--origin", "https://listed.example"]) as made:
        yield made


@pytest.fixture
def box(server):
    made = server.create()
    yield made
    made.kill()


# ---- who may speak at all ----

def test_a_request_from_this_machine_needs_its_key_too(server):
    for key in (None, "e2b_" + "0" * 40, "nonsense", "e2b_" + "0" * 4000):
        status, _, body = server.request("GET", "/sandboxes", key=key)
        assert (status, body["code"]) == (401, 401)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "a@localhost", ""])
def test_a_foreign_host_is_refused_on_control_and_envd(server, box, host):
    assert server.request("GET", "/sandboxes", headers={"Host": host})[0] == 403
    assert box.rpc("process.Process/List", {}, headers={"Host": host})[0] == 403


def test_an_unlisted_origin_is_refused_and_a_listed_one_answered(server, box):
    assert server.request("GET", "/sandboxes", headers={"Origin": "https://evil.example"})[0] == 403
    assert server.request("GET", "/sandboxes", headers={"Origin": "null"})[0] == 403
    assert box.rpc("process.Process/List", {}, headers={"Origin": "https://evil.example"})[0] == 403
    status, headers, _ = server.request("GET", "/sandboxes", headers={"Origin": "https://listed.example"})
    assert (status, headers["Access-Control-Allow-Origin"]) == (200, "https://listed.example")


def test_another_tenants_sandbox_behaves_as_unknown(server, box):
    other = server.make_key("other")
    unknown = "i" + "0" * 20
    for method, tail, body in (("GET", "", None), ("DELETE", "", None), ("POST", "/timeout", {"timeout": 5}), ("POST", "/connect", {})):
        mine = server.request(method, f"/sandboxes/{box.id}{tail}", body, key=other)
        nobodys = server.request(method, f"/sandboxes/{unknown}{tail}", body, key=other)
        assert mine[0] == nobodys[0] == 404
        assert mine[2]["message"].replace(box.id, unknown) == nobodys[2]["message"] and mine[2]["code"] == 404
    assert server.request("GET", "/sandboxes", key=other)[2] == []
    assert server.request("GET", f"/sandboxes/{box.id}")[0] == 200


def test_the_envd_face_needs_the_sandboxes_own_token(server, box):
    for token in ("", "0" * 40, server.key):
        assert box.rpc("process.Process/List", {}, headers={"X-Access-Token": token})[0] == 401
    assert box.rpc("process.Process/List", {})[0] == 200
    neighbour = server.create()
    assert box.rpc("process.Process/List", {}, headers={"X-Access-Token": neighbour.made["envdAccessToken"]})[0] == 401
    neighbour.kill()


def test_a_sandbox_that_asks_for_no_token_has_one_all_the_same(server):
    """The first generation's `secure` is false unless given; whoever knows an id must not be let in by that."""
    status, _, made = server.request("POST", "/sandboxes", {"templateID": "base", "secure": False})
    assert status == 201 and made["envdAccessToken"]
    box = Box(server, made)
    assert box.rpc("process.Process/List", {}, headers={"X-Access-Token": ""})[0] == 401
    assert box.rpc("process.Process/List", {})[0] == 200
    box.kill()


def test_internal_routes_do_not_exist_outside(box):
    for path in ("init", "freeze", "fsfreeze", "upgrade"):
        assert box.rpc(path, {})[0] == 404


# ---- the control plane ----

def test_bodies_may_be_chunked_empty_or_wrong(server):
    connection = server.connection()
    connection.request("POST", "/v2/sandboxes", body=iter([b'{"templ', b'ateID":"base"}']), headers={"X-API-KEY": server.key},
                       encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 201
    made = answer.read()
    assert b"sandboxID" in made
    for body, status in (("", 400), ("{", 400), ("[]", 400), ('{"templateID":7}', 400), ('{"templateID":"base","timeout":"x"}', 400),
                         ('{"templateID":"base","timeout":-1}', 400), ('{"templateID":"base","timeout":99999999999}', 400),
                         ('{"templateID":"base","templateID":"base"}', 400), ('{"templateID":"no-such"}', 404),
                         ('{"templateID":"../../etc"}', 404), ('{"templateID":"base","autoPause":true}', 501),
                         ("x" * (1 << 20) + "x", 413)):
        got = server.request("POST", "/v2/sandboxes", body)
        assert (got[0], got[2]["code"]) == (status, status), (body[:60], got)


def test_generations_differ_in_their_defaults(server):
    v1 = server.request("POST", "/sandboxes", {"templateID": "base"})[2]
    v2 = server.request("POST", "/v2/sandboxes", {"templateID": "base"})[2]
    assert len(v1["envdAccessToken"]) == len(v2["envdAccessToken"]) == 40
    for made, seconds in ((v1, 15), (v2, 300)):
        detail = server.request("GET", f"/sandboxes/{made['sandboxID']}")[2]
        assert seconds_between(detail["startedAt"], detail["endAt"]) == seconds
        server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


def seconds_between(a, b):
    from datetime import datetime
    return (datetime.fromisoformat(b.replace("Z", "+00:00")) - datetime.fromisoformat(a.replace("Z", "+00:00"))).total_seconds()


def test_connect_never_shortens(server, box):
    before = server.request("GET", f"/sandboxes/{box.id}")[2]["endAt"]
    assert server.request("POST", f"/v2/sandboxes/{box.id}/connect", {"timeout": 5})[0] == 200
    assert server.request("POST", f"/sandboxes/{box.id}/connect", "")[0] == 200
    assert server.request("GET", f"/sandboxes/{box.id}")[2]["endAt"] == before
    server.request("POST", f"/sandboxes/{box.id}/connect", {"timeout": 900})
    assert server.request("GET", f"/sandboxes/{box.id}")[2]["endAt"] > before


def test_list_pages_newest_first_and_filters(server):
    boxes = [server.create(metadata={"k 1": "v&2", "n": str(i), "list": "yes"}) for i in range(3)]
    seen, token = [], ""
    while True:
        status, headers, page = server.request("GET", "/v2/sandboxes?limit=1&metadata=list%3Dyes" + (f"&nextToken={token}" if token else ""))
        assert status == 200 and len(page) == 1
        seen.append(page[0]["sandboxID"])
        token = headers["X-Next-Token"]
        if not token:
            break
    assert seen == [b.id for b in reversed(boxes)]
    # Encoded three times, as the SDKs do.
    page = server.request("GET", "/v2/sandboxes?metadata=k%2525201%3Dv%2525262%26n%3D1&state=running,paused")[2]
    assert [item["sandboxID"] for item in page] == [boxes[1].id]
    started = page[0]["startedAt"]
    assert boxes[1].id in [i["sandboxID"] for i in server.request("GET", f"/v2/sandboxes?startedAfter={started}")[2]]
    assert server.request("GET", "/v2/sandboxes?template=unknown-template")[2] == []
    assert server.request("GET", "/v2/sandboxes?nextToken=garbage")[0] == 400
    for made in boxes:
        made.kill()


def test_a_timeout_ends_the_sandbox(server):
    made = server.create(timeout=1)
    end = time.monotonic() + 30
    while server.request("GET", f"/sandboxes/{made.id}")[0] == 200:
        assert time.monotonic() < end
        time.sleep(0.1)
    status, _, body = server.request("GET", "/health", key=None, headers=made.headers())
    assert status == 502 and body == {"sandboxId": made.id, "message": "The sandbox was not found", "code": 502}


def test_what_is_not_there_says_so(server, box):
    for method, path in (("POST", f"/sandboxes/{box.id}/pause"), ("POST", f"/sandboxes/{box.id}/fork"), ("GET", "/snapshots"),
                         ("POST", "/v3/templates"), ("GET", "/volumes")):
        status, _, body = server.request(method, path, {})
        assert status == body["code"] == 501 and "not supported" in body["message"]
    assert server.request("POST", f"/sandboxes/{box.id}/resume", {})[0] == 409
    assert server.request("GET", "/nonsense")[0] == 404


# ---- processes ----

def test_output_streams_and_ends_with_a_trailer(box):
    stream = box.start("echo one; sleep 0.5; echo two >&2; exit 3")
    events = stream.events()
    assert next(events)["start"]["pid"] > 0
    first = next(events)
    assert output_of([first]) == "one\n"
    rest = list(events)
    assert output_of(rest, "stderr") == "two\n"
    assert rest[-1]["end"] == {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}
    assert stream.trailer == {}
    stream.close()


def test_connect_replays_from_the_beginning_then_follows(box):
    first = box.start("echo early; sleep 1; echo late")
    pid = next(first.events())["start"]["pid"]
    first.close()  # leaving does not end it
    time.sleep(0.3)
    again = box.stream("process.Process/Connect", {"process": {"pid": pid}})
    events = list(again.events())
    assert "start" in events[0] and events[0]["start"]["pid"] == pid
    assert output_of(events) == "early\nlate\n" and events[-1]["end"]["status"] == "exit status 0" and again.trailer == {}
    again.close()
    # It stays connectable for a while after its end.
    late = box.stream("process.Process/Connect", {"process": {"pid": pid}})
    assert output_of(list(late.events())) == "early\nlate\n" and late.trailer == {}
    late.close()


def test_a_command_is_killed_at_its_timeout(box):
    stream = box.start("echo $$; sleep 60", headers={"connect-timeout-ms": "500"})
    pid = int(output_of(list(stream.events())))
    assert stream.trailer["error"]["code"] == "deadline_exceeded"
    stream.close()
    assert box.run(f"kill -0 {pid} 2>/dev/null; echo $?")[1] == "1\n"


def test_idle_streams_get_keepalives(box):
    stream = box.start("sleep 2.5", headers={"keepalive-ping-interval": "1"})
    assert sum("keepalive" in e for e in stream.events()) >= 1
    stream.close()


def test_stdin_signals_and_lists(box):
    stream = box.stream("process.Process/Start", {"process": {"cmd": "/bin/cat"}, "stdin": True, "tag": "the-cat"})
    events = stream.events()
    pid = next(events)["start"]["pid"]
    listed = box.rpc("process.Process/List", {})[2]["processes"]
    assert [(p["pid"], p["config"]["cmd"], p["tag"]) for p in listed] == [(pid, "/bin/cat", "the-cat")]
    text = base64.b64encode(b"x" * 50_000).decode()
    assert box.rpc("process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": text}})[0] == 200
    got = 0
    while got < 50_000:
        got += len(output_of([next(events)]))
    assert box.rpc("process.Process/CloseStdin", {"process": {"tag": "the-cat"}})[0] == 200
    assert list(events)[-1]["end"].get("exitCode", 0) == 0
    stream.close()
    sleeper = box.start("exec sleep 60")
    events = sleeper.events()
    pid = next(events)["start"]["pid"]
    assert box.rpc("process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})[0] == 200
    end = list(events)[-1]["end"]
    assert (end["exitCode"], end.get("exited", False), end["status"]) == (-1, False, "signal: killed")
    sleeper.close()


def test_wrong_calls_have_the_protocols_errors(box):
    for method, body, code in (("SendSignal", {"process": {"pid": 999999}, "signal": "SIGNAL_SIGKILL"}, "not_found"),
                               ("SendSignal", {"process": {"pid": 1}, "signal": "SIGNAL_SIGHUP"}, "unimplemented"),
                               ("SendInput", {"process": {}, "input": {}}, "invalid_argument"),
                               ("NoSuch", {"process": {"pid": 1}}, "unimplemented")):
        status, _, answer = box.rpc("process.Process/" + method, body)
        assert status >= 400 and answer["code"] == code, answer
    unknown = box.stream("process.Process/Connect", {"process": {"pid": 999999}})
    assert unknown.status == 200 and list(unknown.events()) == [] and unknown.trailer["error"]["code"] == "not_found"
    unknown.close()
    lost = box.start("true", process={"cmd": "/bin/true", "cwd": "/no/such/place"})
    assert list(lost.events()) == [] and lost.trailer["error"]["code"] == "invalid_argument"
    lost.close()


def test_killing_a_sandbox_breaks_its_streams_without_an_end(server):
    made = server.create()
    stream = made.start("echo up; sleep 60")
    events = stream.events()
    assert "start" in next(events) and output_of([next(events)]) == "up\n"
    assert made.kill() == 204
    with pytest.raises(OSError):
        list(events)
    stream.close()
    assert made.kill() == 404
    assert server.request("GET", "/health", key=None, headers=made.headers())[0] == 502


# ---- files ----

def test_files_go_up_and_down(box, tmp_path):
    place = f"{tmp_path}/deep/er/file.bin" if os.geteuid() != 0 else f"/tmp/soma-api-test-{os.getpid()}/deep/file.bin"
    data = os.urandom(300_000)
    status, _, written = box.files("POST", place, data, {"Content-Type": "application/octet-stream"})
    assert status == 200 and written == [{"name": "file.bin", "path": place, "type": "file"}]
    connection = box.server.connection()
    connection.request("GET", "/files?path=" + place, headers=box.headers())
    answer = connection.getresponse()
    assert answer.read() == data and answer.getheader("Content-Length") == "300000"
    connection.request("GET", "/files?path=" + place, headers={**box.headers(), "Range": "bytes=100-199"})
    answer = connection.getresponse()
    assert (answer.status, answer.read(), answer.getheader("Content-Range")) == (206, data[100:200], "bytes 100-199/300000")
    entry = box.rpc("filesystem.Filesystem/Stat", {"path": place})[2]["entry"]
    assert (entry["size"], entry["type"], entry["permissions"]) == ("300000", "FILE_TYPE_FILE", "-rw-r--r--")
    box.files("POST", place, b"", {"Content-Type": "application/octet-stream"})
    connection.request("GET", "/files?path=" + place, headers=box.headers())
    answer = connection.getresponse()
    assert (answer.read(), answer.getheader("Content-Length")) == (b"", "0")
    connection.close()
    assert box.files("GET", "/proc/self/status")[2].startswith("Name:")
    assert box.rpc("filesystem.Filesystem/Remove", {"path": str(pathlib.Path(place).parent)})[0] == 200
    assert box.files("GET", place)[0] == 404


def test_many_files_in_one_form(box):
    place = f"/tmp/soma-api-form-{os.getpid()}"
    parts = b"".join(b'--B\r\nContent-Disposition: form-data; name="file"; filename="%s/%d"\r\n\r\n%d\r\n' % (place.encode(), i, i)
                     for i in range(3))
    form = {"Content-Type": "multipart/form-data; boundary=B"}
    status, _, written = box.server.request("POST", "/files", parts + b"--B--\r\n", key=None, headers={**box.headers(), **form})
    assert status == 200 and [w["name"] for w in written] == ["0", "1", "2"]
    names = [e["name"] for e in box.rpc("filesystem.Filesystem/ListDir", {"path": place})[2]["entries"]]
    assert names == ["0", "1", "2"]
    for body, wanted in ((parts[:-5], 400), (parts + parts + b"--B--\r\n", 400), (b"", 400)):
        assert box.server.request("POST", "/files", body, key=None, headers={**box.headers(), **form})[0] == wanted
    assert box.files("POST", place + "/x", b"", {"Content-Type": "text/plain"})[0] == 400
    box.rpc("filesystem.Filesystem/Remove", {"path": place})


def test_signed_urls_need_no_routing(server, box):
    place = f"/tmp/soma-api-signed-{os.getpid()}"
    box.files("POST", place, b"secret", {"Content-Type": "application/octet-stream"})

    def sign(operation, expiry=None, path=place, token=box.made["envdAccessToken"]):
        text = f"{path}:{operation}::{token}" + (f":{expiry}" if expiry else "")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        from urllib.parse import urlencode
        query = {"path": place, "signature": "v1_" + digest, **({"signature_expiration": expiry} if expiry else {})}
        return "/files?" + urlencode(query)

    assert server.request("GET", sign("read"), key=None)[::2] == (200, "secret")
    assert server.request("GET", sign("read", int(time.time()) + 60), key=None)[0] == 200
    status, _, body = server.request("GET", sign("read", int(time.time()) - 60), key=None)
    assert status == 401 and body == {"code": 401, "message": "signature is already expired"}
    for wrong in (sign("write"), sign("read", token="0" * 40), sign("read", path="/etc/passwd")):
        assert server.request("GET", wrong, key=None)[2] == {"code": 401, "message": "invalid signature"}
    box.rpc("filesystem.Filesystem/Remove", {"path": place})


# ---- ports ----

def test_ports_are_reached_by_host_and_by_header(server, box):
    port = 18000 + os.getpid() % 10000
    web = box.start(f"cd $(mktemp -d) && echo inside > index.html && exec python3 -m http.server {port} --bind 127.0.0.1")
    next(web.events())
    by_header = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": str(port), "Host": "anything.example", "Origin": "https://any.example"}
    end = time.monotonic() + 30
    while server.request("GET", "/", key=None, headers=by_header)[0] != 200:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert server.request("GET", "/", key=None, headers=by_header)[2] == "inside\n"
    assert server.request("GET", "/", key=None, headers={"Host": f"{port}-{box.id}.e2b.example"})[2] == "inside\n"
    # One client connection, requests for different places: each goes where it says.
    connection = server.connection()
    for _ in range(3):
        connection.request("GET", "/", headers=by_header)
        assert connection.getresponse().read() == b"inside\n"
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b"ok\n"
        connection.request("HEAD", "/", headers=by_header)
        answer = connection.getresponse()
        assert (answer.read(), answer.getheader("Content-Length")) == (b"", "7")
    connection.close()
    status, _, body = server.request("GET", "/", key=None, headers={"Host": f"1-{box.id}.x"})
    assert status == 502 and body["message"] == "The sandbox is running but port is not open" and body["port"] == 1
    web.close()


def test_an_upgrade_becomes_a_tunnel(server, box):
    port = 28000 + os.getpid() % 10000
    program = ("import socket;s=socket.create_server(('127.0.0.1',%d));c,_=s.accept();c.recv(4096);"
               "c.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: echo\\r\\n\\r\\n');"
               "[c.sendall(d) for d in iter(lambda:c.recv(100),b'')]") % port
    inside = box.start(f'exec python3 -c "{program}"')
    next(inside.events())
    time.sleep(1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(f"GET /ws HTTP/1.1\r\nHost: {port}-{box.id}.x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode())
        head = client.recv(4096)
        assert head.startswith(b"HTTP/1.1 101")
        for text in (b"one", b"two"):
            client.sendall(text)
            assert client.recv(100) == text
    inside.close()


def test_a_private_port_needs_its_token(server):
    made = server.create(network={"allowPublicTraffic": False})
    token = made.made["trafficAccessToken"]
    for sent, status in (({}, 403), ({"E2B-Traffic-Access-Token": "x"}, 403), ({"E2B-Traffic-Access-Token": token}, 502)):
        assert server.request("GET", "/", key=None, headers={"Host": f"1-{made.id}.x", **sent})[0] == status
    made.kill()


# ---- bad clients ----

def raw(server, data, timeout=30):
    with socket.create_connection(("127.0.0.1", server.port), timeout=timeout) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(4096), b""))


def test_what_is_no_http_gets_one_answer(server):
    assert raw(server, b"\x16\x03\x01\x00\xa5\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert raw(server, b"GET / HTTP/1.1\r\nA: " + b"a" * 40_000 + b"\r\n\r\n").startswith(b"HTTP/1.1 431 ")
    assert raw(server, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") \
        .startswith(b"HTTP/1.1 400 ")
    assert raw(server, b"") == b""


def test_many_idle_connections_do_not_stop_others(server, box):
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(500)]
    for client in idle[::2]:
        client.sendall(b"GET /slow HTTP/1.1\r\n")
    assert box.run("echo still here") == (0, "still here\n")
    for client in idle:
        client.close()


def test_every_start_and_end_is_in_the_record():
    with Server("none") as own:
        made = own.create()
        made.kill()
        own.request("GET", "/sandboxes", key=None)
        own.process.send_signal(signal.SIGTERM)
        own.process.wait(30)
        import subprocess
        from serving import BIN
        shown = subprocess.run([str(BIN / "soma-tools"), "audit", "tail", "--json"], env=own.environment, capture_output=True, text=True)
        text = shown.stdout
        assert f'"sandbox":"{made.id}"' in text and '"kind":"start"' in text and '"kind":"end"' in text and '"kind":"refusal"' in text
        checked = subprocess.run([str(BIN / "soma-tools"), "audit", "verify"], env=own.environment, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr
