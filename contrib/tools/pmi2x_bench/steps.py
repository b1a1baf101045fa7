# SPDX-License-Identifier: BSD-3-Clause
"""Runs one measurement at a time: a step under srun, or the floor program."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from .matrix import BenchError

LEAVE_S = 20  # how long srun may take to end a step that it was told to end


class Sample:
    """What one step has measured; times and parts are seconds."""

    def __init__(self, fields, wall, complaints):
        self.times = [float(t) for t in fields["times"].split(",")]
        parts = fields.get("parts", "")
        self.parts = [float(t) for t in parts.split(",") if t]
        self.clock = fields["clock"]
        self.wall = wall
        self.complaints = complaints  # lines on standard error


def parse_result(text):
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["result"]:
            return dict(word.partition("=")[::2] for word in words[1:])
    return None


def run_program(argv, timeout):
    """Exit code, both outputs and seconds; None as code: it took too long."""
    begin = time.monotonic()
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        out, err = child.communicate(timeout=timeout)
        return child.returncode, out, err, time.monotonic() - begin
    except subprocess.TimeoutExpired:
        return None, "", "", time.monotonic() - begin
    finally:
        end_program(child)


def end_program(child):
    """srun ends its step on SIGTERM; it is killed only when it does not."""
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGTERM)
    try:
        child.communicate(timeout=LEAVE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()


class Runner:
    """How to start a measurement; `programs` and `libraries` are directories."""

    def __init__(self, options, programs, libraries):
        self.options = options
        self.programs = programs
        self.libraries = libraries

    def library(self, variant):
        if variant == "stock":
            return "libpmi2.so.0"
        name = "pmi2x/libpmi2.so.0" if variant == "dropin" else "libpmi2x.so.0"
        return f"{self.libraries}/{name}"

    def program(self, peer):
        names = {"floor": "floor"}
        if peer.mpi.startswith("pmix"):
            return f"{self.programs}/pmi2x-bench-pmix"
        return f"{self.programs}/{names.get(peer.mpi, 'pmi2x-bench-rank')}"

    def check_files(self, peers):
        for peer in peers:
            program = self.program(peer)
            if not os.access(program, os.X_OK):
                hint = ""
                if peer.mpi.startswith("pmix"):
                    hint = (
                        "; it is built where PMIx's development files are "
                        "(on Debian: apt-get install libpmix-dev)"
                    )
                raise BenchError(f"{peer}: {program} is not there{hint}")
            if peer.variant in ("own", "dropin"):
                library = self.library(peer.variant)
                if not os.path.exists(library):
                    raise BenchError(f"{peer}: {library} is not there")

    def floor_argv(self, peer, point):
        return [self.program(peer), "-m", peer.variant] + [
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
            if peer.mpi != "floor":
                continue
            for point in points:
                argv = self.floor_argv(peer, point) + ["-c"]
                code, _, err, _ = run_program(argv, self.options.timeout)
                if code != 0:
                    raise BenchError(f"{peer}: {err.strip()}")

    def srun_argv(self, peer, point):
        ranks = point.nodes * point.per_node
        argv = ["srun", "-Q", "-K", f"--mpi={peer.mpi}", f"-N{point.nodes}"]
        argv += [f"-n{ranks}", f"--ntasks-per-node={point.per_node}"]
        argv += self.options.srun_option
        argv += [self.program(peer), f"--op={point.op}"]
        argv += [f"--bytes={point.bytes}", f"--rounds={self.options.rounds}"]
        if peer.variant in ("own", "dropin"):
            argv.append(f"--share={point.per_node}")
        if peer.variant:
            argv.append(f"--library={self.library(peer.variant)}")
        return argv

    def measure(self, peer, point):
        floor = peer.mpi == "floor"
        argv = (self.floor_argv if floor else self.srun_argv)(peer, point)
        timeout = self.options.timeout + (LEAVE_S if floor else 0)
        code, out, err, wall = run_program(argv, timeout)
        if code is None:
            raise BenchError(f"not done after {timeout} s: {' '.join(argv)}")
        fields = parse_result(out)
        if code != 0 or not fields:
            lines = err.strip().splitlines()[:6] or ["no result line"]
            raise BenchError("\n    ".join([f"exit code {code}"] + lines))
        if int(fields["ranks"]) != point.nodes * point.per_node:
            raise BenchError(f"the step had {fields['ranks']} ranks")
        return Sample(fields, wall, err.strip().splitlines())


def mpi_types():
    """The types that srun can load; empty when it does not say."""
    done = subprocess.run(
        ["srun", "--mpi=list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    found = set(re.findall(r"^\s+(\w+)$", done.stdout, re.M))
    for line in re.findall(r"versions available: (.*)$", done.stdout, re.M):
        found |= set(re.split(r"[\s,]+", line.strip()))
    return found


def check_types(peers):
    found = mpi_types()
    for peer in peers:
        if peer.mpi != "floor" and found and peer.mpi not in found:
            raise BenchError(
                f"--mpi: this Slurm has no '{peer.mpi}'; srun --mpi=list "
                f"names {', '.join(sorted(found))}"
            )


def check_allocation(points, options):
    """The matrix must fit into the job that this runs in."""
    if "SLURM_JOB_ID" not in os.environ:
        raise BenchError(
            "not inside an allocation: start this with salloc or sbatch, or "
            "use --private N for a private cluster on this machine"
        )
    if not shutil.which("srun"):
        raise BenchError("srun is not in PATH")
    nodes = int(os.environ.get("SLURM_JOB_NUM_NODES", 0))
    cpus = re.findall(r"\d+", os.environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
    over = {"-O", "--overcommit"} & set(options.srun_option)
    for point in points:
        if nodes and point.nodes > nodes:
            raise BenchError(
                f"--nodes: the allocation has {nodes} nodes, not "
                f"{point.nodes}; salloc -N{point.nodes}"
            )
        if cpus and not over and point.per_node > int(cpus[0]):
            raise BenchError(
                f"--ranks-per-node: the allocation has {cpus[0]} CPUs a "
                f"node, not {point.per_node}; salloc "
                f"--ntasks-per-node={point.per_node}, or "
                "--srun-option=--overcommit"
            )


@contextlib.contextmanager
def private_cluster(program, options, most_per_node):
    """A pmi2x-cluster, and the environment to use it, for a with block."""
    place = tempfile.mkdtemp(prefix="pmi2x-bench-", dir="/tmp")
    os.chmod(place, 0o755)
    where = ["--dir", f"{place}/cluster"]
    argv = [program, "up", *where, "-N", str(options.private)]
    argv += ["--cpus", str(max(256, most_per_node)), "-q"]
    argv += ["--timeout", str(max(120, options.private))]
    argv += ["--until-exit", str(os.getpid())]
    for name in options.plugindir:
        argv += ["--plugindir", name]
    try:
        if subprocess.run(argv).returncode:
            raise BenchError("the private cluster did not start")
        done = subprocess.run(
            [program, "env", *where], stdout=subprocess.PIPE, text=True
        )
        for name, value in re.findall(r"^export (\w+)=(.*)$", done.stdout, re.M):
            os.environ[name] = value.strip("'")
        for name in [n for n in os.environ if n.startswith("SLURM_")]:
            if name != "SLURM_CONF":
                del os.environ[name]  # of an allocation elsewhere
        yield
    finally:
        if os.path.isdir(f"{place}/cluster"):
            subprocess.run([program, "down", *where])
        shutil.rmtree(place, ignore_errors=True)
