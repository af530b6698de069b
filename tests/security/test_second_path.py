# SPDX-License-Identifier: Apache-2.0
"""`soma run` where user namespaces are forbidden for its caller: Landlock, the filter `alone` and limits, and every lack is said. In pairs:
each attack gets through with the named wall off (test builds only)."""
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import textwrap

import conftest
import pytest
from conftest import BIN, skip
from walls_helpers import assert_pair, landlock_abi

SOMA = BIN / "soma"
PYTHON = "/usr/bin/python3"
# Becomes a caller who may make no user namespace: by a limit in one of its own, unless the machine forbids them to it anyway.
FORBID = """
import ctypes, os, sys
uid, gid = os.getuid(), os.getgid()
if ctypes.CDLL(None).unshare(0x10000000) == 0:
    for name, text in (("self/setgroups", "deny"), ("self/uid_map", f"{uid} {uid} 1"), ("self/gid_map", f"{gid} {gid} 1"),
                       ("sys/user/max_user_namespaces", "0")):
        with open(f"/proc/{name}", "w") as file:
            file.write(text)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def _landlock():
    if landlock_abi() < 1:
        skip("this kernel has no Landlock: there is no second path")


def run(user, command, *options, without="", **more):
    argv = [PYTHON, "-I", "-S", "-c", FORBID, SOMA, "run", *options, "--", *command]
    more.setdefault("cwd", user.home / "work")
    return user.run(argv, env=conftest.without(without), **more)


def python(source):
    return [PYTHON, "-I", "-S", "-c", "import ctypes, os, socket, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n" + textwrap.dedent(source)]


def shell(source):
    return ["/bin/sh", "-c", source]


def places(user):
    return list((user.home / "state/places").iterdir())


def test_a_command_works_and_the_lack_is_said(user):
    done = run(user, shell("echo made > made && cat made && id -u && echo x > $TMPDIR/x && echo y > ~/y && pwd; exit 3"))
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines() == ["made", str(user.uid), str(user.home / "work")]
    assert (user.home / "work/made").stat().st_uid == user.uid
    for word in ("second path: no namespaces here", "own file tree", "own network", "own processes", "TMPDIR and HOME"):
        assert word in done.stderr
    assert "reports" not in done.stderr
    assert not places(user)


def test_json_and_journal_say_it_too(user):
    done = run(user, ["true"], "--json")
    report = json.loads(done.stderr)
    assert report["missing"][0].startswith("second path:") and report["level"] == "process"
    journal = "".join(path.read_text(errors="replace") for path in (user.home / "state/journal").rglob("*") if path.is_file())
    assert "second path:" in journal


def test_explain_shows_it_and_starts_nothing(user):
    done = run(user, ["touch", "made"], "--explain")
    assert done.returncode == 0 and "namespaces: none" in done.stdout and "second path" in done.stdout
    assert not (user.home / "work/made").exists()


def test_a_minimum_refuses_it(user):
    policy = user.home / "policy.toml"
    policy.write_text('[isolation]\nminimum = "process"\n')
    done = run(user, ["touch", "made"], "--policy", policy)
    assert done.returncode == 125
    assert "policy.toml:2" in done.stderr and "can't be kept without namespaces" in done.stderr
    assert not (user.home / "work/made").exists()


def test_a_network_rule_refuses_it(user):
    done = run(user, ["touch", "made"], "--allow-net", "example.org:443")
    assert done.returncode == 125 and "example.org:443" in done.stderr and "can't be kept" in done.stderr
    assert not (user.home / "work/made").exists()


def test_a_rule_that_takes_away_below_another_refuses_it(user):
    (user.home / "work/.env").write_text("SECRET\n")
    user.own(user.home / "work")
    policy = user.home / "policy.toml"
    policy.write_text('[filesystem]\nhide = ["**/.env"]\n')
    done = run(user, ["cat", ".env"], "--policy", policy)
    assert done.returncode == 125 and ".env" in done.stderr and "policy.toml:2" in done.stderr
    assert "SECRET" not in done.stdout


def test_a_compiler_finds_its_temporary_directory(user):
    (user.home / "work/a.c").write_text("int main(void) { return 3; }\n")
    user.own(user.home / "work")
    done = run(user, shell("gcc a.c -o a && ./a"))
    assert done.returncode == 3, done.stderr
    assert not places(user)


# In a chroot the kernel gives nobody a user namespace (user_namespaces(7)).
FORBID_ROOT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
place, work = sys.argv[1], sys.argv[2]
assert libc.unshare(0x20000) == 0
assert libc.mount(b"none", b"/", None, 0x40000 | 0x4000, None) == 0
assert libc.mount(b"/", place.encode(), None, 0x1000 | 0x4000, None) == 0
os.chroot(place)
os.chdir(work)
os.execv(sys.argv[3], sys.argv[3:])
"""


