# SPDX-License-Identifier: BSD-3-Clause
"""The look-up study: time of a look-up against reading processes."""

import os
import statistics

from . import limits, plot, record
from .command import Progress
from .errors import BenchError
from .run import output

METHODS = {
    "rwlock": "pthread rwlock (figure 3)",
    "2n": "2N mutexes (figure 4)",
    "none": "no lock (bound)",
    "pmi2x": "pmi2x: immutable generations",
}
READERS_MAX = 4096
READER_KB = 512  # an estimate, on the safe side
COLUMNS = (
    "method readers rate keys bytes repeat lookups cpu_ns wall_ns torn "
    "updates update_us"
).split()
SLACK_S = 60  # beyond the measured time, on a busy machine


# ---- before anything starts ----


def check_memory(options, readers):
    free = limits.available_kb()
    image = options.keys * (options.bytes + 64) * 4 // 1024
    need = image + readers * (READER_KB + options.keys * 4 // 1024)
    if free < need:
        raise BenchError(
            f"{readers} readers of {options.keys} keys need about "
            f"{need // 1024} MB of memory, {free // 1024} MB are free; ask for fewer")


def check_plot(path):
    try:
        plot.load()
    except BenchError as error:
        raise BenchError(f"--plot: {error}; --csv needs nothing") from None
    if os.path.splitext(path)[1] not in plot.KINDS:
        raise BenchError(f"--plot: {path} does not end in .svg, .png or .pdf")
    with open(path, "a"):
        pass


def check(options):
    readers = max(options.readers)
    limits.check_processes(f"a study of {readers} readers", readers + 256)
    check_memory(options, readers)
    if options.plot:
        check_plot(options.plot)


# ---- measuring ----


def measure(options, method, readers, rate):
    """{name: text} of the line that the program prints."""
    argv = [os.path.join(options.programs, "lookup"), "-m", method, "-r", readers]
    argv += ["-w", rate, "-k", options.keys, "-b", options.bytes, "-t", options.ms]
    what = f"{method}, {readers} readers, {rate} updates/s"
    words = output(argv, options.ms / 1000 + SLACK_S, what)[0].split()
    if words[:1] != ["result"]:
        raise BenchError(f"{what}: no result")
    return dict(word.partition("=")[::2] for word in words[1:])


def study(options, file, notes):
    """Rows, {column: text}. The methods take turns, so that a busy moment hits all
    of them."""
    points = [(w, r) for w in options.rates for r in options.readers]
    total = len(points) * len(options.methods) * options.repeats
    progress, rows = Progress(total, options.quiet), []
    writer = record.Writer(file, notes, COLUMNS)
    try:
        for repeat in range(1, options.repeats + 1):
            for rate, readers in points:
                for method in options.methods:
                    progress.step(f"{method}, {readers} readers, {rate} updates/s")
                    found = measure(options, method, readers, rate)
                    rows.append({**found, "repeat": f"{repeat}"})
                    writer.rows([[rows[-1][name] for name in COLUMNS]])
    finally:
        progress.end()
    return rows


# ---- showing ----


def values_of(rows, column, **where):
    return [
        float(row[column])
        for row in rows
        if all(row[name] == str(value) for name, value in where.items())
    ]


def median(rows, column, **where):
    return statistics.median(values_of(rows, column, **where))


def table(options, rows):
    """Lines."""
    for rate in options.rates:
        writer = f"{rate} updates a second" if rate else "no writer"
        yield f"\n{writer}: CPU time of one look-up, ns (against no lock)"
        yield f"{'readers':>7}" + "".join(f"{m:>16}" for m in options.methods)
        for readers in options.readers:
            medians = {m: median(rows, "cpu_ns", method=m, readers=readers, rate=rate)
                       for m in options.methods}
            base, line = medians.get("none"), f"{readers:7}"
            for value in medians.values():
                ratio = f"({value / base:.2f}x)" if base else ""
                line += f"{value:7.0f} {ratio:>8}"
            yield line
        if rate:
            yield from writer_lines(options, rows, rate)


def writer_lines(options, rows, rate):
    yield "updates done, and the mean time of one; torn values:"
    wanted = rate * options.ms / 1000
    for method in options.methods:
        parts = []
        for readers in options.readers[0], options.readers[-1]:
            where = {"method": method, "rate": rate, "readers": readers}
            parts.append(f"{readers} readers: "
                         f"{median(rows, 'updates', **where) / wanted:4.0%}, "
                         f"{median(rows, 'update_us', **where):.1f} us")
        torn = sum(values_of(rows, "torn", method=method, rate=rate))
        yield f"  {method:8}" + "; ".join(parts) + f"; torn: {torn:.0f}"


def cores_lines(options):
    cores = len(os.sched_getaffinity(0))
    if max(options.readers) > cores:
        yield (
            f"\nThis process may use {cores} CPUs: with more readers than "
            "that (and the writer) they take turns, and contention between "
            "cores is less than on a machine that has them.")


def draw_panel(axes, options, rows, column, rate):
    for i, method in enumerate(options.methods):
        samples = [
            values_of(rows, column, method=method, readers=r, rate=rate)
            for r in options.readers
        ]
        middle = [statistics.median(s) for s in samples]
        color = f"C{list(METHODS).index(method)}"
        spread = [min(s) for s in samples], [max(s) for s in samples]
        plot.curve(axes, options.readers, middle, i, spread, color=color,
                         label=METHODS[method])
    plot.sizes_across(axes, options.readers)
    if column == "cpu_ns":
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")


def draw(options, rows, path):
    figure, panels = plot.panels(
        2, len(options.rates), (5.5 * len(options.rates), 8),
        squeeze=False, sharex=True, sharey="row",
    )
    kinds = ("cpu_ns", "CPU time"), ("wall_ns", "time by the clock")
    for panel, (column, title) in zip(panels, kinds):
        for axes, rate in zip(panel, options.rates):
            draw_panel(axes, options, rows, column, rate)
            axes.set_title(f"{rate} updates/s" if rate else "no writer")
        panel[0].set_ylabel(f"{title} of one look-up, ns")
    for axes in panels[-1]:
        axes.set_xlabel("reading processes")
    panels[0][0].legend()
    plot.save(figure, path)
