# SPDX-License-Identifier: BSD-3-Clause
"""Results as CSV, and back: every single time, and where it was measured."""

import csv
import os
import platform
import re

from . import layout
from .errors import BenchError
from .matrix import OPS, PHASES, Peer, Point
from .report import Results
from .steps import Sample

COLUMNS = (
    "op mpi variant nodes ranks_per_node layout ranks bytes repeat round phase "
    "seconds part_seconds wait_seconds clock puts wall_seconds cpu_seconds"
).split()


def machine():
    """What the times of one machine depend on, in a line."""
    model, memory = platform.machine(), ""
    with open("/proc/cpuinfo") as file:
        found = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
        model = found[1].strip() if found else model
    with open("/proc/meminfo") as file:
        kb = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1])
        memory = f"{kb / 2**20:.0f} GiB"
    cores = len(os.sched_getaffinity(0))
    return f"{cores} x {model}, {memory}, Linux {platform.release()}"


def sample_rows(point, peer, sample):
    head = [point.op, *peer, point.nodes, point.per_node, point.layout]
    head += [point.ranks, point.bytes, sample.repeat]
    busy = "" if sample.busy is None else f"{sample.busy:.2f}"
    tail = [sample.clock, sample.puts, f"{sample.wall:.3f}", busy]
    phases = {**sample.phases, "": sample.times}
    for i in range(len(sample.times)):
        for name in PHASES.get(point.op, ("",)):
            extra = [
                row[i] if not name and i < len(row) and title else ""
                for row, title in (
                    (sample.parts, OPS[point.op].part),
                    (sample.waits, OPS[point.op].wait),
                )
            ]
            yield [*head, i + 1, name, f"{phases[name][i]:.9f}", *extra, *tail]


class RowWriter:
    """Writes rows as they come, and at once: a program that is killed leaves
    what it had. notes: {name: text}, kept as comments at the beginning."""

    def __init__(self, file, notes, columns):
        """file: None when nothing is to be written."""
        self.file = file
        if file:
            for name, text in notes.items():
                file.write(f"# {name}: {text}\n")
            self.rows([columns])

    def rows(self, rows):
        try:
            csv.writer(self.file, lineterminator="\n").writerows(rows)
            self.file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.file.name) from None


class Writer(RowWriter):
    """Of samples."""

    def __init__(self, file, notes):
        super().__init__(file, notes, COLUMNS)

    def add(self, point, peer, sample):
        if self.file:
            self.rows(sample_rows(point, peer, sample))


def number(text):
    return float(text) if text else None


def add_row(results, steps, source, row):
    point = Point(
        row["op"],
        int(row["nodes"]),
        int(row["ranks_per_node"]),
        layout.parse(row["layout"]),
        int(row["bytes"]),
    )
    peer = Peer(row["mpi"], row["variant"])
    key = source, point, peer, row["repeat"]
    if key not in steps:
        sample = Sample(row["clock"], row["puts"], float(row["wall_seconds"]))
        sample.repeat = f"{source}-{row['repeat']}"
        sample.busy = number(row["cpu_seconds"])
        steps[key] = sample
        results.add(point, peer, sample)
    sample, value = steps[key], float(row["seconds"])
    if row["phase"]:
        sample.phases.setdefault(row["phase"], []).append(value)
        return
    sample.times.append(value)
    for column, into in ("part_seconds", sample.parts), (
        "wait_seconds",
        sample.waits,
    ):
        if row[column]:
            into.append(float(row[column]))


def read_rows(path, columns, program, notes):
    """The rows of a file that RowWriter has written; its notes go into notes."""
    with open(path, newline="") as file:
        lines = file.read().splitlines()
    for line in lines:
        match = re.match(r"# (\w+): (.*)", line)
        if match:
            notes[match[1]] = match[2]
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    if rows.fieldnames != columns:
        raise BenchError(f"{path} is no CSV file of this {program}")
    return rows


def add_notes(notes, parts, of_file):
    """parts, operations or tests, come from this file, too. notes: {part:
    {name: text}}, a line for each file that says something else."""
    for part in parts:
        texts = notes.setdefault(part, {})
        for name, text in of_file.items():
            lines = texts.get(name, "").splitlines()
            if text not in lines:
                texts[name] = "\n".join([*lines, text])


def read(paths):
    """Results of several files together, and the notes on each operation."""
    results, steps, notes = Results([], []), {}, {}
    for path in paths:
        ops, of_file = set(), {}
        try:
            for row in read_rows(path, COLUMNS, "pmi2x bench collectives", of_file):
                add_row(results, steps, path, row)
                ops.add(row["op"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BenchError(f"{path}: {error}") from None
        add_notes(notes, ops, of_file)
    results.points = list(dict.fromkeys(p for p, _ in results.samples))
    results.peers = list(dict.fromkeys(q for _, q in results.samples))
    return results, notes
