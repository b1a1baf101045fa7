# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, as a table and as CSV."""

import csv
import statistics

from .matrix import OPS

CLOCKS = {
    "span": "from the first rank's entry to the last rank's exit",
    "rank": "the longest that any rank was in it (ranks on several machines)",
    "each": "one look-up, median over the ranks",
}
COLUMNS = (
    "op mpi variant nodes ranks_per_node ranks bytes repeat round seconds "
    "part_seconds clock wall_seconds"
).split()


def show_time(seconds):
    for factor, unit in (1, "s "), (1e3, "ms"), (1e6, "us"):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


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

    def times(self, point, peer):
        samples = self.samples.get((point, peer), [])
        return [t for sample in samples for t in sample.times]

    def parts(self, point, peer):
        samples = self.samples.get((point, peer), [])
        return [t for sample in samples for t in sample.parts]

    def clocks(self, op):
        return sorted(
            {
                sample.clock
                for (point, _), samples in self.samples.items()
                for sample in samples
                if point.op == op
            }
        )

    def complaints(self):
        """Peer and lines on standard error of steps that went well."""
        for (point, peer), samples in self.samples.items():
            for sample in samples:
                if sample.complaints:
                    yield point, peer, sample.complaints


def table_row(results, point, peer, base):
    """base: the time to compare with, or None."""
    size = f"{point.nodes:6} {point.per_node:6} {point.bytes:6}  {str(peer):14}"
    times = results.times(point, peer)
    failed = len(results.failures.get((point, peer), []))
    if not times:
        return f"{size} {'failed' if failed else 'not done':>10}"
    median = statistics.median(times)
    ratio = f"{base / median:8.1f}x" if base and median else " " * 9
    shown = [show_time(t) for t in (median, min(times), max(times))]
    row = size + "".join(f" {text:>10}" for text in shown) + " " + ratio
    if OPS[point.op].part:
        parts = results.parts(point, peer)
        row += f" {show_time(statistics.median(parts)) if parts else '':>10}"
    return row + (f"  {failed} failed" if failed else "")


def table(results):
    """Lines. A ratio is the first peer's median time over this one's."""
    for op in dict.fromkeys(point.op for point in results.points):
        part = OPS[op].part
        peers = [peer for peer in results.peers if peer.can(op)]
        first = peers[0]
        yield ""
        yield f"{op}: " + "; ".join(
            CLOCKS[clock] for clock in results.clocks(op)
        )
        yield (
            f"{'nodes':>6} {'ranks/':>6} {'bytes':>6}  {'peer':14}"
            f" {'median':>10} {'min':>10} {'max':>10} {'against':>9}"
            + (f" {part:>10}" if part else "")
        )
        yield f"{'':6} {'node':>6} {'':6}  {'':14} {'':32} {str(first):>9}"
        for point in results.points:
            if point.op != op:
                continue
            base = results.times(point, first)
            base = statistics.median(base) if base else None
            for peer in peers:
                yield table_row(results, point, peer, base)


def write_csv(results, file):
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (point, peer), samples in results.samples.items():
        ranks = point.nodes * point.per_node
        head = [point.op, *peer, point.nodes, point.per_node, ranks, point.bytes]
        for repeat, sample in enumerate(samples, 1):
            for i, seconds in enumerate(sample.times):
                part = sample.parts[i] if i < len(sample.parts) else ""
                if not OPS[point.op].part:
                    part = ""
                writer.writerow(
                    [*head, repeat, i + 1, f"{seconds:.9f}", part]
                    + [sample.clock, f"{sample.wall:.3f}"]
                )
