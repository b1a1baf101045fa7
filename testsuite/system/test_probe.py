# SPDX-License-Identifier: BSD-3-Clause
"""Every operation of pmi2x-probe, which checks what it gets back.

Under the stock plugin the extensions fall back to Put, Fence and Get, with the
same results.
"""

import pytest

from harness import run

STOCK = "pmi2"
OPERATIONS = {
    "put": ["put", "key-%r=value-%r", "fence", "get", "key-3=value-3"],
    "ifence": ["put", "key-%r=value-%r", "ifence", "get", "key-0=value-0"],
    "kvs": ["kvs", "50"],
    "ring": ["ring"],
    "allgather": ["allgather", "allgather"],
    "iallgather": ["iallgather", "iallgather"],
    "mix": ["ring", "iallgather", "kvs", "5", "ifence", "allgather", "ring"],
    "attribute": ["attr", "PMI_process_mapping"],
}
LAYOUTS = {
    "block": ["-N4", "-n8", "--ntasks-per-node=2", "-m", "block"],
    "cyclic": ["-N4", "-n10", "-m", "cyclic"],
}


@pytest.mark.parametrize("server", ["ours", STOCK])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize(
    "operations", OPERATIONS.values(), ids=OPERATIONS.keys()
)
def test_operation(srun, kind, probe, server, layout, operations):
    mpi = kind if server == "ours" else STOCK
    srun(*layout, probe, *operations, mpi=mpi).ok()


def test_one_process(srun, kind, probe):
    assert "ring: ok, 1 process" in srun("-N1", "-n1", probe, "ring", mpi=kind).ok().lines


def test_names(srun, probe):
    srun("-N2", "-n4", probe, "publish", "name-%r=port-%r").ok()


def test_spawn(cluster, probe):
    step = f"srun --mpi={cluster.kind} --overlap -N2 -n2 {probe} spawn 3"
    cluster.run("salloc", "-N2", "--ntasks-per-node=8", "sh", "-c", step).ok()


def test_abort(srun, probe):
    result = srun("-N2", "-n4", probe, "abort").failed()
    assert result.seconds < 30, result


def test_probe_shows_what_the_server_offers(srun, kind, probe):
    ours = srun("-N2", "-n4", probe).ok()
    stock = srun("-N2", "-n4", probe, mpi=STOCK).ok()
    if kind == STOCK:
        pytest.skip("there is nothing to compare")
    assert "pmi2x" in ours.stdout.lower()
    assert ours.stdout != stock.stdout


def test_outside_of_a_step(probe):
    """It is a job of one, and says how it would be one of several."""
    shown = run([probe]).ok().stdout
    assert "none: this process is alone; in a step: srun --mpi=pmi2x " in shown


def test_nodes(cluster, kind, probe):
    """Outside a step: which nodes lack the plugin."""
    if kind == STOCK:
        pytest.skip("the stock plugin is on every node")
    cluster.run(probe, "--nodes", "n[1-16]").ok()


def test_512_ranks(srun, probe):
    srun("-N16", "--ntasks-per-node=32", probe, "allgather", "ring").ok()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_fetch(srun, kind, probe, layout):
    """Beside what it is mixed with. The stock plugin has nothing like it."""
    srun(*layout, probe, "kvs", "3", "fetch", "ring", "fetch", "2", mpi=kind).ok()
    result = srun(*layout, probe, "fetch", mpi=STOCK).failed()
    assert "fetch: this PMI server does not support it" in result.stderr, result
