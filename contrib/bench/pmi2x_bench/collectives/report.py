# SPDX-License-Identifier: BSD-3-Clause
"""The measurements, as a table."""

import statistics

from .. import record
from ..layout import BLOCK
from ..matrix import NONE, OPS
from ..report import block, show_time

CLOCKS = {
    "span": "from the first rank's entry to the last rank's exit",
    "rank": "the longest that any rank was in it (ranks on several machines)",
    "each": "of one, median over the ranks",
    "most": "what a node's PMI server takes for one value a rank, the most",
    "wall": "the whole of srun",
}
PUTS = {
    "met": "all ranks meet before it, their puts done",
    "before": "all puts done before it",
    "local": "a put is no message",
    "inside": "puts may still be on their way in it",
}


def show_bytes(count):
    return f"{count / 1024:.0f} KiB"


class Results(record.Results):
    """By (point, peer), in the order of the matrix."""

    def __init__(self, points, peers):
        super().__init__()
        self.points, self.peers = points, peers

    def clocks(self, op):
        return sorted({sample.clock for (point, _), samples in self.samples.items()
                       for sample in samples if point.op == op})

    def puts(self, op):
        """Text: how each peer's puts relate to the timed fences."""
        found = {}
        for (point, peer), samples in self.samples.items():
            if point.op == op and samples[0].puts in PUTS:
                found.setdefault(samples[0].puts, {})[str(peer)] = None
        return "; ".join(
            f"{', '.join(names)}: {PUTS[way]}" for way, names in found.items())

    def complaints(self):
        """Key and lines on standard error of steps that went well."""
        for key, samples in self.samples.items():
            for sample in samples:
                if sample.complaints:
                    yield key, sample.complaints


def overlap_cells(results, key):
    phases = [(sample.phases["exchange"], sample.phases["compute"], sample.times)
              for sample in results.of(key)]
    rounds = [each for columns in phases for each in zip(*columns)]
    exchange, compute, _ = map(statistics.median, zip(*rounds))
    # The share of the exchange that the computation has hidden.
    share = statistics.median(
        (alone + work - both) / alone for alone, work, both in rounds)
    return {
        "exchange alone": show_time(exchange),
        "compute alone": show_time(compute),
        "hidden": f"{100 * min(1, max(0, share)):.0f} %",
    }


def many_cells(results, key):
    places = {"first 10": ("times", 0), "last 10": ("times", 9),
              "get first": ("parts", 0), "get last": ("parts", 9)}
    found = {title: results.median(key, *place) for title, place in places.items()}
    return {title: show_time(value) for title, value in found.items()
            if value is not None}


def against_cells(results, key):
    """Medians of what each repeat shows, since a machine has its moments."""
    point, peer = key
    pairs = results.pairs(key, (point, NONE))
    cells = {"above none": "", "to none": ""}
    if pairs and peer != NONE:
        above = statistics.median(mine - bare for mine, bare in pairs)
        ratio = statistics.median(mine / bare for mine, bare in pairs)
        cells = {"above none": show_time(above), "to none": f"{ratio:.3f}"}
    busy = [s.busy for s in results.of(key) if s.busy is not None]
    cells["CPU, all"] = show_time(statistics.median(busy)) if busy else ""
    return cells


def cells_of(results, key, show):
    """{title: text} of what an operation shows beside its times."""
    name = key[0].op
    op, shown = OPS[name], {}
    for field, title in ("parts", op.part), ("waits", op.wait):
        if title and name != "many":
            value = results.median(key, field)
            shown[title] = show(value) if value is not None else ""
    if name.startswith("overlap"):
        shown.update(overlap_cells(results, key))
    if name == "many":
        shown.update(many_cells(results, key))
    if op.against:
        shown.update(against_cells(results, key))
    return shown


def row(results, point, peer, first):
    """{title: text} of one line of the table."""
    key = point, peer
    cells = {
        "nodes": f"{point.nodes}",
        "ranks/node": f"{point.per_node}",
        "layout": f"{point.layout}",
        "bytes": f"{point.bytes}",
        "peer": f"{peer}",
    }
    times = results.values(key)
    failed = len(results.failures.get(key, []))
    if not times:
        cells["median"] = "failed" if failed else "not done"
        return cells
    show = show_bytes if point.op == "memory" else show_time
    median, base = statistics.median(times), results.median((point, first))
    cells["median"] = show(median)
    cells["min"], cells["max"] = show(min(times)), show(max(times))
    ratio = f"{base / median:.1f}x" if base and median > 0 else ""
    cells[f"against {first}"] = ratio
    cells.update(cells_of(results, key, show))
    if failed:
        cells["failures"] = f"{failed} failed"
    return cells


def rows(results, op):
    peers = [peer for peer in results.peers if peer.can(op)]
    base = [peer for peer in peers if peer.client != "none"] or peers
    known = set(results.keys())
    found = [row(results, point, peer, base[0])
             for point in results.points if point.op == op
             for peer in peers if (point, peer) in known]
    if all(cells["layout"] == str(BLOCK) for cells in found):
        for cells in found:
            del cells["layout"]
    return found


def table(results, markdown=False):
    """Lines. A ratio is the first peer's median time over this one's."""
    for op in dict.fromkeys(point.op for point in results.points):
        found = rows(results, op)
        if not found:
            continue
        head = f"{op}: " + "; ".join(CLOCKS[c] for c in results.clocks(op))
        if OPS[op].settles and results.puts(op):
            head += f". {results.puts(op)}"
        yield from block(head, found, markdown)
