# SPDX-License-Identifier: BSD-3-Clause
"""Command-line functions that the benchmarks share."""

import argparse
import contextlib
import os
import shlex
import signal
import sys
import time

from .errors import BenchError

LINE_MOST = 118  # characters of the progress line


def count(low, high):
    """An argparse type: a whole number within these limits."""

    def parse(text):
        if not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"'{text}' is not within {low} to {high}"
            )
        return int(text)

    return parse


def counts(low, high):
    """Several such numbers, with commas."""
    number = count(low, high)
    return lambda text: [number(word) for word in text.split(",")]


def shown(program):
    """The command line that repeats the measurements."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in "programs", "libraries", "plugindir", "csv", "svg", "png", "plot":
        parser.add_argument(f"--{name}", action="append")
    words = parser.parse_known_args(sys.argv[1:])[1]
    return " ".join([program, *map(shlex.quote, words)])


def stop(number, frame):
    """Unwind, so that what was started is ended."""
    sys.exit(128 + number)


def unwind_on_signals():
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)


def run(name, parse, work):
    """The exit status of work(options), with what it stops with on standard error."""
    options = parse()
    unwind_on_signals()
    try:
        return work(options)
    except (BenchError, OSError) as error:
        report_error(name, error)
    except KeyboardInterrupt:
        return 130
    return 2


# ---- options that several commands have ----


def parser(name, version, text):
    made = argparse.ArgumentParser(prog=name, allow_abbrev=False, description=text)
    made.add_argument("--version", action="version", version=f"{name} {version}")
    return made


def add_output_options(add):
    add("--csv", metavar="FILE", help="write every value to FILE as soon as it is measured")
    add("--svg", metavar="DIR", help="write plots to DIR")
    add("--png", metavar="DIR", help="the same, as PNG")
    add("--markdown", action="store_true", help="print the tables as Markdown")
    add("--table", nargs="+", metavar="CSV",
        help="measure nothing: print the tables (and write --svg, --png) of files that "
        "--csv wrote earlier")
    add("-q", "--quiet", action="store_true", help="no progress line")


def add_srun_options(add):
    add("--srun-option", action="append", default=[], metavar="OPTION",
        help="pass an option to srun, e.g. --srun-option=--overcommit; may be repeated")
    add("--timeout", type=count(1, 86400), default=600, metavar="SECONDS",
        help="time limit of a step (%(default)s)")


def add_places(add, **paths):
    """The directories of an installation; paths: {option: directory}"""
    add("--plugindir", action="append", default=[], metavar="DIR",
        help="with --private: look for plugins in DIR first (that of pmi2x)")
    for name, path in paths.items():
        add(f"--{name}", default=path, help=argparse.SUPPRESS)


def choose_plugins(options, installed):
    if not options.plugindir and os.path.isdir(installed):
        options.plugindir = [installed]


# ---- what is written ----


def open_csv(path):
    """A context of the file; of None without a path."""
    if not path:
        return contextlib.nullcontext()
    try:
        return open(path, "w", newline="")
    except OSError as error:
        raise BenchError(f"--csv: {error}") from None


def report_error(program, error):
    print(f"{program}: {error}", file=sys.stderr)


def say(lines):
    """Print to standard output. If its reader has closed it, print nothing more, not at
    the exit either."""
    text = "\n".join(lines)
    try:
        if text:
            print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise BenchError(f"standard output: {error}") from None


def say_tables(lines, *more):
    say(["\n".join(lines).strip("\n"), *more])


class Progress:
    """A progress line, written over on a terminal; elsewhere a line for each step."""

    def __init__(self, total, quiet):
        self.total, self.done, self.quiet = total, 0, quiet
        self.begin = time.monotonic()
        self.terminal = sys.stderr.isatty()

    def step(self, what):
        self.done += 1
        if self.quiet:
            return
        text = f"{self.done}/{self.total} {what}"
        if self.done > 1:
            spent = time.monotonic() - self.begin
            left = spent / (self.done - 1) * (self.total - self.done + 1)
            text += f", about {left:.0f} s left"
        if self.terminal:
            sys.stderr.write(f"\r\033[K{text[:LINE_MOST]}")
            sys.stderr.flush()
        else:
            print(text, file=sys.stderr)

    def end(self):
        if self.terminal and not self.quiet:
            sys.stderr.write("\r\033[K")
