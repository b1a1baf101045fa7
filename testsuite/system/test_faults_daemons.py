# SPDX-License-Identifier: BSD-3-Clause
"""slurmstepd, slurmd, srun and munged that end or stop, and scancel."""

import json
import os
import random
import re
import signal
import time

import pytest

from faulty import (
    NODES,
    RANKS,
    TREE,
    daemon,
    lost,
    ranks_of,
    remove_stale_sockets,
)
from harness import stopped, wait_until
from wide import mostly

HOLDER = 9  # keeps a fence open until the test says go
CANCELS = int(os.environ.get("PMI2X_TEST_CANCELS", 20))
CANCELS_AT_ONCE = 4
CANCEL_SPAN_S = 2.0  # from before the launch to the last collectives
# No step ends before its scancel, however fast the machine is.
EVERYTHING = ["fence", "allgather", "ring", "ifence", "wait"] * 20 + ["gate=go"]


@pytest.mark.parametrize("where", mostly("root", "inner", "leaf"))
def test_step_daemon_killed_in_a_fence(cluster, faulty, where):
    """The fence, which waits for a rank of its node, fails by the node's name,
    and srun does not wait for its ranks. (The root's agent ends the step first.)"""
    node = NODES[where]
    holder = max(ranks_of(node))
    step = faulty("init", "fence", "touch=in", f"{holder}:gate=go", "fence")
    step.wait_until_in("in", RANKS - {holder})
    os.kill(cluster.step_daemon(node), signal.SIGKILL)
    named = [rf"fence 1 failed: .*node {node}"] if where != "root" else []
    result = step.fails(rf"ending step \S+: {lost(node)}", *named)
    assert not step.seen("done"), result
    remove_stale_sockets(cluster)


@pytest.mark.parametrize("where", mostly("leaf", "inner", "root"))
def test_step_daemon_killed_while_nobody_waits(cluster, faulty, where):
    """The step ends although no collective fails."""
    node = NODES[where]
    step = faulty("init", "fence", "touch=out", "gate=go", "fence")
    step.wait_for("out", RANKS)
    os.kill(cluster.step_daemon(node), signal.SIGKILL)
    result = step.fails(rf"ending step \S+: {lost(node)}")
    assert not step.seen("done"), result
    remove_stale_sockets(cluster)


@pytest.mark.parametrize("where", mostly("inner", "root", "leaf"))
def test_step_daemon_killed_before_wireup(cluster, faulty, where):
    """No node has a connection with it: nodes that wait for it get an error with its
    name."""
    node = NODES[where]
    step = faulty("touch=at", "gate=go", "init", "fence")
    step.wait_for("at", RANKS)
    os.kill(cluster.step_daemon(node), signal.SIGKILL)
    step.make("go")
    result = step.fails(rf"node {node}\b")
    assert not step.seen("done"), result
    remove_stale_sockets(cluster)


@pytest.mark.wide
@pytest.mark.parametrize("where", NODES)
def test_step_daemon_killed_before_its_ranks_run(
    spank_cluster, plugstack, compile_spank, start_faulty, tmp_path, where
):
    """srun has not heard of them, and never will."""
    if spank_cluster.kind != "pmi2x":
        pytest.skip("the stock plugin waits forever")
    node = NODES[where]
    number, held = int(node[1:]) - 1, tmp_path / "held"
    plugin = compile_spank("programs/spank-waiter.c")
    plugstack.write_text(f"required {plugin} {number} {held}\n")
    layout = ["-N4", "-n8", "--ntasks-per-node=2"]
    step = start_faulty(spank_cluster, "touch=in", "init", "fence", options=layout)
    wait_until(held.exists)
    step.wait_for("in", set(range(8)) - {2 * number, 2 * number + 1})
    os.kill(int(held.read_text()), signal.SIGKILL)
    step.fails(rf"ending step \S+: .*lost the slurmstepd of node {node} \(ranks ")
    plugstack.write_text("")
    remove_stale_sockets(spank_cluster, 4)


def srun_hears(step, tool, node):
    """True: srun is connected with the agent of a node. Agents that have left are
    silent."""
    shown = step.cluster.run(tool, "--json", "--live", f"{step.job()}.0")
    nodes = json.loads(shown.stdout)["nodes"] if not shown.code else []
    return any(one["node"] == node and one["answered"] for one in nodes)


def test_step_daemon_killed_when_all_others_have_left(cluster, faulty, tool):
    """Only srun has a connection with it: the root's, for those above others stay."""
    node = NODES["root"]
    stay = ranks_of(node)
    others = sorted(RANKS - stay)
    step = faulty(
        "init", "fence", *(f"{rank}:finalize" for rank in others),
        *(f"{rank}:die=0" for rank in others), "touch=out", "gate=go",
    )
    step.wait_for("out", stay)
    gone = {f"n{number}" for number in range(1, 6)} - {node}
    wait_until(lambda: not any(map(cluster.step_daemon, gone)))
    pid = cluster.step_daemon(node)
    wait_until(lambda: srun_hears(step, tool, node))
    os.kill(pid, signal.SIGKILL)
    step.fails(rf"ending step \S+: {lost(node)}")
    remove_stale_sockets(cluster)


