# SPDX-License-Identifier: BSD-3-Clause
"""The style of all plots of pmi2x. Needs matplotlib, which no other module does."""

import collections
import io
import os
import re
import textwrap

from .errors import BenchError

MARKERS = "os^Dvx*P"
KINDS = (".svg", ".png", ".pdf")
DOTS = 110  # an inch, of a .png
SMALL = 7  # points, of notes
GREY = "0.35"
INK, INK_ON_DARK = "#1c2530", "#e8edf2"  # text and axes
# An .svg has no background: its reader's page shows, light or dark.
STYLE = (f"<style>:root {{ --ink: {INK}; }} @media (prefers-color-scheme: dark) "
         f"{{ :root {{ --ink: {INK_ON_DARK}; }} }}</style>")


# points: (x, median, minimum, maximum)
Curve = collections.namedtuple("Curve", "label color marker style points")
# notes: {name: text}; across: what x is; unit: of y
Figure = collections.namedtuple("Figure", "name title curves notes across unit")
LINE = 120  # characters of the notes


def load():
    """pyplot, in pmi2x's style; it opens no window."""
    try:
        import matplotlib
    except ImportError:
        raise BenchError("plots need matplotlib for this python3 (on Debian: apt-get "
                         "install python3-matplotlib)") from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update({
        "svg.hashsalt": "pmi2x",  # same data, same file
        "svg.fonttype": "none",  # text, and not outlines of letters
        **{f"{what}color": INK for what in
           ("text.", "axes.edge", "axes.label", "xtick.", "ytick.", "grid.")},
        "legend.framealpha": 0,
        "font.sans-serif": ["DejaVu Sans", "Arial"],
        "legend.fontsize": "small",
        "lines.markersize": 5,
        "axes.grid": True,
        "axes.grid.which": "major",
        "grid.alpha": 0.3,
    })
    from matplotlib import pyplot

    return pyplot


def panels(rows=1, columns=1, size=(9, 6), **options):
    """A figure and its axes."""
    return load().subplots(rows, columns, figsize=size, layout="constrained", **options)


def marker(number):
    return MARKERS[number % len(MARKERS)]


def curve(axes, xs, middle, number=0, spread=None, **options):
    """Points and a line; spread: least and most of each point, a shade behind them."""
    options = {"marker": marker(number), "color": f"C{number % 10}", **options}
    axes.plot(xs, middle, **options)
    if spread:
        axes.fill_between(xs, *spread, color=options["color"], alpha=0.1)


def sizes_across(axes, xs):
    """A logarithmic axis with a tick for each of these."""
    from matplotlib.ticker import NullLocator

    ticks = sorted(set(xs))
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def compact(svg):
    """The picture with one line for each group, and ink that follows the page's
    colours."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(\.\d)\d+", r"\1", re.sub(r"\s+", " ", svg)).replace("> <", "><")
    # Groups that say no more than what is in them.
    svg = re.sub(r'<g id="(?:line2d|text|patch|xtick|ytick|legend|matplotlib)[^"]*">',
                 "<g>", svg)
    svg = re.sub(r"(>)(?=<(?:g|defs|path)\b)(?!<g><)", r"\1\n", svg)
    return svg.replace(INK, "var(--ink)").replace(">", f">{STYLE}", 1) + "\n"


def save(figure, path):
    """Without the date, so that the same data are the same file."""
    if path.endswith(".svg"):
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(compact(text.getvalue()))
    else:
        figure.savefig(path, dpi=DOTS)
    load().close(figure)


# ---- figures of --svg and --png ----


def directories(options):
    return [(d, kind) for kind in ("svg", "png") if (d := vars(options)[kind])]


def check(options):
    """Before anything is measured: that plots can be made there."""
    for directory, kind in directories(options):
        try:
            load()
            os.makedirs(directory, exist_ok=True)
        except (BenchError, OSError) as error:
            raise BenchError(f"--{kind}: {error}") from None
        if not os.access(directory, os.W_OK):
            raise BenchError(f"--{kind}: cannot write to {directory}")


def label_values(axes, unit):
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 1000 * low:  # decades alone would be a label or two
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(EngFormatter(unit=unit))
    minor = EngFormatter(unit=unit) if high < 10 * low else NullFormatter()
    axes.yaxis.set_minor_formatter(minor)


def draw(plotted):
    """The figure of a Figure."""
    figure, axes = panels()
    for each in plotted.curves:
        xs, middle, low, high = zip(*each.points)
        curve(axes, xs, middle, spread=(low, high), marker=each.marker,
              linestyle=each.style, color=each.color, label=each.label)
    label_values(axes, plotted.unit)
    sizes_across(axes, [p[0] for each in plotted.curves for p in each.points])
    axes.set_xlabel(plotted.across)
    what = "memory" if plotted.unit == "B" else "time"
    axes.set_ylabel(f"{what}: median; shaded: minimum to maximum")
    figure.suptitle(plotted.title, fontsize="large")
    notes = [plotted.notes.get(name, "") for name in ("machine", "command")]
    lines = [line for note in notes for part in note.split("\n")
             for line in textwrap.wrap(part, LINE)]
    axes.set_title("\n".join(lines), fontsize=SMALL, color=GREY)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def write(options, figures):
    """Paths of what was written: of each figure that has a curve."""
    found, paths = [each for each in figures if each.curves], []
    for directory, kind in directories(options):
        for each in found:
            paths.append(os.path.join(directory, f"{each.name}.{kind}"))
            save(draw(each), paths[-1])
    return paths
