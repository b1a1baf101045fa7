# SPDX-License-Identifier: BSD-3-Clause
"""Steps that use the store of keys, and its peers: PyTorch's TCPStore in a process of its
own, and a polled file."""

import collections
import contextlib
import os
import statistics
import subprocess
import tempfile

from . import matrix, record
from .errors import BenchError
from .run import failure, run_srun

MEETING_BYTES = 4096  # more than ranks map of the file in which they meet
ABOUT = ("Medians. Seconds: from the first entry to the last return; one: from the set; "
         "command: from the last entry. CPU: processor time of the busiest server. "
         "TCPStore of PyTorch 1.13 uses poll.")
POLL = "until [ $(ls {0} | wc -l) -ge $SLURM_NTASKS ]; do sleep 0.1; done"

# Ranks, rounds and peers of an operation: as the requirements of the store have them.
Op = collections.namedtuple("Op", "work nodes per_node rounds peers")
SERVERS = ("torch", "store", "tree")
OPS = {
    "all": Op("all", 64, 16, 1, SERVERS),
    "one": Op("one", 64, 64, 1, SERVERS),
    "barrier": Op("barrier", 64, 16, 20, SERVERS),
    "sync": Op("command", 16, 4, 10, ("file", "sync")),
    "true": Op("true", 64, 16, 1, ("none", "pmi2x")),
}
# Peers that ours are compared with.
BASES = ("torch", "file", "none")
PEERS = list(dict.fromkeys(peer for op in OPS.values() for peer in op.peers))

FORM = record.Form(
    "pmi2x bench store", "op", op=record.one_of("operation", OPS), peer=str, nodes=int,
    ranks_per_node=int, bytes=int, repeat=int, round=int, seconds=float,
    server_cpu_seconds=record.number, all_servers_cpu_seconds=record.number)


class Point(collections.namedtuple("Point", "op nodes per_node bytes rounds")):
    def __str__(self):
        return f"{self.op} {self.nodes} x {self.per_node}"


# One round. busiest, servers: processor seconds of the busiest server, and of all.
Sample = collections.namedtuple("Sample", "seconds busiest servers")


def points(options):
    return [Point(name, options.nodes or OPS[name].nodes,
                  options.ranks_per_node or OPS[name].per_node, options.bytes,
                  options.rounds or OPS[name].rounds)
            for name in matrix.among("--op", options.op, OPS)]


def peers_of(options, point):
    wanted = matrix.among("--peers", options.peers, PEERS)
    return [peer for peer in OPS[point.op].peers if peer in wanted]


# ---- results ----


class Results(record.Results):
    """Samples by point and peer."""

    def add_all(self, point, peer, samples):
        for sample in samples:
            self.add((point, peer), sample)

    def median_of(self, key, field):
        values = [getattr(s, field) for s in self.of(key)]
        return None if not values or None in values else statistics.median(values)


def rows(point, peer, repeat, samples):
    for number, s in enumerate(samples, 1):
        cpu = ["" if x is None else f"{x:.6f}" for x in (s.busiest, s.servers)]
        yield [point.op, peer, point.nodes, point.per_node, point.bytes, repeat, number,
               f"{s.seconds:.6f}", *cpu]


def ratio(base, value):
    return f"{base / value:.2f}" if base and value else "-"


def shown(value):
    return "-" if value is None else f"{value:.4g}"


def table(results):
    head = ["operation", "peer", "seconds", "CPU s", "times as fast", "times less CPU"]
    lines = [head]
    for point, peer in results.keys():
        base = next((p for p in BASES if (point, p) in results.samples), peer)
        mine, theirs = ([results.median_of((point, p), f) for f in ("seconds", "busiest")]
                        for p in (peer, base))
        lines.append([str(point), peer, *map(shown, mine),
                      *map(ratio, theirs, mine)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join(word.ljust(w) for word, w in zip(line, widths)).rstrip()
            for line in lines]


# ---- steps ----


def spans(op, stamps):
    """Seconds of a round, from (rank, begin, end) of all ranks."""
    begins = [begin for _, begin, _ in stamps]
    last = max(end for _, _, end in stamps)
    if op == "one":
        return last - min(stamps)[1]
    return last - (max(begins) if op == "sync" else min(begins))


def parse(point, text):
    """A sample for each round."""
    stamps, servers = collections.defaultdict(list), {}
    for words in map(str.split, text.splitlines()):
        if words[:1] == ["stamp"]:
            stamps[int(words[1])].append((int(words[2]), *map(float, words[3:])))
        elif words[:1] == ["server"]:
            servers[int(words[1])] = [float(word) for word in words[2:]]
    for number, found in stamps.items():
        if len(found) != point.nodes * point.per_node:
            raise BenchError(f"round {number}: {len(found)} ranks have answered")
    return [Sample(spans(point.op, stamps[number]),
                   *(servers[number] if point.op != "sync" else (None, None)))
            for number in sorted(stamps)]


class Runner:
    def __init__(self, options):
        self.options = options

    @contextlib.contextmanager
    def torch(self):
        """A server of PyTorch: its process and the environment of its clients."""
        script = os.path.join(os.path.dirname(__file__), "torch_server.py")
        server = subprocess.Popen([self.options.python, script], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            port = server.stdout.readline().strip()
            if not port:
                raise BenchError(f"{self.options.python}: {server.communicate()[1]}")
            yield server.pid, {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        finally:
            server.kill()
            server.communicate()

    def server(self, peer):
        if peer == "torch":
            return self.torch()
        env = {"PMI2X_TORCH": peer} if peer in SERVERS else {}
        return contextlib.nullcontext((0, env))

    def command(self, point, peer, directory):
        if peer == "sync":
            return f"exec {self.options.binaries}/pmi2x-sync barrier"
        place = f"{directory}/$ROUND"
        return f"mkdir -p {place}; : >{place}/$SLURM_PROCID; " + POLL.format(place)

    def argv(self, point, peer, pid, directory):
        if point.op == "true":
            return ["true"]
        meeting = f"{directory}/meeting"
        with open(meeting, "wb") as file:
            file.write(bytes(MEETING_BYTES))
        argv = [f"{self.options.programs}/store-rank", OPS[point.op].work, meeting,
                point.rounds, pid, point.bytes]
        if point.op == "sync":
            argv.append(self.command(point, peer, directory))
        return argv

    def measure(self, point, peer):
        mpi = "none" if peer in ("torch", "file", "none") else "pmi2x"
        srun = ["srun", "-Q", "-K", f"--mpi={mpi}", f"-N{point.nodes}",
                f"-n{point.nodes * point.per_node}",
                f"--ntasks-per-node={point.per_node}", *self.options.srun_option]
        with tempfile.TemporaryDirectory(prefix="pmi2x-store-") as directory, \
                self.server(peer) as (pid, env):
            argv = srun + list(map(str, self.argv(point, peer, pid, directory)))
            code, out, err, wall = run_srun(argv, self.options.timeout, env)
        if code is None:
            raise BenchError(f"not done after {wall:.0f} s")
        if code:
            raise failure(code, err)
        if point.op == "true":
            return [Sample(wall, None, None)]
        return parse(point, out)
