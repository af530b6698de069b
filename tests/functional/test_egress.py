# SPDX-License-Identifier: Apache-2.0
"""The way out, alone: a command in a captured network namespace, the broker outside, a small internet around both (egress_world.py).

The command has no other wall around it and is root in the namespace's owner: what holds here is that there is no other way out.
"""
import json
import os
import pathlib
import shutil
import sys
import textwrap

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import internet  # noqa: E402

# What curl says of a connection that is reset: during the connect, or after it.
RESET = (7, 35, 52, 56)
HERE = pathlib.Path(__file__).resolve().parent

@pytest.fixture
def inside(caller, soma_bin):
    """Runs argv inside, with these network rules; gives the finished process and the egress decisions."""

    def run(argv, *, allow=(), deny=(), kill_broker=False, default="deny"):
        text = f"[network]\ndefault = {json.dumps(default)}\nallow = {json.dumps(list(allow))}\ndeny = {json.dumps(list(deny))}\n"
        handover = {"home": str(caller.home), "workspace": str(caller.home / "work"), "command_line": {},
                    "sources": [{"kind": "user", "format": "toml", "name": "test.toml", "text": text}]}
        policy = caller.home / "policy.json"
        policy.write_text(json.dumps(handover))
        hosts = caller.home / "hosts"
        hosts.write_text(internet.HOSTS)
        env = {"SOMA_TEST_HOSTS": str(hosts), **({"CAPTURE_KILL_BROKER": "1"} if kill_broker else {})}
        ran = caller.run(["unshare", "--map-root-user", "--net", "/usr/bin/python3", "-B", HERE / "egress_world.py",
                          soma_bin / "soma-capture-run", soma_bin / "soma-tools", policy, "run-1", "--", *argv], env=env)
        assert ran.returncode != 125, ran.stderr
        tail = caller.run([soma_bin / "soma-tools", "audit", "tail", "--json", "--kind", "egress", "-n", "1000"])
        verified = caller.run([soma_bin / "soma-tools", "audit", "verify"])
        assert verified.returncode == 0, verified.stdout
        return ran, [json.loads(line) for line in tail.stdout.splitlines()]

    return run


def fetch(url, *options):
    curl = shutil.which("curl")
    assert curl, "the tests need curl"
    return [curl, "-sS", "--max-time", "20", "--noproxy", "*", *options, url]


def python(code):
    return ["/usr/bin/python3", "-B", "-c", textwrap.dedent(code)]


def decisions(events):
    return [(event["verdict"], event["object"]) for event in events if event["subject"] == "connect"]


def test_an_allowed_name_is_reached_and_recorded(inside):
    ran, events = inside(fetch("http://allowed.test:8080/"), allow=["allowed.test"])
    assert ran.stdout == "reached 93.184.216.1\n", ran.stderr
    assert decisions(events) == [("allow", "allowed.test:8080")]
    event = events[-1]
    assert event["run"] == "run-1"
    assert "allowed.test" in event["rule"]
    assert event["fields"]["addresses"] == "93.184.216.1"


def test_another_name_does_not_exist_and_the_refusal_names_the_remedy(inside):
    ran, events = inside(fetch("http://other.test:8080/"), allow=["allowed.test"])
    assert ran.returncode == 6, ran.stderr  # curl: could not resolve host
    assert [(event["verdict"], event["object"]) for event in events][0] == ("deny", "other.test")
    assert events[0]["remedy"]


def test_a_wildcard_covers_what_is_below_it_and_a_port_only_itself(inside):
    ran, _ = inside(fetch("http://a.wild.test:8080/"), allow=["*.wild.test"])
    assert ran.stdout == "reached 93.184.216.3\n", ran.stderr
    ran, events = inside(fetch("http://allowed.test:8080/"), allow=["allowed.test:443"])
    assert ran.returncode in RESET, ran.stderr
    assert decisions(events)[-1] == ("deny", "allowed.test:8080")


def test_a_network_rule_covers_bare_addresses_and_deny_beats_it(inside):
    ran, _ = inside(fetch("http://93.184.216.5:8080/"), allow=["93.184.216.0/24"])
    assert ran.stdout == "reached 93.184.216.5\n", ran.stderr
    ran, events = inside(fetch("http://93.184.216.5:8080/"), allow=["93.184.216.0/24"], deny=["93.184.216.5"])
    assert ran.returncode in RESET, ran.stderr
    assert decisions(events)[-1] == ("deny", "93.184.216.5:8080")


def test_a_denied_network_is_not_reached_by_an_allowed_name(inside):
    ran, _ = inside(fetch("http://denied-net.test:8080/"), allow=["*.test"], deny=["93.184.216.64/26"])
    assert "reached" not in ran.stdout


@pytest.mark.parametrize("name", ["private.test", "loop.test", "meta.test", "nat64.test", "own.test"])
def test_a_name_that_leads_inside_is_refused(inside, name):
    """DNS rebinding: the rule allows the name, its owner lets it point at us."""
    ran, events = inside(fetch(f"http://{name}:8080/"), allow=["*.test"])
    assert "reached" not in ran.stdout
    assert decisions(events)[-1][0] == "deny"


@pytest.mark.parametrize("address", ["10.1.2.3", "169.254.169.254", "93.184.217.1"])
def test_a_bare_special_address_is_refused_even_when_all_is_allowed_and_reached_when_named(inside, address):
    ran, _ = inside(fetch(f"http://{address}:8080/"), allow=["*"])
    assert "reached" not in ran.stdout
    ran, _ = inside(fetch(f"http://{address}:8080/"), allow=[f"{address}:8080"])
    assert ran.stdout == f"reached {address}\n", ran.stderr


