# SPDX-License-Identifier: Apache-2.0
"""The way out of the server's containers: E2B's `network` object to the journal, around them the small internet of tests/lib/internet.py."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent), str(pathlib.Path(__file__).resolve().parent.parent / "lib")]
import base_template  # noqa: E402
import internet  # noqa: E402
import packages  # noqa: E402
import sdk  # noqa: E402
from conftest import skip  # noqa: E402
from serving import BIN, Server  # noqa: E402

CURL = "curl -sS --max-time 20 --noproxy '*'"
ALL = ["0.0.0.0/0"]


@pytest.fixture(scope="module")
def python_sdk():
    """None where it can't be installed. From the real internet, so before the small one."""
    try:
        return sdk.python("newest")
    except sdk.NotInstalled:
        return None


@pytest.fixture(scope="module")
def server(tmp_path_factory, python_sdk):
    if os.geteuid() != 0:
        skip("containers with a range of ids need the launcher that runs as root")
    base_template.launcher_state()
    place = tmp_path_factory.mktemp("world")
    (place / "hosts").write_text(internet.HOSTS)
    # The server reads it as a user of its own, and pytest's directories are root's alone.
    for folder in (place, place.parent, place.parent.parent):
        folder.chmod(0o711)
    tree = packages.make_all(place / "tree")
    with internet.entered(tree), Server("container", environment={"SOMA_TEST_HOSTS": str(place / "hosts")}) as made:
        yield made


@pytest.fixture
def make(server):
    boxes = []

    def create(**fields):
        boxes.append(server.create(**fields))
        return boxes[-1]

    yield create
    for box in boxes:
        box.kill()


def decisions(box):
    """[(verdict, object, event)] of one sandbox, oldest first."""
    tail = subprocess.run([BIN / "soma-tools", "audit", "tail", "--json", "--kind", "egress", "-n", "10000"], env=box.server.environment,
                          capture_output=True, text=True, timeout=60, check=True)
    events = [json.loads(line) for line in tail.stdout.splitlines()]
    return [(event["verdict"], event["object"], event) for event in events if event["sandbox"] == box.id]


def test_an_allowed_host_answers_and_another_is_refused_with_a_reason(make):
    box = make(network={"allowOut": ["allowed.test"], "denyOut": ALL})
    assert box.run(f"{CURL} http://allowed.test:8080/") == (0, "reached 93.184.216.1\n")
    code, output = box.run(f"{CURL} http://other.test:8080/")
    assert (code, output) == (6, "")  # curl: could not resolve host
    code, output = box.run(f"{CURL} http://93.184.216.2:8080/")
    assert code != 0 and "reached" not in output
    seen = decisions(box)
    # A resolver asks for both families: the name may be refused more than once.
    assert list(dict.fromkeys((verdict, what) for verdict, what, _ in seen)) == [
        ("allow", "allowed.test:8080"), ("deny", "other.test"), ("deny", "93.184.216.2:8080")]
    allowed, lookup, connect = seen[0][2], seen[1][2], seen[-1][2]
    assert allowed["tenant"] == "default" and allowed["fields"]["addresses"] == "93.184.216.1"
    for event in (lookup, connect):
        assert event["rule"] == 'default "deny"' and "the request's network" in event["remedy"], event


def test_without_a_wish_everything_public_is_open_and_nothing_else(make):
    box = make()
    assert box.run(f"{CURL} http://other.test:8080/") == (0, "reached 93.184.216.2\n")
    for where in ("private.test", "loop.test", "meta.test", "own.test", "nat64.test", "10.1.2.3", "169.254.169.254", "93.184.217.1"):
        code, output = box.run(f"{CURL} http://{where}:8080/")
        assert code != 0 and "reached" not in output, where
    assert all(event["rule"].endswith("refused unless a rule names them by network") for verdict, _, event in decisions(box)
               if verdict == "deny")


def test_no_internet_access_is_none(make):
    for fields in ({"allow_internet_access": False}, {"network": {"denyOut": ALL}}):
        box = make(**fields)
        assert box.run(f"{CURL} http://allowed.test:8080/")[0] == 6
        code, output = box.run(f"{CURL} http://93.184.216.1:8080/")
        assert code != 0 and "reached" not in output


def test_allow_beats_deny_as_at_e2b_and_names_may_be_wild(make):
    box = make(network={"allowOut": ["93.184.216.5", "*.wild.test"], "denyOut": ALL})
    assert box.run(f"{CURL} http://93.184.216.5:8080/") == (0, "reached 93.184.216.5\n")
    assert box.run(f"{CURL} http://a.wild.test:8080/") == (0, "reached 93.184.216.3\n")
    box = make(network={"denyOut": ["93.184.216.0/24"], "allowOut": ["93.184.216.4/30"]})
    assert box.run(f"{CURL} http://93.184.216.6:8080/") == (0, "reached 93.184.216.6\n")
    assert box.run(f"{CURL} http://93.184.216.9:8080/")[0] != 0
    # The name is no way around the network.
    assert box.run(f"{CURL} http://allowed.test:8080/")[0] != 0


