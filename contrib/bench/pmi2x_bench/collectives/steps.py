# SPDX-License-Identifier: BSD-3-Clause
"""Runs one measurement at a time: a step under srun, or the floor program."""

import os
import tempfile

from .. import record
from ..errors import BenchError
from ..matrix import NONE, NONE_MEET, OPS, PHASES
from ..run import LEAVE_S, busy_seconds, failure, run_program, run_srun

MEETING_BYTES = 4096  # more than ranks map of the file in which they meet


class Sample(record.Sample):
    """The measurements of one step; times, parts and waits are seconds."""

    def __init__(self, clock, puts="none", wall=0.0):
        super().__init__([])
        self.clock, self.puts, self.wall = clock, puts, wall
        self.parts, self.waits = [], []
        self.phases = {}  # name: times of what a round does beside that
        self.complaints = []  # lines on standard error


def floats(text):
    return [float(word) for word in text.split(",") if word]


def sample_of_result(op, fields, wall):
    """From the line of rank 0, or of the floor program."""
    sample = Sample(fields["clock"], fields.get("puts", "none"), wall)
    columns = [floats(fields.get(n, "")) for n in ("times", "parts", "waits")]
    names = PHASES.get(op, ("",))
    for i, name in enumerate(names):
        rows = [column[i :: len(names)] for column in columns]
        if name:
            sample.phases[name] = rows[0]
        else:
            sample.times, sample.parts, sample.waits = rows
    if sample.clock == "wall":
        sample.times = [wall]
    return sample


def sample_of_stamps(stamps, wall):
    """From the lines of all ranks: they had no PMI to meet over."""
    begins = [float(words[2]) for words in stamps]
    lengths = [float(words[3]) for words in stamps]
    one_machine = len({words[1] for words in stamps} | {"unknown"}) == 2
    sample = Sample("span" if one_machine else "rank", "none", wall)
    ends = [begin + length for begin, length in zip(begins, lengths)]
    sample.times = [max(ends) - min(begins) if one_machine else max(lengths)]
    return sample


def parse_sample(point, text, wall):
    """Checks that all ranks were there; None when there is no result."""
    lines = [line.split() for line in text.splitlines()]
    for words in lines:
        if words[:1] == ["result"]:
            fields = dict(word.partition("=")[::2] for word in words[1:])
            if int(fields["ranks"]) != point.ranks:
                raise BenchError(f"the step had {fields['ranks']} ranks")
            return sample_of_result(point.op, fields, wall)
    stamps = [words for words in lines if words[:1] == ["stamp"]]
    if not stamps:
        return None
    if len(stamps) != point.ranks:
        raise BenchError(f"{len(stamps)} of {point.ranks} ranks have answered")
    return sample_of_stamps(stamps, wall)


