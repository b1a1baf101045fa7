# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the simulator: the exchange of an MPI_Init, without the launch."""

import os
import re
import tempfile

from ..errors import BenchError
from ..record import Sample, rows_of
from ..run import failure, run_program

from .sources import Late

# The simulator's name for the protocol of a method.
PROTOCOLS = {"pmi2x": "pmi2x", "pmi2": "mpi-pmi2", "hydra": "hydra-star"}
# The requests of MPICH 4.0's MPI_Init and MPI_Finalize to PMI, seen on the wire: four
# barriers; before two of them the first rank of a node puts a value for the node.
BARRIERS = (0, 58, 430, 0)  # bytes that a node has put
OWN_SECTIONS = {"step", "operations"}


def kept_sections(text):
    """The parts of a scenario about the machine, not about the step."""
    section, kept = "", []
    for line in text.splitlines():
        match = re.match(r"\s*\[\s*(\w+)\s*\]", line)
        section = match[1] if match else section
        if section and section not in OWN_SECTIONS:
            kept.append(line)
    return kept


def scenario(config, method, machine):
    nodes, per_node = config
    lines = ["[step]", f"nodes = {nodes}", f"ranks_per_node = {per_node}"]
    lines += [f"protocol = {PROTOCOLS[method.mpi]}", "[operations]"]
    for size in BARRIERS:  # every rank puts its share: the simulator has no other
        lines.append(f"run = fence {(size + per_node - 1) // per_node}")
    return "\n".join(lines + machine) + "\n"


def seconds_of(path):
    """From the first rank's entry to the last one's exit, of all operations."""
    with open(path, newline="") as file:
        rows = [row for row in rows_of(file) if row["number"] != "0"]
    if not rows or any(row["failed"] != "0" for row in rows):
        raise BenchError("pmi2x sim run: an operation has failed")
    begin = min(float(row["first_entry_s"]) for row in rows)
    return max(float(row["last_exit_s"]) for row in rows) - begin


class Simulated:
    label = "simulated"

    def __init__(self, options, program):
        self.options, self.program = options, program
        self.machine = []
        if options.scenario:
            try:
                with open(options.scenario) as file:
                    self.machine = kept_sections(file.read())
            except (OSError, ValueError) as error:
                raise BenchError(f"--scenario: {error}") from None

    def room(self, test, config):
        return ""

    def cannot(self, test, method):
        if test != "mpi":
            return "only the exchange of the MPI no-op can be simulated"
        if method.mpi not in PROTOCOLS:
            return f"the simulator has no model of {method}"
        if not os.access(self.program, os.X_OK):
            return f"{self.program} is not there"
        return ""

    def measure(self, test, config, method, timeout):
        with tempfile.TemporaryDirectory(prefix="pmi2x-startup-") as place:
            paths = f"{place}/scenario", f"{place}/csv"
            with open(paths[0], "w") as file:
                file.write(scenario(config, method, self.machine))
            argv = [self.program, paths[0], "--csv", paths[1]]
            code, _, err, wall = run_program(argv, timeout)
            if code is None:
                raise Late(wall, [self.program])
            if code != 0:
                raise failure(code, err)
            return Sample([seconds_of(paths[1])])