def run_as_root(root, command, work):
    place = root.home / "chroot"
    place.mkdir(exist_ok=True)
    return root.run([PYTHON, "-I", "-S", "-c", FORBID_ROOT, place, work, SOMA, "run", "--", *command])


def test_root_runs_it_as_the_owner_of_the_workspace(root):
    work = root.home / "work"
    (work / "a.c").write_text("int main(void) { return 3; }\n")
    for path in (work, work / "a.c"):
        os.chown(path, 54321, 54321)
    root.home.chmod(0o711)
    done = run_as_root(root, shell("id -u; echo x > $TMPDIR/x && echo y > ~/y && gcc a.c -o a && ./a"), work)
    assert done.returncode == 3, done.stderr
    assert done.stdout == "54321\n" and "second path" in done.stderr
    assert (work / "a").stat().st_uid == 54321
    # Passed through, and nothing of root's state is seen.
    assert (root.home / "state").stat().st_mode & 0o777 == 0o711
    assert not places(root)


def test_roots_own_workspace_is_refused(root):
    root.home.chmod(0o711)
    os.chown(root.home / "work", 0, 0)
    done = run_as_root(root, ["touch", "made"], root.home / "work")
    assert done.returncode == 125 and "belongs to root" in done.stderr and "start as that user" in done.stderr
    assert not (root.home / "work/made").exists()


def test_a_state_that_the_command_cannot_reach_is_said(root):
    work = root.home / "work"
    os.chown(work, 54321, 54321)
    closed = root.home / "closed"
    closed.mkdir(mode=0o700)
    root.home.chmod(0o711)
    place = root.home / "chroot"
    place.mkdir()
    done = root.run([PYTHON, "-I", "-S", "-c", FORBID_ROOT, place, work, SOMA, "run", "--", "true"], env={"SOMA_STATE_DIR": str(closed / "state")})
    assert done.returncode == 125 and f"{closed}" in done.stderr and "chmod o+x" in done.stderr


def test_what_the_command_closes_is_removed_all_the_same(user):
    done = run(user, shell("cd $TMPDIR && mkdir -p a/b/c && touch a/b/c/f && chmod 000 a/b/c && chmod 500 a/b && chmod 000 a; true"))
    assert done.returncode == 0, done.stderr
    assert not places(user)


# ---- attacks ----------------------------------------------------------------------------------------------------------------------

def test_secrets_are_not_read(user):
    def attack(without):
        return "SECRET" in run(user, ["cat", user.home / ".ssh/id_ed25519"], without=without).stdout

    assert_pair(attack, "landlock")


def test_nothing_outside_is_written(user, canary):
    def attack(without):
        (canary / "kept").write_text("untouched")
        run(user, shell(f"echo changed > {canary}/kept"), without=without)
        return (canary / "kept").read_text() != "untouched"

    # The supervisor's refusal is no wall (it can be raced), but it stands before Landlock.
    assert_pair(attack, "landlock,seccomp")
    assert not attack("seccomp")


@pytest.mark.parametrize("way", ["truncate", "read-only", "no-access"])
def test_nothing_outside_is_cut(user, canary, way):
    call = {"truncate": "libc.truncate(path, ctypes.c_long(0))", "read-only": "libc.open(path, os.O_RDONLY | os.O_TRUNC)",
            "no-access": "libc.open(path, 3 | os.O_TRUNC)"}[way]

    def attack(without):
        (canary / "kept").write_text("untouched")
        run(user, python(f"path = {str(canary / 'kept')!r}.encode(); {call}"), "--read", canary, without=without)
        return (canary / "kept").read_text() != "untouched"

    assert_pair(attack, "landlock,seccomp")
    # Below ABI 3 the filter alone stops it.
    assert not attack("landlock") and (landlock_abi() < 3) == attack("seccomp")


def test_modes_outside_are_not_changed(user):
    secret = user.home / ".ssh/id_ed25519"

    def attack(without):
        secret.chmod(0o600)
        run(user, ["chmod", "644", secret], without=without)
        return secret.stat().st_mode & 0o777 != 0o600

    assert_pair(attack, "seccomp")


