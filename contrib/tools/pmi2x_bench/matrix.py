# SPDX-License-Identifier: BSD-3-Clause
"""What is to be measured: peers, points, and which go together."""

import collections
import re

# Operations, whether the stock client, PMIx and the floor can do them, and what
# a "part" of their time is.
Op = collections.namedtuple("Op", "stock pmix floor part")
OPS = {
    "fence": Op(True, True, True, None),
    "ifence": Op(False, False, False, "in the call"),
    "allgather": Op(True, True, True, None),
    "iallgather": Op(False, False, False, "in the call"),
    "first": Op(True, True, False, "PMI init"),
    "ring": Op(True, False, False, None),
    "init": Op(True, True, False, "PMI init"),
    "iinit": Op(False, False, False, "PMI init"),
    "get": Op(True, True, False, "CPU time"),
}
CLIENTS = ("own", "stock", "dropin")
FLOOR_MODES = ("socket", "shm")
BYTES_MAX = 1023  # what PMI-2 can carry
NODES_MAX = 65536
RANKS_MAX = 1048576  # of a step


class BenchError(Exception):
    """Something the user can act upon; its text is all they see."""


Point = collections.namedtuple("Point", "op nodes per_node bytes")


class Peer(collections.namedtuple("Peer", "mpi variant")):
    """A --mpi type with a client, or a mode of the floor program."""

    def __str__(self):
        return f"{self.mpi}:{self.variant}" if self.variant else self.mpi

    def can(self, op):
        if self.mpi == "floor":
            return OPS[op].floor
        if self.mpi.startswith("pmix"):
            return OPS[op].pmix
        return OPS[op].stock or self.variant != "stock"


def numbers(text, low, high, what):
    found = []
    for word in text.split(","):
        if not re.fullmatch(r"[0-9]{1,9}", word):
            raise BenchError(f"{what}: '{word}' is not a number")
        if not low <= int(word) <= high:
            raise BenchError(f"{what}: {word} is not within {low} to {high}")
        found.append(int(word))
    return sorted(set(found))


def operations(text):
    found = list(dict.fromkeys(text.split(",")))
    for op in found:
        if op not in OPS:
            raise BenchError(
                f"--op: there is no '{op}'; there are {', '.join(OPS)}"
            )
    return found


def one_peer(word, client):
    mpi, colon, variant = word.partition(":")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", mpi):
        raise BenchError(f"--mpi: '{word}' is not a type")
    if mpi == "floor":
        allowed, default = FLOOR_MODES, FLOOR_MODES
    elif mpi.startswith("pmix"):
        allowed, default = (), ("",)
    else:
        allowed = CLIENTS
        default = (client or ("stock" if mpi == "pmi2" else "own"),)
    if colon and variant not in allowed:
        raise BenchError(
            f"--mpi: '{word}': after ':' may be {' or '.join(allowed)}"
            if allowed
            else f"--mpi: '{word}': {mpi} has its own client"
        )
    return [Peer(mpi, v) for v in ((variant,) if colon else default)]


def peers(text, client):
    found = [p for word in text.split(",") for p in one_peer(word, client)]
    return list(dict.fromkeys(found))


def points(options):
    nodes = numbers(options.nodes, 1, NODES_MAX, "--nodes")
    per_node = numbers(
        options.ranks_per_node, 1, RANKS_MAX, "--ranks-per-node"
    )
    sizes = numbers(options.bytes, 1, BYTES_MAX, "--bytes")
    found = [
        Point(op, n, r, b)
        for op in operations(options.op)
        for b in sizes
        for r in per_node
        for n in nodes
    ]
    for point in found:
        if point.nodes * point.per_node > RANKS_MAX:
            raise BenchError(
                f"{point.nodes} nodes x {point.per_node} ranks are more than "
                f"{RANKS_MAX} ranks"
            )
    return found


def check_pairs(found_points, found_peers):
    """Every peer and every operation must occur in some measurement."""
    ops = list(dict.fromkeys(p.op for p in found_points))
    for op in ops:
        if not any(peer.can(op) for peer in found_peers):
            raise BenchError(
                f"--op: none of {', '.join(map(str, found_peers))} can "
                f"do '{op}'; it needs a client of pmi2x, e.g. --mpi pmi2x:own"
            )
    for peer in found_peers:
        if not any(peer.can(op) for op in ops):
            raise BenchError(f"--mpi: {peer} can do none of {', '.join(ops)}")
