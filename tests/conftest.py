# SPDX-License-Identifier: Apache-2.0
"""Fixtures that every black-box test shares.

`soma` runs our programs; `caller` runs the same test as root and as an ordinary user; `canary` is a place outside every sandbox that an
attack must not change; `no_residue` fails a test that leaves a process, mount or cgroup of ours behind.
"""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import pytest

ORDINARY_UID = 1954  # no account of Debian has it
BIN = pathlib.Path(os.environ.get("SOMA_BIN_DIR", pathlib.Path(__file__).resolve().parent.parent / "build/dev/bin"))


def must_run():
    """On a machine that is meant to run everything, a skip is a failure."""
    return os.environ.get("SOMA_MUST_RUN") == "1"


def skip(reason):
    if must_run():
        pytest.fail(f"must run here, but: {reason}")
    pytest.skip(reason)


def user_namespaces_work(uid=None):
    """If whoever has this user id, or ourselves, can make a user namespace here."""
    drop = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"] if uid not in (None, os.geteuid()) else []
    return subprocess.run([*drop, "unshare", "--user", "true"], capture_output=True).returncode == 0


def without(*walls):
    """The environment in which a test build leaves these walls out, with those that test_one_wall_off.py takes from a whole run."""
    names = [name for name in (*walls, os.environ.get("SOMA_SUITE_WITHOUT", "")) if name]
    return {"SOMA_TEST_WITHOUT": ",".join(names)} if names else {}


@dataclasses.dataclass
class Caller:
    """Who starts our program: uid 0, or an ordinary user without any privilege."""

    name: str
    uid: int
    home: pathlib.Path

    def wrap(self, argv):
        if self.uid == os.geteuid():
            return list(argv)
        ids = [f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
        return ["setpriv", *ids, "--", *argv]

    def environment(self, **extra):
        base = {"PATH": f"{BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.home),
                "LANG": "C.UTF-8", "TERM": "dumb", "SOMA_STATE_DIR": str(self.home / "state"),
                "SOMA_RUNTIME_DIR": str(self.home / "run")}
        return {**base, **extra}

    def run(self, argv, *, env=None, timeout=60, **options):
        """Runs argv as this caller; stdin is empty unless given. Never raises on a non-zero exit."""
        options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
        if options["stdin"] is None:
            del options["stdin"]
        return subprocess.run(self.wrap([str(a) for a in argv]), env=self.environment(**(env or {})), capture_output=True,
                              text=True, timeout=timeout, **options)

    def popen(self, argv, *, env=None, **options):
        return subprocess.Popen(self.wrap([str(a) for a in argv]), env=self.environment(**(env or {})), **options)

    def own(self, path):
        """Gives a tree to this caller."""
        if os.geteuid() == 0:
            for top, folders, files in os.walk(path):
                for name in [".", *folders, *files]:
                    os.lchown(os.path.join(top, name), self.uid, self.uid)
        return path


def _make_caller(name):
    uid = 0 if name == "root" else ORDINARY_UID
    if os.geteuid() not in (0, uid) and name == "root":
        skip("needs root")
    if os.geteuid() != 0:
        uid = os.geteuid()
    home = pathlib.Path(tempfile.mkdtemp(prefix=f"soma-{name}-", dir="/var/tmp"))
    home.chmod(0o755)
    for folder in ("state", "run", "work", ".ssh"):
        (home / folder).mkdir(mode=0o700)
    (home / ".ssh/id_ed25519").write_text("SECRET-OF-THE-HOST\n")
    made = Caller(name, uid, home)
    made.own(home)
    return made


@pytest.fixture(params=["root", "user"])
def caller(request):
    made = _make_caller(request.param)
    yield made
    shutil.rmtree(made.home, ignore_errors=True)


@pytest.fixture
def root():
    made = _make_caller("root")
    yield made
    shutil.rmtree(made.home, ignore_errors=True)


@pytest.fixture
def user():
    made = _make_caller("user")
    yield made
    shutil.rmtree(made.home, ignore_errors=True)


@pytest.fixture
def soma_bin():
    if not BIN.is_dir():
        pytest.fail(f"SOMA_BIN_DIR does not exist: {BIN}")
    return BIN


@pytest.fixture
def canary():
    """A directory outside every sandbox that everybody may write to by mode bits: only our walls protect it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="soma-canary-", dir="/var/tmp"))
    path.chmod(0o777)
    (path / "kept").write_text("untouched")
    (path / "kept").chmod(0o666)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def residue():
    """Mounts, cgroups and processes that carry our name."""
    mounts = {line.split()[4] for line in open("/proc/self/mountinfo") if "soma" in line.split()[4]}
    # os.walk doesn't mind what disappears meanwhile.
    cgroups = {os.path.join(top, name) for top, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith("soma")}
    processes = set()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name = (entry / "comm").read_text().strip()
            except OSError:
                continue
            if name.startswith("soma"):
                processes.add(f"{entry.name}:{name}")
    return {"mounts": mounts, "cgroups": cgroups, "processes": processes}


@pytest.fixture
def no_residue():
    before = residue()
    yield
    # The end of a killed sandbox is the kernel's work and takes its time.
    for _ in range(100):
        after = residue()
        left = {kind: after[kind] - before[kind] for kind in after}
        if not any(left.values()):
            break
        time.sleep(0.1)
    assert not any(left.values()), f"left behind: {left}"
