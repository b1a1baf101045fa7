# SPDX-License-Identifier: BSD-3-Clause
"""A step that Slurm lets run by turns: gang scheduling."""

import re
import time

import pytest

from faulty import HANGS_S, RANKS, TREE
from harness import Cluster, run, wait_until
from processes import state_of

TURN_S = 12
REPORT_S, TIMEOUT_S = 5, 8  # shorter than a turn, longer than any collective
LIMITS = {
    "PMI2X_STALL_REPORT": str(REPORT_S),
    "PMI2X_COLLECTIVE_TIMEOUT": str(TIMEOUT_S),
}
GANG = ["PreemptMode=GANG", f"SchedulerTimeSlice={TURN_S}"]


@pytest.fixture(scope="module")
def gang_cluster(prefix, scratch, kind, only_pmi2x):
    """Five nodes that one step fills; with two they take turns."""
    options = ["--cpus", "2"]
    for line in GANG:
        options += ["--slurm-conf-line", line]
    cluster = Cluster(prefix, scratch / "gang", kind, 5, options)
    cluster.up()
    yield cluster
    run([cluster.program, "down", "--dir", cluster.dir])


def is_stopped(pid):
    return state_of(pid) == "T"


def are_stopped(step):
    return [is_stopped(step.pid("at", rank)) for rank in RANKS]


def wait_for_a_turn_of_others(step):
    """The step stands still for longer than the limits, and then goes on."""
    since = None

    def has_stood_long():
        nonlocal since
        assert step.srun.poll() is None, step.stderr
        now = time.monotonic()
        since = (since or now) if all(are_stopped(step)) else None
        return since and now - since > TIMEOUT_S

    wait_until(has_stood_long, HANGS_S)
    wait_until(lambda: not any(are_stopped(step)), HANGS_S)


@pytest.fixture
def gang(gang_cluster, start_faulty):
    """Starts a step of fault-clients, and a job that does nothing to take turns
    with: of a second step srun would ask in vain until it hits a turn of its job."""

    def start_one(*words, **options):
        step = start_faulty(gang_cluster, "touch=at", *words, **options)
        step.wait_for("at", RANKS)
        gang_cluster.run("salloc", "--no-shell", *TREE).ok()
        return step

    yield start_one
    gang_cluster.cancel_all()
    left = gang_cluster.wait_until_clean()
    assert not left, f"left behind: {left}"


@pytest.mark.wide
def test_gang_scheduling(gang):
    """Ranks that are in one collective after the other are neither reported, nor
    do they time out, while it is not their turn."""
    step = gang("init", "until=go", "finalize", env=LIMITS)
    wait_for_a_turn_of_others(step)
    step.make("go")
    result = step.end().ok()
    assert not re.search(r"waiting for|failed", result.stderr), result
