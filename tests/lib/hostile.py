# SPDX-License-Identifier: Apache-2.0
"""A server whose guest agents are the attackers (testcases/hostile_agent.cc): what an agent does is said by the template's name."""
import os
import pathlib
import shutil
import subprocess
import time

import control
import launcher as launcher_lib
import serving

MODES = ["mute", "silent", "garbage", "oversized", "endless", "streams", "crowd"]


def own_programs(home):
    """The programs in a directory of their own, with the hostile agent in soma-guest's place."""
    place = home / "bin"
    place.mkdir()
    for name in ("soma-tools", "soma-server", "soma-launcher", "soma-monitor"):
        shutil.copy2(serving.BIN / name, place / name)
    shutil.copy2(launcher_lib.TESTCASES / "hostile_agent", place / "soma-guest")
    # What the programs look for beside themselves.
    os.symlink(serving.BUILD / "share", home / "share")
    return place


def add_templates(state):
    first = None
    for mode in ["good", *MODES]:
        tree = state / "launcher/templates" / mode / "tree"
        if first is None:
            tree.parent.mkdir(parents=True)
            control.make_tree(tree, launcher_lib.TESTCASES)
            shutil.copy2(serving.BIN / "soma-guest", tree / "soma-guest")
            first = tree
        else:
            shutil.copytree(first, tree, symlinks=True, copy_function=os.link)
            (tree / "etc/mode").unlink()
        (tree / "etc/mode").write_text(mode + "\n")


class HostileServer(serving.Server):
    """At level container; `create(templateID=MODE)` starts an attacker, "good" a sandbox with the real agent."""

    def __init__(self):
        super().__init__(level="container")
        self.programs = own_programs(self.home)

    def _start_served(self):
        add_templates(self.home / "state")
        argv = [self.programs / "soma-tools", "serve", "--level", "container", "--listen", f"127.0.0.1:{self.port}"]
        self.process = self._popen(argv, stdout=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline() for _ in range(3)]
        assert lines[2].startswith("export E2B_API_KEY="), f"{lines}\n{self.text()}"
        self.key = lines[2].strip().split("=", 1)[1]

    def attack(self, mode):
        """Starts an attacker; whether the server gives it a sandbox is the server's to say."""
        return self.request("POST", "/v2/sandboxes", {"templateID": mode, "timeout": 120})[0]

    def memory_kib(self):
        """Resident memory of the server, and what it has had at most."""
        status = pathlib.Path(f"/proc/{self.server_pid()}/status").read_text()
        return {field: int(status.split(field + ":")[1].split()[0]) for field in ("VmRSS", "VmHWM")}


def command_seconds(box, count):
    """How long each of `count` commands in the sandbox took, sorted."""
    taken = []
    for _ in range(count):
        before = time.monotonic()
        stream = box.stream("process.Process/Start", {"process": {"cmd": "/bin/true", "args": []}, "stdin": False})
        events = list(stream.events())
        stream.close()
        assert any("end" in event for event in events), (events, stream.trailer)
        taken.append(time.monotonic() - before)
    return sorted(taken)
