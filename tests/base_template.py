# SPDX-License-Identifier: Apache-2.0
"""The template `base` and the kernel of virtual machines, built once per checkout and shared by every test that needs them.

They lie in <build>/test-state/launcher/{templates,kernel}. The first use takes a few minutes and a Debian mirror; later ones find that
nothing has changed.
"""
import fcntl
import functools
import os
import pathlib
import shutil
import subprocess

import pytest

BIN = pathlib.Path(os.environ.get("SOMA_BIN_DIR", pathlib.Path(__file__).resolve().parent.parent / "build/dev/bin"))
STATE = BIN.parent / "test-state"


def _needs():
    if os.geteuid() != 0:
        return "building the template needs root"
    missing = [tool for tool in ("mmdebstrap", "mkfs.erofs", "npm", "lz4", "cpio") if not shutil.which(tool)]
    return f"not installed: {', '.join(missing)}" if missing else None


@functools.cache
def launcher_state():
    """The directory with `templates/base` and `kernel/`; skips with its reason where they can't be made."""
    reason = _needs()
    if reason:
        if os.environ.get("SOMA_MUST_RUN") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    STATE.mkdir(parents=True, exist_ok=True)
    with open(STATE / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = subprocess.run([BIN / "soma-tools", "template", "build", "base"], env={**os.environ, "SOMA_STATE_DIR": str(STATE)},
                               capture_output=True, text=True, timeout=1800)
    assert built.returncode == 0, built.stderr
    return STATE / "launcher"


def link_into(state):
    """Makes template and kernel available below another state directory; the template is not copied."""
    source, target = launcher_state(), pathlib.Path(state) / "launcher"
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.symlink(source / "templates", target / "templates")
    # Not a link: a machine's jail follows none on the way to its kernel.
    (target / "kernel").mkdir()
    for path in (source / "kernel").iterdir():
        if path.is_file():
            shutil.copy2(path, target / "kernel" / path.name)
