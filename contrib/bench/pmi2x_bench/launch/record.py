# SPDX-License-Identifier: BSD-3-Clause
"""Results as CSV, written as they come, and back."""

from .. import record
from ..matrix import Peer
from ..record import number, one_of
from .matrix import TESTS
from .plan import NOWHERE
from .report import Key, Results
from .sources import LABELS

FORM = record.Form(
    "pmi2x bench launch", "test", test=one_of("test", TESTS), method=str, client=str,
    nodes=int, ranks_per_node=int, ranks=int,
    source=one_of("source", [*LABELS, NOWHERE]), repeat=str, seconds=number,
    cpu_seconds=number, outcome=one_of("outcome", ["ok", "failed", "skipped"]),
    reason=str)


def one_line(text):
    return " / ".join(line.strip() for line in text.splitlines())


def row(key, repeat, outcome, reason="", seconds=None, busy=None):
    nodes, per_node = key.config
    return [key.test, *key.method, nodes, per_node, nodes * per_node, key.source, repeat,
            f"{seconds:.9f}" if seconds is not None else "",
            f"{busy:.2f}" if busy is not None else "", outcome, one_line(reason)]


def read(paths):
    """Results of several files together, and the notes on each test."""
    found, notes = FORM.read(paths)
    results = Results()
    for path, row_ in found:
        config = row_["nodes"], row_["ranks_per_node"]
        method = Peer(row_["method"], row_["client"])
        key = Key(row_["source"], row_["test"], config, method)
        if row_["outcome"] == "ok":
            repeat = f"{path}-{row_['repeat']}"
            results.add(key, record.Sample([row_["seconds"]], repeat))
        elif row_["outcome"] == "failed":
            results.fail(key, row_["reason"])
        else:
            results.skip(key, row_["reason"])
    return results, notes
