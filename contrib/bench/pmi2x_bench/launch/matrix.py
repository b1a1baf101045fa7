# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of launches: tests, configurations and launchers."""

import re

from .. import layout
from ..errors import BenchError
from ..matrix import (
    NODES_MAX,
    RANKS_MAX,
    Peer,
    Point,
    among,
    one_peer,
)

TESTS = {
    "true": "/bin/true",
    "hostname": "hostname",
    "pmi": "PMI no-op",
    "mpi": "MPI no-op",
}
# The configurations of the ORTE scalability tests.
CONFIGS = (
    "256x1,256x2,256x8,256x16,512x1,512x2,1024x1,1024x2,2048x1,2048x2,"
    "3000x1,3000x2"
)
METHODS = "none,pmi2,pmi2x,pmix,hydra,prrte"
# Launchers beside srun: the program, and what its ranks speak.
LAUNCHERS = {"hydra": ("mpiexec.hydra", "pmi1"), "prrte": ("prterun", "pmix")}


def client(method):
    """Which PMI client the PMI no-op has to use."""
    if method.mpi in LAUNCHERS:
        return LAUNCHERS[method.mpi][1]
    return method.client


def tests(text):
    return among("--tests", text, TESTS)


def one_method(word):
    name, colon, _ = word.partition(":")
    if name == "floor":
        raise BenchError("--methods: floor starts nothing; see pmi2x-bench-collectives(1)")
    if name not in LAUNCHERS:
        try:
            return one_peer(word, None)
        except BenchError as error:
            raise BenchError(str(error).replace("--mpi", "--methods")) from None
    if colon:
        raise BenchError(f"--methods: '{word}': {name} has no choice of a client")
    return [Peer(name, "")]


def methods(text):
    found = [m for word in text.split(",") for m in one_method(word)]
    return list(dict.fromkeys(found))


def one_config(word):
    match = re.fullmatch(r"([1-9][0-9]{0,6})x([1-9][0-9]{0,6})", word)
    if not match:
        raise BenchError(
            f"--configs: '{word}' is not NODESxRANKS, for example 256x16"
        )
    nodes, per_node = int(match[1]), int(match[2])
    if nodes > NODES_MAX:
        raise BenchError(
            f"--configs: {word} has more than {NODES_MAX} nodes"
        )
    if nodes * per_node > RANKS_MAX:
        raise BenchError(
            f"--configs: {word} has more than {RANKS_MAX} ranks"
        )
    return nodes, per_node


def configs(text):
    """Small ones first: a trial costs little, and growth shows early."""
    found = dict.fromkeys(one_config(word) for word in text.split(","))
    return sorted(found, key=lambda c: (c[0] * c[1], c[0]))


def point(test, config):
    return Point(test, *config, layout.BLOCK, 0)


def named(config):
    return f"{config[0]}x{config[1]}"


def why_not(test, method):
    """Why a method cannot do a test anywhere; "" when it can."""
    if test in ("pmi", "mpi") and client(method) == "none":
        return f"there is no PMI under --mpi={method.mpi}"
    return ""
