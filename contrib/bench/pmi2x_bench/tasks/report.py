# SPDX-License-Identifier: BSD-3-Clause
"""The measurements: as a table, as CSV and back, and as a plot."""

import os

from .. import plot, record
from ..report import block, show_time
from .rows import COST, OURS, RATE, ROWS, TIME, UNITS

FORM = record.Form(
    "pmi2x bench dvm", None, row=record.one_of("row", ROWS), what=str, round=int,
    nodes=str, value=float, unit=str)
BAR = 0.32  # inches of a plot


def unit_of(row, what):
    return UNITS.get(what, ROWS[row].unit)


def show(value, unit):
    if unit in (TIME, COST):
        return show_time(value).strip()
    text = f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"
    return f"{text} {unit}".strip()


class Results(record.Results):
    """By row and what was measured."""

    def __init__(self):
        super().__init__()
        self.nodes = {}  # {row: nodes}

    def put(self, row, what, number, nodes, value):
        self.add((row, what), record.Sample([value], number))
        self.nodes[row] = nodes

    def speed(self, row, what):
        """How many times as fast as this ours is; None when either is not known."""
        ours, other = self.median((row, OURS)), self.median((row, what))
        if not ours or not other or what == OURS or what in UNITS:
            return None
        return ours / other if ROWS[row].unit == RATE else other / ours

    def whats(self, row):
        return [what for of, what in self.keys() if of == row]

    def rows(self):
        return [row for row in ROWS if self.whats(row)]


def judge(results, row, what):
    """(ratio, bar, whether it is met) as text; what has no bar says nothing."""
    speed, bar = results.speed(row, what), ROWS[row].bars.get(what)
    most, value = ROWS[row].most.get(what), results.median((row, what))
    against = f"{speed:.2f}x" if speed else ""
    if most is not None and value is not None:
        must, good = f"at most {show(most, unit_of(row, what))}", value <= most
    elif bar and speed:
        must, good = f"{bar:.2g}x", speed >= bar
    else:
        return against, "", ""
    return against, must, "ok" if good else "MISSED"


def cells(results, row, what):
    value = results.median((row, what))
    shown = "not done" if value is None else show(value, unit_of(row, what))
    against, must, verdict = judge(results, row, what)
    return {"what": what, "median": shown, "against": against, "must": must,
            "verdict": verdict}


def table(results, markdown):
    """Lines."""
    for row in results.rows():
        nodes = f", {results.nodes[row]} nodes" if results.nodes.get(row) else ""
        found = [cells(results, row, what) for what in results.whats(row)]
        yield from block(f"{row}: {ROWS[row].text}{nodes}", found, markdown)


def missed(results):
    """(row, what) of bars that are not met."""
    return [(row, what) for row, what in results.samples
            if judge(results, row, what)[2] == "MISSED"]


def read(paths):
    """Results of files that were written earlier, and their notes."""
    found, notes = FORM.read(paths)
    results = Results()
    for _, row in found:
        results.put(*list(row.values())[:-1])
    return results, notes.get(None, {})


# ---- plot ----


def draw_row(axes, results, row):
    """A bar for each, the fastest on top where there is an order."""
    from matplotlib.ticker import EngFormatter

    whats = [what for of, what in results.samples if of == row]
    values = [results.median((row, what)) for what in whats]
    colors = ["C0" if what.startswith(OURS) or what not in ROWS[row].bars else "C1"
              for what in whats]
    axes.barh(whats[::-1], values[::-1], color=colors[::-1], height=0.7)
    for at, (what, value) in enumerate(zip(whats[::-1], values[::-1])):
        axes.annotate(show(value, unit_of(row, what)), (value, at), (4, 0),
                      textcoords="offset points", va="center",
                      fontsize=plot.SMALL)
    axes.set_xlim(0, max(values) * 1.2 or 1)
    axes.set_title(f"{row}: {ROWS[row].text}", loc="left", fontsize="medium")
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.set_xlabel(ROWS[row].unit, fontsize="small")
    axes.grid(axis="y", visible=False)


def draw(results, notes):
    rows = [row for row in results.rows() if any(r == row for r, _ in results.samples)]
    heights = [len(results.whats(row)) + 3 for row in rows]
    figure, axes = plot.panels(
        len(rows), 1, size=(9, BAR * sum(heights) + 0.6), squeeze=False,
        height_ratios=heights)
    for each, row in zip(axes[:, 0], rows):
        draw_row(each, results, row)
    figure.suptitle("\n".join(notes.values()), fontsize=plot.SMALL, color=plot.GREY)
    return figure


def plots(results, notes, options):
    """Paths of what was written."""
    for directory, kind in plot.directories(options) if results.samples else ():
        path = os.path.join(directory, f"dvm.{kind}")
        plot.save(draw(results, notes), path)
        yield path
