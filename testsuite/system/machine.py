# SPDX-License-Identifier: BSD-3-Clause
"""The clock, and how memory is promised: both are the whole machine's. So it is only
site-guest that runs these tests, in its guest."""

import os
import pathlib
import time

import pytest

from faulty import RANKS, TREE
from harness import PATIENCE, Cluster

if "PMI2X_TEST_GUEST" not in os.environ:
    pytest.skip("site-guest runs these tests", allow_module_level=True)
MOMENTS = {
    "before init": ["touch=at", "gate=go", "init", "fence"],
    "in a fence": ["init", "fence", "touch=at", "9:gate=go", "fence"],
    "before finalize": ["init", "fence", "touch=at", "gate=go"],
}
REST = ["fence", "allgather", "ring", "ifence", "wait", "put=20", "fence", "finalize"]
# More than any wait of a step has; less than slurmctld waits for a node.
CLOCK_STEP_S = 150
STALL_REPORT_S = 120  # a step is done long before, also on an emulated processor
VM = pathlib.Path("/proc/sys/vm")
ROOM_KB = 4 << 20  # stacks of Slurm's threads need some; five regions claim more


@pytest.fixture(scope="module")
def cluster(prefix, scratch, kind, only_pmi2x):
    """Nodes of an emulated processor need longer to leave a step than real ones."""
    conf = scratch / "machine-mpi.conf"
    conf.write_text("Pmi2xDrainTimeout=120\n")
    options = [*PATIENCE, "--mpi-conf", conf]
    cluster = Cluster(prefix, scratch / "machine", kind, 5, options)
    yield from cluster.while_up()


def step_clock(seconds):
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


@pytest.fixture
def clock():
    """Steps the clock once, and back in the end."""
    done = []

    def step_once(seconds):
        step_clock(seconds)
        done.append(seconds)

    yield step_once
    step_clock(-sum(done))


@pytest.mark.parametrize("seconds", [CLOCK_STEP_S, -CLOCK_STEP_S])
@pytest.mark.parametrize("words", MOMENTS.values(), ids=MOMENTS)
def test_clock_is_stepped(cluster, start_faulty, clock, words, seconds):
    """No wait ends early or late, and nobody is said to be waited for."""
    env = {"PMI2X_STALL_REPORT": str(STALL_REPORT_S)}
    step = start_faulty(cluster, *words, *REST, options=TREE, env=env)
    step.wait_for("at", RANKS)
    clock(seconds)
    step.make("go")
    result = step.end().ok()
    assert step.seen("done") == RANKS, result
    assert "pmi2x" not in result.stderr, result
    assert not cluster.wait_until_clean()


def committed_kb():
    text = pathlib.Path("/proc/meminfo").read_text()
    return int(text.split("Committed_AS:")[1].split()[0])


@pytest.fixture
def strict_memory():
    """The kernel promises little more memory than it has promised so far."""
    limit = {"overcommit_kbytes": committed_kb() + ROOM_KB, "overcommit_memory": 2}
    before = {name: (VM / name).read_text() for name in limit}
    for name, value in limit.items():
        (VM / name).write_text(str(value))
    yield
    for name, value in reversed(before.items()):
        (VM / name).write_text(value)


def test_overcommit_memory(cluster, start_faulty, strict_memory):
    """Memory reserved for results counts when it is used."""
    step = start_faulty(cluster, "init", "fence", *REST, options=TREE)
    result = step.end().ok()
    assert step.seen("done") == RANKS, result
    assert "pmi2x" not in result.stderr, result
    assert not cluster.wait_until_clean()
