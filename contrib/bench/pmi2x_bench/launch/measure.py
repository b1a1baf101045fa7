# SPDX-License-Identifier: BSD-3-Clause
"""Carries out a plan: a trial of everything, then the repeats."""

import sys

from ..command import Progress
from ..errors import BenchError

from . import matrix, plan, programs, record, report, sources


def key_of(cell):
    label = cell.source.label if cell.source else plan.NOWHERE
    return report.Key(label, cell.test, cell.config, cell.method)


class Measuring:
    """Carries out a plan; what comes of it is in results and in the file."""

    def __init__(self, options, planned, writer):
        self.options, self.planned, self.writer = options, planned, writer
        self.results = report.Results()
        self.late = {}  # {(source, test, method): its smallest that was late}

    def write(self, *row):
        self.writer.rows([record.row(*row)])

    def skip(self, cell):
        self.results.skip(key_of(cell), cell.reason)
        self.write(key_of(cell), 0, "skipped", cell.reason)

    def fail(self, cell, repeat, text):
        self.results.fail(key_of(cell), text)
        self.write(key_of(cell), repeat, "failed", text)

    def try_all(self):
        """A small step of each kind: it warms up, and shows what cannot be."""
        trials = self.planned.trials()
        progress = Progress(len(trials), self.options.quiet)
        try:
            for trial, config in trials.items():
                source, test, method = trial
                progress.step(f"trial of {test}, {method}, {source.label}")
                self.try_one(plan.Cell(source, test, config, method, ""), trial)
        finally:
            progress.end()

    def try_one(self, cell, trial):
        try:
            cell.source.measure(
                cell.test,
                cell.config,
                cell.method,
                min(self.options.trial_timeout, self.options.timeout),
            )
        except programs.Alone as error:
            self.planned.drop_trial(trial, str(error))
        except BenchError as error:
            self.fail(cell, 0, str(error))
            self.planned.drop_trial(trial, "its trial has failed")

    def is_hopeless(self, cell):
        """True: a launch of this kind with no more ranks was late, and this one would
        be."""
        late = self.late.get((cell.source, cell.test, cell.method))
        if not late or plan.ranks_of(cell.config) < plan.ranks_of(late):
            return False
        if cell.config != late and key_of(cell) not in self.results.skips:
            reason = f"{matrix.named(late)} was not done in time (--timeout)"
            self.skip(cell._replace(reason=f"{cell.source.label}: {reason}"))
        return True

    def measure(self, cell, repeat, progress):
        progress.step(
            f"{cell.test} {matrix.named(cell.config)}, {cell.method}, "
            f"{cell.source.label}, repeat {repeat}"
        )
        if self.is_hopeless(cell):
            return
        try:
            sample = cell.source.measure(
                cell.test, cell.config, cell.method, self.options.timeout
            )
        except BenchError as error:
            self.fail(cell, repeat, str(error))
            if isinstance(error, sources.Late):
                trial = cell.source, cell.test, cell.method
                self.late.setdefault(trial, cell.config)
            return
        sample.repeat = repeat
        self.results.add(key_of(cell), sample)
        (seconds,) = sample.times
        self.write(key_of(cell), repeat, "ok", "", seconds, sample.busy)

    def measure_all(self):
        """Measure everything once, then everything again: an interrupted run has every
        size, with fewer repeats."""
        cells = self.planned.measured()
        repeats = self.options.repeats
        progress = Progress(len(cells) * repeats, self.options.quiet)
        try:
            for repeat in range(1, repeats + 1):
                for cell in cells:
                    self.measure(cell, repeat, progress)
        finally:
            progress.end()

    def run(self):
        try:
            self.try_all()
            for cell in self.planned.skipped():
                self.skip(cell)
            self.measure_all()
        except KeyboardInterrupt:
            print("\ninterrupted; what there is so far:", file=sys.stderr)
            return 130
        except OSError as error:  # an error of --csv, or of this machine
            print(f"\n{error}; what there is so far:", file=sys.stderr)
            return 2
        return 1 if self.results.failures else 0


