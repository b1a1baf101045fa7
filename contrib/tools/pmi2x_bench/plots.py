# SPDX-License-Identifier: BSD-3-Clause
"""One SVG for each operation: time against ranks. Needs matplotlib."""

import os
import statistics

from .matrix import BenchError


def check(directory):
    """Before anything is measured: that plots can be made there."""
    try:
        import matplotlib
    except ImportError:
        raise BenchError(
            "--svg needs matplotlib for this python3 (on Debian: apt-get "
            "install python3-matplotlib); --csv needs nothing"
        ) from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "pmi2x"  # the same data, the same file
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise BenchError(f"--svg: {error}") from None
    if not os.access(directory, os.W_OK):
        raise BenchError(f"--svg: cannot write to {directory}")


def curves(results, op):
    """Label and (ranks, times) ascending, for each peer and its variants."""
    points = [p for p in results.points if p.op == op]
    sizes = sorted({p.bytes for p in points})
    spread = sorted({p.per_node for p in points})
    for peer in results.peers:
        for size in sizes:
            for per_node in spread:
                label = str(peer)
                label += f", {per_node} a node" if len(spread) > 1 else ""
                label += f", {size} B" if len(sizes) > 1 else ""
                found = [
                    (p.nodes * p.per_node, results.times(p, peer))
                    for p in points
                    if (p.bytes, p.per_node) == (size, per_node)
                ]
                found = [(ranks, times) for ranks, times in found if times]
                if found:
                    yield peer, label, sorted(found)


def draw(results, op, path):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    colors = {peer: f"C{i}" for i, peer in enumerate(results.peers)}
    markers, used = "os^Dvx*P", {}
    for peer, label, curve in curves(results, op):
        marker = markers[used.get(peer, 0) % len(markers)]
        used[peer] = used.get(peer, 0) + 1
        ranks = [r for r, _ in curve]
        middle = [statistics.median(times) for _, times in curve]
        low = [min(times) for _, times in curve]
        high = [max(times) for _, times in curve]
        axes.plot(ranks, middle, marker=marker, color=colors[peer], label=label)
        axes.fill_between(ranks, low, high, color=colors[peer], alpha=0.12)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("ranks")
    axes.set_ylabel("seconds: median, minimum to maximum")
    axes.set_title(op)
    axes.grid(True, alpha=0.3)
    if used:
        axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def write(results, directory):
    """Returns the paths of what was written."""
    paths = []
    for op in dict.fromkeys(point.op for point in results.points):
        paths.append(os.path.join(directory, f"{op}.svg"))
        draw(results, op, paths[-1])
    return paths
