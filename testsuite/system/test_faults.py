# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that end, stop, or never come, at every moment of every collective.

Whatever happens the step ends, srun fails and names rank, node and collective,
no rank gets through, and nothing is left behind (the cluster fixture looks).
"""

import re

import pytest

from faulty import HANGS_S, NODES, RANKS, TREE, listens, ranks_of
from harness import wait_until

ABORTING = 4096  # ranks; make check-scale lets 16,384 abort
HOLDER = 9  # keeps a collective open until the test says go
OPERATIONS = {
    "fence": ["fence"],
    "allgather": ["allgather"],
    "ring": ["ring"],
    "ifence": ["ifence", "wait"],
}
KINDS = {"ifence": "fence"}  # as srun calls them
BAD_EXIT = {"": [], "-K": ["-K"], "=0": ["--kill-on-bad-exit=0"]}

# How a rank ends, when, and where; each pair of properties occurs.
MATRIX = """
    fence      before   term  root
    fence      during   kill  inner
    fence      after    segv  leaf   =0
    fence      during   0     root   =0
    fence      before   0     leaf   -K
    fence      after    kill  root   -K
    allgather  before   kill  leaf   =0
    allgather  during   term  root   -K
    allgather  after    0     inner
    allgather  during   segv  leaf
    ring       before   segv  inner  -K
    ring       during   0     leaf
    ring       after    term  inner  =0
    ring       during   kill  root
    ifence     between  kill  root
    ifence     between  0     inner  =0
    ifence     between  segv  leaf   -K
    ifence     between  term  leaf
    ifence     during   kill  leaf
    ifence     before   0     root
    ifence     after    kill  inner
    fence      no-init  0     root
    allgather  no-init  0     leaf   =0
    ring       no-init  0     inner  -K
"""


def cases():
    for line in MATRIX.strip().splitlines():
        operation, when, how, where, *rest = line.split()
        name = "-".join([operation, when, how, where, *rest])
        yield pytest.param(operation, when, how, where, *(rest or [""]),
                           id=name)


def words_of(operation, when, how, victim):
    """The victim ends at that moment of the second of three collectives."""
    words, die = OPERATIONS[operation], f"{victim}:die={how}"
    held = ["touch=in", f"{HOLDER}:gate=go"]
    if when == "no-init":
        return [die, "init", *words]
    if when == "before":
        return ["init", *words, die, *words, *words]
    if when == "after":
        return ["init", *words, *words, die, *words]
    if when == "between":
        call, wait = words
        return ["init", *words, *held, call, die, wait, *words]
    return ["init", *words, f"{victim}:later={how}", *held, *words, *words]


def strike(step, when, victim):
    """At the moment that needs it: the others are in, the victim ends."""
    if when == "during":
        step.wait_until_in("in", RANKS - {HOLDER})
        step.make("now")
    if when in ("during", "between"):
        step.wait_for("in", RANKS)
        step.wait_until_gone("in", victim)
    step.make("go")


@pytest.mark.parametrize("operation, when, how, where, bad_exit", list(cases()))
def test_rank_ends(faulty, operation, when, how, where, bad_exit):
    node = NODES[where]
    victim = max(ranks_of(node))
    step = faulty(
        *words_of(operation, when, how, victim),
        options=[*TREE, *BAD_EXIT[bad_exit]],
    )
    strike(step, when, victim)
    kind = KINDS.get(operation, operation)
    named = rf"{kind} \d failed: rank {victim} \(node {node}\) exited"
    if bad_exit == "-K":  # srun itself may be the first to say it
        named += rf"|{node}: task {victim}: "
    result = step.fails(named)
    assert not step.seen("done"), result
    if bad_exit != "-K":  # else they may be killed before they know
        assert step.seen("error") == RANKS - {victim}, result


# One rank a node: n2 and n3 are inner nodes, n8 is a leaf. Slurm keeps the first
# node's slurmstepd, and so its agent, until the others have ended.
ALONE = ["-w", "n[1-8]", "-n8", "--ntasks-per-node=1"]


@pytest.mark.parametrize("how", ["0", "kill"])
@pytest.mark.parametrize("victim", [1, 2, 7])
def test_node_ends_before_anyone_connects(cluster, faulty, victim, how):
    """Nodes that connect to it are refused, as by a node that starts late."""
    node = f"n{victim + 1}"
    step = faulty(
        "touch=at", f"{victim}:gate=now", f"{victim}:die={how}", "gate=go",
        "init", "fence",
        options=[*ALONE, "--kill-on-bad-exit=0"],
        env={"PMI2X_CONNECT_TIMEOUT": "3600"},
    )
    step.wait_for("at", range(8))
    pid = cluster.step_daemon(node)
    assert listens(pid)
    step.make("now")
    wait_until(lambda: not listens(pid), HANGS_S)
    step.make("go")
    result = step.fails(rf"fence 0 failed: rank {victim} \(node {node}\) exited")
    assert not step.seen("done"), result


@pytest.mark.parametrize("version", ["PMI2X_DISABLE", "PMI2X_NOSHM"])
def test_rank_ends_over_the_socket(faulty, version):
    """The rank uses plain PMI-2, without what libpmi2x adds."""
    victim = max(ranks_of("n2"))
    step = faulty(
        *words_of("fence", "during", "kill", victim), env={version: "1"}
    )
    strike(step, "during", victim)
    result = step.fails(rf"fence \d failed: rank {victim} \(node n2\) exited")
    assert step.seen("error") == RANKS - {victim}, result


STALL = re.compile(
    r"fence 1: (\d+) s, waiting for 1 of 10 ranks: 3 \(node n2; stopped\)"
)


def test_stopped_rank_times_out(faulty):
    """The rank is reported at growing intervals; then the fence fails with its name."""
    env = {"PMI2X_STALL_REPORT": "1", "PMI2X_COLLECTIVE_TIMEOUT": "5"}
    step = faulty(
        "init", "fence", "3:stop", "fence",
        options=[*TREE, "-K"], env=env,
    )
    result = step.fails(
        r"fence 1 failed: Pmi2xCollectiveTimeout after \d+ s, waiting for "
        r"1 of 10 ranks: 3 \(node n2; stopped\)"
    )
    waited = [int(seconds) for seconds in STALL.findall(result.stderr)]
    # Once more where the way through the parent was slow to answer.
    assert len(set(waited)) >= 2 and sorted(waited) == waited, result
    assert not step.seen("done"), result


@pytest.mark.plain("putting a task in its control groups takes 0.1 s here")
def test_many_ranks_abort_at_once(faulty):
    """The aborts are merged on their way: srun names one, at once and at the end."""
    layout = ["-N16", f"-n{ABORTING}", f"--ntasks-per-node={ABORTING // 16}"]
    step = faulty("init", "fence", "abort=no-more", options=layout)
    result = step.fails(r"rank \d+ on node n\d+ called abort: no-more")
    named = re.findall(r"rank \d+ on node n\d+ called abort", result.stderr)
    assert len(named) == 2 and named[0] == named[1], result