@pytest.mark.parametrize("kind", ["tcp", "path", "abstract"])
def test_no_service_of_the_host_is_reached(user, kind):
    address = {"tcp": ("127.0.0.1", 0), "path": str(user.home / "work/socket"), "abstract": f"\0soma-second-{os.getpid()}"}[kind]
    family = socket.AF_INET if kind == "tcp" else socket.AF_UNIX
    with socket.socket(family) as listener:
        listener.bind(address)
        if kind == "path":
            os.chmod(address, 0o777)
        listener.listen()
        listener.settimeout(0.2)
        target = listener.getsockname() if kind != "abstract" else address

        def attack(without):
            run(user, python(f"socket.socket({int(family)}).connect({target!r})"), without=without)
            try:
                listener.accept()[0].close()
                return True
            except TimeoutError:
                return False

        assert_pair(attack, "seccomp,landlock")
        assert not attack("landlock")


def test_datagram_pairs_reach_no_service(user):
    path = user.home / "work/log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        path.chmod(0o777)
        listener.settimeout(0.2)

        def attack(without):
            source = f"socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', {str(path)!r})"
            run(user, python(source), without=without)
            try:
                return listener.recv(8) == b"x"
            except TimeoutError:
                return False

        assert_pair(attack, "seccomp")


def test_shared_memory_of_the_host_is_not_seen(user):
    key = 0x50B0000 + os.getpid() % 0xFFFF
    libc = ctypes.CDLL(None, use_errno=True)
    identifier = libc.shmget(key, 4096, 0o1666)
    try:
        def attack(without):
            return run(user, python(f"print(libc.shmget({key}, 4096, 0) >= 0)"), without=without).stdout == "True\n"

        assert_pair(attack, "seccomp")
    finally:
        libc.shmctl(identifier, 0, None)  # IPC_RMID


def test_a_set_user_id_program_gives_nothing(user):
    program = user.home / "work/setuid-id"
    program.write_bytes(pathlib.Path("/usr/bin/id").read_bytes())
    program.chmod(0o4755)

    def attack(without):
        return run(user, [program, "-u"], without=without).stdout.strip() == "0"

    if user.run(["unshare", "--user", "true"]).returncode == 0:
        # The namespace that forbids further ones has no id 0: only the wall's own word can be looked at.
        status = run(user, ["cat", "/proc/self/status"]).stdout
        assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    else:
        assert_pair(attack, "no-new-privs,landlock,seccomp")


# ---- ends -------------------------------------------------------------------------------------------------------------------------

def test_what_a_killed_run_leaves_goes_with_the_next(user):
    argv = [PYTHON, "-I", "-S", "-c", FORBID, SOMA, "run", "--", "/bin/sh", "-c", "echo ready; sleep 7658"]
    process = user.popen(argv, cwd=user.home / "work", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.read()  # ends when the last process of the task is gone
    process.stdout.close()
    assert len(places(user)) == 1
    assert run(user, ["true"]).returncode == 0
    assert not places(user)


def test_a_running_one_keeps_its_place(user):
    argv = [PYTHON, "-I", "-S", "-c", FORBID, SOMA, "run", "--", "/bin/sh", "-c", "echo ready; read x; echo kept > $TMPDIR/f && cat $TMPDIR/f"]
    process = user.popen(argv, cwd=user.home / "work", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout.readline() == "ready\n"
    assert run(user, ["true"]).returncode == 0
    out, _ = process.communicate("go\n", timeout=60)
    assert out == "kept\n"


# ---- soma inside soma ---------------------------------------------------------------------------------------------------------------

def nested(user, inner_options, command):
    argv = [SOMA, "run", "--read", BIN, "--", SOMA, "run", *inner_options, "--", *command]
    return user.run(argv, cwd=user.home / "work")


def test_soma_inside_soma_works_and_says_what_is_missing(user):
    done = nested(user, [], shell("echo inner > inner; cat inner; exit 4"))
    assert (done.returncode, done.stdout) == (4, "inner\n"), done.stderr
    assert "second path: no namespaces here" in done.stderr
    # The outer supervisor is the only one there can be.
    assert "missing: reports" in done.stderr


def test_soma_inside_soma_still_walls(user):
    done = nested(user, [], shell("echo x > /tmp/outer; ls /tmp; cat /etc/passwd > copy && echo read"))
    assert "cannot create /tmp/outer" in done.stderr and done.stdout == "read\n"


def test_soma_inside_soma_keeps_a_minimum(user):
    policy = user.home / "work/policy.toml"
    policy.write_text('[isolation]\nminimum = "process"\n')
    user.own(policy.parent)
    done = nested(user, ["--policy", policy], ["true"])
    assert done.returncode == 125 and "can't be kept without namespaces" in done.stderr
