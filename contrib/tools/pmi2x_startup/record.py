# SPDX-License-Identifier: BSD-3-Clause
"""Results as CSV, written as they come, and back."""

import csv
import re

from pmi2x_bench.errors import BenchError
from pmi2x_bench.matrix import Peer

from .matrix import TESTS
from .report import Key, Results
from .sources import LABELS

COLUMNS = (
    "test method client nodes ranks_per_node ranks source repeat seconds "
    "cpu_seconds outcome reason"
).split()
OUTCOMES = ("ok", "failed", "skipped")


def one_line(text):
    return " / ".join(line.strip() for line in text.splitlines())


class Writer:
    """Every row is in the file at once: a program that is killed leaves what it
    had. notes: {name: text}, comments at the beginning; file may be None."""

    def __init__(self, file, notes):
        self.file = file
        if file:
            for name, text in notes.items():
                file.write(f"# {name}: {text}\n")
            self.row(COLUMNS)

    def row(self, words):
        csv.writer(self.file, lineterminator="\n").writerow(words)
        self.file.flush()

    def add(self, key, repeat, seconds, busy, outcome, reason=""):
        if not self.file:
            return
        nodes, per_node = key.config
        head = [key.test, *key.method, nodes, per_node, nodes * per_node]
        times = [
            f"{seconds:.9f}" if seconds is not None else "",
            f"{busy:.2f}" if busy is not None else "",
        ]
        self.row(
            [*head, key.source, repeat, *times, outcome, one_line(reason)]
        )


def key_of(row):
    if row["test"] not in TESTS:
        raise ValueError(f"there is no test '{row['test']}'")
    if row["outcome"] not in OUTCOMES:
        raise ValueError(f"there is no outcome '{row['outcome']}'")
    if row["source"] not in LABELS and row["outcome"] == "ok":
        raise ValueError(f"there is no source '{row['source']}'")
    config = int(row["nodes"]), int(row["ranks_per_node"])
    method = Peer(row["method"], row["client"])
    return Key(row["source"], row["test"], config, method)


def add_row(results, row, source):
    key = key_of(row)
    if row["outcome"] == "ok":
        repeat = f"{source}-{row['repeat']}"
        results.add(key, repeat, float(row["seconds"]))
    elif row["outcome"] == "failed":
        results.fail(key, row["reason"])
    else:
        results.skip(key, row["reason"])


def read_one(path, results, notes):
    with open(path, newline="") as file:
        lines = file.read().splitlines()
    for line in lines:
        match = re.match(r"# (\w+): (.*)", line)
        if match:
            notes.setdefault(match[1], match[2])
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    if rows.fieldnames != COLUMNS:
        raise BenchError(f"{path} is no CSV file of this pmi2x-startup")
    for row in rows:
        add_row(results, row, path)


def read(paths):
    """Results of several files together, and their notes."""
    results, notes = Results(), {}
    for path in paths:
        try:
            read_one(path, results, notes)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BenchError(f"{path}: {error}") from None
    return results, notes
