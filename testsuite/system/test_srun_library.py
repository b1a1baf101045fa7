# SPDX-License-Identifier: BSD-3-Clause
"""srun's end is a library that the plugin opens in srun, and there only."""

import os
import pathlib

import pytest

from harness import below, process_table, run
from processes import of_process

LIBRARY = "libpmi2x-srun.so"
SOURCE = pathlib.Path(__file__).parents[2]


def loaders(pids):
    """The names of those processes that have it, or had."""
    table = process_table()
    return {
        table[pid][1]
        for pid in pids & table.keys()
        if LIBRARY in of_process(pid, "maps")
    }


def test_only_srun_loads_it(cluster, faulty):
    """While a step runs, with its daemons and the tasks."""
    step = faulty("init", "fence", "touch=in", "gate=go", "fence", "finalize")
    step.wait_for("in", range(10))
    guard = cluster.state["guard"]
    assert cluster.step_daemon("n1") in below(guard)
    assert not loaders(below(guard))
    srun = step.srun.pid
    assert loaders(below(srun) | {srun}) == {"srun"}
    step.make("go")
    step.end().ok()


def without(place, hide):
    """The words before a command that finds other files in this directory."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
            f'mount -t tmpfs none "{place}" && {hide} exec "$@"', "-"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to hide a file")
@pytest.mark.parametrize("there, text", [
    (False, "install {} on this host"),
    (True, "{} has interface 1000, and mpi_pmi2x.so needs"),
], ids=["missing", "of another release"])
def test_unusable_srun_library_is_named(cluster, only_pmi2x, prefix, raw, scratch, there, text):
    """The step is not prepared, and srun says what to install, and where."""
    place = prefix / "lib" / "pmi2x"
    other = scratch / LIBRARY
    run(["cc", "-shared", "-fPIC", f"-I{SOURCE}/src", f"-I{SOURCE}/src/common",
         "-o", other, SOURCE / "testsuite/unit/plugin/other-srun.c"]).ok()
    command = without(place, f'cp "{other}" "{place}";' if there else "")
    step = ["srun", "--mpi=pmi2x", "-N2", "-n4", *raw("exchange", "2")]
    result = cluster.run(*command, *step).failed()
    result.says(text.format(place / LIBRARY))
    assert "exchanged" not in result.stdout
    assert not cluster.wait_until_clean()
