# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of real agents: messages, bytes, and the time of each round."""

import collections
import math
import os
import pathlib
import statistics

from pmi2x_trace import records

from .. import record
from ..errors import BenchError
from ..run import busy_seconds, output

OPS = ("fence", "allgather", "ring", "group")
SKIPPED = 2  # rounds at the start, in which links and memory are made
ROUNDS_MAX, BYTES_MAX = 64, 1023  # limits of sim-rank
FORM = record.Form(
    "pmi2x sim validate", None, use=str, nodes=int, ranks_per_node=int, op=str, bytes=int,
    messages=int, simulated_messages=int, sent=int, simulated_sent=int, time_s=float,
    simulated_s=record.number, error=record.number, low_s=record.number,
    high_s=record.number, busy=record.number, service=record.number, rounds_us=str)

Point = collections.namedtuple("Point", "nodes per_node op bytes")
# Of one collective: totals, seconds of each round by repeat; the share of this machine's
# processors that was busy meanwhile, and the deviation of the work of leaves, or None.
Result = collections.namedtuple("Result", "messages bytes repeats busy service")


def named(point):
    return f"{point.nodes} x {point.per_node} {point.op} {point.bytes}"


def typical(rounds):
    """The time of a repeat: a few rounds that something else delays do not count."""
    return statistics.median(rounds)


def time_of(result):
    return statistics.median(map(typical, result.repeats))


# ---- how far measurements differ ----


def deviation(values):
    """Of the logarithms, from the quartiles, so that single outliers do not count."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles([math.log(v) for v in values], n=4,
                                        method="inclusive")
    return (high - low) / 1.349


def of_rounds(results):
    """Deviation of rounds within a step, in the median of all steps."""
    return statistics.median(deviation(rounds) for r in results for rounds in r.repeats)


def of_repeats(results):
    """Deviation of steps that are the same, pooled; a robust one, from absolute values."""
    off = [abs(math.log(typical(rounds) / time_of(r))) for r in results
           for rounds in r.repeats if len(r.repeats) > 1]
    return statistics.median(off) * 1.4826 * math.sqrt(1.5) if off else 0.0


# ---- measuring ----


def group_totals(trace):
    """Messages and bytes of barriers of some ranks: nodes count their messages
    together."""
    done = {}
    for node in trace.nodes:
        for g in node.groups:
            if g.at["done"] is not None:
                done[g.seq] = max(done.get(g.seq, 0), g.at["done"])
    sums = [sum(node.group_sent[name] for node in trace.nodes)
            for name in records.SENT]
    if any(total % max(len(done), 1) for total in sums):
        raise BenchError(f"{len(done)} groups have sent {sums} in all: they differ")
    return [(*(total // len(done) for total in sums), done[seq])
            for seq in sorted(done)]


def totals(trace, op):
    """Messages and bytes of every collective of a step, and when it ended."""
    if op == "group":
        return group_totals(trace)
    found = {}
    for node in trace.nodes:
        for c in node.collectives:
            if c.kind == op and c.at["done"] is not None:
                messages, sent, done = found.get(c.seq, (0, 0, 0))
                found[c.seq] = (messages + c.sent["messages"],
                                sent + c.sent["bytes"],
                                max(done, c.at["done"]))
    return [found[seq] for seq in sorted(found)]


def pieces(node, first, last):
    """Seconds of the work of a leaf between two stamps."""
    spans = [(c.at[first], c.at[last]) for c in node.collectives if c.seq >= SKIPPED]
    return [(b - a) * 1e-9 for a, b in spans if a is not None and b is not None and b > a]


def service_of(trace, point, width):
    """The deviation of the work of leaves; None: there are inner nodes, or no stamps."""
    if point.op == "group" or point.nodes > width + 1:
        return None
    work = [pieces(node, *stamps) for node in trace.nodes if node.position
            for stamps in (("last_in", "up"), ("down", "done"))]
    found = [deviation(seconds) for seconds in work if len(seconds) > 2]
    return statistics.median(found) if found else None


def run_step(options, directory, point):
    for old in pathlib.Path(directory).glob(records.NAME):
        old.unlink()
    argv = ["srun", "-Q", "-K", "--mpi=pmi2x", f"-N{point.nodes}",
            f"--ntasks-per-node={point.per_node}",
            f"-n{point.nodes * point.per_node}", *options.srun_option,
            f"{options.programs}/sim-rank", str(point.bytes),
            str(options.rounds),
            f"group={point.per_node}" if point.op == "group" else point.op]
    output(argv, options.timeout, named(point), env={
        "PMI2X_TRACE": directory, "PMI2X_TREE_WIDTH": f"{options.width}"})
    paths = list(pathlib.Path(directory).glob(records.NAME))
    if len(paths) != 1:
        raise BenchError(f"{named(point)}: srun has left {len(paths)} traces in {directory}")
    trace = records.Trace(paths[0], paths[0].read_text().splitlines())
    rows = totals(trace, point.op)
    if len(trace.nodes) != point.nodes or len(rows) != options.rounds:
        raise BenchError(f"{named(point)}: the trace is not whole: "
                         f"{'; '.join(trace.notes)}")
    return rows, service_of(trace, point, options.width)


def measure_once(options, directory, point):
    before, at = busy_seconds(), os.times().elapsed
    rows, service = run_step(options, directory, point)
    busy = (busy_seconds() - before) / max(os.times().elapsed - at, 0.01) / os.cpu_count()
    counts = {row[:2] for row in rows}
    if len(counts) != 1:
        raise BenchError(f"{named(point)}: rounds differ: {sorted(counts)}")
    ends = [row[2] * 1e-9 for row in rows[SKIPPED - 1:]]
    rounds = [max(b - a, 1e-9) for a, b in zip(ends, ends[1:])]
    return Result(*counts.pop(), [rounds], busy, service)


def middle(values):
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def join(results):
    """One result of several repeats."""
    if len({r[:2] for r in results}) != 1:
        raise BenchError("messages or bytes of repeats differ")
    return results[0]._replace(repeats=[rounds for r in results for rounds in r.repeats],
                               busy=middle(r.busy for r in results),
                               service=middle(r.service for r in results))


def measure(options, directory, point):
    return join([measure_once(options, directory, point) for _ in range(options.repeats)])


# ---- CSV ----


def row(use, point, found, model):
    """model: a prediction, or messages and bytes only."""
    time = getattr(model, "time", None)
    rest = ["", "", "", ""] if time is None else [
        f"{time:.9f}", f"{time / time_of(found) - 1:.4f}", f"{model.low:.9f}",
        f"{model.high:.9f}"]
    rounds = "; ".join(" ".join(f"{s * 1e6:.0f}" for s in rounds)
                       for rounds in found.repeats)
    return [use, *point, found.messages, model.messages, found.bytes, model.bytes,
            f"{time_of(found):.9f}", *rest,
            *("" if v is None else f"{v:.3f}" for v in (found.busy, found.service)), rounds]


def repeats_of(fields):
    """Older files have the time only."""
    text = fields["rounds_us"]
    return [[float(us) * 1e-6 for us in rounds.split()] for rounds in text.split(";")
            ] if text else [[fields["time_s"]]]


def read(path):
    """{point: result} of what --csv has written."""
    rows, _ = FORM.read([path], "--measured ")
    return {Point(r["nodes"], r["ranks_per_node"], r["op"], r["bytes"]):
            Result(r["messages"], r["sent"], repeats_of(r), r["busy"], r["service"]) for _, r in rows}
