# SPDX-License-Identifier: Apache-2.0
"""The way out of `soma run --isolation container|emulated`, on the small internet of tests/lib/internet.py; and, as an ordinary user, the
container with one id."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent), str(pathlib.Path(__file__).resolve().parent.parent / "lib")]
import base_template  # noqa: E402
import internet  # noqa: E402
import packages  # noqa: E402
from conftest import BIN, skip  # noqa: E402

CURL = "curl -sS --max-time 60 --noproxy '*'"
PATIENCE = 600  # an emulated machine beside other tests takes its time


@pytest.fixture(scope="module")
def template():
    return base_template.launcher_state()


@pytest.fixture(scope="module")
def world(template):
    """The folder with the names; this process and all that it starts are in the small internet."""
    with packages.readable_folder() as place:
        (place / "hosts").write_text(internet.HOSTS)
        with internet.entered(packages.make_all(place / "tree")):
            yield place


@pytest.fixture(params=["container", "emulated"])
def level(request):
    if request.param == "emulated" and not os.access("/usr/bin/qemu-system-x86_64", os.X_OK):
        skip("no qemu-system-x86_64")
    return request.param


@pytest.fixture
def place(root, world, no_residue):
    base_template.link_into(root.home / "state")
    return root


def run(place, world, level, script, options=()):
    done = place.run([BIN / "soma", "run", "--isolation", level, *options, "--", "sh", "-c", script], timeout=PATIENCE,
                     cwd=place.home / "work", env={"SOMA_TEST_HOSTS": str(world / "hosts")})
    assert done.returncode != 125, done.stderr
    return done


def decisions(place):
    tail = place.run([BIN / "soma-tools", "audit", "tail", "--json", "--kind", "egress", "-n", "1000"])
    events = [json.loads(line) for line in tail.stdout.splitlines()]
    assert all(event["run"] and event["sandbox"] for event in events)
    # A resolver asks for both families: the same name may be refused more than once.
    return list(dict.fromkeys((event["verdict"], event["object"]) for event in events))


DNS = """
import socket, struct
query = bytes.fromhex('123401000001000000000000') + b'\\7allowed\\4test\\0' + bytes.fromhex('00010001')
s = socket.create_connection(('8.8.8.8', 53), 60)
s.sendall(struct.pack('>H', len(query)) + query)
size = struct.unpack('>H', s.recv(2, socket.MSG_WAITALL))[0]
over_tcp = s.recv(size, socket.MSG_WAITALL)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(60)
u.connect(('9.9.9.9', 53))
u.send(query)
print(over_tcp == u.recv(512), socket.inet_ntoa(over_tcp[-4:]))
"""


def test_allowed_names_answer_and_the_rest_is_refused(place, world, level):
    """One start for many questions: a machine under emulation boots for seconds."""
    (place.home / "work/dns.py").write_text(DNS)
    script = (f"{CURL} http://allowed.test:8080/; {CURL} http://other.test:8080/; echo code=$?; {CURL} http://93.184.216.2:8080/;"
              f" [ $? = 0 ] || echo refused; {CURL} http://private.test:8080/; [ $? = 0 ] || echo refused;"
              f" {CURL} http://allowed.test:8080/large/1048576 | wc -c; python3 dns.py; head -c 1048576 /dev/zero > body;"
              f" {CURL} --data-binary @body -H Expect: http://allowed.test:8080/")
    done = run(place, world, level, script, ["--allow-net", "allowed.test:8080", "--allow-net", "private.test"])
    assert done.stdout.splitlines() == ["reached 93.184.216.1", "code=6", "refused", "refused", "1048576", "True 198.18.0.1",
                                        "got 1048576"], done.stderr
    assert decisions(place) == [("allow", "allowed.test:8080"), ("deny", "other.test"), ("deny", "93.184.216.2:8080"),
                                ("deny", "private.test:8080 at 10.1.2.3")]


def test_without_a_rule_every_attempt_is_refused_at_once_and_recorded(place, world, level):
    report = place.home / "report.json"
    done = run(place, world, level, f"{CURL} http://allowed.test:8080/; echo $?; {CURL} http://93.184.216.1:8080/ || echo refused",
               ["--report", report])
    assert done.stdout == "6\nrefused\n", done.stderr
    # Each with its reason, for a person and for a program.
    assert "soma:   lookup allowed.test" in done.stderr and "soma:   connect 93.184.216.1:8080" in done.stderr
    assert "to allow: --allow-net" in done.stderr
    refusals = {(one["tried"], one["object"]): one for one in json.loads(report.read_text())["refusals"]}
    assert all(one["rule"] and one["remedy"] for one in refusals.values())
    assert {("lookup", "allowed.test"), ("connect", "93.184.216.1:8080")} <= set(refusals)
    assert decisions(place) == [("deny", "allowed.test"), ("deny", "93.184.216.1:8080")]


def test_a_package_is_installed(place, world, level):
    script = ("pip install -q --retries 0 --user --no-warn-script-location --index-url http://pypi.test/simple --trusted-host pypi.test"
              " hello-soma && python3 -c 'import hello_soma'; git clone -q http://git.test/hello.git && cat hello/hello.txt")
    done = run(place, world, level, script, ["--allow-net", "pypi.test", "--allow-net", "git.test"])
    assert done.stdout == "hello from pip\nhello from git\n", done.stderr


# ---- as an ordinary user --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published(template):
    """What an administrator does for the users of a machine: the template where they can read it."""
    with packages.readable_folder() as place:
        for name in ("root.erofs", "manifest.json"):
            try:
                os.link(template / "templates/base" / name, place / name)
            except OSError:
                shutil.copy2(template / "templates/base" / name, place / name)
            (place / name).chmod(0o644)
        yield place


@pytest.fixture(scope="module")
def imported(published):
    """An ordinary user's state with the template in it, which takes a while to unpack."""
    from conftest import ORDINARY_UID
    state = pathlib.Path(f"/var/tmp/soma-imported-{os.getpid()}")
    state.mkdir(mode=0o700)
    os.chown(state, ORDINARY_UID, ORDINARY_UID)
    done = subprocess.run(["setpriv", f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", "--clear-groups", "--bounding-set=-all",
                           BIN / "soma-tools", "template", "import", published],
                          env={"PATH": "/usr/bin:/bin", "SOMA_STATE_DIR": str(state)}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    yield state
    shutil.rmtree(state)


@pytest.fixture
def ordinary(user, imported, no_residue):
    (user.home / "state/launcher").mkdir(mode=0o700)
    (user.home / "state/launcher/templates").symlink_to(imported / "launcher/templates")
    user.own(user.home / "state")
    return user


def test_an_ordinary_users_container(ordinary, world):
    (ordinary.home / "work/hello.txt").write_text("from the host\n")
    script = (f"id -u; pwd; cat hello.txt; grep -c . /proc/self/uid_map; grep CapEff /proc/self/status | cut -f2; sudo -n true 2>&1 | wc -l;"
              f" {CURL} http://allowed.test:8080/; {CURL} http://other.test:8080/; echo code=$?; echo changed > hello.txt; gcc --version"
              " | head -c 3")
    done = run(ordinary, world, "container", script, ["--allow-net", "allowed.test:8080"])
    lines = done.stdout.splitlines()
    assert lines[:5] == ["0", "/root/work", "from the host", "1", "0000000000000000"], done.stdout + done.stderr
    assert lines[6:] == ["reached 93.184.216.1", "code=6", "gcc"], done.stdout + done.stderr
    assert "root inside is you" in done.stderr
    assert (ordinary.home / "work/hello.txt").read_text() == "from the host\n"
    assert decisions(ordinary) == [("allow", "allowed.test:8080"), ("deny", "other.test")]


def test_where_user_namespaces_are_forbidden_it_says_so(ordinary):
    # One more namespace is allowed, which makes the caller an ordinary user again.
    script = (f"echo 1 > /proc/sys/user/max_user_namespaces; exec unshare --user --map-user={ordinary.uid} --map-group={ordinary.uid}"
              f" {BIN}/soma run --isolation container -- true")
    done = ordinary.run(["unshare", "--map-root-user", "sh", "-c", script], cwd=ordinary.home / "work")
    assert done.returncode == 125
    assert "gives an ordinary user none" in done.stderr and "max_user_namespaces" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_an_import_that_lies_is_refused(user, published):
    lying = user.home / "lying"
    lying.mkdir()
    shutil.copy2(published / "manifest.json", lying / "manifest.json")
    (lying / "root.erofs").write_bytes(b"another image")
    user.own(lying)
    done = user.run([BIN / "soma-tools", "template", "import", lying])
    assert done.returncode == 125 and "is not the image" in done.stderr
    assert not list((user.home / "state/launcher/templates").glob("base*"))