def test_an_allowed_private_network_opens_nothing(make):
    """The client's wish can only narrow what the server allows."""
    box = make(network={"allowOut": ["10.1.0.0/16", "127.0.0.0/8"], "denyOut": ALL})
    for where in ("10.1.2.3", "private.test"):
        code, output = box.run(f"{CURL} http://{where}:8080/")
        assert code != 0 and "reached" not in output
    assert box.run(f"{CURL} http://127.0.0.1:{box.server.port}/health")[0] == 7  # its own loopback, where nobody listens


def test_an_update_replaces_everything_for_connections_from_now_on(make):
    box = make(network={"denyOut": ALL})
    fetch = f"{CURL} http://allowed.test:8080/"

    def update(body):
        return box.server.request("PUT", f"/sandboxes/{box.id}/network", body)[0]

    assert box.run(fetch)[0] == 6
    assert update({"allowOut": ["allowed.test"], "denyOut": ALL}) == 204
    assert box.run(fetch) == (0, "reached 93.184.216.1\n")
    assert update({"allow_internet_access": False}) == 204
    assert box.run(fetch)[0] != 0
    assert update({}) == 204
    assert box.run(f"{CURL} http://other.test:8080/") == (0, "reached 93.184.216.2\n")
    assert update({"allowOut": ["allowed.test"]}) == 400  # a name without a denial of everything
    assert update({"rules": {"a.test": []}}) == 501
    assert box.run(f"{CURL} http://other.test:8080/")[0] == 0
    tail = subprocess.run([BIN / "soma-tools", "audit", "tail", "--json", "-n", "10000"], env=box.server.environment, capture_output=True,
                          text=True, timeout=60, check=True)
    changes = [event for event in map(json.loads, tail.stdout.splitlines()) if event.get("sandbox") == box.id and event["subject"] == "network"]
    assert [event["fields"]["allow_out"] for event in changes] == ["allowed.test", "", ""]


def test_a_virtual_machines_way_out(server):
    """The same rules, where the agent inside asks over the wire."""
    if not os.access("/usr/bin/qemu-system-x86_64", os.X_OK):
        skip("no qemu-system-x86_64")
    with Server("emulated", environment={"SOMA_TEST_HOSTS": server.environment["SOMA_TEST_HOSTS"]}) as machines:
        box = machines.create(network={"allowOut": ["allowed.test", "git.test"], "denyOut": ALL})
        assert box.run("uname -r")[1].strip() != os.uname().release
        assert box.run(f"{CURL} http://allowed.test:8080/") == (0, "reached 93.184.216.1\n")
        assert box.run(f"{CURL} http://other.test:8080/")[0] == 6
        code, output = box.run(f"{CURL} http://93.184.216.2:8080/")
        assert code != 0 and "reached" not in output
        assert box.run(INSTALLS["git"]) == (0, "hello from git\n")
        seen = list(dict.fromkeys((verdict, what) for verdict, what, _ in decisions(box)))
        assert seen == [("allow", "allowed.test:8080"), ("deny", "other.test"), ("deny", "93.184.216.2:8080"), ("allow", "git.test:80")]
        assert box.kill() == 204


def test_rules_that_e2b_refuses_are_refused(server):
    for network in ({"allowOut": ["allowed.test"]}, {"denyOut": ["allowed.test"]}, {"allowOut": ["not a name"], "denyOut": ALL}):
        status, _, answer = server.request("POST", "/v2/sandboxes", {"templateID": "base", "network": network})
        assert status == 400, answer


def test_large_bodies_and_many_connections(make):
    box = make()
    assert box.run(f"{CURL} http://allowed.test:8080/large/8388608 | wc -c") == (0, "8388608\n")
    assert box.run(f"head -c 8388608 /dev/urandom > body && {CURL} --data-binary @body -H Expect: http://allowed.test:8080/") == (
        0, "got 8388608\n")
    code, output = box.run(f"for i in $(seq 40); do {CURL} http://allowed.test:8080/ & done; wait")
    assert (code, output) == (0, "reached 93.184.216.1\n" * 40)


def test_one_sandbox_gives_another_no_way_out(make):
    closed, opened = make(allow_internet_access=False), make()
    assert opened.run(f"{CURL} http://allowed.test:8080/")[0] == 0
    assert closed.run(f"{CURL} http://allowed.test:8080/")[0] == 6
    # The address that the other one's resolver gave out means nothing here.
    assert closed.run(f"{CURL} http://198.18.0.1:8080/")[0] != 0


