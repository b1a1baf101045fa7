# SPDX-License-Identifier: BSD-3-Clause
"""Plots of time against ranks, one for each operation. Needs matplotlib."""

import collections
import os
import statistics
import textwrap

import pmi2x_plot

from ..errors import BenchError
from ..layout import BLOCK
from ..matrix import NONE

# A curve is what one peer does for one operation; a figure has several.
Curve = collections.namedtuple("Curve", "label color marker style points")
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


def directories(options):
    return [(d, kind) for kind in ("svg", "png") if (d := vars(options)[kind])]


def check(options):
    """Before anything is measured: that plots can be made there."""
    for directory, kind in directories(options):
        try:
            pmi2x_plot.load()
            os.makedirs(directory, exist_ok=True)
        except (OSError, pmi2x_plot.PlotError) as error:
            raise BenchError(f"--{kind}: {error}") from None
        if not os.access(directory, os.W_OK):
            raise BenchError(f"--{kind}: cannot write to {directory}")


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
    """Of all peers; points are (ranks, median, minimum, maximum)."""
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
                yield Curve(
                    label_of(peer, key, found, what),
                    color[peer],
                    pmi2x_plot.marker(i),
                    style,
                    line,
                )


def plot_curves(axes, found):
    for curve in found:
        ranks, middle, low, high = zip(*curve.points)
        pmi2x_plot.curve(
            axes,
            ranks,
            middle,
            spread=(low, high),
            marker=curve.marker,
            linestyle=curve.style,
            color=curve.color,
            label=curve.label,
        )


def label_times(axes, unit):
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 1000 * low:  # decades alone would be a label or two
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(EngFormatter(unit=unit))
    if high < 10 * low:
        axes.yaxis.set_minor_formatter(EngFormatter(unit=unit))
    else:
        axes.yaxis.set_minor_formatter(NullFormatter())


def draw(found, title, notes, op, path, across="ranks"):
    unit = "B" if op == "memory" else "s"
    figure, axes = pmi2x_plot.panels()
    plot_curves(axes, found)
    label_times(axes, unit)
    pmi2x_plot.sizes_across(axes, [p[0] for curve in found for p in curve.points])
    axes.set_xlabel(across)
    what = "memory" if op == "memory" else "time"
    axes.set_ylabel(f"{what}: median; shaded: minimum to maximum")
    text = f"{notes.get('machine', '')}\n{notes.get('command', '')}"
    small = "\n".join(
        line for part in text.split("\n") for line in textwrap.wrap(part, 120)
    )
    figure.suptitle(title, fontsize="large")
    axes.set_title(small, fontsize=pmi2x_plot.SMALL, color=pmi2x_plot.GREY)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    pmi2x_plot.save(figure, path)


def once(found):
    """Without a second curve of the launch alone, which both have."""
    return list({curve.label: curve for curve in reversed(found)}.values())[::-1]


def figures(results):
    """Name, title, curves and operation of each."""
    color = {peer: f"C{i}" for i, peer in enumerate(results.peers)}
    color[NONE] = "0.4"
    ops = list(dict.fromkeys(point.op for point in results.points))
    for op in ops:
        yield op, TITLES.get(op, op), list(curves(results, op, color)), op
    for name, (title, parts) in TOGETHER.items():
        if all(op in ops for op in parts):
            found = [
                curve
                for op, style in zip(parts, STYLES)
                for curve in curves(results, op, color, style, parts[op])
            ]
            yield name, title, once(found), op


def write(results, notes, options):
    """Returns the paths of what was written. notes: {operation: {name: text}}."""
    paths = []
    for directory, kind in directories(options):
        for name, title, found, op in figures(results):
            if found:
                paths.append(os.path.join(directory, f"{name}.{kind}"))
                draw(found, title, notes[op], op, paths[-1])
    return paths
