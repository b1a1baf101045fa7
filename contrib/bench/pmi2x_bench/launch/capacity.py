# SPDX-License-Identifier: BSD-3-Clause
"""How many private nodes this machine holds: measured on a few of them."""

import contextlib
import os
import re
import select
import subprocess
import time

from .. import limits
from ..errors import BenchError
from ..report import text_lines

from . import matrix

WIDTHS = (1, 9)  # ranks a node of the two steps that are looked at
ANSWER_S = 120
STACK_KB = 16  # the kernel's, for a thread
TASK_KB = 10  # the kernel's other memory for a thread: task_struct, ids, timers
PRIVATE = re.compile(r"^Private_(?:Clean|Dirty):\s+(\d+)", re.M)
PSS = re.compile(r"^Pss:\s+(\d+)", re.M)
TABLES = re.compile(r"^VmPTE:\s+(\d+)", re.M)
THREADS = re.compile(r"^Threads:\s+(\d+)", re.M)
PARENT = re.compile(r"^PPid:\s+(\d+)", re.M)
NAME = re.compile(r"^Name:\s+(\S+)", re.M)


def read(path):
    with open(path) as file:
        return file.read()


def total(pattern, text):
    return sum(map(int, pattern.findall(text)))


def memory_kb(pid):
    """(what one more of it costs, what it takes of memory that it shares)"""
    rollup, status = read(f"/proc/{pid}/smaps_rollup"), read(f"/proc/{pid}/status")
    kernel = total(TABLES, status)
    kernel += total(THREADS, status) * (STACK_KB + TASK_KB)
    private = total(PRIVATE, rollup)
    return private + kernel, total(PSS, rollup) - private


def statuses():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            yield int(pid), read(f"/proc/{pid}/status")


def of_cluster(directory):
    """{name: pids} of what descends from the cluster's guard."""
    guard = int(re.search(r'"guard": (\d+)', read(f"{directory}/cluster.json"))[1])
    names, parents = {}, {}
    for pid, text in statuses():
        names[pid], parents[pid] = NAME.search(text)[1], total(PARENT, text)
    found, grown = {guard}, True
    while grown:
        more = {p for p, up in parents.items() if up in found} - found
        found |= more
        grown = bool(more)
    by_name = {}
    for pid in found - {guard}:
        by_name.setdefault(names[pid], []).append(pid)
    return by_name


def mean_kb(pids):
    values = []
    for pid in pids:
        with contextlib.suppress(OSError):
            values.append(memory_kb(pid)[0])
    if not values:
        raise BenchError("--capacity: the processes to be looked at are gone")
    return sum(values) / len(values)


def shared_kb(by_name):
    """Memory that all processes share, and that of daemons of which there is one."""
    found = 0
    for name, pids in by_name.items():
        for pid in pids:
            with contextlib.suppress(OSError):
                own, shared = memory_kb(pid)
                one = name in ("slurmctld", "munged", "slurmscriptd")
                found += shared + (own if one else 0)
    return found


def wait_for_lines(child, count):
    """Until every rank has said that it has its PMI."""
    deadline, text = time.monotonic() + ANSWER_S, b""
    while text.count(b"held\n") < count:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
            raise BenchError(f"--capacity: no answer within {ANSWER_S} s")
        piece = os.read(child.stdout.fileno(), 65536)
        if not piece:
            raise BenchError("--capacity: the step to be looked at has failed")
        text += piece


@contextlib.contextmanager
def held_step(source, config, method):
    """A step whose ranks have done their PMI init and stay."""
    argv, env = source.command("pmi", config, method)
    child = subprocess.Popen(
        argv + ["--hold"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **env},
    )
    try:
        wait_for_lines(child, config[0] * config[1])
        yield child
        child.stdin.close()
        child.wait(ANSWER_S)
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
        child.stdout.close()


def measure(source, nodes, method, directory):
    """Costs, as limits.check_private takes them."""
    idle = mean_kb(of_cluster(directory)["slurmd"])
    steps, ranks, launcher = [], [], []
    for per_node in WIDTHS:
        with held_step(source, (nodes, per_node), method) as child:
            found = of_cluster(directory)
            steps.append(mean_kb(found["slurmstepd"]))
            ranks.append(mean_kb(found["pmi2x-noop"]))
            launcher.append(memory_kb(child.pid)[0])
            base = shared_kb(found)
    slope = (steps[1] - steps[0]) / (WIDTHS[1] - WIDTHS[0])
    return limits.Costs(
        base=round(base + max(launcher)),
        node=round(idle),
        step=round(steps[0] - WIDTHS[0] * slope),
        rank=round(max(ranks) + slope),
    )


def by_memory(costs, point, free_kb):
    """Nodes that memory alone holds, with one step on all of them."""
    alone = limits.memory_kb(0, point._replace(nodes=0), costs)
    each = limits.memory_kb(1, point, costs) - alone
    return max(0, free_kb - alone) // each


def table(costs, widths, free_kb):
    """Lines: how many nodes fit, and what is in the way of one more."""
    found = []
    for per_node in widths:
        for test in "pmi", "mpi":
            point = matrix.point(test, (1, per_node))
            nodes, reason = limits.most_nodes(point)
            found.append(
                {
                    "ranks/node": f"{per_node}",
                    "test": test,
                    "by memory": f"{by_memory(costs, point, free_kb)}",
                    "accepted": f"{nodes}",
                    "ranks": f"{nodes * per_node}",
                    "one more": reason,
                }
            )
    yield from text_lines(list(found[0]), found)


def report(costs, nodes, method, widths):
    """Lines of the whole answer."""
    free = limits.available_kb()
    yield f"measured on {nodes} private nodes, with {method}:"
    for name, kb in (
        ("slurmd", costs.node),
        ("step daemon, without ranks", costs.step),
        ("rank of the PMI no-op, with what its step daemon has for it", costs.rank),
        ("once: slurmctld, munged, srun, shared text", costs.base),
        ("free on this machine now", free),
    ):
        yield f"  {kb / 1024:8.2f} MB  {name}"
    bare = max(0, free - costs.base) // costs.node
    yield ""
    yield f"{bare} slurmds alone fit into that memory. With a step on all nodes,"
    yield "by memory as measured, and as a run accepts with the limits of now:"
    yield from table(costs, widths, free)
    yield ""
    yield (
        "A run takes more for granted, since large steps have large messages: "
        f"{limits.USUAL.node / 1024:.0f} MB a slurmd,\n"
        f"{limits.USUAL.step / 1024:.0f} MB a step daemon, "
        f"{limits.USUAL.rank} KB a rank, {limits.MPI_RANK_KB // 1024} MB a "
        "rank of an MPI program."
    )
