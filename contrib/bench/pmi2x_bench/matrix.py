# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of measurements: peers, points, and which go together."""

import collections
import re

from . import layout
from .errors import BenchError

# Which clients can do an operation: "own" (libpmi2x), "stock" (PMI-2), "pmi1",
# "pmix", "floor", and "none" (no PMI). part and wait are the titles of what the rank reports
# beside the time of an operation; `against`: it is compared with a step without
# PMI; `settles`: all ranks are there, and their puts are done, before they enter it.
Op = collections.namedtuple(
    "Op", "clients part wait against settles", defaults=(None, None, False, False)
)
PMI = ("own", "stock", "pmi1", "pmix")
CALL, WAIT = "in the call", "in Wait"
OPS = {
    "fence": Op((*PMI, "floor"), settles=True),
    "exchange": Op((*PMI, "floor")),
    "ifence": Op(("own",), CALL, WAIT, settles=True),
    "allgather": Op((*PMI, "floor"), settles=True),
    "getall": Op(PMI, settles=True),
    "iallgather": Op(("own",), CALL, WAIT, settles=True),
    "view": Op(("own",), CALL, WAIT, settles=True),
    "first": Op(PMI, "PMI init", settles=True),
    "many": Op(PMI, "get, CPU"),
    "ring": Op(("own", "stock"), settles=True),
    "group": Op(("pmi1",), settles=True),
    "init": Op((*PMI, "none"), "PMI init", against=True),
    "init-only": Op((*PMI, "none"), "PMI init", against=True),
    "iinit": Op(("own", "none"), "PMI init", WAIT, against=True),
    "overlap": Op(("own",), CALL, WAIT, settles=True),
    "overlap-fence": Op(("own",), CALL, WAIT, settles=True),
    "get": Op(PMI, "CPU time"),
    "fetch": Op(("own", "pmix"), "CPU time"),
    "memory": Op(PMI, "shared"),
    "step": Op((*PMI, "none"), against=True),
    "true": Op((*PMI, "none"), against=True),
}
PHASES = {
    "overlap": ("exchange", "compute", ""),
    "overlap-fence": ("exchange", "compute", ""),
}
GATHERS = {"allgather", "getall", "iallgather", "overlap", "iinit"}
CLIENTS = ("own", "stock", "dropin", "pmi1", "pmix")
FLOOR_MODES = ("socket", "shm")
BYTES_MAX = 1023  # the longest value of PMI-2
NODES_MAX = 65536
RANKS_MAX = 1048576  # the largest step


class Point(collections.namedtuple("Point", "op nodes per_node layout bytes")):
    """An operation at one size."""

    @property
    def ranks(self):
        return self.nodes * self.per_node

    def counts(self):
        return self.layout.counts(self.nodes, self.per_node)

    def __str__(self):
        text = f"{self.op} {self.nodes} x {self.per_node}"
        return text if self.layout == layout.BLOCK else f"{text} {self.layout}"


class Peer(collections.namedtuple("Peer", "mpi variant")):
    """A --mpi type with a client, or a mode of the floor program."""

    def __str__(self):
        return f"{self.mpi}:{self.variant}" if self.variant else self.mpi

    @property
    def client(self):
        if self.mpi in ("floor", "none"):
            return self.mpi
        if self.mpi.startswith("pmix"):
            return "pmix"
        return self.variant if self.variant in ("stock", "pmi1", "pmix") else "own"

    def can(self, op):
        if self == NONE_MEET:
            return op == "step"
        return self.client in OPS[op].clients


NONE = Peer("none", "")
NONE_MEET = Peer("none", "meet")  # its ranks end when all of them have begun


def numbers(text, low, high, what):
    found = []
    for word in text.split(","):
        if not re.fullmatch(r"[0-9]{1,9}", word):
            raise BenchError(f"{what}: '{word}' is not a number")
        if not low <= int(word) <= high:
            raise BenchError(f"{what}: {word} is not within {low} to {high}")
        found.append(int(word))
    return sorted(set(found))


def among(option, text, names):
    """The names in a comma-separated list, in its order; each must be among `names`."""
    found = list(dict.fromkeys(text.split(",")))
    for name in found:
        if name not in names:
            raise BenchError(
                f"{option}: there is no '{name}'; there are {', '.join(names)}"
            )
    return found


def operations(text):
    return among("--op", text, OPS)


def one_peer(word, client):
    mpi, colon, variant = word.partition(":")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", mpi):
        raise BenchError(f"--mpi: '{word}' is not a type")
    if mpi == "floor":
        allowed, default = FLOOR_MODES, FLOOR_MODES
    elif mpi == "none":
        allowed, default = ("meet",), ("",)
    elif mpi.startswith("pmix"):
        allowed, default = (), ("",)
    else:
        allowed = CLIENTS
        default = (client or ("stock" if mpi == "pmi2" else "own"),)
    if colon and variant not in allowed:
        raise BenchError(
            f"--mpi: '{word}': after ':' may be {' or '.join(allowed)}"
            if allowed
            else f"--mpi: '{word}': {mpi} has no choice of a client"
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
        Point(op, n, r, way, b)
        for op in operations(options.op)
        for way in layout.parse_list(options.layout)
        for b in sizes
        for r in per_node
        for n in nodes
    ]
    for point in found:
        if point.ranks > RANKS_MAX:
            raise BenchError(
                f"{point.nodes} nodes x {point.per_node} ranks are more than "
                f"{RANKS_MAX} ranks"
            )
        point.counts()
    return found


def check_pairs(found_points, found_peers):
    """Every peer and every operation must occur in some measurement."""
    ops = list(dict.fromkeys(p.op for p in found_points))
    for op in ops:
        able = [peer for peer in found_peers if peer.can(op)]
        names = ", ".join(map(str, found_peers))
        if not able:
            raise BenchError(
                f"--op: none of {names} can do '{op}'; it needs one of "
                f"{', '.join(OPS[op].clients)}, e.g. --mpi pmi2x:own"
            )
        if op in ("step", "true") and NONE not in able:
            raise BenchError(
                f"--op: '{op}' is compared with a step without PMI: "
                f"--mpi none,{names.replace(' ', '')}"
            )
    for peer in found_peers:
        if not any(peer.can(op) for op in ops):
            raise BenchError(f"--mpi: {peer} can do none of {', '.join(ops)}")
