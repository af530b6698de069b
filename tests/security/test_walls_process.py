# SPDX-License-Identifier: Apache-2.0
"""The walls of the level `process`, attacked in pairs: with all walls the attack fails, without the named one it succeeds.

What happened is judged by something outside (a file, a listener, a process), not by what the attacker says, wherever there is such a thing.
"""
import ctypes
import os
import pathlib
import shutil
import socket
import tempfile
import time

import pytest
from walls_helpers import (SECOND_PATH, HostProcess, assert_pair, landlock_abi, need_user_namespaces, python, read_or_nothing, shell,
                           walls)


@pytest.fixture(autouse=True)
def _namespaces(request):
    if "caller" in request.fixturenames:
        need_user_namespaces(request.getfixturevalue("caller"))


def test_a_command_works_in_its_workspace(caller):
    done = walls(caller, shell("echo made > made && cat made && id -u && pwd"))
    assert done.returncode == 0, done.stderr
    made = caller.home / "work/made"
    assert made.read_text() == "made\n"
    # The file is the caller's outside, whoever the command was inside.
    assert made.stat().st_uid == caller.uid
    assert done.stdout.splitlines()[2] == str(caller.home / "work")


@pytest.mark.parametrize("script,code", [("exit 0", 0), ("exit 1", 1), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137),
                                         ("kill -SEGV $$", 139)])
def test_exit_codes_are_exact(caller, script, code):
    assert walls(caller, shell(script)).returncode == code


def test_exit_codes_of_what_cannot_start(caller):
    assert walls(caller, ["soma-no-such-program"]).returncode == 127
    assert walls(caller, ["/etc/passwd"]).returncode == 126
    assert walls(caller, ["/no/such/path"]).returncode == 127
    assert walls(caller, ["true"], workspace=caller.home / "absent").returncode == 125


def test_signals_have_their_usual_defaults(caller):
    # As pid 1 the shell would survive its own SIGTERM; as pid 2 it dies of it.
    assert walls(caller, python("import signal; os.kill(os.getpid(), signal.SIGTERM); sys.exit(9)")).returncode == 143
    assert walls(caller, python("print(os.getpid())")).stdout.strip() == "2"


def test_standard_streams_pass(caller):
    done = walls(caller, shell("cat; echo problem >&2"), input="hello")
    assert (done.stdout, done.stderr) == ("hello", "problem\n")


def test_orphans_are_reaped_and_daemons_end_with_the_command(caller, canary):
    script = "for i in 1 2 3 4 5; do (setsid sleep 0.01 &) ; done; sleep 0.5; ps -A -o stat= | grep -c Z; (setsid sleep 7654 &) ; exit 0"
    done = walls(caller, shell(script))
    assert done.returncode == 0 and done.stdout.strip() == "0"
    assert not [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if read_or_nothing(p).split(b"\0")[:2] == [b"sleep", b"7654"]]


def test_status_says_no_privilege(caller):
    status = dict(line.split(":\t") for line in walls(caller, ["cat", "/proc/self/status"]).stdout.splitlines() if ":\t" in line)
    for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[field], 16) == 0, field
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


# --- the file tree -------------------------------------------------------------------------------------------------

def test_read_of_a_file_outside_the_view(caller, canary):
    def attack(without):
        return "untouched" in walls(caller, ["cat", canary / "kept"], without=without).stdout

    assert_pair(attack, "mount" + (",user" if caller.uid == 0 else ""))


def test_write_outside_the_workspace(caller, canary):
    def attack(without):
        (canary / "kept").write_text("untouched")
        walls(caller, shell(f"echo changed > {canary}/kept"), without=without)
        return (canary / "kept").read_text() != "untouched"

    assert_pair(attack, "mount,landlock" + (",user" if caller.uid == 0 else ""))


@pytest.fixture
def canary_in_srv():
    """Not below /tmp, /var/tmp or home: what Landlock allows there it allows for binds below them too."""
    if not os.access("/srv", os.W_OK):
        pytest.skip("/srv isn't writable for the tests")
    path = pathlib.Path(tempfile.mkdtemp(prefix="soma-canary-", dir="/srv"))
    path.chmod(0o777)
    (path / "kept").write_text("untouched")
    (path / "kept").chmod(0o666)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("wall", ["read-only", "landlock"])
