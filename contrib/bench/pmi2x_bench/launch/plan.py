# SPDX-License-Identifier: BSD-3-Clause
"""Which source does what, known before anything is started."""

import collections

from ..errors import BenchError

from . import matrix

# One planned figure; with a reason it is not measured.
Cell = collections.namedtuple("Cell", "source test config method reason")
NOWHERE = "-"  # in place of a source that could


class Plan:
    """slurm: the source that is a Slurm, or None; beyond: sources for what that
    does not hold, or with `everywhere` for all."""

    def __init__(self, slurm, beyond, everywhere=False):
        self.slurm, self.beyond, self.everywhere = slurm, beyond, everywhere
        self.cells = []

    def sources(self, test, config):
        """The sources that can start a configuration, and why others cannot."""
        found, reasons = [], []
        sources = ([self.slurm] if self.slurm else []) + self.beyond
        for source in sources:
            if found and found[0] is self.slurm and not self.everywhere:
                break
            reason = source.room(test, config)
            if reason:
                reasons.append(f"{source.label}: {reason}")
            else:
                found.append(source)
        return found, reasons

    def add(self, tests, configs, methods):
        for config in configs:
            for test in tests:
                found, reasons = self.sources(test, config)
                for method in methods:
                    self.add_cells(test, config, method, found, reasons)

    def add_cells(self, test, config, method, found, reasons):
        """A method that none of them can is one cell, with all reasons."""
        why = list(reasons)
        for source in found:
            reason = source.cannot(test, method)
            if reason:
                why.append(f"{source.label}: {reason}")
            else:
                self.cells.append(Cell(source, test, config, method, ""))
        if len(why) == len(reasons) + len(found):
            reason = "; ".join(dict.fromkeys(why))
            self.cells.append(Cell(None, test, config, method, reason))

    def measured(self):
        return [cell for cell in self.cells if not cell.reason]

    def skipped(self):
        return [cell for cell in self.cells if cell.reason]

    def drop(self, applies, reason):
        """Drop cells for which applies(cell) holds: they have failed."""
        self.cells = [
            cell._replace(reason=f"{cell.source.label}: {reason}")
            if not cell.reason and applies(cell)
            else cell
            for cell in self.cells
        ]

    def drop_method(self, method, reason):
        self.drop(
            lambda c: c.source is self.slurm and c.method == method, reason
        )

    def drop_trial(self, trial, reason):
        self.drop(lambda c: (c.source, c.test, c.method) == trial, reason)

    def trials(self):
        """{(source, test, method): config}: the smallest to try it with, on
        two nodes if it has as many."""
        found = {}
        for cell in self.measured():
            key = cell.source, cell.test, cell.method
            small = min(cell.config[0], 2), cell.config[1]
            found[key] = min(found.get(key, small), small, key=ranks_of)
        return found

    def uses_slurm(self):
        return any(cell.source is self.slurm for cell in self.measured())

    def check(self, lists, asked):
        """Raises when nothing can be had, or nothing of what was asked for by
        name. lists: {option: what it names}; asked: the options given."""
        if not self.measured():
            raise BenchError(self.skipped()[0].reason)
        for option in asked:
            field = option.removesuffix("s")
            have = {getattr(cell, field) for cell in self.measured()}
            for item in lists[option]:
                if item not in have:
                    raise BenchError(self.complaint(option, field, item))

    def complaint(self, option, field, item):
        reasons = [
            cell.reason
            for cell in self.skipped()
            if getattr(cell, field) == item
        ]
        name = matrix.named(item) if option == "configs" else item
        return f"--{option}: {name}: {reasons[0]}"


def ranks_of(config):
    return config[0] * config[1]
