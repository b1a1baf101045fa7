# SPDX-License-Identifier: BSD-3-Clause
"""The measurements, as tables: times, and how they grow."""

import collections
import statistics

from .. import record
from ..report import block, show_time

from . import fit
from .matrix import TESTS, named
from .sources import LABELS

# The subject of a row; source: its label.
Key = collections.namedtuple("Key", "source test config method")
Group = collections.namedtuple("Group", "source test method per_node")


class Results(record.Results):
    def keys(self):
        """By size, then in the order they came in."""
        return sorted(super().keys(), key=lambda k: (k.config[0] * k.config[1], k.config))

    def above_true(self, key):
        """Median over the repeats of what a test takes more than /bin/true."""
        pairs = self.pairs(key, key._replace(test="true"))
        return statistics.median(mine - bare for mine, bare in pairs) if pairs else None


def against(results, key, first):
    """Ratio of the first method's median to this one's: 10x is faster."""
    base = results.median(key._replace(method=first))
    mine = results.median(key)
    return f"{base / mine:.2f}x" if base and mine else ""


def row(results, key, first):
    """{title: text} of one line of the table."""
    nodes, per_node = key.config
    cells = {
        "nodes": f"{nodes}",
        "ranks/node": f"{per_node}",
        "ranks": f"{nodes * per_node}",
        "method": f"{key.method}",
        "how": key.source,
    }
    failed = len(results.failures.get(key, []))
    times = results.values(key)
    if times:
        cells["median"] = show_time(statistics.median(times))
        cells["min"], cells["max"] = show_time(min(times)), show_time(max(times))
        cells["times"] = f"{len(times)}"
        if first:
            cells[f"against {first}"] = against(results, key, first)
        above = results.above_true(key)
        if key.test != "true" and above is not None:
            cells["above true"] = show_time(above)
    else:
        cells["median"] = "failed"
    if failed:
        cells["failures"] = f"{failed} failed"
    return cells


def table(results, markdown=False):
    """Lines: a block for each test."""
    keys = results.keys()
    for test in TESTS:
        mine = [key for key in keys if key.test == test]
        if not mine:
            continue
        methods = list(dict.fromkeys(key.method for key in mine))
        first = methods[0] if len(methods) > 1 else None
        found = [row(results, key, first) for key in mine]
        head = f"{test}: {TESTS[test]}, the whole launch"
        if any(key.source == "simulated" for key in mine):
            head += "; simulated: its exchange alone"
        yield from block(head, found, markdown)


def legend(results):
    """The meaning of the labels that occur."""
    for label in LABELS:
        if any(key.source == label for key in results.samples):
            yield f"{label}: {LABELS[label]}"


def skipped(results):
    """A line for each reason, with the rows that it stopped."""
    by_reason = collections.defaultdict(list)
    for key, reason in results.skips.items():
        by_reason[reason].append(key)
    for reason, keys in by_reason.items():
        what = [
            ", ".join(dict.fromkeys(str(show(key)) for key in keys))
            for show in (
                lambda k: k.test,
                lambda k: k.method,
                lambda k: named(k.config),
            )
        ]
        yield f"SKIP {what[0]} with {what[1]} at {what[2]}: {reason}"


def failed(results):
    for key, texts in results.failures.items():
        yield (
            f"{key.method}, {key.test}, {named(key.config)}, {key.source}: "
            f"failed {len(texts)} times: {texts[0]}"
        )


def plan(planned):
    """Lines of what will be done where."""
    places = collections.defaultdict(dict)
    for cell in planned.measured():
        where = places[cell.source.label]
        where.setdefault(str(cell.method), {}).setdefault(cell.test, [])
        where[str(cell.method)][cell.test].append(named(cell.config))
    for label, methods in places.items():
        yield f"{label} ({LABELS[label]}):"
        for method, tests in methods.items():
            by_configs = collections.defaultdict(list)
            for test, configs in tests.items():
                by_configs[" ".join(configs)].append(test)
            for configs, names in by_configs.items():
                yield f"  {method}: {', '.join(names)}: {configs}"
    skips = Results()
    for cell in planned.skipped():
        label = cell.source.label if cell.source else ""
        skips.skip(Key(label, cell.test, cell.config, cell.method), cell.reason)
    yield from skipped(skips)


# ---- growth ----


def groups(results):
    """{group: {nodes: median}}: one number of ranks a node and one source."""
    found = collections.defaultdict(dict)
    for key in results.keys():
        median = results.median(key)
        if median is not None:
            group = Group(key.source, key.test, key.method, key.config[1])
            found[group][key.config[0]] = median
    return found


def by_process(results):
    """As groups(), over all configurations: {ranks: medians}, per_node None."""
    found = collections.defaultdict(list)
    for key in results.keys():
        median = results.median(key)
        if median is not None:
            group = Group(key.source, key.test, key.method, None)
            found[group].append((key.config[0] * key.config[1], median))
    return found


def fits(results):
    """(group, what N is, fit): by node first."""
    for group, points in groups(results).items():
        yield group, "nodes", fit.fit(list(points.items()))
    for group, points in by_process(results).items():
        yield group, "ranks", fit.fit(points)


def fit_row(group, what, found):
    return {
        "N": what,
        "test": group.test,
        "method": str(group.method),
        "ranks/node": "all" if group.per_node is None else f"{group.per_node}",
        "how": group.source,
        "sizes": f"{found.count}: {found.low}-{found.high}",
        "a": show_time(found.a),
        "b": show_time(found.b),
        "c": show_time(found.c),
        "residual": f"{show_time(found.residual)} "
        f"({100 * found.residual / found.mean:.1f} %)",
        "grows with": fit.verdict(found),
    }


def growth(results, markdown=False):
    """Lines of the fits; of what there is too little for, a line that says so."""
    every = list(fits(results))
    found = [fit_row(*entry) for entry in every if entry[2]]
    if found:
        yield from block("growth: a + b*log2 N + c*N, least squares", found, markdown)
    few = len(every) - len(found)
    if few and found:
        yield ""
    if few:
        yield (
            f"no fit for {few} of {len(every)} series: fewer than "
            f"{fit.SIZES_LEAST} sizes"
        )