def test_write_below_a_read_only_path(caller, canary_in_srv, wall):
    """Two walls, each alone stops it: with both off it succeeds, with one off it still fails."""
    kept = canary_in_srv / "kept"

    def attack(without):
        kept.write_text("untouched")
        walls(caller, shell(f"echo changed > {kept}"), without=without, options=["--read", canary_in_srv])
        return kept.read_text() != "untouched"

    assert_pair(attack, "read-only,landlock")
    assert not attack(wall)


def test_metadata_below_a_read_only_path(user, canary_in_srv):
    """Landlock has no say in modes and times: here the mount alone stands between the file's owner and them."""
    need_user_namespaces(user)
    kept = canary_in_srv / "kept"
    os.chown(kept, user.uid, user.uid)

    def attack(without):
        kept.chmod(0o600)
        walls(user, ["chmod", "0666", kept], without=without, options=["--read", canary_in_srv])
        return kept.stat().st_mode & 0o777 == 0o666

    assert_pair(attack, "read-only")


def test_home_is_hidden(caller):
    secret = caller.home / ".ssh/id_ed25519"

    def attack(without):
        return "SECRET" in walls(caller, ["cat", secret], without=without).stdout

    assert_pair(attack, "mount" + (",user" if caller.uid == 0 else ""))


def test_hidden_names_in_the_workspace(caller):
    work = caller.home / "work"
    (work / ".env").write_text("TOKEN=SECRET\n")
    (work / "keys").mkdir()
    (work / "keys/key").write_text("SECRET\n")
    caller.own(work)
    options = ["--hide", work / ".env", "--hide", work / "keys", "--hide", work / "absent"]

    def attack(without):
        return "SECRET" in walls(caller, shell("cat .env keys/key"), without=without, options=options).stdout

    assert_pair(attack, "hide")
    # And what is hidden can neither be moved away nor replaced.
    walls(caller, shell("mv .env x; rm -f .env; rm -rf keys; mv keys k2"), options=options)
    assert (work / ".env").read_text() == "TOKEN=SECRET\n"
    assert (work / "keys/key").read_text() == "SECRET\n"
    assert not (work / "absent").exists()


def test_nothing_is_left_in_shared_places(caller):
    names = [f"/tmp/soma-left-{os.getpid()}-{caller.name}", f"/dev/shm/soma-left-{os.getpid()}-{caller.name}"]

    def attack(without):
        walls(caller, shell("; ".join(f"echo left > {name}" for name in names)), without=without)
        left = [name for name in names if os.path.exists(name)]
        for name in left:
            os.unlink(name)
        return bool(left)

    assert_pair(attack, "mount" + (",user" if caller.uid == 0 else ""))


def test_symlink_in_the_workspace_leads_nowhere(caller, canary):
    link = caller.home / "work/link"
    link.symlink_to(canary / "kept")
    walls(caller, shell("echo changed > link; echo changed > /proc/self/cwd/link; echo changed > /proc/1/root/" + str(canary / "kept")))
    assert (canary / "kept").read_text() == "untouched"


def _opens(path):
    try:
        os.close(os.open(path, os.O_RDONLY))
        return True
    except OSError:
        return False


def test_device_of_the_host(root):
    need_user_namespaces(root)
    device = next((p for p in ("/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0", "/dev/loop-control") if _opens(p)), None)
    if device is None:
        pytest.skip("no device that root may open here")

    def attack(without):
        return walls(root, python(f"os.open({device!r}, os.O_RDONLY); print('open')"), without=without).stdout == "open\n"

    assert_pair(attack, "mount,user,landlock")


def test_overlay_inside(caller):
    layers = caller.home / "layers"
    for name in ("lower", "upper", "work"):
        (layers / name).mkdir(parents=True)
    (layers / "lower/kept").write_text("lower")
    (layers / "lower/gone").write_text("lower")
    caller.own(layers)
    layers.chmod(0o755)
    options = ["--overlay", layers / "lower", layers / "upper", layers / "work"]
    script = "cat /overlay/kept && echo upper > /overlay/kept && rm /overlay/gone && echo new > /overlay/new && ls /overlay"
    done = walls(caller, shell(script), options=options)
    if caller.uid == 0:
        # Root's files aren't the sandbox's: without an id map (the launcher makes one) nothing can be written.
        assert done.returncode != 0
    else:
        assert (done.returncode, done.stdout) == (0, "lowerkept\nnew\n"), done.stderr
        assert (layers / "upper/new").read_text() == "new\n"
    assert (layers / "lower/kept").read_text() == "lower"
    assert (layers / "lower/gone").exists()


