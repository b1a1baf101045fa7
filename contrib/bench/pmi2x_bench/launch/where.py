# SPDX-License-Identifier: BSD-3-Clause
"""Finds the sources that there are here, and checks that they can be used."""

import argparse
import contextlib
import os
import shutil
import tempfile

from .. import command, limits, place
from ..errors import BenchError

from . import matrix, simulated, sources

BEYOND = ("emulated", "simulated")


def most_private(tests, configs):
    """As many nodes as the largest configuration that fits has, and what is in
    the way of a larger one, or ""."""
    points = [matrix.point(t, c) for c in configs for t in tests]
    refusals = [(p, limits.refusal(p.nodes, p)) for p in points]
    most = max((p.nodes for p, reason in refusals if not reason), default=0)
    larger = [reason for p, reason in refusals if reason and p.nodes > most]
    if not most:
        raise BenchError(refusals[0][1])
    return most, larger[0] if larger else ""


def choose_private(options, tests, configs):
    """Makes options.private a number; None stays: there is an allocation.
    options.no_more: why it is not larger."""
    options.no_more = ""
    if options.private == "auto":
        options.private, options.no_more = most_private(tests, configs)
    elif options.private:
        try:
            number = command.count(1, limits.NODES_MOST)
            options.private = number(options.private)
        except argparse.ArgumentTypeError as error:
            raise BenchError(f"--private: {error}, nor auto") from None
        limits.check_private(options.private, [matrix.point("true", (1, 1))])


def slurm(options, programs):
    """The source that is a Slurm; None when there is to be none."""
    if options.no_slurm:
        return None
    if not options.private:
        if "SLURM_JOB_ID" not in os.environ:
            raise BenchError(
                "not inside an allocation: start this with salloc or sbatch, "
                "or use --private N (or auto) for a test cluster on this "
                "machine, or --no-slurm"
            )
        place.forget_defaults()
    return sources.Slurm(options, programs)


def beyond(options, programs):
    """Sources for what Slurm does not hold."""
    found = []
    names = [] if options.beyond == "none" else options.beyond.split(",")
    for name in dict.fromkeys(names):
        if name not in BEYOND:
            raise BenchError(
                f"--beyond: '{name}' is none of {', '.join(BEYOND)}, none"
            )
        if name == "emulated":
            server = f"{options.programs}/fake-server"
            found.append(sources.Emulated(options, programs, server))
        else:
            simulator = f"{options.programs}/pmi2x-sim-run"
            found.append(simulated.Simulated(options, simulator))
    return found


@contextlib.contextmanager
def compile_place(options):
    """A directory for programs: all nodes of a real allocation must see it."""
    where = "/tmp" if options.private or options.no_slurm else os.getcwd()
    try:
        path = tempfile.mkdtemp(prefix="pmi2x-startup-", dir=where)
    except OSError as error:
        raise BenchError(f"cannot compile in {where}: {error}") from None
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def slurm_of(options, program, per_node):
    """A test cluster with an allocation of all of it, if asked for."""
    if not options.private:
        yield None
        return
    cluster = place.find_cluster(program)
    with place.private_cluster(cluster, options, per_node) as directory:
        with place.allocation(options.private, per_node):
            yield f"{directory}/cluster"


def missing_types(methods):
    """{method: reason} of those that this Slurm's srun does not have."""
    found = place.mpi_types()
    return {
        method: f"srun --mpi=list has no '{method.mpi}'"
        for method in methods
        if found
        and method.mpi not in matrix.LAUNCHERS
        and method.mpi not in found
    }