@pytest.mark.parametrize("where", mostly("inner", "leaf"))
def test_step_daemon_killed_while_others_leave(cluster, faulty, where):
    """The agent of that node answers the goodbyes, and is then the only one that can
    report it."""
    node = NODES[where]
    stay = ranks_of(node)
    others = sorted(RANKS - stay)
    step = faulty(
        "init", "fence", "touch=in", *(f"{rank}:gate=leave" for rank in others),
        *(f"{rank}:die=0" for rank in others), "gate=go",
    )
    step.wait_for("in", RANKS)
    pid = cluster.step_daemon(node)
    with stopped(pid):
        step.make("leave")
        for rank in others:
            step.wait_until_gone("in", rank)
        os.kill(pid, signal.SIGKILL)
    step.fails(rf"ending step \S+: {lost(node)}")
    remove_stale_sockets(cluster)


def test_srun_killed(cluster, faulty):
    """The process that srun leaves behind for this case ends the job."""
    step = faulty("init", "fence", "touch=in", f"{HOLDER}:gate=go", "fence")
    step.wait_until_in("in", RANKS - {HOLDER})
    step.srun.kill()
    step.srun.wait()
    assert not cluster.wait_until_clean()
    assert not step.seen("done")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_srun_told_to_end(faulty, number):
    step = faulty("init", "fence", "touch=out", "gate=go", "fence")
    step.wait_for("out", RANKS)
    step.srun.send_signal(number)
    if number == signal.SIGINT:  # srun wants it twice within a second
        wait_until(lambda: "interrupt" in step.stderr)
        step.srun.send_signal(number)
    result = step.fails()
    assert not step.seen("done"), result


def seed():
    """The seed of the random moments; a failing one is in the test's output."""
    wanted = os.environ.get("PMI2X_TEST_SEED")
    return int(wanted) if wanted else random.randrange(1 << 32)


def is_known(cluster, step):
    """Whether slurmctld has its job, so that scancel finds it."""
    found = cluster.run("squeue", "--noheader", "--name", step.name)
    return bool(found.stdout.strip())


def test_cancelled_at_random_moments(cluster, faulty):
    """scancel never leaves a step that hangs, or anything else."""
    chosen = seed()
    print(f"PMI2X_TEST_SEED={chosen}")
    moments = random.Random(chosen)
    for _ in range(0, CANCELS, CANCELS_AT_ONCE):
        begin = time.monotonic()
        steps = [
            (moments.uniform(0, CANCEL_SPAN_S),
             faulty("init", *EVERYTHING, "finalize"))
            for _ in range(CANCELS_AT_ONCE)
        ]
        for moment, step in sorted(steps, key=lambda pair: pair[0]):
            time.sleep(max(0, begin + moment - time.monotonic()))
            wait_until(lambda: is_known(cluster, step))
            cluster.run("scancel", "--name", step.name)
        for _, step in steps:
            assert step.end().code != 0
        assert not cluster.wait_until_clean()


def test_munged_stopped_during_wireup(cluster, faulty):
    """Links do not need it."""
    step = faulty("touch=at", "gate=go", "init", "fence", "touch=out",
                  "finalize")
    step.wait_for("at", RANKS)
    with stopped(daemon(cluster, "munged")):
        step.make("go")
        step.wait_for("out", RANKS)
    step.end().ok()


LEAVERS = ranks_of("n2")
STAYS = max(ranks_of("n3"))  # below n2 in the tree


def ended_inner_node(faulty, *words):
    """The ranks of an inner node have ended long before those below it, whose requests
    go by its agent."""
    first, last = min(LEAVERS), max(LEAVERS)
    step = faulty(
        "init", "fence", "touch=in", f"{first}-{last}:finalize",
        f"{first}-{last}:die=0", "touch=out", "gate=go",
        *(f"{STAYS}:{word}" for word in words),
        "finalize", options=["--overlap", *TREE],
    )
    step.wait_for("in", LEAVERS)
    for rank in LEAVERS:
        step.wait_until_gone("in", rank)
    step.wait_for("out", RANKS - LEAVERS)
    step.make("go")
    return step


@pytest.mark.parametrize("words", [
    ["publish=name", "lookup=name"], ["spawn=/bin/true"],
], ids=["names", "spawn"])
def test_requests_from_below_a_node_whose_ranks_have_ended(faulty, words):
    step = ended_inner_node(faulty, *words)
    step.end().ok()
    assert step.seen("done") == RANKS - LEAVERS


def test_abort_from_below_a_node_whose_ranks_have_ended(faulty):
    step = ended_inner_node(faulty, "abort=enough")
    step.fails(rf"rank {STAYS} on node n3 called abort: enough")


@pytest.fixture
def job(cluster):
    """An allocation; its prolog has run on all nodes."""
    granted = cluster.run("salloc", "--no-shell", "--wait-all-nodes=1", *TREE).ok()
    number = re.search(r"Granted job allocation (\d+)", granted.stderr)[1]
    yield number
    cluster.run("scancel", number).ok()


def test_step_that_fails_while_it_is_launched(cluster, faulty, job):
    """The step is ended when all nodes have answered: srun waits KillWait for tasks
    that slurmd is asked to start after their step was killed."""
    with stopped(daemon(cluster, "slurmd", "n5")):
        step = faulty(
            "init",
            "3:die=5",
            "fence",
            options=[f"--jobid={job}", *TREE],
            env={"PMI2X_KILL_ON_FAILURE": "on"},
        )
        step.wait_until_says("ending step")
    result = step.fails(r"step \S+ failed: fence 0 failed: rank 3 \(node n2\) exited")
    assert "Timed out" not in result.stderr, result
    assert "before step completely launched" not in result.stderr, result
