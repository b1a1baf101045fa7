# SPDX-License-Identifier: BSD-3-Clause
"""Results as CSV, and back: a row for each time."""

from .. import layout, record
from ..matrix import OPS, PHASES, Peer, Point
from ..record import number
from .report import Results
from .steps import Sample

FORM = record.Form(
    "pmi2x bench collectives", "op", op=record.one_of("operation", OPS), mpi=str,
    variant=str, nodes=int, ranks_per_node=int, layout=layout.parse, ranks=int,
    bytes=int, repeat=str, round=int, phase=str, seconds=float, part_seconds=number,
    wait_seconds=number, clock=str, puts=str, wall_seconds=float, cpu_seconds=number)


def rows(point, peer, sample):
    head = [point.op, *peer, point.nodes, point.per_node, point.layout]
    head += [point.ranks, point.bytes, sample.repeat]
    busy = "" if sample.busy is None else f"{sample.busy:.2f}"
    tail = [sample.clock, sample.puts, f"{sample.wall:.3f}", busy]
    op, phases = OPS[point.op], {**sample.phases, "": sample.times}
    more = (sample.parts, op.part), (sample.waits, op.wait)
    for i in range(len(sample.times)):
        for name in PHASES.get(point.op, ("",)):
            extra = [row[i] if not name and i < len(row) and title else ""
                     for row, title in more]
            yield [*head, i + 1, name, f"{phases[name][i]:.9f}", *extra, *tail]


def add_row(results, steps, source, row):
    point = Point(row["op"], row["nodes"], row["ranks_per_node"], row["layout"],
                  row["bytes"])
    peer = Peer(row["mpi"], row["variant"])
    key = source, point, peer, row["repeat"]
    if key not in steps:
        sample = Sample(row["clock"], row["puts"], row["wall_seconds"])
        sample.repeat = f"{source}-{row['repeat']}"
        sample.busy = row["cpu_seconds"]
        steps[key] = sample
        results.add((point, peer), sample)
    sample = steps[key]
    if row["phase"]:
        sample.phases.setdefault(row["phase"], []).append(row["seconds"])
        return
    sample.times.append(row["seconds"])
    for column, into in ("part", sample.parts), ("wait", sample.waits):
        if row[f"{column}_seconds"] is not None:
            into.append(row[f"{column}_seconds"])


def read(paths):
    """Results of several files together, and the notes on each operation."""
    found, notes = FORM.read(paths)
    results, steps = Results([], []), {}
    for path, row in found:
        add_row(results, steps, path, row)
    results.points = list(dict.fromkeys(p for p, _ in results.samples))
    results.peers = list(dict.fromkeys(q for _, q in results.samples))
    return results, notes
