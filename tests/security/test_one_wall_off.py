# SPDX-License-Identifier: Apache-2.0
"""One wall at a time is switched off, and the attack suite turns red each time, by a test of its own.

The suite is run again in a pytest of its own with SOMA_SUITE_WITHOUT: its tests then find one wall less than they believe to be there.
That the same tests are green with all walls is what they say themselves, as security.walls_process and security.container_walls.
"""
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import BIN, skip

TESTS = pathlib.Path(__file__).resolve().parents[1]

# Each switch: the test that must turn red behind `soma run`, and the one that must in a container.
PROCESS = {
    "user": "test_kernel_settings",
    "mount": "test_read_of_a_file_outside_the_view[user]",
    "pid": "test_processes_of_the_host_are_not_seen[user]",
    "network": "test_host_loopback_is_not_reached[user]",
    "ipc": "test_shared_memory_of_the_host_is_not_seen[user]",
    "uts": "test_host_name_is_not_told[user]",
    "cgroup-namespace": "test_cgroup_of_the_caller_is_not_told[user]",
    "landlock": "test_second_path_reads_and_writes",
    "seccomp": "test_new_user_namespace[user]",
    "capabilities": "test_capabilities",
    "limits": "test_fork_bomb[user]",
    "hide": "test_hidden_names_in_the_workspace[user]",
    "pins": "test_a_folder_above_a_hidden_name_stays_where_it_is[user]",
    "read-only": "test_metadata_below_a_read_only_path",
}
PROCESS_FILES = {"landlock": "test_walls_second_path.py", "pins": "test_pinned_folders.py"}  # on the first path the mount view holds too
CONTAINER = {
    "user": "test_user_namespace_keeps_root_from_kernel_settings",
    "mount": "test_mount_view_keeps_files_of_the_host_out",
    "pid": "test_pid_namespace_keeps_host_processes_out",
    "network": "test_network_namespace_keeps_host_interfaces_out",
    "ipc": "test_ipc_namespace_keeps_shared_memory_out",
    "uts": "test_uts_namespace_keeps_the_host_name_out",
    "cgroup-namespace": "test_cgroup_namespace_keeps_the_place_in_the_tree_out",
    "seccomp": "test_seccomp_keeps_new_namespaces_out",
    "capabilities": "test_bounding_set_keeps_pid_one_out_of_reach",
    "limits": "test_limits_keep_core_files_out",
    "hide": "test_hidden_files_of_proc",
    "read-only": "test_read_only_sys",
    "no-new-privs": "test_setuid_program_of_a_strict_container[no-new-privs]",
    "nosuid": "test_setuid_program_of_a_strict_container[nosuid]",
}
# Why a level has no row. In a sandbox of `soma run` a setuid program's owner is no user of its namespace, so the kernel ignores the bit
# before either wall is asked; a container's files are its own, so Landlock has nothing to keep apart and no name of the host's to be moved.
NO_ROW = {"process": {"no-new-privs", "nosuid"}, "container": {"landlock", "pins"}}
ROWS = [(PROCESS_FILES.get(switch, "test_walls_process.py"), switch, test) for switch, test in PROCESS.items()]
ROWS += [("test_container_walls.py", *row) for row in CONTAINER.items()]


def switches():
    done = subprocess.run([BIN / "soma-walls-run", "--list-switches"], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_every_switch_has_an_attack_at_each_level():
    assert switches() == set(PROCESS) | NO_ROW["process"]
    assert switches() == set(CONTAINER) | NO_ROW["container"]
    assert not set(PROCESS) & NO_ROW["process"] and not set(CONTAINER) & NO_ROW["container"]
    # No wall is without any test, and no test stands for two walls.
    assert not NO_ROW["process"] & NO_ROW["container"]
    tests = [test for _, _, test in ROWS]
    assert len(tests) == len(set(tests))


def run_suite(file, test, without):
    environment = {**os.environ, "SOMA_SUITE_WITHOUT": without, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--tb=short", f"security/{file}::{test}"],
                          cwd=TESTS, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("file,switch,test", ROWS, ids=[f"{file[5:-3]}-{switch}" for file, switch, _ in ROWS])
def test_the_suite_turns_red(file, switch, test):
    done = run_suite(file, test, switch)
    if "1 skipped" in done.stdout:
        skip(done.stdout.strip().splitlines()[-2])
    assert done.returncode == 1 and "1 failed" in done.stdout, f"{test} is not red without {switch}:\n{done.stdout}{done.stderr}"
    # Because the attack reached its target, not because something broke.
    assert "the attack got through" in done.stdout, done.stdout
