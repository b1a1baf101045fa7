# SPDX-License-Identifier: BSD-3-Clause
"""Two faults at once, and faults while another one is being dealt with."""

import os
import re
import signal

import pytest

from faulty import (
    HANGS_S,
    NODES,
    RANKS,
    TREE,
    daemon,
    is_alive,
    lost,
    ranks_of,
    remove_stale_sockets,
)
from harness import allowed, command_line, process_table, stopped, wait_until
from wide import mostly

HOLDER = 9  # on n5: keeps a fence open until the test says go
VICTIM = 3  # on n2
NOBODY_COMES = """#!/bin/sh
touch {started}
exec sleep 1000
"""


def held_fence(faulty, holder=HOLDER, **options):
    """All but one are in a fence."""
    step = faulty("init", "fence", "touch=at", "touch=in", f"{holder}:gate=go",
                  "fence", "fence", **options)
    step.wait_until_in("in", RANKS - {holder})
    step.wait_for("at", RANKS)
    return step


def wait_to_read(step, pattern):
    wait_until(lambda: re.search(pattern, step.stderr), HANGS_S)


def kill_ranks(step, *ranks):
    """In their fence, which need not fail by it; the next one does."""
    for rank in ranks:
        os.kill(step.pid("at", rank), signal.SIGKILL)
    step.make("go")


# ---- two of them ----


@pytest.mark.parametrize("nodes", mostly("n1 n2 n4", "n1 n3", "n2 n3"))
def test_step_daemons_killed_at_once(cluster, faulty, nodes):
    """Of neighbours, and of those that have none in common."""
    nodes = nodes.split()
    step = held_fence(faulty, max(ranks_of(nodes[0])))
    for pid in [cluster.step_daemon(node) for node in nodes]:
        os.kill(pid, signal.SIGKILL)
    result = step.fails(rf"ending step \S+: {lost('(' + '|'.join(nodes) + ')')}")
    assert not step.seen("done"), result
    remove_stale_sockets(cluster)


def test_ranks_killed_at_once(faulty):
    step = held_fence(faulty)
    kill_ranks(step, 0, VICTIM, 5)
    result = step.fails(r"fence \d failed: rank [035] \(node n[123]\) exited")
    assert step.seen("error") == RANKS - {0, VICTIM, 5}, result


def test_rank_and_step_daemon_killed_at_once(cluster, faulty):
    step = held_fence(faulty)
    pid = cluster.step_daemon("n4")
    kill_ranks(step, VICTIM)
    os.kill(pid, signal.SIGKILL)
    result = step.fails(rf"rank {VICTIM} \(node n2\) exited|node n4")
    assert not step.seen("done"), result
    remove_stale_sockets(cluster)


def test_abort_that_the_first_node_does_not_pass_on(cluster, faulty):
    """It is stopped when the abort comes, and killed before it has read it: the text
    is lost, but the step ends."""
    step = faulty(
        "init", "fence", "touch=in", "0:gate=never", "gate=go", "abort=enough",
        options=["-w", "n[1-2]", "-n2", "--ntasks-per-node=1"],
    )
    step.wait_for("in", {0, 1})
    root = cluster.agent("n1")
    with stopped(root):
        step.make("go")
        step.wait_until_gone("in", 1)
        os.kill(root, signal.SIGKILL)
    step.fails(r"n2: task 1: Exited with exit code 1")


# ---- while somebody waits ----


def test_rank_killed_after_a_report(faulty):
    """The one who is waited for, and has been named."""
    step = held_fence(faulty, VICTIM, env={"PMI2X_STALL_REPORT": "1"})
    wait_to_read(step, rf"fence 1: \d+ s, waiting for 1 of 10 ranks: {VICTIM} ")
    kill_ranks(step, VICTIM)
    result = step.fails(rf"fence 1 failed: rank {VICTIM} \(node n2\) exited")
    assert step.seen("error") == RANKS - {VICTIM}, result


@pytest.mark.parametrize("where", mostly("inner", "root", "leaf"))
def test_agent_killed_after_a_report(cluster, faulty, where):
    """It does not answer, is named, and then is gone."""
    node = NODES[where]
    step = held_fence(faulty, env={"PMI2X_STALL_REPORT": "1"})
    pid = cluster.agent(node)
    with stopped(pid):
        step.make("go")
        wait_to_read(step, rf"fence \d: \d+ s, .*no answer from .*{node}")
        os.kill(pid, signal.SIGKILL)
    result = step.fails(rf"ending step \S+: .*node {node}")
    assert "no answer" not in result.stderr.partition("ending step")[2], result
    assert not step.seen("done"), result