class Runner:
    """How to start a measurement; `programs` and `libraries` are directories,
    `node_names` gives the names of the nodes that steps may use; with_slurm:
    some of them are steps of Slurm."""

    def __init__(
        self, options, programs, libraries, node_names, with_slurm=True
    ):
        self.options = options
        self.programs = programs
        self.libraries = libraries
        self.node_names = node_names
        self.with_slurm = with_slurm

    def library(self, variant):
        if variant in ("stock", "pmi1"):
            return {"stock": "libpmi2.so.0", "pmi1": "pmi1"}[variant]
        name = "pmi2x/libpmi2.so.0" if variant == "dropin" else "libpmi2x.so.0"
        return f"{self.libraries}/{name}"

    def program(self, peer):
        names = {"floor": "floor", "pmix": "pmi2x-bench-pmix"}
        return f"{self.programs}/{names.get(peer.client, 'pmi2x-bench-rank')}"

    def check_peers(self, peers):
        """Check that the programs and plugins of the peers exist."""
        if NONE_MEET in peers and not self.can_meet():
            raise BenchError(
                f"{NONE_MEET}: ranks meet only in the memory of one machine: "
                "with --private, and without --no-meet"
            )
        for peer in peers:
            program = self.program(peer)
            if not os.access(program, os.X_OK):
                hint = ""
                if peer.client == "pmix":
                    hint = (
                        "; it is built where PMIx's development files are "
                        "(on Debian: apt-get install libpmix-dev)"
                    )
                raise BenchError(f"{peer}: {program} is not there{hint}")
            if peer.variant in ("own", "dropin"):
                library = self.library(peer.variant)
                if not os.path.exists(library):
                    raise BenchError(f"{peer}: {library} is not there")

    def can_meet(self):
        """Whether the ranks can meet outside of PMI, in a file."""
        one_machine = self.options.private or not self.with_slurm
        return one_machine and not self.options.no_meet

    def floor_argv(self, peer, point):
        argv = [self.program(peer), "-m", peer.variant]
        if point.layout.kind == "uneven":
            argv.append(f"-u{point.layout.number}")
        if self.can_meet() and OPS[point.op].settles:
            argv.append("-s")
        return argv + [
            f"-{letter}{number}"
            for letter, number in (
                ("N", point.nodes),
                ("r", point.per_node),
                ("b", point.bytes),
                ("k", self.options.width),
                ("i", self.options.rounds),
                ("t", self.options.timeout),
            )
        ]

    def check_floor(self, peers, points):
        """The floor program knows itself what it needs of this machine."""
        for peer in peers:
            for point in points if peer.client == "floor" else ():
                argv = self.floor_argv(peer, point) + ["-c"]
                code, _, err, _ = run_program(argv, self.options.timeout)
                if code != 0:
                    raise BenchError(f"{peer}: {err.strip()}")

    def srun(self, peer, point):
        argv = ["srun", "-Q", "-K", f"--mpi={peer.mpi}"]
        argv += [f"-n{point.ranks}", *point.layout.srun_options()]
        if point.layout.kind != "uneven":  # Slurm 24.11 refuses -N with it
            argv += [f"-N{point.nodes}"]
            argv += [f"--ntasks-per-node={point.per_node}"]
        return argv + self.options.srun_option

    def rank_argv(self, peer, point):
        if point.op == "true":
            return ["true"]
        argv = [self.program(peer), f"--op={point.op}"]
        argv += [f"--bytes={point.bytes}", f"--rounds={self.options.rounds}"]
        argv.append(f"--work={self.options.work}")
        argv.append(f"--rest={self.options.rest}")
        if peer.client == "own":
            argv.append("--check-node")
        if peer.client == "none":
            argv.append("--library=none")
        elif peer.client != "pmix" and peer.variant:
            argv.append(f"--library={self.library(peer.variant)}")
        return argv

    def run(self, peer, point):
        """Run one program; ranks on one machine get a file in which they meet."""
        if peer.client == "floor":
            argv = self.floor_argv(peer, point)
            return argv, run_program(argv, self.options.timeout + LEAVE_S)
        argv = self.rank_argv(peer, point)
        if peer == NONE or point.op == "true" or not self.can_meet():
            return self.run_step(peer, point, argv)
        with tempfile.NamedTemporaryFile(prefix="pmi2x-meet-") as file:
            file.write(bytes(MEETING_BYTES))
            file.flush()
            return self.run_step(peer, point, argv + [f"--meet={file.name}"])

    def run_step(self, peer, point, argv):
        """srun of a program, on nodes as the layout has it."""
        argv = self.srun(peer, point) + argv
        if point.layout.kind != "uneven":
            return argv, run_srun(argv, self.options.timeout)
        names = self.node_names()[: point.nodes]
        with tempfile.NamedTemporaryFile("w", prefix="pmi2x-hosts-") as file:
            for name, count in zip(names, point.counts()):
                file.write(f"{name}\n" * count)
            file.flush()
            env = {"SLURM_HOSTFILE": file.name}
            return argv, run_srun(argv, self.options.timeout, env)

    def measure(self, peer, point, repeat=1):
        before = busy_seconds()
        argv, (code, out, err, wall) = self.run(peer, point)
        if code is None:
            raise BenchError(f"not done after {wall:.0f} s: {' '.join(argv)}")
        sample = None
        if code == 0 and point.op == "true":
            sample = Sample("wall", "none", wall)
            sample.times = [wall]
        elif code == 0:
            sample = parse_sample(point, out, wall)
        if not sample:
            raise failure(code, err)
        if self.options.private:
            sample.busy = busy_seconds() - before
        sample.repeat = repeat
        sample.complaints = err.strip().splitlines()
        return sample
