# SPDX-License-Identifier: Apache-2.0
"""What our programs have on the machine that belongs to one state directory: processes, cgroups, mounts, loop devices, sockets, files."""
import os
import pathlib

import launcher as launcher_lib


def running(programs):
    """{pid: name} of what runs from the directory `programs`; a zombie has no program any more."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                path = os.readlink(entry / "exe")
            except OSError:
                continue
            if os.path.dirname(path.removesuffix(" (deleted)")) == str(programs):
                found[int(entry.name)] = os.path.basename(path)
    return found


def status(pid):
    """/proc/PID/status as a dictionary."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def parent(pid):
    """None when it has ended."""
    try:
        return int(status(pid)["PPid"])
    except OSError:
        return None


class Traces:
    """Taken before our programs start; then says what is there of them now."""

    def __init__(self, programs, home):
        self.programs = pathlib.Path(programs)
        self.home = pathlib.Path(home)
        self.before = set(running(self.programs))

    def processes(self):
        # An earlier launcher, which another test still uses, starts monitors whenever it is quiet.
        return {pid: name for pid, name in running(self.programs).items()
                if pid not in self.before and parent(pid) not in self.before}

    def named(self, name):
        return sorted(pid for pid, program in self.processes().items() if program == name)

    def sandboxes(self):
        """What is there of sandboxes, without the launcher and server themselves and what the launcher keeps ready for the next one."""
        slots = [path for top in self.cgroups() for path in pathlib.Path(top).glob("slot-*")]
        busy = [str(path) for path in slots if (path / "cgroup.procs").exists() and self._has_guest(path)]
        found = {"cgroups": busy, "guests": self.named("soma-guest"), "machines": self._machines(), "files": self._files()}
        return {kind: things for kind, things in found.items() if things}

    def _has_guest(self, slot):
        try:
            pids = (slot / "cgroup.procs").read_text().split()
        except OSError:
            return False
        # A prepared monitor waits in its slot for the next sandbox; everything else is a sandbox's.
        return any(self.processes().get(int(pid)) != "soma-monitor" for pid in pids)

    def _machines(self):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and "qemu" in os.readlink(entry / "exe"):
                    if any(str(self.home) in os.readlink(fd) for fd in (entry / "fd").iterdir()):
                        found.append(entry.name)
            except OSError:
                continue
        return found

    def loops(self):
        found = []
        for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
            try:
                if str(self.home) in path.read_text():
                    found.append(path.parts[3])
            except OSError:
                pass
        return found

    def _files(self):
        """Records and sockets of sandboxes, and what is left of their disks."""
        found = [path for folder in ("records", "monitors") for path in (self.home / "run" / folder).glob("*")]
        found += [path for path in (self.home / "state/launcher/uppers").glob("*")]
        return sorted(str(path.relative_to(self.home)) for path in found)

    def mounts(self):
        return [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if str(self.home) in line]

    def cgroups(self):
        name = f"soma-{launcher_lib.short_name(self.home / 'state/launcher')}"
        # os.walk doesn't mind what disappears meanwhile.
        return [os.path.join(top, name) for top, folders, _ in os.walk("/sys/fs/cgroup") if name in folders]
