# SPDX-License-Identifier: Apache-2.0
"""Seccomp alone, attacked in pairs: without the filter each call reaches the kernel, with it none does; and what everyday software
needs still works."""
import shutil
import subprocess
import textwrap

import pytest
from conftest import BIN, skip

RUN = BIN / "soma-filter-run"
WITHOUT = {"SOMA_TEST_WITHOUT": "seccomp"}

# What every attack starts with. call() gives 0 or the errno; the verdict is printed as one word.
PRELUDE = """
import ctypes, errno, mmap, os, socket, sys, tempfile
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[a if isinstance(a, ctypes.Array) else ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return 0 if result >= 0 else ctypes.get_errno()
def verdict(error, refused=(errno.EPERM,)):
    print("refused" if error in refused else "reached", errno.errorcode.get(error, error))
scratch = tempfile.mkdtemp()
"""

# Each reaches the kernel for an ordinary user without any wall: success, or an errno that only the call's own code gives.
ATTACKS = {
    "unshare-user": "verdict(call(272, 0x10000000))",
    "clone-user": """
pid = libc.syscall(ctypes.c_long(56), ctypes.c_long(0x10000000 | 17), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0))
if pid == 0: os._exit(0)
verdict(0 if pid > 0 else ctypes.get_errno())
""",
    "clone3": "verdict(call(435, 0, 0), (errno.ENOSYS,))",
    "setns": "verdict(call(308, -1, 0))",
    "mount": "verdict(call(165, 0, b'/no/such', 0, 0, 0))",
    "open_tree": "verdict(call(428, -100, b'/', 0))",
    "keyctl": "verdict(call(248, b'user', b'soma-probe', b'x', 1, -2))",
    "io_uring": "verdict(call(425, 0, 0))",
    "userfaultfd": "verdict(call(323, 1))",
    "name_to_handle": "verdict(call(303, -100, b'/', b'\\0' * 8, b'\\0' * 8, 0))",
    "process_vm_writev": "verdict(call(311, os.getpid(), 0, 0, 0, 0, 0))",
    "pidfd_getfd": "fd = os.pidfd_open(os.getpid()); verdict(call(438, fd, fd, 0))",
    "kcmp": "verdict(call(312, os.getpid(), os.getpid(), 0, 0, 1))",
    "listener": """
insns = (ctypes.c_uint64 * 1)(0x7fff000000000006)
class Prog(ctypes.Structure): _fields_ = [("n", ctypes.c_ushort), ("p", ctypes.c_void_p)]
verdict(call(317, 1, 8, ctypes.byref(Prog(1, ctypes.addressof(insns)))))
""",
    "set-user-id": "path = scratch + '/f'; open(path, 'w').close(); verdict(call(90, path.encode(), 0o4755))",
    "set-id-at-birth": "verdict(call(257, -100, (scratch + '/g').encode(), os.O_CREAT | os.O_WRONLY, 0o4755))",
    "read-implies-exec": "verdict(call(135, 0x0400000))",
    "mptcp": "verdict(call(41, 2, 1, 262), (errno.EPROTONOSUPPORT,))",
    "netfilter-netlink": "verdict(call(41, 16, 3, 12), (errno.EAFNOSUPPORT,))",
    # Into the own controlling terminal, as an attacker has it.
    "terminal-injection": "master, slave = os.openpty(); os.setsid(); tty = os.open(os.ttyname(slave), os.O_RDWR); verdict(call(16, tty, 0x5412, b'x'))",
    "terminal-injection-high-bits": "master, slave = os.openpty(); os.setsid(); tty = os.open(os.ttyname(slave), os.O_RDWR);"
                                    " verdict(call(16, tty, 0x100005412, b'x'))",
    "terminal-line-discipline": "master, slave = os.openpty(); verdict(call(16, slave, 0x5423, b'\\0' * 4))",
    "fanotify": "verdict(call(300, 0x200, 0))",
}


# These ask for privileges first, so only root reaches the kernel's code.
ROOT_ATTACKS = {
    "fsopen": "verdict(call(430, 0, 99))",
    "init_module": "verdict(call(175, 0, 0, 0))",
    "bpf": "verdict(call(321, 99, 0, 0))",
    "kexec": "verdict(call(246, 0, 99, 0, 0))",
    "iopl": "verdict(call(172, 9))",
}


def outcome(caller, profile, body, env=None, notify=False):
    words = [RUN, profile, *(["--notify"] if notify else []), "--", "/usr/bin/python3", "-c", PRELUDE + textwrap.dedent(body)]
    return caller.run(words, env=env, cwd=caller.home / "work")


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_reaches_the_kernel_only_without_the_filter(user, name):
    bare = outcome(user, "strict", ATTACKS[name], WITHOUT)
    if not bare.stdout.startswith("reached"):
        skip(f"{name} is refused on this machine without any filter: {bare.stdout}{bare.stderr}")
    walled = outcome(user, "strict", ATTACKS[name])
    assert walled.stdout.startswith("refused"), walled.stdout + walled.stderr


# 32-bit code in the same process: another table of call numbers. `int 0x80` with number 20 is getpid.
FOREIGN = """
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3")
entry = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
print("reached", entry() == os.getpid())
"""


