# SPDX-License-Identifier: BSD-3-Clause
"""srun's end is a library that the plugin opens in srun, and there only."""

import os
import pathlib

import pytest

from harness import below, process_table

LIBRARY = "libpmi2x-launcher.so"


def loaders(pids):
    """The names of those processes that have it, or had."""
    table = process_table()
    return {
        table[pid][1]
        for pid in pids & table.keys()
        if LIBRARY in pathlib.Path(f"/proc/{pid}/maps").read_text()
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


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to hide a file")
def test_missing(cluster, kind, prefix, raw):
    """The step is not prepared, and srun says what to install, and where."""
    if kind != "pmi2x":
        pytest.skip("the stock plugin is one file")
    place = prefix / "lib" / "pmi2x"
    hide = f'mount -t tmpfs none "{place}" && exec "$@"'
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", hide, "-"]
    step = ["srun", "--mpi=pmi2x", "-N2", "-n4", *raw("exchange", "2")]
    result = cluster.run(*command, *step).failed()
    result.says(f"install {place / LIBRARY} on this host")
    assert "exchanged" not in result.stdout
    assert not cluster.wait_until_clean()
