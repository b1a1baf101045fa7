# SPDX-License-Identifier: BSD-3-Clause
"""Counts the system calls of daemons, by what strace(1) has seen."""

import collections
import contextlib
import os
import re
import signal
import subprocess

from ..errors import BenchError
from ..run import wait_for


STRACE_S = 30  # how long strace may take to end
MISSING = "strace is not installed (on Debian: apt-get install strace)"
CLONES = "clone", "clone3", "fork", "vfork"
ROLES = "daemon", "children"  # of a daemon: its threads, and its children before their exec


class Unable(BenchError):
    """strace is missing, or may not trace the processes."""


class Calls:
    """Reads the output of strace -f, line by line."""

    def __init__(self, program):
        self.program = program
        self.role, self.begun = {}, {}
        # A new process may be seen before the call that made it returns.
        self.early = collections.defaultdict(collections.Counter)
        self.counts = {role: collections.Counter() for role in ROLES}
        self.daemons = 0

    def line(self, text):
        pid, _, rest = text.partition(" ")
        rest = rest.strip()
        if rest.startswith("<... "):
            rest = self.begun.pop(pid, "") + rest
        else:
            name = re.match(r"(\w+)\(", rest)
            if not name:
                return
            role = self.role.get(pid)
            (self.counts[role] if role else self.early[pid])[name[1]] += 1
            if rest.endswith("<unfinished ...>"):
                self.begun[pid] = rest
                return
        self.follow(pid, rest)

    def follow(self, pid, call):
        name = call.partition("(")[0]
        result = re.search(r"= (-?\d+)", call[call.rfind(")") :])
        value = int(result[1]) if result else -1
        if name == "clone3" and value < 0:
            found = re.search(r"\) = (\d+)", call)
            value = int(found[1]) if found else -1
        if name in CLONES and value > 0 and pid in self.role:
            role = self.role[pid] if "CLONE_THREAD" in call else "children"
            if "execve" not in self.early[str(value)]:
                self.role[str(value)] = role
            self.counts[role].update(self.early.pop(str(value)))
        elif name == "execve" and value == 0:
            self.execed(pid, call)

    def execed(self, pid, call):
        program = re.search(r'execve\("([^"]*)"', call)
        if program and os.path.basename(program[1]) == self.program:
            self.role[pid] = "daemon"
            self.daemons += 1
            self.early.pop(pid, None)
        else:
            self.role.pop(pid, None)

    def per_daemon(self):
        """{role: calls of one daemon}"""
        return {role: sum(self.counts[role].values()) / self.daemons for role in ROLES}


def count(path, program):
    calls = Calls(program)
    with open(path, errors="replace") as file:
        for text in file:
            calls.line(text)
    if not calls.daemons:
        raise BenchError(f"strace has seen no {program}")
    return calls


def attached(path):
    with open(path, errors="replace") as file:
        return file.read().count(" attached")


def ended(child):
    return child.poll() is not None


@contextlib.contextmanager
def traced(pids, out):
    """Traces processes and what they start, in a with block."""
    argv = ["strace", "-f", "-o", out]
    for pid in pids:
        argv += ["-p", str(pid)]
    messages = f"{out}.messages"
    with open(messages, "w") as file:
        child = subprocess.Popen(argv, stderr=file)
    try:
        wait_for("strace", lambda: attached(messages) >= len(pids) or ended(child))
        if ended(child):
            with open(messages, errors="replace") as file:
                raise Unable(file.readline().strip())
        yield
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(timeout=STRACE_S)
