# SPDX-License-Identifier: BSD-3-Clause
"""What administrators do while steps run: reconfigure, restart, upgrade."""

import os
import shutil

import pytest

from faulty import RANKS
from harness import Cluster, wait_until

HOLDER = 9  # keeps a fence open until the test says go
SLURMDS = [f"slurmd.n{number}" for number in range(1, 6)]
REST = ["fence", "allgather", "ring", "ifence", "wait", "finalize"]


@pytest.fixture(scope="module")
def own(prefix, scratch, kind, only_pmi2x):
    """A cluster of its own, with a plugin that can be replaced."""
    plugins = scratch / "plugins"
    shutil.copytree(prefix / "lib" / "slurm", plugins)
    conf = scratch / "site-mpi.conf"
    conf.write_text("Pmi2xTreeWidth=2\n")
    options = ["--plugindir", plugins, "--mpi-conf", conf]
    cluster = Cluster(prefix, scratch / "site", kind, 5)
    cluster.options = options
    cluster.plugin = plugins / "mpi_pmi2x.so"
    yield from cluster.while_up()


@pytest.fixture
def start(own, start_faulty):
    """Steps of fault-clients, which leave nothing behind."""

    def start_one(*words, **options):
        return start_faulty(own, *words, **options)

    yield start_one
    left = own.wait_until_clean()
    assert not left, f"left behind: {left}"


def ends_well(step):
    result = step.end().ok()
    assert step.seen("done") == RANKS, result


def works(own, start):
    """A step from its launch to its end, and none of the daemons has ended."""
    ends_well(start("init", "fence", *REST))
    assert not (own.dir / "log" / "ended").exists()


def reconfigure(own):
    own.run("scontrol", "reconfigure").ok()


def restart_controller(own):
    own.restart("slurmctld")


def restart_node_daemons(own):
    own.restart(*SLURMDS)


DEEDS = [reconfigure, restart_controller, restart_node_daemons]


@pytest.mark.parametrize("deed", DEEDS)
def test_while_a_fence_waits(own, start, deed):
    step = start(
        "init", "fence", "touch=in", f"{HOLDER}:gate=go", "fence", *REST
    )
    step.wait_until_in("in", RANKS - {HOLDER})
    deed(own)
    step.make("go")
    ends_well(step)
    works(own, start)


@pytest.mark.parametrize("deed", DEEDS)
def test_before_the_nodes_are_connected(own, start, deed):
    step = start("touch=at", "gate=go", "init", "fence", *REST)
    step.wait_for("at", RANKS)
    deed(own)
    step.make("go")
    ends_well(step)


@pytest.mark.parametrize("deed", DEEDS)
def test_before_an_abort(own, start, deed):
    """Slurm still ends the step that is told to end, on all nodes."""
    step = start("init", "fence", "touch=in", "gate=go", "7:abort=enough", "fence")
    step.wait_for("in", RANKS)
    deed(own)
    step.make("go")
    step.fails("rank 7 on node n4 called abort: enough")


def test_before_a_spawn(own, start):
    """srun starts another step of the job. (22.05's controller, once it has been
    restarted, starts none beside a step that runs, with any MPI plugin.)"""
    step = start(
        "init", "fence", "touch=in", "gate=go", "0:spawn=true", "fence", "finalize"
    )
    step.wait_for("in", RANKS)
    restart_node_daemons(own)
    step.make("go")
    ends_well(step)


def test_options_of_a_step_stay(own, start):
    """mpi.conf changes under a step that has begun."""
    conf = own.dir / "mpi.conf"
    before = conf.read_text()
    step = start("touch=at", "gate=go", "init", "fence", *REST)
    step.wait_for("at", RANKS)
    try:
        conf.write_text("Pmi2xTreeWidth=3\nPmi2xRegionSize=0\n")
        reconfigure(own)
        shown = lambda: own.run("scontrol", "show", "config").stdout
        wait_until(lambda: "Pmi2xTreeWidth          = 3" in shown())
        step.make("go")
        ends_well(step)
        works(own, start)
    finally:
        conf.write_text(before)
        reconfigure(own)


# ---- another build of the plugin ----


def other_build(own):
    """The same with more at its end, where nothing looks."""
    path = own.plugin.with_suffix(".new")
    path.write_bytes(own.plugin.read_bytes() + b"another build" * 1000)
    return path


def test_plugin_renamed_over(own, start):
    """As install and packages do: the step that runs keeps what it has."""
    step = start(
        "init", "fence", "touch=in", f"{HOLDER}:gate=go", "fence", *REST
    )
    step.wait_until_in("in", RANKS - {HOLDER})
    os.rename(other_build(own), own.plugin)
    step.make("go")
    ends_well(step)
    works(own, start)
    restart_controller(own)
    restart_node_daemons(own)
    works(own, start)


def test_plugin_overwritten(own, start):
    """As cp does: steps after it work, before slurmd is restarted and then. (A
    step that runs is lost, and slurmctld, when it ends, dies of the code that it
    has lost: with any MPI plugin. So this is the last test here.)"""
    shutil.copyfile(other_build(own), own.plugin)
    works(own, start)
    assert not own.wait_until_clean()
    restart_node_daemons(own)
    works(own, start)
