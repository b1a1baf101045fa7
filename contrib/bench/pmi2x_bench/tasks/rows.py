# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the table, and how each is measured."""

import collections
import os
import statistics
import tempfile
import time

from ..errors import BenchError
from ..layout import BLOCK
from ..matrix import Point
from ..run import output
from ..collectives.steps import MEETING_BYTES, parse_sample

from . import dvm, peers
from .peers import TRUE

# nodes: of Slurm, or None; works: a function from a Bench to {what: a function that
# measures it}; bars: {what: how many times as fast as this pmi2x-dvm must be}; most:
# {what: the largest value that is good}.
Row = collections.namedtuple("Row", "text unit nodes works bars most")
RATE, TIME, COST, BYTES, KIB, COUNT, WAKEUPS = "tasks/s", "s", "CPU s", "B", "KiB", "", "/s"
# The second figure of a measurement, beside the unit of its row.
HUNG = "pruns that did not end"
UNITS = {"descriptors": COUNT, HUNG: COUNT}

OURS, FLOOR, SRUN, PRUN = "pmi2x-dvm", "fork, exec, wait in C", "srun", "prun"
AT_ONCE = 16
DVMS = 32  # side by side
SLOTS = 4
LOCAL = "--local", 2, "--slots", SLOTS // 2
RANKS = 16  # a node, of the fence
BATCH = 1000  # tasks of the soak between two looks
SETTLED = 12  # batches until the head has as many ended tasks as it keeps
QUEUED = 100000
IDLE_S = 5


class Bench:
    """State that the rows share. place: a directory that is removed with it."""

    def __init__(self, options, place, nodes):
        self.options, self.place, self.nodes = options, place, nodes
        self.tasks = options.tasks
        self.few = min(options.tasks, options.slow_tasks)

    def dvm(self, *options):
        return dvm.Dvm(self.options.dvm, self.place, *options)

    def program(self, name):
        return os.path.join(self.options.programs, name)

    @property
    def library(self):
        return f"--library={self.options.libraries}/libpmi2x.so.0"


def rate(bench, *options):
    """Tasks a second, from submit to the last result."""
    with bench.dvm(*options) as d:
        return bench.tasks / d.bulk(bench.tasks, TRUE)


# ---- rows: many tasks ----


def local(bench):
    def journal():
        with tempfile.TemporaryDirectory(dir=bench.place) as place:
            return rate(bench, *LOCAL, "--journal", f"{place}/journal")

    return {
        FLOOR: lambda: peers.floor(bench, bench.tasks, SLOTS),
        OURS: lambda: rate(bench, *LOCAL),
        f"{OURS} --journal": journal,
        "GNU parallel": lambda: peers.parallel(bench.few, SLOTS),
        "HyperQueue": lambda: peers.hyperqueue(
            bench.options.hyperqueue, bench.tasks, SLOTS, bench.place
        ),
    }


def bulk(bench):
    return {
        FLOOR: lambda: peers.floor(bench, bench.tasks, AT_ONCE),
        OURS: lambda: rate(bench, "--slots", 1),
        SRUN: lambda: peers.srun(bench.few, AT_ONCE),
    }


def prun(bench):
    def of_prrte():
        """As fast as those are that end: the others do not count against it."""
        with peers.Prrte(bench.place) as prrte:
            ended, hung = prrte.pruns(bench.few, AT_ONCE)
            return {PRUN: AT_ONCE / statistics.mean(ended), HUNG: hung}

    return {
        FLOOR: lambda: peers.floor(bench, bench.tasks, AT_ONCE),
        OURS: lambda: rate(bench, "--slots", 1),
        PRUN: of_prrte,
    }


