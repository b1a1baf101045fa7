# SPDX-License-Identifier: BSD-3-Clause
"""Calibrates the simulator: which points are measured, the fit, and the file with it."""

import contextlib
import os
import time

from .. import record
from ..errors import BenchError
from . import fit
from .points import Point, named, row
from .predict import Model, rows_of, sections

FIT_BYTES = 1000  # so large a value shows on few nodes what a byte costs


def points_of(options, sizes):
    """Some ranks on each node, and values of some bytes."""
    most = max(options.ranks_per_node)
    found = [Point(n, r, op, options.bytes) for n in sizes
             for r in options.ranks_per_node for op in options.ops]
    found += [Point(n, most, op, FIT_BYTES) for n in sizes for op in ("fence", "allgather")]
    return list(dict.fromkeys(found))


def counts_of(options, point):
    """Messages and bytes do not depend on costs."""
    first = rows_of(options, point, sections(fit.START, fit.NO_NOISE, options.cores))[0]
    return Model(int(first["messages"]), int(first["bytes"]), None, None, None)


def measure(options, real, writer, progress):
    """{point: result} of the points to fit."""
    found = {}
    for point in options.fit_points:
        progress.step(f"measuring: {named(point)}")
        result, counts = real(point), counts_of(options, point)
        if result[:2] != counts[:2]:
            raise BenchError(f"{named(point)}: {result.messages} messages and {result.bytes} "
                             f"bytes, simulated {counts.messages} and {counts.bytes}")
        found[point] = result
        writer.rows([row("fit", point, result, counts)])
    return found


def put(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from None


@contextlib.contextmanager
def file_of(path):
    """Where to write the new file of this name. It is made at once, so that a directory that
    cannot be written shows before anything is measured. An old file stays if the block fails."""
    if os.path.exists(path) and not os.path.isfile(path):  # a device, for example
        put(path, "")
        yield path
        return
    part = f"{path}.part"
    put(part, "")
    try:
        yield part
        os.rename(part, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def write(path, machine, report):
    notes = [f"# {line}" for line in (
        f"written by pmi2x sim calibrate, {time.strftime('%Y-%m-%d')}", record.machine(),
        *report)]
    put(path, "\n".join([*notes, *machine]) + "\n")


def calibrate(options, real, writer, progress, path=None):
    """The lines of a calibration, also written to the file of this path."""
    measured = measure(options, real, writer, progress)
    found = fit.fit(options, measured, progress.step)
    progress.end()
    report = fit.report(found, list(measured))
    print("\n".join(report), flush=True)
    machine = sections(found.costs, found.noise, options.cores)
    if path:
        write(path, machine, report)
    return machine
