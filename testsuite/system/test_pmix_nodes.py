# SPDX-License-Identifier: BSD-3-Clause
"""Nodes of a step that do not have the same libpmix, and one that has none."""

import contextlib
import pathlib

import pytest

from harness import Cluster

pytestmark = pytest.mark.usefixtures("needs_pmixd")
HELLO = pathlib.Path(__file__).parents[2] / "contrib" / "cluster" / "mpi-hello.c"
STEP = ["-N4", "-n8", "--ntasks-per-node=2"]
NODES = ["n1", "n2", "n3", "n4"]
REMEDY = "install libpmix2 (Debian, Ubuntu) or pmix (RPM) there"


class Nodes:
    """A cluster of four. A slurmd reads mpi.conf when it starts: so each node has the
    lines of its last start."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.srun = cluster.srun

    def configure(self, *nodes, **options):
        conf = self.cluster.dir / "mpi.conf"
        lines = [f"Pmi2xPmix{name}={value}\n" for name, value in options.items()]
        conf.write_text("".join(lines))
        self.cluster.restart(*(f"slurmd.{node}" for node in nodes))
        conf.unlink()

    @contextlib.contextmanager
    def configured(self, *nodes, **options):
        self.configure(*nodes, **options)
        yield
        self.configure(*nodes)


@pytest.fixture(scope="module")
def nodes(prefix, scratch, kind):
    cluster = Cluster(prefix, scratch / "pmix-nodes", kind, len(NODES))
    cluster.up()
    yield Nodes(cluster)
    left = cluster.wait_until_clean()
    cluster.down()
    assert not left, f"left behind: {left}"


# ---- another one ----


def releases(nodes):
    """How each node offers to share data: as its libpmix can."""
    said = nodes.srun("-N4", "-n4", "sh", "-c", "echo $SLURMD_NODENAME $PMIX_GDS_MODULE")
    return dict((line.split() + ["shared"])[:2] for line in said.ok().lines)


@pytest.fixture(
    scope="module",
    params=[
        (["n4"], "demand"),
        pytest.param((["n4"], "store"), marks=pytest.mark.wide),
        pytest.param((NODES[:3], "demand"), marks=pytest.mark.wide),
        pytest.param((NODES[:3], "store"), marks=pytest.mark.wide),
    ],
    ids=lambda param: f"{len(param[0])}-{param[1]}",
)
def mixed(request, nodes, new_libpmix):
    """Some nodes have libpmix 5, the others the system's."""
    new, collect = request.param
    old = [node for node in NODES if node not in new]
    with (
        nodes.configured(*old, Collect=collect),
        nodes.configured(*new, Collect=collect, Library=new_libpmix),
    ):
        said = releases(nodes)
        assert {said[node] for node in new}.isdisjoint(said[node] for node in old), said
        yield nodes


@pytest.fixture(params=["system", pytest.param("new", marks=pytest.mark.wide)])
def client_env(request, new_libpmix):
    """Of a client of the one libpmix, or the other."""
    return {"LD_LIBRARY_PATH": str(new_libpmix.parent)} if request.param == "new" else {}


@pytest.mark.parametrize(
    "action", ["exchange", "direct", "later", "subset", "names", "connect", "events"]
)
@pytest.mark.parametrize(
    "order", [pytest.param("block", marks=pytest.mark.wide), "cyclic"]
)
def test_another_libpmix(mixed, exercise, client_env, action, order):
    """Fences with data and without, gets in both directions, and all else but groups."""
    result = mixed.srun(*STEP, "-m", order, exercise, action, env=client_env).ok()
    assert not result.stderr, result


@pytest.mark.parametrize(
    "client", [pytest.param("Debian", marks=pytest.mark.wide), "4.1.8", "5"]
)
def test_open_mpi(mixed, open_mpi, client):
    result = mixed.srun(*STEP, open_mpi(HELLO, client), timeout=120).ok()
    assert result.stdout.startswith("size 8 "), result
    assert not result.stderr, result


# ---- none ----


@pytest.fixture(scope="module", params=["none", "too old"])
def lacking(request, nodes, scratch):
    """What node n2 lacks, as people are told."""
    if request.param == "none":
        path = scratch / "no-libpmix.so.2"
        said = f"node n2 has no libpmix.so.2 at {path}: {REMEDY}"
    else:
        path = scratch / "libpmix.so.2.5.9"
        path.write_text("")
        said = f"{path} of node n2 is older than 4.2: {REMEDY}"
    with nodes.configured("n2", Library=path):
        yield said


def test_a_program_that_needs_it(nodes, lacking, exercise):
    """Its ranks on that node fail at once, perhaps before anybody has asked for them."""
    result = nodes.srun(*STEP, exercise, "exchange").failed()
    result.says(f"PMIx is not offered: {lacking}")


@pytest.fixture
def hidden(exercise):
    """The command of ranks that do not show what they need. Where PMIx is not offered
    each is alone, and does something else."""

    def command(alone):
        script = f'test -n "$PMIX_RANK" || {alone}; exec {exercise} exchange'
        return ["sh", "-c", script]

    return command


def test_other_nodes_do_not_wait(nodes, lacking, hidden):
    result = nodes.srun(*STEP, *hidden("exec sleep 600")).failed()
    result.says(f"PMIx fence 0 failed: {lacking}")


def test_exited_ranks_are_not_waited_for(nodes, lacking, hidden):
    """Perhaps the node has nobody any more who knows what it lacks."""
    result = nodes.srun(*STEP, *hidden("exit 0")).failed()
    result.says("PMIx fence 0 failed: ")
    result.says("node n2")


def test_early_pmix_fails_with_the_lacking_library(nodes, lacking, exercise):
    result = nodes.srun(*STEP, exercise, "job", env={"PMI2X_PMIX": "early"}).failed()
    result.says(lacking)


def test_pmi_needs_none(nodes, lacking, raw):
    result = nodes.srun(*STEP, *raw("exchange", "2")).ok()
    assert result.lines.count("exchanged 8") == 8, result
    assert not result.stderr, result


def test_the_other_nodes_have_it(nodes, lacking, exercise):
    result = nodes.srun("-N3", "-n6", "-x", "n2", exercise, "exchange").ok()
    assert not result.stderr, result