def test_a_file_of_ours_over_one_of_the_host(caller):
    before = pathlib.Path("/etc/passwd").read_bytes()
    done = walls(caller, ["cat", "/etc/passwd"], options=["--file", "/etc/passwd", "ours\n"])
    assert done.stdout == "ours\n"
    assert pathlib.Path("/etc/passwd").read_bytes() == before


def test_no_descriptor_of_ours_is_inherited(caller):
    assert walls(caller, python("print(sorted(os.listdir('/proc/self/fd')))")).stdout == "['0', '1', '2', '3']\n"  # 3: the listing


# --- processes -----------------------------------------------------------------------------------------------------

def test_processes_of_the_host_are_not_seen(caller):
    with HostProcess(caller) as host:
        def attack(without):
            return walls(caller, ["cat", f"/proc/{host.pid}/comm"], without=without).stdout == "sleep\n"

        assert_pair(attack, "pid")


def test_processes_of_the_host_are_not_signalled(caller):
    def attack(without):
        with HostProcess(caller) as host:
            walls(caller, ["/bin/kill", "-KILL", str(host.pid)], without=without)
            time.sleep(0.05)
            return not host.alive()

    assert_pair(attack, "pid,landlock" + (",user" if caller.uid == 0 else ""))


def test_processes_of_the_host_are_not_traced(caller):
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    if scope.exists() and scope.read_text().strip() != "0":
        pytest.skip("yama forbids tracing anyway")
    with HostProcess(caller) as host:
        # An ordinary caller's user namespace can't be switched off alone: there Landlock is tried without it.
        options = [] if caller.uid == 0 else SECOND_PATH

        def attack(without):
            source = f"PTRACE_SEIZE = 0x4206; print(call(101, PTRACE_SEIZE, {host.pid}, 0, 0))"
            return walls(caller, python(source), without=without, options=options).stdout == "0\n"

        assert_pair(attack, "pid,landlock,user,capabilities" if caller.uid == 0 else "landlock")


def test_init_tells_nothing_of_the_host(caller):
    done = walls(caller, shell("cat /proc/1/cmdline; cat /proc/1/environ; ls -l /proc/1/fd /proc/1/cwd; cat /proc/1/maps"))
    assert str(caller.home) not in done.stdout
    assert "SOMA" not in done.stdout
    assert done.stdout.startswith("soma-init")


def test_init_cannot_be_ended_from_inside(caller):
    assert walls(caller, shell("kill -TERM 1; kill -KILL 1; sleep 0.1; exit 5")).returncode == 5


def test_own_terminal(caller):
    script = "tty && test -t 0 && test -t 2 && ps -o tty= -p $$ && echo typed > /dev/tty"
    done = walls(caller, shell(script), options=["--pty"])
    assert done.returncode == 0
    assert done.stdout.split() == ["/dev/pts/0", "pts/0", "typed"]


# --- network, ipc, names ---------------------------------------------------------------------------------------------

def test_host_loopback_is_not_reached(caller):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]

        def attack(without):
            walls(caller, python(f"socket.create_connection(('127.0.0.1', {port}), 2)"), without=without)
            try:
                listener.accept()[0].close()
                return True
            except TimeoutError:
                return False

        assert_pair(attack, "network")


@pytest.mark.parametrize("wall", ["network", "landlock"])
def test_abstract_sockets_of_the_host_are_not_reached(caller, wall):
    name = f"\0soma-test-{os.getpid()}-{caller.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(name)
        listener.listen()
        listener.settimeout(0.2)

        def attack(without):
            walls(caller, python(f"s = socket.socket(socket.AF_UNIX); s.connect({name!r})"), without=without)
            try:
                listener.accept()[0].close()
                return True
            except TimeoutError:
                return False

        assert_pair(attack, "network,landlock")
        if wall == "network" and not landlock_abi() >= 6:
            pytest.skip("Landlock's scopes need ABI 6: the network namespace is the only wall here")
        assert not attack(wall)


def test_own_loopback_works(caller):
    source = """
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    client.sendall(b"ping")
    print(server.accept()[0].recv(4))
    """
    assert walls(caller, python(source)).stdout == "b'ping'\n"


