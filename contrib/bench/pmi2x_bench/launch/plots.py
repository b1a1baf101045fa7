# SPDX-License-Identifier: BSD-3-Clause
"""Plots by node and by process, one for each test."""

from .. import plot
from .matrix import TESTS
from .report import Group

STYLES = {"real": "-", "private": "-", "emulated": "--", "simulated": ":"}
WAYS = {"by-node": "nodes", "by-process": "ranks"}


def size_of(way, key):
    return key.config[0] if way == "by-node" else key.config[0] * key.config[1]


def series(results, test, way):
    """{group: [(size, median, minimum, maximum)]}"""
    found = {}
    for key in results.samples:
        if key.test == test:
            group = Group(key.source, test, key.method, key.config[1])
            values = sorted(results.values(key))
            point = size_of(way, key), results.median(key), values[0], values[-1]
            found.setdefault(group, []).append(point)
    return {group: sorted(points) for group, points in found.items()}


def curves(results, test, way):
    found = series(results, test, way)
    methods = list(dict.fromkeys(key.method for key in results.samples))
    widths = sorted({group.per_node for group in found})
    for group, points in found.items():
        label = f"{group.method}, {group.per_node} a node, {group.source}"
        yield plot.Curve(label, f"C{methods.index(group.method) % 10}",
                         plot.marker(widths.index(group.per_node)),
                         STYLES[group.source], points)


def figures(results, notes):
    for test in TESTS:
        for way, across in WAYS.items():
            title = f"{TESTS[test]}: time of the whole launch"
            yield plot.Figure(f"{test}-{way}", title, list(curves(results, test, way)),
                              notes.get(test, {}), across, "s")