def test_only_the_allowed_address_of_a_name_is_dialled(inside):
    ran, events = inside(fetch("http://mixed.test:8080/"), allow=["mixed.test"])
    assert ran.stdout == "reached 93.184.216.9\n", ran.stderr
    assert events[-1]["fields"]["addresses"] == "93.184.216.9"


def test_the_machines_loopback_is_reached_only_when_named_by_network(inside):
    ran, _ = inside(fetch("http://loop.test:8080/"), allow=["loop.test", "127.0.0.1:8080"])
    assert ran.stdout == "reached 127.0.0.1\n", ran.stderr


def test_without_rules_nothing_gets_out(inside):
    ran, _ = inside(fetch("http://93.184.216.5:8080/"))
    assert "reached" not in ran.stdout


def test_a_dead_broker_lets_nothing_out(inside):
    ran, _ = inside(fetch("http://93.184.216.5:8080/"), allow=["93.184.216.0/24"], kill_broker=True)
    assert ran.returncode == 7, ran.stderr  # curl: connection refused
    ran, _ = inside(fetch("http://allowed.test:8080/"), allow=["allowed.test"], kill_broker=True)
    assert ran.returncode == 6, ran.stderr


def test_other_protocols_fail_at_once(inside):
    ran, _ = inside(python("""
        import errno, socket
        def send(family, kind, proto, address):
            s = socket.socket(family, kind, proto)
            s.settimeout(20)
            try:
                s.connect(address)
                s.send(b'x')
                s.recv(10)
                return 'answered'
            except OSError as error:
                return errno.errorcode.get(error.errno, str(error))
        print(send(socket.AF_INET, socket.SOCK_DGRAM, 0, ('93.184.216.5', 8080)))
        print(send(socket.AF_INET, socket.SOCK_DGRAM, 0, ('93.184.216.5', 443)))
        print(send(socket.AF_INET6, socket.SOCK_DGRAM, 0, ('2001:db8::1', 443)))
        """), allow=["*"])
    assert "answered" not in ran.stdout
    assert "timed out" not in ran.stdout, ran.stdout
    assert len(ran.stdout.split()) == 3, ran.stderr


def test_loopback_inside_stays_inside(inside):
    ran, events = inside(python("""
        import socket, threading
        listener = socket.create_server(('127.0.0.1', 0))
        def serve():
            connection, _ = listener.accept()
            connection.sendall(b'mine')
            connection.close()
        threading.Thread(target=serve, daemon=True).start()
        print(socket.create_connection(listener.getsockname()).recv(10).decode())
        """))
    assert ran.stdout == "mine\n", ran.stderr
    assert decisions(events) == []


def test_the_connected_peer_is_the_address_that_was_asked_for(inside):
    ran, _ = inside(python("""
        import socket
        s = socket.create_connection(('93.184.216.5', 8080), 20)
        print(s.getpeername())
        """), allow=["93.184.216.5"])
    assert ran.stdout == "('93.184.216.5', 8080)\n", ran.stderr


def test_dns_over_tcp_answers_as_over_udp(inside):
    ran, _ = inside(python("""
        import socket, struct
        query = bytes.fromhex('123401000001000000000000') + b'\\7allowed\\4test\\0' + bytes.fromhex('00010001')
        s = socket.create_connection(('8.8.8.8', 53), 20)
        s.sendall(struct.pack('>H', len(query)) + query)
        size = struct.unpack('>H', s.recv(2, socket.MSG_WAITALL))[0]
        over_tcp = s.recv(size, socket.MSG_WAITALL)
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        u.settimeout(20)
        u.connect(('9.9.9.9', 53))
        u.send(query)
        print(over_tcp == u.recv(512), socket.inet_ntoa(over_tcp[-4:]))
        """), allow=["allowed.test"])
    assert ran.stdout == "True 198.18.0.1\n", ran.stderr


def test_large_bodies_pass_both_ways(inside, caller):
    body = caller.home / "body"
    body.write_bytes(os.urandom(1 << 20) * 8)
    ran, _ = inside(fetch("http://allowed.test:8080/", "--data-binary", f"@{body}", "-H", "Expect:"), allow=["allowed.test"])
    assert ran.stdout == f"got {8 << 20}\n", ran.stderr
    ran, _ = inside(fetch("http://allowed.test:8080/large/8388608", "-o", "/dev/null", "-w", "%{size_download}"), allow=["allowed.test"])
    assert ran.stdout == "8388608", ran.stderr


def test_many_connections_at_once(inside):
    ran, events = inside(python("""
        import concurrent.futures, urllib.request
        def get(_):
            return urllib.request.urlopen('http://allowed.test:8080/', timeout=60).read()
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            print(set(pool.map(get, range(100))))
        """), allow=["allowed.test"])
    assert ran.stdout == "{b'reached 93.184.216.1\\n'}\n", ran.stderr
    assert decisions(events).count(("allow", "allowed.test:8080")) == 100


def test_capture_rules_flushed_by_root_inside_let_nothing_out(inside):
    """Root in the owning namespace can take the rules away, and gains nothing by it."""
    ran, _ = inside(["sh", "-c", "nft flush ruleset; curl -sS --max-time 5 http://93.184.216.5:8080/"], allow=["93.184.216.0/24"])
    assert "reached" not in ran.stdout
