# SPDX-License-Identifier: Apache-2.0
"""The disk is full: one clear line, an exit code of its own, nothing left behind; and when there is space again, everything works."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import control  # noqa: E402
import launcher as launcher_lib  # noqa: E402
import serving  # noqa: E402
from conftest import BIN, skip  # noqa: E402

SPACE = ("No space left", "ENOSPC", "disk is full", "no space")


@contextlib.contextmanager
def small_disk(path, mib):
    if os.geteuid() != 0:
        skip("mounting a small disk needs root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0711", "none", path], check=True)
    try:
        yield Filler(path / "filler")
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


class Filler:
    def __init__(self, path):
        self.path = path

    def fill(self):
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while os.write(file, b"x" * size) > 0:
                    pass
        os.close(file)

    def free(self):
        self.path.unlink()


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def assert_one_clear_line(done):
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert any(words in lines[0] for words in SPACE), lines[0]


def test_soma_run_without_space_for_the_record(root):
    with small_disk(root.home / "state", 1) as disk:
        disk.fill()
        before = names(root.home / "state")
        done = root.run([BIN / "soma", "run", "--", "touch", "made"], cwd=root.home / "work")
        assert done.returncode == 125
        assert_one_clear_line(done)
        assert not (root.home / "work/made").exists(), "what can't be recorded doesn't run"
        # Directories of the journal may be there by now, but nothing that a later run would stumble over.
        disk.free()
        done = root.run([BIN / "soma", "run", "--", "touch", "made"], cwd=root.home / "work")
        assert done.returncode == 0, done.stderr
        assert root.run([BIN / "soma-tools", "audit", "verify"]).returncode == 0
        assert "filler" in before


def test_a_full_workspace_is_the_command_s_affair(root):
    with small_disk(root.home / "work", 1) as disk:
        os.chown(root.home / "work", root.uid, root.uid)
        disk.fill()
        done = root.run([BIN / "soma", "run", "--", "sh", "-c", "echo x > more; echo y > more || exit 9"], cwd=root.home / "work")
        assert done.returncode == 9, done.stderr
        assert (root.home / "work/more").read_text() == ""
        assert names(root.home / "work") == ["filler", "more"]


@pytest.fixture
def launcher():
    if os.geteuid() != 0:
        skip("the system's launcher needs root")
    made = launcher_lib.Launcher(arguments=["--ready", "0"])
    try:
        yield made
    finally:
        made.close()


def make_template(place):
    """Copied: what make_tree makes once for all tests it links, which needs one file system."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        control.make_tree(pathlib.Path(made) / "tree", launcher_lib.TESTCASES)
        shutil.copytree(made, place, symlinks=True)


def test_launcher(launcher):
    (launcher.home / "state").mkdir(exist_ok=True)
    with small_disk(launcher.home / "state", 64) as disk:
        try:
            make_template(launcher.state / "templates/tiny")
            connection = launcher.start()
            worker = launcher.worker()
            disk.fill()
            with pytest.raises(control.Refused) as refused:
                launcher.sandbox(connection, disk=32 << 20)
            assert any(words in refused.value.detail for words in SPACE), refused.value
            launcher_lib.wait_until(lambda: launcher.files() == ["run/launcher.sock"], "nothing of it is left")
            disk.free()
            assert launcher.sandbox(connection, disk=16 << 20).run("echo again")[1] == "again\n"
            assert launcher.worker() == worker
        finally:
            launcher.stop()


def test_server():
    made = serving.Server("none")
    with small_disk(made.home / "state", 4) as disk, made as server:
        kept = server.create()
        disk.fill()
        status, _, body = server.request("POST", "/v2/sandboxes", {"templateID": "base"})
        assert status == 507 and body["code"] == 507, (status, body)
        assert any(words in body["message"] for words in SPACE), body
        assert server.request("GET", "/health", key=None)[0] == 200
        listed = [box["sandboxID"] for box in server.request("GET", "/v2/sandboxes")[2]]
        assert listed == [kept.id], "what could not be recorded was not made"
        disk.free()
        assert server.create().kill() == 204
        assert kept.kill() == 204