def test_foreign_architecture_is_killed(user):
    bare = outcome(user, "strict", FOREIGN, WITHOUT)
    if "True" not in bare.stdout:
        skip("this kernel has no 32-bit calls")
    assert outcome(user, "strict", FOREIGN).returncode == -31  # SIGSYS


def test_x32_numbers_are_killed(user):
    assert outcome(user, "strict", "verdict(call(0x40000000 + 39))").returncode == -31


def test_unknown_numbers_answer_enosys(user):
    done = outcome(user, "strict", "verdict(call(1000), (errno.ENOSYS,))")
    assert done.stdout.startswith("refused")


@pytest.mark.parametrize("name", ["mount", "unshare-user", "open_tree", "keyctl", "io_uring", "setns", "listener", "mptcp", *ROOT_ATTACKS])
@pytest.mark.parametrize("profile", ["strict", "rooted"])
def test_root_is_refused_too(root, profile, name):
    attack = {**ATTACKS, **ROOT_ATTACKS}[name]
    bare = outcome(root, profile, attack, WITHOUT)
    if not bare.stdout.startswith("reached"):
        skip(f"{name} is refused on this machine without any filter: {bare.stdout}{bare.stderr}")
    assert outcome(root, profile, attack).stdout.startswith("refused")


def test_rooted_still_lets_root_change_root(root):
    assert outcome(root, "rooted", "verdict(call(161, b'/'))").stdout.startswith("reached")
    assert outcome(root, "strict", "verdict(call(161, b'/'))").stdout.startswith("refused")


# ---- everyday software ------------------------------------------------------------------------------------------------------------

SOFTWARE = {
    "python": "python3 -c 'import sqlite3, ssl, threading, subprocess, multiprocessing as m; t = threading.Thread(target=print); t.start(); t.join();"
              " subprocess.run([\"true\"], check=True); q = m.Queue(); p = m.Process(target=q.put, args=(1,)); p.start(); assert q.get() == 1; p.join()'",
    "gcc": "printf 'int main(void){return 0;}' > a.c && gcc a.c -o a && ./a",
    "make": "printf 'all: x y\\nx y:\\n\\ttouch $@\\n' > Makefile && make -j2 && test -f y",
    "git": "git init -q r && cd r && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm m && git log --oneline && git gc -q",
    "tar": "mkdir d && echo x > d/f && ln -s f d/l && mkfifo d/p && tar czf t.tgz d && mkdir e && tar xzf t.tgz -C e && test -p e/d/p",
    "strace": "strace -f -o log true && grep -q exit_group log",
    "node": "node -e 'const s = require(\"net\").createServer(c => c.end(\"hi\")); s.listen(0, \"127.0.0.1\", () => require(\"net\").connect(s.address().port)"
            ".on(\"data\", d => { console.log(String(d)); process.exit(0); })); require(\"fs\").writeFileSync(\"n\", \"x\"); require(\"os\").networkInterfaces()'",
    "go": "export HOME=$PWD GOFLAGS=-mod=mod GOTOOLCHAIN=local GOCACHE=$PWD/c && printf 'package main\\nimport \"net\"\\nfunc main(){l,e:=net.Listen(\"tcp\",\"127.0.0.1:0\");"
          "if e!=nil{panic(e)};l.Close();println(\"ok\")}' > m.go && go run m.go",
    "perl": "perl -e 'use Socket; socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die; print 1'",
    "ps": "ps -e > /dev/null && id > /dev/null",
    "ip": "ip addr show lo",
    "sed": "echo a > f && sed -i s/a/b/ f && grep -q b f && cp -a f g && mv g h && chmod 600 h && touch -d yesterday h",
}


@pytest.mark.parametrize("name", SOFTWARE)
@pytest.mark.parametrize("notify", [False, True], ids=["plain", "notify"])
def test_everyday_software_works(user, name, notify):
    program = {"python": "python3", "sed": "sed"}.get(name, name)
    path = "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    if shutil.which(program, path=path) is None:
        skip(f"{program} is not installed")
    if notify and name == "go":
        skip("a Go build of its standard library twice takes minutes here; the plain filter is the same list")
    words = [RUN, "strict", *(["--notify"] if notify else []), "--", "/bin/sh", "-ec", SOFTWARE[name]]
    done = user.run(words, env={"PATH": path}, cwd=user.home / "work", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_notified_refusals_are_reported(user):
    done = user.run([RUN, "strict", "--notify", "--", "/bin/sh", "-c", "mkdir /refused/x; no-such-command; echo $?"], cwd=user.home / "work")
    assert "denied: create /refused/x" not in done.stderr, "the parent doesn't exist, so nothing could be resolved"
    assert done.stdout == "127\n"
    assert "denied" not in done.stderr, "a command that isn't found is no refusal"


def test_a_dead_supervisor_stops_every_write(user):
    """The supervisor is killed: what writes fails or dies, nothing is written."""
    marker = user.home / "work/late"
    script = f"echo ready; read line; echo x > {marker}; true > /dev/null"
    task = user.popen([RUN, "strict", "--notify", "--", "/bin/bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                      stderr=subprocess.DEVNULL)
    try:
        assert task.stdout.readline() == "ready\n"
        task.kill()
        task.wait()
        task.stdin.write("go\n")
        task.stdin.flush()
    except BrokenPipeError:
        pass
    finally:
        task.stdin.close()
        task.stdout.read()  # ends when the last process of the task is gone
        task.stdout.close()
    assert not marker.exists()
