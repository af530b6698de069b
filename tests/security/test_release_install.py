# SPDX-License-Identifier: Apache-2.0
"""The release programs are built and installed as `make install` does: exactly the product, and its bytes know no switch that turns a
wall off. Minutes, so part of make test-long."""
import pathlib
import subprocess

from conftest import BIN

ROOT = pathlib.Path(__file__).resolve().parents[2]
SWITCH = b"SOMA_TEST_"  # starts the name of every variable that a test build reads
PROGRAMS = ["soma", "soma-tools", "soma-server", "soma-launcher", "soma-monitor", "soma-vm-init", "soma-guest"]


def test_installed_programs_do_not_know_a_switch(tmp_path):
    for argv in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release", "--target", *PROGRAMS],
                 ["cmake", "--install", "build/release", "--prefix", tmp_path]):
        done = subprocess.run([str(word) for word in argv], cwd=ROOT, capture_output=True, text=True, timeout=3000)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == sorted(PROGRAMS)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert SWITCH not in path.read_bytes(), path
    # The search finds one where there is one.
    assert SWITCH in (BIN / "soma-monitor").read_bytes()
