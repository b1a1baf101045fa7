# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, as a table."""

import statistics

from .layout import BLOCK
from .matrix import NONE, OPS

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
# Titles of columns that hold words, not numbers.
TEXTS = {"layout", "peer", "failures", "test", "method", "how", "one more"}
TEXTS |= {"grows with", "N", "what", "verdict"}


def show_time(seconds):
    if seconds < 0:
        return "-" + show_time(-seconds)
    for factor, unit in (1, "s "), (1e3, "ms"), (1e6, "us"):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def show_bytes(count):
    return f"{count / 1024:.0f} KiB"


class Results:
    """Samples by point and peer, in the order of the matrix."""

    def __init__(self, points, peers):
        self.points, self.peers = points, peers
        self.samples = {}
        self.failures = {}

    def add(self, point, peer, sample):
        self.samples.setdefault((point, peer), []).append(sample)

    def fail(self, point, peer, text):
        self.failures.setdefault((point, peer), []).append(text)

    def of(self, point, peer):
        return self.samples.get((point, peer), [])

    def times(self, point, peer):
        return [t for sample in self.of(point, peer) for t in sample.times]

    def median(self, point, peer, field="times", place=None):
        """Of all times, or of those at one place of their step; or None."""
        found = [getattr(sample, field) for sample in self.of(point, peer)]
        values = [
            value
            for row in found
            for value in (row if place is None else row[place : place + 1])
        ]
        return statistics.median(values) if values else None

    def pairs(self, point, peer):
        """Median times of the peer and without PMI, of the same repeat."""
        bare = {
            sample.repeat: statistics.median(sample.times)
            for sample in self.of(point, NONE)
        }
        return [
            (statistics.median(sample.times), bare[sample.repeat])
            for sample in self.of(point, peer)
            if sample.repeat in bare
        ]

    def clocks(self, op):
        return sorted(
            {
                sample.clock
                for (point, _), samples in self.samples.items()
                for sample in samples
                if point.op == op
            }
        )

    def puts(self, op):
        """Text: how each peer's puts relate to the timed fences."""
        found = {}
        for (point, peer), samples in self.samples.items():
            if point.op == op and samples[0].puts in PUTS:
                found.setdefault(samples[0].puts, {})[str(peer)] = None
        return "; ".join(
            f"{', '.join(names)}: {PUTS[way]}" for way, names in found.items()
        )

    def complaints(self):
        """Peer and lines on standard error of steps that went well."""
        for (point, peer), samples in self.samples.items():
            for sample in samples:
                if sample.complaints:
                    yield point, peer, sample.complaints


def hidden(results, point, peer):
    """Which share of the exchange the computation has hidden."""
    shares = [
        (alone + compute - both) / alone
        for sample in results.of(point, peer)
        for alone, compute, both in zip(
            sample.phases["exchange"], sample.phases["compute"], sample.times
        )
    ]
    share = statistics.median(shares)
    return f"{100 * min(1, max(0, share)):.0f} %"


def overlap_cells(results, point, peer):
    cells = {}
    for name, title in ("exchange", "exchange"), ("compute", "compute"):
        values = [
            value
            for sample in results.of(point, peer)
            for value in sample.phases[name]
        ]
        cells[f"{title} alone"] = show_time(statistics.median(values))
    cells["hidden"] = hidden(results, point, peer)
    return cells


def many_cells(results, point, peer):
    def shown(field, place):
        found = results.median(point, peer, field, place)
        return show_time(found) if found is not None else ""

    return {
        "first 10": shown("times", 0),
        "last 10": shown("times", 9),
        "get first": shown("parts", 0),
        "get last": shown("parts", 9),
    }


def against_cells(results, point, peer):
    """Medians of what each repeat shows, since a machine has its moments."""
    pairs = results.pairs(point, peer)
    cells = {"above none": "", "to none": ""}
    if pairs and peer != NONE:
        above = statistics.median(mine - bare for mine, bare in pairs)
        ratio = statistics.median(mine / bare for mine, bare in pairs)
        cells = {"above none": show_time(above), "to none": f"{ratio:.3f}"}
    busy = [s.busy for s in results.of(point, peer) if s.busy is not None]
    if OPS[point.op].against:
        cells["CPU, all"] = show_time(statistics.median(busy)) if busy else ""
    return cells


def cells_of(results, point, peer):
    """{title: text} of what an operation shows beside its times."""
    op, shown = OPS[point.op], {}
    show = show_bytes if point.op == "memory" else show_time
    for field, title in ("parts", op.part), ("waits", op.wait):
        if title and point.op != "many":
            value = results.median(point, peer, field)
            shown[title] = show(value) if value is not None else ""
    if point.op.startswith("overlap"):
        shown.update(overlap_cells(results, point, peer))
    if point.op == "many":
        shown.update(many_cells(results, point, peer))
    if op.against:
        shown.update(against_cells(results, point, peer))
    return shown


def row(results, point, peer, first):
    """{title: text} of one line of the table."""
    cells = {
        "nodes": f"{point.nodes}",
        "ranks/node": f"{point.per_node}",
        "layout": f"{point.layout}",
        "bytes": f"{point.bytes}",
        "peer": f"{peer}",
    }
    times = results.times(point, peer)
    failed = len(results.failures.get((point, peer), []))
    if not times:
        cells["median"] = "failed" if failed else "not done"
        return cells
    show = show_bytes if point.op == "memory" else show_time
    median, base = statistics.median(times), results.median(point, first)
    cells["median"] = show(median)
    cells["min"], cells["max"] = show(min(times)), show(max(times))
    ratio = f"{base / median:.1f}x" if base and median > 0 else ""
    cells[f"against {first}"] = ratio
    cells.update(cells_of(results, point, peer))
    if failed:
        cells["failures"] = f"{failed} failed"
    return cells


def rows(results, op):
    peers = [peer for peer in results.peers if peer.can(op)]
    base = [peer for peer in peers if peer.client != "none"] or peers
    return [
        row(results, point, peer, base[0])
        for point in results.points
        if point.op == op
        for peer in peers
        if (point, peer) in results.samples or (point, peer) in results.failures
    ]


def titles_of(found):
    titles = list(dict.fromkeys(title for cells in found for title in cells))
    if all(cells["layout"] == str(BLOCK) for cells in found):
        titles.remove("layout")
    return [t for t in titles if any(cells.get(t) for cells in found)]


def text_lines(titles, found):
    widths = [max([len(t)] + [len(c.get(t, "")) for c in found]) for t in titles]
    for cells in [{t: t for t in titles}] + found:
        yield "  ".join(
            cells.get(t, "").ljust(w) if t in TEXTS else cells.get(t, "").rjust(w)
            for t, w in zip(titles, widths)
        ).rstrip()


def markdown_lines(titles, found):
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    for cells in found:
        yield "| " + " | ".join(cells.get(t, "").strip() for t in titles) + " |"


def table(results, markdown=False):
    """Lines. A ratio is the first peer's median time over this one's."""
    for op in dict.fromkeys(point.op for point in results.points):
        found = rows(results, op)
        if not found:
            continue
        head = f"{op}: " + "; ".join(CLOCKS[c] for c in results.clocks(op))
        if OPS[op].settles and results.puts(op):
            head += f". {results.puts(op)}"
        titles = titles_of(found)
        yield ""
        yield f"**{head}**\n" if markdown else head
        yield from (markdown_lines if markdown else text_lines)(titles, found)
