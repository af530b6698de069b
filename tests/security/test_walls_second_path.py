# SPDX-License-Identifier: Apache-2.0
"""The second path of the level `process`, where user namespaces are forbidden: Landlock, seccomp and rlimits alone."""
import pathlib
import time

import pytest
from walls_helpers import SECOND_PATH, HostProcess, assert_pair, landlock_abi, read_or_nothing, shell, walls


def test_second_path_reads_and_writes(user, canary):
    def attack(without):
        (canary / "kept").write_text("untouched")
        done = walls(user, shell(f"cat {user.home}/.ssh/id_ed25519; echo changed > {canary}/kept"), without=without, options=SECOND_PATH)
        return "SECRET" in done.stdout and (canary / "kept").read_text() == "changed\n"

    assert_pair(attack, "landlock")
    assert walls(user, shell("echo fine > made"), options=SECOND_PATH).returncode == 0


def test_second_path_signals(user):
    if landlock_abi() < 6:
        pytest.skip("Landlock's signal scope needs ABI 6")

    def attack(without):
        with HostProcess(user) as host:
            walls(user, ["/bin/kill", "-KILL", str(host.pid)], without=without, options=SECOND_PATH)
            time.sleep(0.05)
            return not host.alive()

    assert_pair(attack, "landlock")


def test_second_path_ends_daemons(user):
    done = walls(user, shell("(setsid sh -c 'setsid sleep 7655 & setsid sleep 7655' &) ; sleep 0.3; exit 4"), options=SECOND_PATH)
    assert done.returncode == 4
    assert not [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if read_or_nothing(p).split(b"\0")[:2] == [b"sleep", b"7655"]]
