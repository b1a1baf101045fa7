# SPDX-License-Identifier: BSD-3-Clause
"""A trace as a time line in Chrome's trace event format."""

import json

from . import phases

POINTS = ("put", "finalize")
AGENT_THREAD = 0  # rank r is thread r + 1
NS_PER_US = 1000


def name_of(kind, pid, tid, name):
    return {
        "ph": "M",
        "name": kind,
        "pid": pid,
        "tid": tid,
        "args": {"name": name},
    }


def span(name, pid, tid, begin, end):
    """A bar, if it has both ends."""
    if begin is None or end is None or end < begin:
        return []
    return [
        {
            "ph": "X",
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": begin / NS_PER_US,
            "dur": (end - begin) / NS_PER_US,
        }
    ]


def agent_events(node):
    pid = node.position
    yield name_of("process_name", pid, AGENT_THREAD, f"node {node.name}")
    yield name_of("thread_name", pid, AGENT_THREAD, "agent")
    for name, begin, end in phases.OF_NODES:
        yield from span(name, pid, AGENT_THREAD, node.at[begin], node.at[end])
    for collective in node.collectives:
        title = f"{collective.kind} {collective.seq}"
        for name, begin, end in phases.OF_COLLECTIVES:
            at = collective.at
            text = f"{title}: {name}"
            yield from span(text, pid, AGENT_THREAD, at[begin], at[end])


def rank_events(rank, pieces):
    pid, tid = rank.node.position, rank.rank + 1
    yield name_of("thread_name", pid, tid, f"rank {rank.rank}")
    own, seen = rank.own, rank.seen
    for piece in pieces:
        text = f"{piece.name}: {piece.part}"
        yield from span(text, pid, tid, piece.begin, piece.end)
    if rank.recorded and not pieces:
        yield from span("init", pid, tid, own["begin"], own["end"])
        yield from span("fence", pid, tid, own["fence_in"], own["fence_out"])
        yield from span(
            "allgather", pid, tid, own["gather_in"], own["gather_out"]
        )
    points = {name: own[name] for name in POINTS} if rank.recorded else seen
    for name, stamp in points.items():
        if stamp is not None:
            yield {
                "ph": "i",
                "s": "t",
                "name": name,
                "pid": pid,
                "tid": tid,
                "ts": stamp / NS_PER_US,
            }


def events(trace, divided):
    for node in trace.nodes:
        yield from agent_events(node)
        for rank in node.ranks:
            yield from rank_events(rank, divided.pieces.get(rank, []))


def write(trace, divided, path):
    content = {
        "traceEvents": list(events(trace, divided)),
        "displayTimeUnit": "ms",
        "otherData": {"step": trace.step},
    }
    with open(path, "w", encoding="ascii") as file:
        json.dump(content, file, separators=(",", ":"))
