# SPDX-License-Identifier: BSD-3-Clause
"""Plots by node and by process, one for each test. Needs matplotlib."""

import os

import pmi2x_plot
from ..collectives.plots import Curve, directories, draw

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
        yield Curve(
            label,
            f"C{methods.index(group.method) % 10}",
            pmi2x_plot.marker(widths.index(group.per_node)),
            STYLES[group.source],
            points,
        )


def write(results, notes, options):
    """Returns the paths of what was written."""
    paths = []
    for directory, kind in directories(options):
        for test in TESTS:
            for way, across in WAYS.items():
                found = list(curves(results, test, way))
                if found:
                    paths.append(os.path.join(directory, f"{test}-{way}.{kind}"))
                    title = f"{TESTS[test]}: time of the whole launch"
                    draw(found, title, notes[test], test, paths[-1], across)
    return paths
