# SPDX-License-Identifier: BSD-3-Clause
"""Tables: for each line {title: text}."""

# Titles of columns that hold words, not numbers.
TEXTS = {"layout", "peer", "failures", "test", "method", "how", "one more"}
TEXTS |= {"grows with", "N", "what", "verdict"}


def show_time(seconds):
    if seconds < 0:
        return "-" + show_time(-seconds)
    for factor, unit in (1, "s "), (1e3, "ms"), (1e6, "us"):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def text_lines(titles, found):
    widths = [max([len(t)] + [len(c.get(t, "")) for c in found]) for t in titles]
    for cells in [{t: t for t in titles}] + found:
        yield "  ".join(
            cells.get(t, "").ljust(w) if t in TEXTS else cells.get(t, "").rjust(w)
            for t, w in zip(titles, widths)
        ).rstrip()


def markdown_lines(titles, found):
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    for cells in found:
        yield "| " + " | ".join(cells.get(t, "").strip() for t in titles) + " |"


def block(head, found, markdown):
    """Lines of a table with a head. Columns in which nothing stands are left out."""
    titles = dict.fromkeys(title for cells in found for title in cells)
    titles = [t for t in titles if any(cells.get(t) for cells in found)]
    yield from ["", f"**{head}**\n" if markdown else head]
    yield from (markdown_lines if markdown else text_lines)(titles, found)
