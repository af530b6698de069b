# SPDX-License-Identifier: Apache-2.0
"""Folders above what a rule covers in the workspace can't be renamed, with the attack that this is for; in pairs."""
import os

import conftest
import pytest
from walls_helpers import assert_pair, need_user_namespaces, python, shell


@pytest.fixture(autouse=True)
def _namespaces(caller):
    need_user_namespaces(caller)


def test_a_folder_above_a_hidden_name_stays_where_it_is(caller):
    """What a run moves from under its rule, the next run would show."""
    work = caller.home / "work"
    (work / "deploy/live").mkdir(parents=True)
    (work / "deploy/live/key").write_text("SECRET\n")
    (work / "other").mkdir()
    caller.own(work)
    policy = caller.home / "hide.toml"
    policy.write_text(f'[filesystem]\nhide = ["{work}/deploy/live/key"]\n')

    def run(command, without=""):
        return caller.run([conftest.BIN / "soma", "run", "--policy", policy, "--", *command], cwd=work, env=conftest.without(without))

    moves = [("deploy/live", "other/live"), ("deploy/live", "deploy/life"), ("deploy", "other/deploy"), ("deploy", "gone"), ("other", "elsewhere")]
    source = f"""
    for old, new in {moves}:
        try:
            os.rename(old, new)
            print(old, new)
        except OSError:
            pass
    """

    def attack(without):
        # Without the filter nobody is asked about a rename: what is left is the view.
        done = run(python(source), ",".join(filter(None, ["seccomp", without])))
        moved = [line.split() for line in done.stdout.splitlines()]
        # Names beside it can be moved as ever.
        assert moved[-1] == ["other", "elsewhere"], done.stderr
        seen = run(shell("cat elsewhere/*/key elsewhere/*/*/key deploy/*/key gone/*/key")).stdout
        for old, new in reversed(moved):
            (work / new).rename(work / old)
        return "SECRET" in seen

    assert_pair(attack, "pins")
    done = run(["mv", "deploy", "gone"])
    assert done.returncode != 0 and "rename" in done.stderr and f"it would move {work}/deploy/live/key: hide" in done.stderr