@pytest.mark.parametrize("where", mostly("leaf", "inner"))
def test_agent_goes_on_after_the_timeout(cluster, faulty, where):
    """What it says then changes nothing."""
    node = NODES[where]
    step = held_fence(faulty, env={"PMI2X_COLLECTIVE_TIMEOUT": allowed(3)})
    with stopped(cluster.agent(node)):
        step.make("go")
        wait_to_read(step, r"fence \d failed: .*Pmi2xCollectiveTimeout")
        wait_until(
            lambda: step.seen("error") == RANKS - ranks_of(node), HANGS_S
        )
    result = step.fails(rf"{node}")
    assert step.seen("error") == RANKS, result


# ---- while Slurm does not do its part ----


def test_rank_killed_while_srun_stands_still(faulty):
    """The fence fails without srun; it says so when it can."""
    step = held_fence(faulty)
    with stopped(step.srun.pid):
        kill_ranks(step, VICTIM)
        wait_until(lambda: step.seen("error") == RANKS - {VICTIM}, HANGS_S)
    step.fails(rf"fence \d failed: rank {VICTIM} \(node n2\) exited")


def test_step_daemon_killed_while_munged_stands_still(cluster, faulty):
    """Nobody can be told to end the step until it goes on."""
    step = held_fence(faulty, max(ranks_of("n2")))
    with stopped(daemon(cluster, "munged")):
        os.kill(cluster.step_daemon("n2"), signal.SIGKILL)
        wait_until(lambda: step.seen("error") == RANKS - ranks_of("n2"), HANGS_S)
    step.fails(r"fence 1 failed: .*node n2")
    remove_stale_sockets(cluster)


@pytest.mark.parametrize("what", ["rank", "agent", "step daemon"])
def test_death_in_a_suspended_step(cluster, faulty, what):
    step = held_fence(faulty)
    job = step.job()
    cluster.run("scontrol", "suspend", job).ok()
    if what == "rank":
        kill_ranks(step, VICTIM)
    elif what == "agent":
        os.kill(cluster.agent("n2"), signal.SIGKILL)
    else:
        os.kill(cluster.step_daemon("n2"), signal.SIGKILL)
    if what == "agent":  # Slurm does not end a step that is suspended
        step.wait_until_says("the agent of node n2 has died")
    else:
        wait_until(lambda: not is_alive(step.pid("at", VICTIM)), HANGS_S)
    cluster.run("scontrol", "resume", job)  # it may have ended
    result = step.fails(r"node n2|task 3")
    assert not step.seen("done"), result
    if what == "step daemon":
        remove_stale_sockets(cluster)


# ---- while a spawn waits for a program that does not start PMI ----


def spawning(faulty, tmp_path):
    """A step of which one rank is in a spawn, and what the others start."""
    program, started = tmp_path / "nobody-comes", tmp_path / "started"
    program.write_text(NOBODY_COMES.format(started=started))
    program.chmod(0o755)
    step = faulty("init", "touch=at", f"{VICTIM}:spawn={program}", "fence",
                  options=["--overlap", *TREE])
    step.wait_for("at", RANKS)
    wait_until(started.exists, HANGS_S)
    return step, str(program)


def gone(program):
    """Neither the spawned step nor the srun that has started it is left."""
    return not any(program in command_line(pid) for pid in process_table())


def test_cancelled_during_a_spawn(cluster, faulty, tmp_path):
    step, program = spawning(faulty, tmp_path)
    cluster.run("scancel", "--name", step.name).ok()
    step.fails()
    wait_until(lambda: gone(program), HANGS_S)


def test_rank_killed_during_its_spawn(faulty, tmp_path):
    step, program = spawning(faulty, tmp_path)
    kill_ranks(step, VICTIM)
    step.fails(rf"fence 0 failed: rank {VICTIM} \(node n2\) exited")
    wait_until(lambda: gone(program), HANGS_S)


def test_step_daemon_killed_during_a_spawn(cluster, faulty, tmp_path):
    step, program = spawning(faulty, tmp_path)
    os.kill(cluster.step_daemon("n2"), signal.SIGKILL)
    step.fails(r"ending step \S+: lost the connection to node n2")
    wait_until(lambda: gone(program), HANGS_S)
    remove_stale_sockets(cluster)


def test_srun_killed_during_a_spawn(cluster, faulty, tmp_path):
    step, program = spawning(faulty, tmp_path)
    step.srun.kill()
    step.srun.wait()
    assert not cluster.wait_until_clean()
    wait_until(lambda: gone(program), HANGS_S)