def mpi(bench):
    noop = bench.program("pmi2x-noop"), bench.library
    step = f"srun -Q -K --mpi=pmi2x -N2 -n4 --overlap --mem=0 {' '.join(noop)}"

    def ours():
        with bench.dvm("--slots", 2) as d:
            return bench.few / d.bulk(bench.few, *noop, options=("-n4", "-N2"))

    return {
        OURS: ours,
        SRUN: lambda: peers.many(step, max(1, bench.few // 5), AT_ONCE // 2),
    }


def preload(bench):
    """Scripts that import numpy. The interpreter of both is python3 of PATH."""

    def script(name):
        path = os.path.join(bench.place, name)
        with open(path, "w") as file:
            file.write("#!/usr/bin/env python3\nimport numpy\n")
        os.chmod(path, 0o755)
        return path

    def forked():
        with bench.dvm(*LOCAL, "--preload", "import numpy") as d:
            return bench.few / d.bulk(bench.few, script("task.py"), options=("--preloaded",))

    def executed():
        few = max(1, bench.few // 10)
        with bench.dvm(*LOCAL) as d:
            return few / d.bulk(few, "python3", script("task.py"))

    return {OURS: forked, "without --preload": executed}


# ---- rows: one thing after another ----


def median_of(times, command):
    """Seconds of a command, which runs a number of times, one after another."""
    return statistics.median(command() for _ in range(times))


def run(bench):
    def ours():
        with bench.dvm("--slots", 1) as d:
            return median_of(100, lambda: d("run", TRUE)[1])

    def of_srun():
        step = ["srun", "-Q", "-n1", "-N1", "--overlap", "--mem=0", TRUE]
        return median_of(20, lambda: output(step)[1])

    def of_prrte():
        with peers.Prrte(bench.place) as prrte:
            return statistics.median(prrte.pruns(20, 1)[0])

    return {OURS: ours, SRUN: of_srun, PRUN: of_prrte}


def fence(bench):
    """Run the program as a task and as a step; its ranks meet in a file before."""
    ranks = bench.options.ranks
    point = Point("fence", bench.nodes, ranks, BLOCK, 64)
    size = f"-N{point.nodes}", f"-n{point.ranks}"

    def median(start):
        with tempfile.NamedTemporaryFile(dir=bench.place) as meet:
            meet.write(bytes(MEETING_BYTES))
            meet.flush()
            rank = [bench.program("pmi2x-bench-rank"), "--op=fence", "--rounds=8"]
            out, _ = start(*rank, "--bytes=64", bench.library, f"--meet={meet.name}")
        sample = parse_sample(point, out, 0)
        if not sample:
            raise BenchError("the ranks have no result")
        return statistics.median(sample.times)

    def ours():
        with bench.dvm("--slots", ranks) as d:
            return median(lambda *argv: d("run", *size, *argv))

    step = "srun", "-Q", "-K", "--mpi=pmi2x", "--mem=0", "--overcommit", *size
    return {OURS: ours, "step of srun": lambda: median(lambda *a: output([*step, *a]))}


def up(bench, *options):
    def ours():
        with bench.dvm(*options) as d:
            return d.up_seconds

    step = "srun", "-Q", "--mpi=none", f"-N{bench.nodes}", "--mem=0", TRUE
    return {OURS: ours, "srun true": lambda: output(step)[1]}


def ups(bench):
    return up(bench, "--dvms", min(DVMS, bench.nodes))


# ---- rows: what it takes ----


def head(bench):
    def ours():
        with bench.dvm(*LOCAL) as d:
            d.bulk(BATCH, TRUE)
            before = d.sums(dvm.cpu_seconds)
            d.bulk(bench.tasks, TRUE)
            return (d.sums(dvm.cpu_seconds)["head"] - before["head"]) / bench.tasks

    return {"head, a task": ours}


def queue(bench):
    def ours():
        with bench.dvm("--local", 1, "--slots", 1) as d:
            d("submit", "sleep", 3600)
            before = d.sums(dvm.memory_kib)["head"]
            d("submit", "--array", f"1-{QUEUED}", TRUE)
            return 1024 * (d.sums(dvm.memory_kib)["head"] - before) / QUEUED

    return {"head, a queued task": ours}


def idle(bench):
    def ours():
        with bench.dvm(*LOCAL) as d:
            d.bulk(BATCH, TRUE)
            before = d.sums(dvm.wakeups)
            time.sleep(IDLE_S)
            after = d.sums(dvm.wakeups)
            return {role: (after[role] - before[role]) / IDLE_S for role in after}

    return {"all": ours}


def soak(bench):
    """How much more all have at the end than when the first tasks had ended."""

    def look(d):
        found = d.sums(dvm.memory_kib)
        return {**found, "descriptors": sum(d.sums(dvm.descriptors).values())}

    def ours():
        with bench.dvm(*LOCAL) as d:
            for _ in range(SETTLED):
                d.bulk(BATCH, TRUE)
            before = look(d)
            for _ in range(bench.options.soak_tasks // BATCH - SETTLED):
                d.bulk(BATCH, TRUE)
            after = look(d)
            return {what: after[what] - before[what] for what in after}

    return {"all": ours}


ROWS = {
    "local": Row(
        f"/bin/true on this machine, {SLOTS} at once", RATE, None, local,
        {FLOOR: 0.6, "GNU parallel": 3, "HyperQueue": 10}, {}),
    "bulk": Row(
        f"/bin/true on the nodes of Slurm, {AT_ONCE} at once", RATE, 16, bulk,
        {FLOOR: 0.6, SRUN: 50}, {}),
    "prun": Row(
        f"/bin/true on the nodes of Slurm, {AT_ONCE} at once", RATE, 16, prun,
        {PRUN: 20}, {}),
    "preload": Row(
        f"scripts that import numpy, {SLOTS} at once", RATE, None, preload,
        {"without --preload": 20}, {}),
    "run": Row(
        "one /bin/true, from command to exit status", TIME, 4, run,
        {SRUN: 15, PRUN: 5}, {}),
    "mpi": Row(
        "4 ranks on 2 nodes: PMI init, finalize", RATE, 16, mpi, {SRUN: 15}, {}),
    "fence": Row(
        f"a fence of {RANKS} ranks a node, or --ranks", TIME, 256, fence,
        {"step of srun": 1 / 1.1}, {}),
    "up": Row(
        "until all daemons are up", TIME, 256, up, {"srun true": 1 / 1.3}, {}),
    "ups": Row(
        f"until all daemons of {DVMS} DVMs are up", TIME, 256, ups,
        {"srun true": 1 / 1.3}, {}),
    "head": Row(
        "CPU time of the head", COST, None, head, {}, {"head, a task": 50e-6}),
    "queue": Row(
        "memory of the head", BYTES, None, queue, {}, {"head, a queued task": 600}),
    "idle": Row(
        "wake-ups of processes while nothing runs", WAKEUPS, None, idle, {},
        {"head": 0, "daemon": 0, "zygote": 0}),
    "soak": Row(
        f"growth after the first {SETTLED * BATCH:,} tasks", KIB, None, soak, {},
        {"head": 512, "daemon": 512, "zygote": 512, "descriptors": 0}),
}  # fmt: skip