INSTALLS = {
    "git": "git clone -q http://git.test/hello.git && cat hello/hello.txt",
    "pip": "pip install -q --retries 0 --index-url http://pypi.test/simple --trusted-host pypi.test hello-soma"
           " && python3 -c 'import hello_soma'",
    "npm": "npm install --no-audit --no-fund --silent --fetch-retries=0 --registry http://npm.test hello-soma && node -e 'require(\"hello-soma\")'",
    "apt": "echo 'deb [trusted=yes] http://deb.test ./' | sudo tee /etc/apt/sources.list > /dev/null && sudo apt-get update -q > log"
           " && sudo apt-get install -q -y hello-soma > log && hello-soma",
}


@pytest.mark.parametrize("manager", INSTALLS)
def test_package_managers_work_through_the_broker(make, manager):
    host = {"pip": "pypi", "apt": "deb"}.get(manager, manager) + ".test"
    box = make(network={"allowOut": [host], "denyOut": ALL})
    code, output = box.run(f"({INSTALLS[manager]}) 2>&1")
    assert code == 0 and output.endswith(f"hello from {manager}\n"), output
    assert {(verdict, what) for verdict, what, _ in decisions(box)} == {("allow", f"{host}:80")}
    assert make(allow_internet_access=False).run(INSTALLS[manager])[0] != 0


NETLINK = """
import errno, socket
try:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).bind((0, 0))  # NETLINK_NETFILTER: what nft speaks
    print("netfilter")
except OSError as error:
    print(errno.errorcode[error.errno])
"""
REFUSED = {
    "block device": "sudo mknod /tmp/disk b 254 0 && sudo mount /tmp/disk /mnt",
    "mount": "sudo mount -t tmpfs none /mnt",
    "loopback": "sudo ip link set lo down",
    "core_pattern": "echo '|/tmp/x' | sudo tee /proc/sys/kernel/core_pattern",
    "host process": f"sudo kill -0 {os.getpid()}",
}


def test_root_inside_installs_a_file_and_reaches_nothing_of_the_host(make, tmp_path):
    """The same root: what a user needs of it works, and what is the host's is refused."""
    box = make(network={"allowOut": ["pypi.test"], "denyOut": ALL})
    deb = packages.make_deb(tmp_path, "rooted-soma").read_bytes()
    assert box.files("POST", "/home/user/x.deb", deb, {"Content-Type": "application/octet-stream"})[0] == 200
    code, output = box.run("(sudo apt-get install -q -y ./x.deb && rooted-soma && sudo cat /var/lib/rooted-soma.uid) 2>&1")
    assert code == 0 and output.endswith("hello from apt\n0\n"), output
    code, output = box.run("(sudo pip install -q --retries 0 --root-user-action=ignore --index-url http://pypi.test/simple"
                           " --trusted-host pypi.test hello-soma && python3 -c 'import hello_soma') 2>&1")
    assert (code, output) == (0, "hello from pip\n")
    for what, command in REFUSED.items():
        code, output = box.run(f"{command} 2>&1")
        assert code != 0, f"{what}: {output}"
    assert pathlib.Path("/proc/sys/kernel/core_pattern").read_text() != "|/tmp/x\n"
    assert box.files("POST", "/home/user/netlink.py", NETLINK, {"Content-Type": "application/octet-stream"})[0] == 200
    assert box.run("sudo python3 netlink.py")[1] in ("EPERM\n", "EAFNOSUPPORT\n", "EPROTONOSUPPORT\n")
    assert "soma-server" not in box.run("sudo ps ax")[1]


SDK_SCRIPT = """
from e2b import CommandExitException, Sandbox
with Sandbox.create("base", network={"allow_out": ["allowed.test"], "deny_out": ["0.0.0.0/0"]}) as box:
    print(box.commands.run("curl -sS --max-time 20 http://allowed.test:8080/").stdout, end="")
    try:
        box.commands.run("curl -sS --max-time 20 http://other.test:8080/")
    except CommandExitException as error:
        print("refused", error.exit_code)
with Sandbox.create("base", allow_internet_access=False) as box:
    try:
        box.commands.run("curl -sS --max-time 20 http://allowed.test:8080/")
    except CommandExitException as error:
        print("refused", error.exit_code)
"""


def test_the_python_sdks_network_object(server, python_sdk, tmp_path):
    if python_sdk is None:
        skip("the SDK cannot be installed")
    script = tmp_path / "network.py"
    script.write_text(SDK_SCRIPT)
    done = sdk.run_script("py", "newest", script, server.sdk_environment())
    assert (done.returncode, done.stdout) == (0, "reached 93.184.216.1\nrefused 6\nrefused 6\n"), done.stderr + server.text()
