# SPDX-License-Identifier: BSD-3-Clause
"""A DVM that is measured: its commands, and its processes as /proc shows them."""

import contextlib
import json
import os
import pathlib
import time

from ..errors import BenchError
from ..run import output

PROCESSES = {
    "pmi2x-dvm-head": "head",
    "pmi2x-dvmd": "daemon",
    "pmi2x-dvm-zygot": "zygote",
}
DOWN_S = 60  # until all have ended


class Dvm:
    """A with block in which a DVM is up; `place`: a directory for it."""

    def __init__(self, program, place, *options):
        self.program, self.options = program, options
        self.base = os.path.join(place, "dvm")
        os.makedirs(self.base, mode=0o700, exist_ok=True)
        self.env = {"PMI2X_DVM_DIR": self.base}

    def __enter__(self):
        _, self.up_seconds = self("up", *self.options)
        return self

    def __exit__(self, *_):
        self("down", "--cancel")
        end = time.monotonic() + DOWN_S
        while self.processes():  # these processes end by themselves
            if time.monotonic() > end:
                raise BenchError(f"processes are left of the DVM in {self.base}")
            time.sleep(0.01)

    def __call__(self, *arguments):
        return output([self.program, *arguments], env=self.env)

    def bulk(self, tasks, *argv, options=()):
        """Seconds from submit to the last result, of this number of equal tasks."""
        path = os.path.join(self.base, "tasks.json")
        with open(path, "w") as file:
            file.write((json.dumps({"argv": argv}) + "\n") * tasks)
        return self(
            "submit", "--wait", "--quiet", "--report", os.devnull, *options, "--json", path
        )[1]

    def processes(self):
        """{process number: head, daemon or zygote}"""
        found, mark = {}, f"PMI2X_DVM_DIR={self.base}\0".encode()
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                role = PROCESSES.get((path / "comm").read_text().strip())
                if role and mark in (path / "environ").read_bytes():
                    found[int(path.name)] = role
        return found

    def sums(self, look):
        """{role: the sum of what look says of its processes}"""
        sums = {}
        for pid, role in self.processes().items():
            sums[role] = sums.get(role, 0) + look(pid)
        return sums


def status(pid, *names):
    """The sum of these lines of /proc/PID/status."""
    with open(f"/proc/{pid}/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return sum(int(lines[name].split()[0]) for name in names)


def memory_kib(pid):
    return status(pid, "VmRSS")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def wakeups(pid):
    return status(pid, "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


def cpu_seconds(pid):
    """Processor time of a process with its threads: the clock that
    clock_getcpuclockid(3) makes of its number."""
    return time.clock_gettime(~pid << 3 | 2)
