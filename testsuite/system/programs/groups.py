# SPDX-License-Identifier: BSD-3-Clause
"""Barriers of groups in PMI-1 1.2, of one task for each rank.

Arguments: "meet", or how the last rank leaves instead of meeting the others: "exit",
"finalize" (and exit), or "kill"; or "without": the others meet when the first has ended.
"""

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

BAD = ["", "0", "x:1", "0,0:1", "0,%d:1" % pmi.SIZE, "0,1:-1", "0,:1"]
LONG = ",".join(f"{rank:06}" for rank in range(10000))


def member(client, name, ranks, tag):
    """Each member reads after the barrier what every member has put."""
    client.put(f"{name}-{pmi.RANK}", f"of-{pmi.RANK}")
    group = ",".join(map(str, ranks))
    answer = client.ask("barrier_in", group=f"{group}:{tag}")
    assert answer["cmd"] == "barrier_out", answer
    assert answer["rc"] == "0" and answer["tag"] == str(tag), answer
    for rank in ranks:
        assert client.get(f"{name}-{rank}") == f"of-{rank}", rank


def named(client, group, tag):
    answer = client.ask("barrier_in", group=f"{group}:{tag}")
    assert answer["rc"] == "0" and answer["tag"] == str(tag), answer


def refused(client):
    """By an answer; this rank and the others go on."""
    for group in [*BAD, f"{LONG}:1", f"{(pmi.RANK + 1) % pmi.SIZE}:1"]:
        answer = client.ask("barrier_in", group=group)
        assert answer["rc"] != "0" and "msg" in answer, (group, answer)


def in_pieces(client, ranks):
    """A group's line byte by byte; twice, before anybody has left the first."""
    group = ",".join(map(str, ranks))
    for byte in f"cmd=barrier_in group={group}:9\n".encode() * 2:
        client.send_raw(bytes([byte]))
    for _ in range(2):
        answer = client.line()
        assert answer["rc"] == "0" and answer["tag"] == "9", answer


def threads(client, ranks):
    """As threads would, in another order at each rank."""
    group = ",".join(map(str, ranks))
    tags = [str(100 + (pmi.RANK + i) % 10) for i in range(10)]
    for tag in tags:
        client.send_raw(f"cmd=barrier_in group={group}:{tag}\n".encode())
    answers = [client.line()["tag"] for _ in tags]
    assert sorted(answers) == sorted(tags), answers


def meet(client):
    size = pmi.SIZE
    member(client, "all", range(size), 2147483647)
    for step in (2, 3):
        ranks = range(pmi.RANK % step, size, step)
        for again in range(3):
            member(client, f"every-{step}-{again}", ranks, step)
    member(client, "alone", [pmi.RANK], 0)
    refused(client)
    for tag in (0, 5):
        named(client, "NODE", tag)
        named(client, "WORLD", tag)
    in_pieces(client, range(size))
    threads(client, range(size - 1, -1, -1))
    client.fence()
    for rank in range(size):
        assert client.get(f"every-3-2-{rank}") == f"of-{rank}"
    client.finalize()
    print("groups", size)


def leave(client, how):
    """The others wait for the last rank, which never comes."""
    last = pmi.SIZE - 1
    if pmi.RANK == last:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "finalize":
            client.finalize()
        sys.exit(0)
    answer = client.ask("barrier_in", group=f"{last},0,{pmi.RANK or 1}:3")
    print("answered", answer)


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def without(client):
    """Messages between the other members pass the node of the first member, which
    leaves. One member reports when it has gone: if each noticed by itself, they would
    wait for each other in different barriers."""
    if pmi.RANK == 0:
        client.put("pid", str(os.getpid()))
    client.fence()
    if pmi.RANK != 0:
        first, gone = int(client.get("pid")), None
        others = ",".join(map(str, range(1, pmi.SIZE)))
        while gone is None:
            if pmi.RANK == 1 and not is_there(first):
                client.put("gone", "yes")
            named(client, others, 1)
            gone = client.get("gone")
        for _ in range(500):
            named(client, others, 2)
    client.finalize()
    print("without", pmi.SIZE)


client = pmi.connect("1")
client.init()
if sys.argv[1] == "meet":
    meet(client)
elif sys.argv[1] == "without":
    without(client)
else:
    leave(client, sys.argv[1])
