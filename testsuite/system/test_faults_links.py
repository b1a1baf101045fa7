# SPDX-License-Identifier: BSD-3-Clause
"""Connections between agents that break, stall or are never made.

The sockets of running agents are cut, or the kernel is told to drop what comes
for them, which is what a host that has lost power looks like.
"""

import os
import signal
import socket

import pytest

import harness
from faulty import (
    NODES,
    RANKS,
    drop_data,
    links,
    listener,
    ranks_of,
    received,
    silence,
)
from harness import allowed, wait_until

HOLDER = 9
MUCH = "put=16"  # more in all than the kernel keeps for a connection
BELOW = ranks_of("n2") | ranks_of("n3")
BELOW_BYTES = len(BELOW) * 16 * (256 << 10)  # of what they put


@pytest.fixture
def stopped(cluster):
    """Stops the agent of a node; it goes on after the test at the latest."""
    pids = []

    def stop(node):
        pids.append(cluster.agent(node))
        harness.stop(pids[-1])
        return pids[-1]

    yield stop
    for pid in pids:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass


def large_fence(cluster, faulty, stopped, **options):
    """n2 does not read the result that the others have got."""
    step = faulty(
        "init", "fence", MUCH, "touch=in", f"{HOLDER}:gate=go", "fence",
        "touch=out", "fence", "finalize", **options,
    )
    step.wait_until_in("in", RANKS - {HOLDER})
    root, inner = cluster.agent("n1"), cluster.agent("n2")
    # Else the others wait for it, and get nothing either.
    wait_until(lambda: sum(map(received, links(root, inner))) > BELOW_BYTES)
    stopped("n2")
    step.make("go")
    step.wait_for("out", RANKS - BELOW)
    return step, inner


def test_link_cut_in_the_middle_of_a_chunk(cluster, faulty, stopped):
    step, inner = large_fence(cluster, faulty, stopped)
    for link in links(cluster.agent("n1"), inner):
        link.shutdown(socket.SHUT_RDWR)
    os.kill(inner, signal.SIGCONT)
    result = step.fails(r"lost the connection to node n[12]")
    assert not step.seen("done"), result
    assert not step.seen("out") & BELOW, result


def test_peer_that_stops_reading(cluster, faulty, stopped):
    """The node is named, and nothing is lost when it goes on."""
    env = {"PMI2X_STALL_REPORT": "1"}
    step, inner = large_fence(cluster, faulty, stopped, env=env)
    step.wait_until_says(r"fence \d: .*n2")
    os.kill(inner, signal.SIGCONT)
    step.end().ok()
    assert step.seen("done") == RANKS


def test_peer_that_stops_reading_for_too_long(cluster, faulty, stopped):
    env = {"PMI2X_COLLECTIVE_TIMEOUT": allowed(2)}
    step, inner = large_fence(cluster, faulty, stopped, env=env)
    pattern = r"fence \d failed: Pmi2xCollectiveTimeout"
    step.wait_until_says(pattern)
    os.kill(inner, signal.SIGCONT)
    result = step.fails(r"n2")
    assert not step.seen("done"), result


def stopped_root(faulty, stopped, **options):
    """n1, through which all goes, is stopped while all are in a fence."""
    step = faulty(
        "init", "fence", "touch=in", f"{HOLDER}:gate=go", "fence", "fence",
        "finalize", **options,
    )
    step.wait_until_in("in", RANKS - {HOLDER})
    root = stopped("n1")
    step.make("go")
    return step, root


def test_stopped_root(faulty, stopped):
    """The root is named, though it reports to srun, and can go on."""
    step, root = stopped_root(faulty, stopped, env={"PMI2X_STALL_REPORT": "1"})
    pattern = r"fence 1: \d+ s, .*; no answer from node n1\n"
    step.wait_until_says(pattern)
    os.kill(root, signal.SIGCONT)
    step.end().ok()
    assert step.seen("done") == RANKS


def test_stopped_root_for_too_long(faulty, stopped):
    """The fence fails for all who can be told."""
    env = {"PMI2X_COLLECTIVE_TIMEOUT": allowed(3)}
    step, root = stopped_root(faulty, stopped, env=env)
    pattern = r"fence 1 failed: .*Pmi2xCollectiveTimeout"
    step.wait_until_says(pattern)
    wait_until(lambda: step.seen("error") == RANKS - ranks_of("n1"), 60)
    os.kill(root, signal.SIGCONT)
    result = step.fails()
    assert step.seen("error") == RANKS, result


WIRING = ["touch=at", "gate=go", "init", "fence", "allgather", "finalize"]


@pytest.mark.parametrize("fault", [silence, drop_data], ids=[
    "connect-hangs", "hello-lost"])
@pytest.mark.parametrize("where", NODES)
def test_node_that_cannot_be_connected_to(cluster, faulty, where, fault):
    """It connects itself when it is told to."""
    step = faulty(*WIRING)
    step.wait_for("at", RANKS)
    fault(listener(cluster.step_daemon(NODES[where])))
    step.make("go")
    step.end().ok()
    assert step.seen("done") == RANKS


def test_no_node_can_be_connected_to(cluster, faulty):
    step = faulty(*WIRING, env={"PMI2X_CONNECT_TIMEOUT": "2"})
    step.wait_for("at", RANKS)
    for number in range(1, 6):
        silence(listener(cluster.step_daemon(f"n{number}")))
    step.make("go")
    result = step.fails(
        r"cannot reach node n\d \(port \d+\) within \d+ s: .*open ports"
    )
    assert not step.seen("done"), result
