# SPDX-License-Identifier: BSD-3-Clause
"""What the simulator says of a collective with given costs."""

import collections
import concurrent.futures
import functools
import os
import statistics

from .. import record
from ..errors import BenchError
from ..run import output
from .points import SKIPPED, named, typical

SHARE_SENT = 0.4  # of a message's processor time is for sending; the rest, receiving
SHARE_ENTER = 0.2  # share of a rank's time
ROUNDS = 4  # simulated ones behind those that are skipped
RUNS = 40  # of a prediction: four are below its interval, four above it
ONLY = {"answer": "ring", "read": "allgather"}  # costs of one operation

# Seconds; see FIELDS of pmi2x-sim-scenario(5). spread and drift: percent.
Costs = collections.namedtuple("Costs", "step message resume rank answer byte read")
Noise = collections.namedtuple("Noise", "spread drift")
NO_NOISE = Noise(0, 0)
Model = collections.namedtuple("Model", "messages bytes time low high")


def picoseconds(pairs):
    return [f"{name} = {value * 1e12:.0f}ps" for name, value in pairs.items()]


def sections(costs, noise, cores):
    """The lines of a calibration: sections of a scenario."""
    network = {"latency": costs.step, "hop_latency": 0, "global_latency": 0, "gap": 0,
               "byte_gap": 0, "send": costs.message * SHARE_SENT,
               "receive": costs.message * (1 - SHARE_SENT)}
    node = {"resume": costs.resume, "enter": costs.rank * SHARE_ENTER,
            "wake": costs.rank * (1 - SHARE_ENTER), "answer": costs.answer,
            "read": costs.read, "copy": costs.byte, "combine": costs.byte, "publish": costs.byte}
    return ["[network]", "topology = flat", *picoseconds(network), "[node]",
            f"cores = {cores}", f"spread = {noise.spread:.0f}",
            f"drift = {noise.drift:.0f}", *picoseconds(node)]


def read_calibration(options):
    """The lines of a file that pmi2x sim calibrate wrote."""
    path = options.calibration
    try:
        with open(path) as file:
            lines = file.read().splitlines()
    except (OSError, ValueError) as error:
        raise BenchError(f"--calibration: {path}: {error}") from None
    # The simulator checks it, and names the file and the line.
    output([options.sim, "--quiet", "--calibration", path, "--runs", 2, "--nodes", 2],
           what="--calibration")
    return lines


def scenario(options, point, machine, seed):
    what = "group 1" if point.op == "group" else f"{point.op} {point.bytes}"
    rounds = SKIPPED + ROUNDS
    lines = ["[step]", f"nodes = {point.nodes}", f"seed = {seed}",
             f"ranks_per_node = {point.per_node}", "key_bytes = 16",
             f"tree_width = {options.width}", *machine,
             "[operations]", f"run = {what} times {rounds}"]
    if point.op == "group":
        # As in sim-rank: else who is in no group is gone before it ends.
        lines += [f"run = fence {point.bytes}"]
    return "\n".join(lines)


def needed(point, machine):
    """Without costs of other operations, so that equal simulations are recognised."""
    return [line for line in machine
            if ONLY.get(line.partition(" = ")[0], point.op) == point.op]


@functools.lru_cache(maxsize=4096)
def run(program, what, text):
    return output([program, "--quiet", "--csv", "-", "-"], what=what, text=text)[0]


def rows_of(options, point, machine, seed=1):
    """The rows of its rounds."""
    text = run(options.sim, named(point),
               scenario(options, point, needed(point, machine), seed))
    return list(record.rows_of(text.splitlines()))[:SKIPPED + ROUNDS]


def rounds_of(rows):
    """Seconds of each round behind those that are skipped."""
    ends = [float(r["last_exit_s"]) for r in rows[SKIPPED - 1:]]
    return [b - a for a, b in zip(ends, ends[1:])]


def simulate(options, point, machine, seed=1):
    return typical(rounds_of(rows_of(options, point, machine, seed)))


def all_of(call, items):
    """[call(item)] on all processors."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(call, items))


def differ(machine):
    """True: runs with other random numbers take other times."""
    found = dict(line.split(" = ") for line in machine if line.count(" = ") == 1)
    return any(found.get(name, "0") != "0" for name in ("spread", "drift"))


def predict(options, point, machine):
    """The median of some runs, and an interval with 80 % of them."""
    rows = rows_of(options, point, machine)
    times = [typical(rounds_of(rows))]
    if differ(machine):
        times += all_of(lambda seed: simulate(options, point, machine, seed),
                        range(2, options.runs + 1))
    times.sort()
    out = len(times) // 10
    return Model(int(rows[0]["messages"]), int(rows[0]["bytes"]), statistics.median(times),
                 times[out], times[-1 - out])
