# SPDX-License-Identifier: BSD-3-Clause
"""One style for all plots of pmi2x. Needs matplotlib, which nothing else does."""

import io
import re

MARKERS = "os^Dvx*P"
KINDS = (".svg", ".png", ".pdf")
DOTS = 110  # an inch, of a .png
SMALL = 7  # points, of notes
GREY = "0.35"
INK, INK_ON_DARK = "#1c2530", "#e8edf2"  # text and axes
# An .svg has no background: its reader's page shows, light or dark.
STYLE = (f"<style>:root {{ --ink: {INK}; }} @media (prefers-color-scheme: dark) "
         f"{{ :root {{ --ink: {INK_ON_DARK}; }} }}</style>")


class PlotError(Exception):
    """Why nothing can be drawn, as a line for the user."""


def load():
    """pyplot, in pmi2x's style; it opens no window."""
    try:
        import matplotlib
    except ImportError:
        raise PlotError("plots need matplotlib for this python3 (on Debian: apt-get "
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
    """The same picture in a line for each group, with ink that follows the page."""
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
