# SPDX-License-Identifier: Apache-2.0
"""What the security tests of the walls share: running an attack behind all walls and again without one."""
import ctypes
import ctypes.util
import os
import pathlib
import subprocess
import sys
import textwrap

import conftest

PYTHON = "/usr/bin/python3"
RUNNER = conftest.BIN / "soma-walls-run"
SECOND_PATH = ["--second-path", "--host-network"]

# Put before every Python attack: system calls by number, without libraries that the view may not have.
PRELUDE = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    return result if result >= 0 else -ctypes.get_errno()
"""


def walls(caller, command, *, without="", options=(), workspace=None, timeout=60, **more):
    """One command behind the walls of the level `process`; `without` names walls that are off."""
    workspace = workspace or caller.home / "work"
    argv = [RUNNER, "--workspace", workspace, "--home", caller.home, *options, "--", *command]
    return caller.run(argv, env=conftest.without(without), timeout=timeout, **more)


def python(source):
    """The argv of a Python attack."""
    return [PYTHON, "-I", "-S", "-c", PRELUDE + textwrap.dedent(source)]


def shell(source):
    return ["/bin/sh", "-c", source]


def need_user_namespaces(caller):
    done = caller.run(["unshare", "--user", "--map-current-user", "true"])
    if done.returncode != 0:
        conftest.skip(f"user namespaces are forbidden here for {caller.name}: {done.stderr.strip()}")


def assert_pair(attack, wall):
    """`attack(without)` tells whether the attack reached its target: it must with the wall off, and never with all on."""
    assert attack(wall), f"the attack fails even without {wall}: it proves nothing"
    assert not attack(""), f"the attack got through all walls (it needs only {wall} off)"


class HostProcess:
    """A process of the caller's, outside every sandbox."""

    def __init__(self, caller):
        self.process = caller.popen(["sleep", "300"])
        # Not before it is the sleep itself: setpriv changes its ids first.
        while "sleep" not in pathlib.Path(f"/proc/{self.process.pid}/comm").read_text():
            pass

    def __enter__(self):
        return self

    def alive(self):
        return self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


def libc_call(number, *arguments):
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    return libc.syscall(number, *arguments)


def landlock_abi():
    return libc_call(444, None, 0, 1)


def read_or_nothing(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""
