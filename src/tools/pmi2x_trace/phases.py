# SPDX-License-Identifier: BSD-3-Clause
"""The phases of start-up: how long each took, and for whom it took longest."""

import statistics

from . import division, records

SLOWEST = 3  # named in the table


class Phase:
    """Durations in nanoseconds with the names of those who took them."""

    def __init__(self, name):
        self.name, self.samples = name, []

    def add(self, who, begin, end):
        """Stamps that are missing, or that clocks put in odd order, are none."""
        if begin is not None and end is not None and end >= begin:
            self.samples.append((end - begin, who))

    def row(self):
        values = [value for value, _ in self.samples]
        slowest = sorted(self.samples, reverse=True)[:SLOWEST]
        return (
            self.name,
            len(values),
            min(values),
            statistics.median(values),
            max(values),
            [(who, value) for value, who in slowest],
        )


# (phase, stamp it begins with, stamp it ends with)
OF_NODES = [
    ("slurmstepd starts, until prefork", "launch", "prefork"),
    ("prefork", "prefork", "ready"),
    ("tasks start, until the first init", "ready", "first_init"),
    ("init, first to last of the node", "first_init", "all_init"),
    ("wire-up, from the first init", "first_init", "wired"),
]
OF_COLLECTIVES = [
    ("ranks enter, first to last", "first_in", "last_in"),
    ("children's contributions", "last_in", "up"),
    ("up and down the tree", "up", "down"),
    ("ranks answered", "down", "done"),
]
OF_RANKS = [
    ("init, in the rank", "begin", "end"),
    ("from init to the first put", "end", "put"),
    ("from init to the first fence", "end", "fence_in"),
    ("first fence, in the rank", "fence_in", "fence_out"),
    ("first allgather, in the rank", "gather_in", "gather_out"),
    ("from the first fence to finalize", "fence_out", "finalize"),
]
SEEN_OF_RANKS = [
    ("from init to entering, as the agent sees it", "init", "enter"),
    ("from init to finalize, as the agent sees it", "init", "finalize"),
]


def node_phases(trace):
    start = Phase("srun until slurmstepd starts")
    for node in trace.nodes:
        # The kernel tells when a process began to 10 ms.
        launch = node.at["launch"]
        start.add(node.name, 0, launch and max(launch, 0))
    yield start
    for name, begin, end in OF_NODES:
        phase = Phase(name)
        for node in trace.nodes:
            phase.add(node.name, node.at[begin], node.at[end])
        yield phase


def group_of(collective):
    """The first of a kind pays for the wire-up; the others are alike."""
    if collective.seq == 0:
        return f"{collective.kind} 0"
    return f"later {collective.kind}s"


def collective_phases(trace):
    phases = {}
    for node in trace.nodes:
        for collective in node.collectives:
            for name, begin, end in OF_COLLECTIVES:
                key = f"{group_of(collective)}: {name}"
                phase = phases.setdefault(key, Phase(key))
                at = collective.at
                phase.add(node.name, at[begin], at[end])
    order = [name for name, _, _ in OF_COLLECTIVES]
    return sorted(
        phases.values(),
        key=lambda p: (
            p.name.startswith("later"),
            p.name.partition(":")[0],
            order.index(p.name.partition(": ")[2]),
        ),
    )


def rank_phases(trace):
    for name, begin, end in OF_RANKS:
        phase = Phase(name)
        for rank in trace.ranks:
            phase.add(rank.name, rank.own[begin], rank.own[end])
        yield phase
    for name, begin, end in SEEN_OF_RANKS:
        phase = Phase(name)
        for rank in trace.ranks:
            phase.add(rank.name, rank.seen[begin], rank.seen[end])
        yield phase


def end_phases(trace):
    phase = Phase("last finalize until the agent leaves")
    for node in trace.nodes:
        ends = [r.seen["finalize"] for r in node.ranks]
        ends = [stamp for stamp in ends if stamp is not None]
        phase.add(node.name, max(ends, default=None), node.at["end"])
    yield phase


def phases(trace):
    found = [
        *node_phases(trace),
        *rank_phases(trace),
        *collective_phases(trace),
        *end_phases(trace),
    ]
    return [phase for phase in found if phase.samples]


def milestones(trace):
    """When the last one had got so far, after srun began."""
    marks = []

    def mark(name, stamps):
        stamps = [stamp for stamp in stamps if stamp is not None]
        if stamps:
            marks.append((name, max(stamps) - trace.start))

    first = [
        c.at["done"]
        for n in trace.nodes
        for c in n.collectives
        if c.seq == 0 and c.kind != records.GROUP
    ]
    mark("the last node was ready", [n.at["ready"] for n in trace.nodes])
    mark("the last rank had sent init", [r.seen["init"] for r in trace.ranks])
    mark("the first collective had ended everywhere", first)
    mark("the last rank had finalized", [r.seen["finalize"] for r in trace.ranks])
    mark("srun had heard of all", [trace.end])
    return marks


def time_text(ns):
    if ns < 10_000:
        return f"{ns / 1e3:.1f} us"
    if ns < 10_000_000:
        return f"{ns / 1e6:.3f} ms"
    if ns < 10_000_000_000:
        return f"{ns / 1e6:.0f} ms"
    return f"{ns / 1e9:.1f} s"


def phase_lines(trace):
    rows = [phase.row() for phase in phases(trace)]
    width = max((len(row[0]) for row in rows), default=5)
    yield (f"{'phase':{width}} {'n':>6} {'min':>9} {'median':>9} {'max':>9}"
           "  slowest")
    for name, n, low, middle, high, slowest in rows:
        who = ", ".join(f"{w} {time_text(v)}" for w, v in slowest)
        yield (f"{name:{width}} {n:>6} {time_text(low):>9} "
               f"{time_text(middle):>9} {time_text(high):>9}  {who}")


def table(trace, divided, with_phases):
    """Lines for people, the conclusion first."""
    count = len(trace.ranks)
    lines = [division.conclusion(divided, time_text)] if divided.rows else []
    lines += [
        f"step {trace.step}: {records.counted(len(trace.nodes), 'node')}, "
        f"{records.counted(count, 'rank')}; clocks of hosts are taken as they are"
    ]
    lines += [f"note: {note}" for note in trace.notes]
    lines += ["", "after srun began"]
    lines += [f"{time_text(t):>10}  {name}" for name, t in milestones(trace)]
    lines += ["", *division.lines(divided, time_text)]
    if with_phases or not divided.rows:
        lines += ["", *phase_lines(trace)]
    return lines
