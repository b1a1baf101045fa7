# SPDX-License-Identifier: BSD-3-Clause
"""Results as CSV, written as they come, and back."""

from ..errors import BenchError
from ..matrix import Peer
from ..record import RowWriter, add_notes, read_rows

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


class Writer(RowWriter):
    """Of launches."""

    def __init__(self, file, notes):
        super().__init__(file, notes, COLUMNS)

    def add(self, key, repeat, seconds, busy, outcome, reason=""):
        if not self.file:
            return
        nodes, per_node = key.config
        head = [key.test, *key.method, nodes, per_node, nodes * per_node]
        times = [
            f"{seconds:.9f}" if seconds is not None else "",
            f"{busy:.2f}" if busy is not None else "",
        ]
        row = [*head, key.source, repeat, *times, outcome, one_line(reason)]
        self.rows([row])


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


def read(paths):
    """Results of several files together, and the notes on each test."""
    results, notes = Results(), {}
    for path in paths:
        tests, of_file = set(), {}
        try:
            for row in read_rows(path, COLUMNS, "pmi2x bench launch", of_file):
                add_row(results, row, path)
                tests.add(row["test"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BenchError(f"{path}: {error}") from None
        add_notes(notes, tests, of_file)
    return results, notes
