# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI of several releases as clients of several releases of libpmix, with each way
in which these keep data. Takes minutes: with --wide only."""

import itertools
import pathlib
import shutil

import pytest

from harness import Cluster

HELLO = pathlib.Path(__file__).parents[2] / "contrib" / "cluster" / "mpi-hello.c"
STEP = ["-N4", "-n16", "--ntasks-per-node=4"]
# "5": the newest on PyPI.
CLIENTS = ["Debian", "4.1.8", "5.0.8", "5.0.9", "5.0.10", "5"]
LIBRARIES = ["Debian", "5"]
GDS = ["auto", "hash"]
COLLECT = ["store", "demand"]

pytestmark = pytest.mark.wide


@pytest.fixture(
    scope="module",
    params=list(itertools.product(LIBRARIES, GDS, COLLECT)),
    ids="-".join,
)
def served(request, prefix, kind, scratch, new_libpmix):
    """A cluster of four nodes whose PMIx server is one of them."""
    if kind != "pmi2x" or not (prefix / "libexec" / "pmi2x" / "pmi2x-pmixd").exists():
        pytest.skip("no PMIx server")
    release, gds, collect = request.param
    lines = [f"Pmi2xPmixGds={gds}", f"Pmi2xPmixCollect={collect}"]
    lines += [f"Pmi2xPmixLibrary={new_libpmix}"] if release == "5" else []
    conf = scratch / "releases.conf"
    conf.write_text("\n".join([*lines, ""]))
    cluster = Cluster(prefix, scratch / "releases", kind, 4, ["--mpi-conf", conf])
    cluster.up()
    yield cluster
    left = cluster.wait_until_clean()
    cluster.down()
    shutil.rmtree(scratch / "releases", ignore_errors=True)
    assert not left, f"left behind: {left}"


@pytest.fixture
def gds_and_collect(request):
    return request.node.callspec.params["served"][1:]


def test_container(served, mpi_container, gds_and_collect):
    """Its server keeps no files: one job says so itself, the other's site does."""
    asks = gds_and_collect[0] == "auto"
    command = mpi_container(HELLO, "5" if asks else "Debian")
    env = {"PMI2X_PMIX_GDS": "hash"} if asks else {}
    result = served.srun(*STEP, *command, env=env, timeout=120).ok()
    assert result.stdout.startswith("size 16 "), result
    assert not result.stderr, result


# With the data in shared memory, which is what users have, both orders of ranks.
ORDERS = {
    ("auto", "store"): ["block", "cyclic"],
    ("auto", "demand"): ["block", "cyclic"],
    ("hash", "store"): ["cyclic"],
    ("hash", "demand"): ["block"],
}


@pytest.mark.parametrize("client", CLIENTS)
def test_hello(served, open_mpi, client, gds_and_collect):
    hello = open_mpi(HELLO, client)
    for order in ORDERS[gds_and_collect]:
        result = served.srun(*STEP, "-m", order, hello, timeout=120).ok()
        assert result.stdout.startswith("size 16 "), result
        assert not result.stderr, result


@pytest.mark.parametrize("how", ["before all kill", "after all 1", "after 0 kill"])
def test_program_after_a_killed_one(served, open_mpi, pmix_program, how):
    """Each release counts the rank again of which a program was killed."""
    killed = pmix_program("programs/pmix-killed.c")
    script = f"{killed} {how}; {open_mpi(HELLO, 'Debian')}; :"
    result = served.srun(*STEP, "sh", "-c", script, timeout=120).ok()
    assert [line[:8] for line in result.lines] == ["size 16 "], result
