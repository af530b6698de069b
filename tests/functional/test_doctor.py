# SPDX-License-Identifier: Apache-2.0
"""`soma doctor`: what it calls proven holds, and it notices when a wall isn't there."""
import json
import os

from conftest import BIN

TOOLS = BIN / "soma-tools"
LEVELS = ["process", "container", "gvisor", "microvm", "confidential", "emulated"]


def doctor(caller, *around):
    done = caller.run([*around, TOOLS, "doctor", "--json", "--directory", caller.home], timeout=120)
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    return {row["name"]: row for row in answer["features"]}, {row["name"]: row for row in answer["levels"]}


def test_report_is_whole(caller):
    features, levels = doctor(caller)
    assert len(features) == 24
    assert list(levels) == LEVELS
    for row in features.values():
        assert row["finding"] in ("proven", "absent", "unknown")
        assert row["evidence"], row
        assert row["finding"] == "proven" or row["remedy"], row
    assert not list(caller.home.glob("soma-probe*")), "something was left behind"


def test_inside_a_filter_the_lack_is_noticed(caller):
    """The same machine, but every call of the probes goes through a filter that refuses namespaces and mounts."""
    bare, _ = doctor(caller)
    features, levels = doctor(caller, BIN / "soma-filter-run", "strict", "--")
    for name in ("user-namespace", "mount-namespace", "pid-namespace", "network-namespace", "overlay", "fuse", "id-mapped-mount"):
        assert features[name]["finding"] != "proven", features[name]
    if bare["landlock"]["finding"] == "proven":
        assert features["landlock"]["finding"] == "proven"
        assert "second path" in levels["process"]["reason"]
    assert not levels["container"]["possible"]


def test_a_filter_with_a_listener_around_it_is_noticed(user):
    """Soma inside soma: the kernel allows one listener."""
    features, _ = doctor(user, BIN / "soma-filter-run", "strict", "--notify", "--")
    assert features["seccomp-notify"]["finding"] == "absent"
    assert "EBUSY" in features["seccomp-notify"]["evidence"] or "EPERM" in features["seccomp-notify"]["evidence"]


def test_ordinary_users_learn_what_root_would_give(user):
    if os.geteuid() != 0:
        return
    features, _ = doctor(user)
    assert features["loop-device"]["finding"] == "absent"
    assert "root" in features["loop-device"]["remedy"]


def test_kvm_is_timed(root):
    features, levels = doctor(root)
    kvm = features["kvm"]
    if "figure" in kvm:
        assert (kvm["figure"] >= 30) == (kvm["finding"] == "proven")
    assert levels["microvm"]["possible"] == (kvm["finding"] == "proven")


def test_table_for_people(user):
    done = user.run([TOOLS, "doctor"])
    assert done.returncode == 0, done.stderr
    assert "What this machine enforces" in done.stdout
    assert "seccomp            proven" in done.stdout


def test_bad_directory_is_one_line(user):
    done = user.run([TOOLS, "doctor", "--directory", "/no/such"])
    assert done.returncode == 125
    assert done.stderr.count("\n") == 1
