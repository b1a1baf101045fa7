# SPDX-License-Identifier: BSD-3-Clause
"""Plots of time against ranks, one for each operation."""

import collections
import statistics

from .. import plot
from ..layout import BLOCK
from ..matrix import NONE

STYLES = ("-", "--", ":", "-.")
TITLES = {
    "fence": "Fence",
    "exchange": "Put and fence",
    "allgather": "Allgather",
    "ring": "PMIX_Ring",
    "group": "Barrier of the first ranks of all nodes",
    "get": "Get of a fenced key",
    "fetch": "Fetch of a key that no fence has published",
    "memory": "Memory that a node's server takes for one value a rank",
    "first": "First fence of a step",
    "init": "Start to the end of an MPI_Init with a blocking exchange",
    "iinit": "Start to the end of an MPI_Init with a non-blocking exchange",
    "step": "srun of init, fence, get, finalize",
    "true": "srun true",
}
# Figures that show several operations together.
TOGETHER = {
    "startup": (
        "Start of a program to the end of its MPI_Init",
        {"init": "put, fence, get", "iinit": "Iallgather"},
    ),
}


def series(results, op):
    """{(layout, bytes, ranks of a node or None): points}. Curves are for a
    number of ranks a node, or along it where all points have one size."""
    points = [p for p in results.points if p.op == op]
    by_nodes = len({p.nodes for p in points}) > 1
    found = collections.defaultdict(list)
    for p in points:
        key = p.layout, p.bytes, p.per_node if by_nodes else None
        found[key].append(p)
    return found


def label_of(peer, key, keys, what):
    layout, size, per_node = key
    words = [what] if what and peer.mpi != "none" else []
    if len({k[0] for k in keys}) > 1 or layout != BLOCK:
        words.append(str(layout))
    if len({k[2] for k in keys}) > 1:
        words.append(f"{per_node} a node")
    if len({k[1] for k in keys}) > 1:
        words.append(f"{size} B")
    return ", ".join(["no PMI" if peer == NONE else str(peer)] + words)


def curves(results, op, color, style="-", what=""):
    """Curves of all peers; points are (ranks, median, minimum, maximum)."""
    found = series(results, op)
    for peer in results.peers:
        for i, (key, points) in enumerate(found.items()):
            line = []
            for p in sorted(points, key=lambda p: p.ranks):
                times = results.values((p, peer))
                if times:
                    middle = statistics.median(times)
                    line.append((p.ranks, middle, min(times), max(times)))
            if line:
                yield plot.Curve(label_of(peer, key, found, what), color[peer],
                                 plot.marker(i), style, line)


def once(found):
    """Without a second curve of the launch alone, which both have."""
    return list({curve.label: curve for curve in reversed(found)}.values())[::-1]


def figures(results, notes):
    """notes: {operation: {name: text}}"""
    color = {peer: f"C{i}" for i, peer in enumerate(results.peers)}
    color[NONE] = "0.4"
    ops = list(dict.fromkeys(point.op for point in results.points))
    for op in ops:
        unit = "B" if op == "memory" else "s"
        yield plot.Figure(op, TITLES.get(op, op), list(curves(results, op, color)),
                          notes[op], "ranks", unit)
    for name, (title, parts) in TOGETHER.items():
        if all(op in ops for op in parts):
            found = [curve for op, style in zip(parts, STYLES)
                     for curve in curves(results, op, color, style, parts[op])]
            yield plot.Figure(name, title, once(found), notes[op], "ranks", "s")
