# SPDX-License-Identifier: BSD-3-Clause
"""A DVM whose nodes are network namespaces of this machine: links between them can be cut.

The head's namespace has a bridge, and each node's is a port of it. A task of such a DVM
notes when each of its instances runs, by a clock that all namespaces share."""

import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import time

import pytest

from dvms import living, wait_until
from harness import run

LEASE_S = 45  # of pmi2x-dvm-head, in real use
FASTER = 10  # in tests
JOB = "7700078"
NUMBERS = itertools.count()
LAUNCHER = """#!/bin/sh
# As srun: each process has the standard input and a number.
number=0
input=$(cat)
for n in $(cat $0.nodes); do
    printf '%s\\n\\n' "$input" |
        SLURM_PROCID=$number SLURMD_NODENAME=n$n ip netns exec {name}-n$n "$@" &
    number=$((number + 1))
    [ $number -lt $PMI2X_DVM_NODES ] || break
done
wait
"""
# Notes each moment at which it runs, until a file or its time says that it is over.
BEATS = """
import os, pathlib, sys, time
base = pathlib.Path(sys.argv[1])
end = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else "inf")
task, instance = os.environ["PMI2X_DVM_TASK"], os.environ["PMI2X_DVM_INSTANCE"]
with open(base / f"beat.{task}.{instance}.{os.getpid()}", "a", buffering=1) as out:
    while not (base / "go").exists() and time.monotonic() < end:
        out.write(f"{time.monotonic()}\\n")
        time.sleep(0.02)
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def check_allowed():
    name = f"pmi2x-try-{os.getpid()}"
    try:
        ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("network namespaces need root and ip(8)")
    ip("netns", "del", name)


class Network:
    """Namespaces of a head and of nodes n0, n1, ..., and a DVM over them."""

    def __init__(self, prefix, base, nodes, faster=FASTER):
        self.prefix, self.base, self.nodes = prefix, base, nodes
        self.name = f"pmi2x-{os.getpid()}-{next(NUMBERS)}"
        self.env = {
            "SLURM_JOB_ID": JOB,
            "PMI2X_DVM_DIR": str(base / "dvm"),
            "PMI2X_DVM_LEASE": str(int(LEASE_S * 1000 / faster)),
        }
        self.launcher, self.beats = base / "launch", base / "beats.py"

    def __enter__(self):
        (self.base / "dvm").mkdir(mode=0o700)
        self.launcher.write_text(LAUNCHER.format(name=self.name))
        self.launcher.chmod(0o755)
        self.start_next_on(range(self.nodes))
        self.beats.write_text(BEATS)
        ip("netns", "add", self.name)
        self._in_head("link", "add", "bridge", "type", "bridge")
        self._in_head("addr", "add", "10.77.0.1/24", "dev", "bridge")
        for device in ("lo", "bridge"):
            self._in_head("link", "set", device, "up")
        for i in range(self.nodes):
            self._add_node(i)
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self("down", "--cancel")
        for pid in living(self.env["PMI2X_DVM_DIR"]):
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        for name in [self.name, *(self._node(i) for i in range(self.nodes))]:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)

    def _node(self, i):
        return f"{self.name}-n{i}"

    def _in_head(self, *words):
        ip("-n", self.name, *words)

    def _add_node(self, i):
        node = self._node(i)
        ip("netns", "add", node)
        self._in_head(
            "link", "add", f"n{i}", "type", "veth", "peer", "name", "eth0", "netns", node
        )
        self._in_head("link", "set", f"n{i}", "master", "bridge", "up")
        ip("-n", node, "addr", "add", f"10.77.0.{i + 2}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", node, "link", "set", device, "up")

    def link(self, node, state):
        """Set the link between a node and all others: "up" or "down"."""
        self._in_head("link", "set", f"n{node}", state)

    def start_next_on(self, nodes):
        """Where the next daemons are started, in this order."""
        pathlib.Path(f"{self.launcher}.nodes").write_text(" ".join(map(str, nodes)))

    def __call__(self, *arguments, **more):
        command = ["ip", "netns", "exec", self.name, self.prefix / "bin/pmi2x-dvm"]
        return run([*command, *arguments], env=self.env, **more)

    def up(self, *options, nodes=None):
        return self("up", "-N", str(nodes or self.nodes), "--slots", "4", "--grace", "1",
             "--launcher", self.launcher, *options).ok()  # fmt: skip

    def status(self):
        return json.loads(self("status", "--json").ok().stdout)

    def state(self, node):
        return next(n["state"] for n in self.status()["nodes"] if n["name"] == f"n{node}")

    def submit_beats(self, *options, seconds="inf"):
        self("submit", *options, "python3", self.beats, self.base, str(seconds)).ok()

    def runs(self):
        """{task: [(instance, first moment, last moment)]} of each process, in order."""
        found = {}
        for path in self.base.glob("beat.*"):
            _, task, instance, _ = path.name.split(".")
            lines = path.read_text().split("\n")[:-1]
            if lines:
                found.setdefault(int(task), []).append(
                    (int(instance), float(lines[0]), float(lines[-1]))
                )
        return {task: sorted(runs) for task, runs in found.items()}

    def instances(self, task=1):
        return {instance for instance, _, _ in self.runs().get(task, [])}

    def alive(self):
        """Processes of tasks that run."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.beats) in (path / "cmdline").read_bytes().decode().split("\0"):
                    found.append(int(path.name))
        return found

    def wait_for_instance(self, instance, seconds=60):
        wait_until(lambda: instance in self.instances(), seconds)

    def assert_one_at_a_time(self):
        """No instance had begun before the one before it had ended, with all its ranks."""
        for task, runs in self.runs().items():
            for instance, _, last in runs:
                later = [first for other, first, _ in runs if other > instance]
                assert not later or last <= min(later), (task, runs)

    def daemon_of(self, node):
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                env = (path / "environ").read_bytes().split(b"\0")
                if (
                    (path / "comm").read_text().strip() == "pmi2x-dvmd"
                    and f"SLURMD_NODENAME=n{node}".encode() in env
                    and f"PMI2X_DVM_DIR={self.env['PMI2X_DVM_DIR']}".encode() in env
                ):
                    return int(path.name)
        return None
