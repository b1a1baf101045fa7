# SPDX-License-Identifier: BSD-3-Clause
"""Results in memory, and as CSV: every single value, and where it was measured. All
CSV files of pmi2x begin with their notes, in lines that begin with #."""

import csv
import os
import platform
import re
import statistics

from .errors import BenchError


class Sample:
    """The measurements of one run. times: seconds, or another unit; busy: CPU seconds
    of this machine meanwhile, or None."""

    def __init__(self, times, repeat=1, busy=None):
        self.times, self.repeat, self.busy = times, repeat, busy


class Results:
    """Samples, texts of failures and reasons for nothing, by key, in the order in
    which they came."""

    def __init__(self):
        self.samples, self.failures, self.skips = {}, {}, {}

    def add(self, key, sample):
        self.samples.setdefault(key, []).append(sample)

    def fail(self, key, text):
        self.failures.setdefault(key, []).append(text)

    def skip(self, key, reason):
        self.skips[key] = reason

    def of(self, key):
        return self.samples.get(key, [])

    def values(self, key, field="times", place=None):
        """The values of all samples; place: those at one place of each."""
        rows = [getattr(sample, field) for sample in self.of(key)]
        return [value for row in rows
                for value in (row if place is None else row[place : place + 1])]

    def median(self, *what):
        values = self.values(*what)
        return statistics.median(values) if values else None

    def pairs(self, key, other):
        """Median times of both, of the same repeat."""
        theirs = {s.repeat: statistics.median(s.times) for s in self.of(other)}
        return [(statistics.median(s.times), theirs[s.repeat])
                for s in self.of(key) if s.repeat in theirs]

    def keys(self):
        """The keys of samples and failures."""
        return list(dict.fromkeys([*self.samples, *self.failures]))


# ---- the machine ----


def machine():
    """A line with the facts about the machine on which its times depend."""
    with open("/proc/cpuinfo") as file:
        found = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    model = found[1].strip() if found else platform.machine()
    with open("/proc/meminfo") as file:
        kb = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1])
    cores = len(os.sched_getaffinity(0))
    return f"{cores} x {model}, {kb / 2**20:.0f} GiB, Linux {platform.release()}"


# ---- CSV ----


def rows_of(lines):
    """{column: text} of each row; notes are no rows."""
    return csv.DictReader(line for line in lines if not line.startswith("#"))


def number(text):
    """A column's type: a number, or nothing."""
    return float(text) if text else None


def one_of(what, names):
    """A column's type: one of some words."""

    def parse(text):
        if text not in names:
            raise ValueError(f"there is no {what} {text}")
        return text

    return parse


class Writer:
    """Writes rows as they come, and at once: a program that is killed leaves
    what it had. notes: {name: text}."""

    def __init__(self, file, notes, columns):
        """file: None when nothing is to be written."""
        self.file = file
        if file:
            file.writelines(f"# {name}: {text}\n" for name, text in notes.items())
        self.rows([columns])

    def rows(self, rows):
        if not self.file:
            return
        try:
            csv.writer(self.file, lineterminator="\n").writerows(rows)
            self.file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.file.name) from None


class Form:
    """The columns of a program's CSV files, {name: type}. part: the column that says
    which operation or test a row is about, or None."""

    def __init__(self, program, part, **columns):
        self.program, self.part, self.columns = program, part, columns

    def writer(self, file, notes):
        return Writer(file, notes, self.columns)

    def row(self, texts):
        if None in texts.values():
            raise ValueError("a row has too few columns")
        return {name: kind(texts[name]) for name, kind in self.columns.items()}

    def read_file(self, path):
        """({column: value} of each row, {name: text} of the notes)"""
        with open(path, newline="") as file:
            lines = file.read().splitlines()
        notes = dict(re.findall(r"^# (\w+): (.*)$", "\n".join(lines), re.M))
        rows = rows_of(lines)
        if rows.fieldnames != list(self.columns):
            raise ValueError(f"this is no CSV file of {self.program}")
        return [self.row(row) for row in rows], notes

    def read(self, paths, option=""):
        """(path and {column: value} of each row, notes on each part) of several files
        together. Notes: {part: {name: text}}, a line for each file that says something
        else. option: what errors begin with."""
        found, notes = [], {}
        for path in paths:
            try:
                rows, of_file = self.read_file(path)
            except (BenchError, OSError, ValueError, csv.Error) as error:
                raise BenchError(f"{option}{path}: {error}") from None
            found += [(path, row) for row in rows]
            for part in {row.get(self.part) for row in rows}:
                add_notes(notes.setdefault(part, {}), of_file)
        return found, notes


def add_notes(notes, more):
    for name, text in more.items():
        lines = notes.get(name, "").splitlines()
        if text not in lines:
            notes[name] = "\n".join([*lines, text])