def test_capture_catches_every_connect(caller):
    source = """
    client = socket.create_connection(("93.184.216.34", 443), 5)
    print(client.getpeername(), client.getsockname()[0])
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.connect(("93.184.216.34", 123))
    other.send(b"x")
    try:
        other.recv(1)
    except ConnectionRefusedError:
        print("refused")
    """
    done = walls(caller, python(source), options=["--capture"])
    assert done.returncode == 0, done.stderr
    assert "captured 93.184.216.34:443" in done.stdout
    assert "('93.184.216.34', 443) 192.0.2.1" in done.stdout
    assert "refused" in done.stdout


def test_shared_memory_of_the_host_is_not_seen(caller):
    key = 0x50A0000 + os.getpid() % 0xFFFF
    libc = ctypes.CDLL(None, use_errno=True)
    identifier = libc.shmget(key, 4096, 0o1666)
    assert identifier >= 0

    try:
        def attack(without):
            return walls(caller, python(f"print(libc.shmget({key}, 4096, 0) >= 0)"), without=without).stdout == "True\n"

        assert_pair(attack, "ipc")
    finally:
        libc.shmctl(identifier, 0, None)  # IPC_RMID


def test_host_name_is_not_told(caller):
    host = os.uname().nodename
    assert_pair(lambda without: walls(caller, ["uname", "-n"], without=without).stdout.strip() == host, "uts")


def test_cgroup_of_the_caller_is_not_told(caller):
    own = pathlib.Path("/proc/self/cgroup").read_text()
    if all(line.endswith(":/") for line in own.splitlines()):
        pytest.skip("the caller is in the root of every hierarchy: there is nothing to tell")

    def attack(without):
        return not all(line.endswith(":/") for line in walls(caller, ["cat", "/proc/self/cgroup"], without=without).stdout.splitlines())

    assert_pair(attack, "cgroup-namespace")


# --- privileges ------------------------------------------------------------------------------------------------------

def test_new_user_namespace(caller):
    def attack(without):
        return walls(caller, python("print(call(272, 0x10000000))"), without=without).stdout == "0\n"

    assert_pair(attack, "seccomp")


def test_mount_inside(caller):
    source = """
    call(272, 0x10020000)  # CLONE_NEWUSER | CLONE_NEWNS
    print(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
    """
    # Landlock refuses every change of the mount tree too, so each of both walls is enough.
    assert_pair(lambda without: walls(caller, python(source), without=without).stdout == "0\n", "seccomp,landlock")


def test_kernel_settings(root):
    need_user_namespaces(root)

    def attack(without):
        source = "os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY); print('open')"
        return walls(root, python(source), without=without).stdout == "open\n"

    assert_pair(attack, "user")


def test_root_inside_is_nobody_outside(root):
    need_user_namespaces(root)
    secret = root.home / "work/../secret"
    secret.write_text("SECRET")
    secret.chmod(0o600)

    def attack(without):
        return "SECRET" in walls(root, ["cat", secret.resolve()], without=without, options=["--read", root.home / "work"]).stdout

    # The file isn't in the view; without the view it is still another user's.
    assert not attack("")
    assert not attack("mount")
    assert_pair(attack, "mount,user")


def test_capabilities(root):
    need_user_namespaces(root)
    script = "touch /tmp/x && chmod 000 /tmp/x && cat /tmp/x && echo read"
    assert_pair(lambda without: "read" in walls(root, shell(script), without=without).stdout, "capabilities")


def test_setuid_program(user, root):
    """On the second path only no_new_privs stands before a setuid program (a namespace or nosuid mount adds its own)."""
    program = user.home / "work/setuid-id"
    program.write_bytes(pathlib.Path("/usr/bin/id").read_bytes())
    program.chmod(0o4755)

    def attack(without):
        done = walls(user, [program, "-u"], without=without, options=["--second-path", "--host-network"])
        return done.stdout.strip() == "0"

    assert_pair(attack, "no-new-privs,landlock,seccomp")
    need_user_namespaces(user)
    assert walls(user, [program, "-u"]).stdout.strip() == str(user.uid)


def test_fork_bomb(caller):
    source = """
    made = 0
    for _ in range(200):
        try:
            pid = os.fork()
        except OSError:
            break
        if pid == 0:
            import time; time.sleep(30); os._exit(0)
        made += 1
    print(made)
    """
    def attack(without):
        done = walls(caller, python(source), without=without, options=["--nproc", "40"])
        return int(done.stdout) == 200

    assert_pair(attack, "limits")
