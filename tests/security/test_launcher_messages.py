# SPDX-License-Identifier: Apache-2.0
"""A server that was broken into speaks to the launcher: mutated messages, other users, floods. The launcher lives and nothing outside
its directories changes."""
import os
import pathlib
import random
import socket
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import control  # noqa: E402
import launcher as launcher_lib  # noqa: E402
from conftest import skip, user_namespaces_work  # noqa: E402

SERVER_UID = 1955
# Where a launcher that writes outside its directories would do harm and nobody else writes during a test.
OUTSIDE = ["/etc", "/boot", "/opt", "/srv", "/usr/local/bin", "/usr/local/sbin", "/usr/local/etc", "/root/.ssh", "/var/spool"]
ROUNDS = int(os.environ.get("SOMA_MUTATIONS", "100000"))


@pytest.fixture
def launcher():
    if os.geteuid() != 0:
        skip("the system's launcher needs root")
    made = launcher_lib.Launcher(server_uid=SERVER_UID, arguments=["--sandboxes-max", "4", "--ready", "1"])
    made.add_template()
    try:
        yield made
    finally:
        made.close()


def as_server(function, meanwhile=lambda: None):
    """Runs function in a child with the server's user and nothing else; `meanwhile` again and again here, until the child has ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(SERVER_UID, SERVER_UID, SERVER_UID)
            os.setresuid(SERVER_UID, SERVER_UID, SERVER_UID)
            function()
            status = 0
        except BaseException as error:  # noqa: BLE001: the child must not run the parent's code
            print(f"server child: {error!r}", file=sys.stderr)
        finally:
            os._exit(status)
    ended = 0
    while not ended:
        meanwhile()
        ended, status = os.waitpid(child, os.WNOHANG)
    assert os.waitstatus_to_exitcode(status) == 0


def assert_ids_in_range(launcher):
    for pid in launcher.processes():
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        uids = {int(uid) for uid in next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]}
        # Root is the launcher and a monitor that has no order yet.
        assert all(uid == 0 or launcher_lib.FIRST_ID <= uid <= launcher_lib.LAST_ID for uid in uids), f"{pid} runs as {uids}"


def try_to_start(launcher, made):
    """A well-formed start beside the flood, which takes the few places and connections that there are again and again."""
    try:
        connection = launcher.connect()
        box = launcher.sandbox(connection)
    except (control.Refused, EOFError, OSError):
        return
    try:
        made.append(box.run("echo well-formed"))
        connection.ask("kill", box.name)
    except (EOFError, OSError):  # the flood knows no name of ours, but it may end a connection
        pass
    finally:
        box.close()
        connection.close()


def listing(paths):
    """Names, sizes, owners and times of everything below."""
    seen = {}
    for top in paths:
        for path in pathlib.Path(top).rglob("*"):
            stat = path.lstat()
            seen[str(path)] = (stat.st_mode, stat.st_uid, stat.st_gid, stat.st_size, stat.st_mtime_ns)
    return seen


def mutated(generator, sequence):
    verb = generator.choice(control.VERBS[1:14])
    name = generator.choice(["abc", "x", "t0", ""])
    template = generator.choice(["tiny", "none", "t"])
    packet = bytearray(control.encode(verb, sequence, name, template=template, lease=generator.choice([1, 5]), count=1))
    for _ in range(generator.choice([0, 1, 1, 2, 4, 30])):
        packet[generator.randrange(len(packet))] = generator.choice([0, 1, 0x2E, 0x2F, 0xFF, generator.randrange(256)])
    if generator.random() < 0.02:
        packet = packet[:generator.randrange(len(packet) + 1)] + bytes(generator.choice([0, 0, 300]))
    return bytes(packet)


def test_mutated_messages_change_nothing_outside(launcher):
    launcher.start().close()
    outside_before = listing(OUTSIDE)
    home_before = set(os.listdir(launcher.home))

    def flood():
        generator = random.Random(3)
        connection = None
        for sequence in range(1, ROUNDS + 1):
            if connection is None:
                connection = control.Connection(launcher.socket)
                connection.socket.settimeout(10)
            packet = mutated(generator, sequence)
            try:
                if generator.random() < 0.01:
                    socket.send_fds(connection.socket, [packet], [0])
                else:
                    connection.socket.send(packet)
                # Read what comes, or the launcher would close a client that doesn't.
                for _ in range(2):
                    connection.socket.setblocking(sequence % 64 == 0)
                    connection.socket.settimeout(0.002 if sequence % 64 == 0 else 0.0)
                    _data, fds, _flags, _address = socket.recv_fds(connection.socket, 512, 16)
                    for fd in fds:
                        os.close(fd)
            except (BlockingIOError, TimeoutError):
                pass
            except OSError:
                connection.close()
                connection = None

    worker = launcher.worker()
    started = []

    def meanwhile():
        assert_ids_in_range(launcher)
        try_to_start(launcher, started)

    as_server(flood, meanwhile)
    assert launcher.worker() == worker, "the worker did not live through it"
    assert_ids_in_range(launcher)
    assert listing(OUTSIDE) == outside_before
    assert set(os.listdir(launcher.home)) == home_before
    print(f"{len(started)} sandboxes were started and used during the flood")
    assert set(started) <= {(0, "well-formed\n")}
    during = len(started)
    if not user_namespaces_work():
        print("nothing is started here, during the flood or after: this machine gives no user namespaces")
        return
    launcher_lib.wait_until(lambda: try_to_start(launcher, started) or len(started) > during, "a sandbox after the flood", 60)


def test_another_user_is_not_answered(launcher):
    launcher.start().close()
    child = os.fork()
    if child == 0:
        os.setresuid(SERVER_UID + 1, SERVER_UID + 1, SERVER_UID + 1)
        try:
            control.Connection(launcher.socket).ask("hello")
            os._exit(1)
        except PermissionError:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_another_user_is_not_answered_even_with_an_open_socket_file(launcher):
    """The kernel's word on the peer counts, not only the file's mode."""
    launcher.start().close()
    launcher.socket.chmod(0o666)
    child = os.fork()
    if child == 0:
        os.setresuid(SERVER_UID + 1, SERVER_UID + 1, SERVER_UID + 1)
        try:
            control.Connection(launcher.socket).ask("hello")
            os._exit(1)
        except (EOFError, OSError):
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_unread_replies_do_not_stop_the_launcher(launcher):
    first = launcher.start()
    deaf = launcher.connect()
    deaf.socket.setblocking(False)
    for sequence in range(1, 20000):
        try:
            deaf.socket.send(control.encode("hello", sequence))
        except BlockingIOError:
            launcher_lib.wait_until(lambda: first.ask("hello").ok, "an answer for the other client")
        except OSError:
            break
    assert first.ask("hello").ok


def test_more_clients_than_it_takes(launcher):
    first = launcher.start()
    crowd = []
    for _ in range(100):
        crowd.append(launcher.connect())
    assert first.ask("hello").ok
    for one in crowd:
        one.close()
    launcher_lib.wait_until(lambda: try_hello(launcher), "a place for a new client")


def try_hello(launcher):
    try:
        return launcher.connect().ask("hello").ok
    except (EOFError, OSError):
        return False


def test_names_that_are_paths_are_not_names(launcher):
    connection = launcher.start()
    for name in ("..", "../../etc", "/etc", ".hidden"):
        packet = bytearray(control.encode("status", 7, "abc"))
        raw = name.encode()
        packet[14] = len(raw)
        packet[15:15 + 32] = raw.ljust(32, b"\0")
        connection.socket.send(bytes(packet))
        with pytest.raises((EOFError, OSError)):
            connection.receive()
        connection = launcher.connect()
