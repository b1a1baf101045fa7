# SPDX-License-Identifier: BSD-3-Clause
"""Where steps run: inside an allocation, or on a test cluster."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile

from .errors import BenchError
from .matrix import NODES_MAX

# With thousands of processes on a few cores Slurm's own messages are late, under
# --mpi=none as well; with its 10 s and 2 s srun then complains of missing sockets.
MESSAGE_S = 120
TCP_S = 60
END_S = 30
# The command in the allocation says its environment, and then stays.
COMMAND = ["sh", "-c", "env -0; printf '\\0'; read -r end"]
MARK = b"\0\0"  # after it; salloc keeps the other end of the pipe open
# srun and Hydra's srun would take these in place of what the step asks for.
DEFAULTS = (
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_DISTRIBUTION",
)


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


def find_cluster(program):
    """The program of pmi2x cluster, beside this one."""
    here = os.path.dirname(os.path.realpath(program))
    for path in f"{here}/pmi2x-cluster", f"{here}/../cluster/pmi2x-cluster":
        if os.access(path, os.X_OK):
            return path
    raise BenchError("--private: pmi2x cluster is not installed")


def check_types(peers):
    found = mpi_types()
    for peer in peers:
        if peer.client != "floor" and found and peer.mpi not in found:
            raise BenchError(
                f"--mpi: this Slurm has no '{peer.mpi}'; srun --mpi=list "
                f"names {', '.join(sorted(found))}"
            )


def private_names():
    """As pmi2x cluster calls its nodes."""
    return [f"n{i}" for i in range(1, NODES_MAX + 1)]


def allocated_nodes():
    """Names of the nodes, in the form of srun -m arbitrary."""
    done = subprocess.run(
        ["scontrol", "show", "hostnames"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.split()


def check_allocation(points, options):
    """The matrix must fit into the job that this runs in."""
    if "SLURM_JOB_ID" not in os.environ:
        raise BenchError(
            "not inside an allocation: start this with salloc or sbatch, or "
            "use --private N for a test cluster on this machine"
        )
    if not shutil.which("srun"):
        raise BenchError("srun is not in PATH")
    nodes = int(os.environ.get("SLURM_JOB_NUM_NODES", 0))
    cpus = re.findall(
        r"(\d+)(?:\(x\d+\))?", os.environ.get("SLURM_JOB_CPUS_PER_NODE", "")
    )
    least = min(map(int, cpus), default=0)
    over = {"-O", "--overcommit"} & set(options.srun_option)
    for point in points:
        if nodes and point.nodes > nodes:
            raise BenchError(
                f"--nodes: the allocation has {nodes} nodes, not "
                f"{point.nodes}; salloc -N{point.nodes}"
            )
        most = max(point.counts())
        if least and not over and most > least:
            raise BenchError(
                f"{point}: the allocation has {least} CPUs a node, not "
                f"{most}; salloc --ntasks-per-node={most}, fewer "
                "--ranks-per-node, --layout uneven=MOST, or "
                "--srun-option=--overcommit"
            )


@contextlib.contextmanager
def private_cluster(program, options, most_per_node, usages=False):
    """A test cluster, and the environment to use it, for a with block, which
    gets a directory that goes away with it. usages: the file of that name in it
    gets the usage of each process of the cluster that ends."""
    place = tempfile.mkdtemp(prefix="pmi2x-bench-", dir="/tmp")
    os.chmod(place, 0o755)
    where = ["--dir", f"{place}/cluster"]
    argv = [program, "up", *where, "-N", str(options.private)]
    argv += ["--cpus", str(max(256, most_per_node)), "-q"]
    argv += ["--timeout", str(max(120, options.private))]
    argv += ["--until-exit", str(os.getpid())]
    argv += ["--slurm-conf-line", f"MessageTimeout={MESSAGE_S}"]
    argv += ["--slurm-conf-line", f"TCPTimeout={TCP_S}"]
    for name in options.plugindir:
        argv += ["--plugindir", name]
    if usages:
        argv += ["--usage", f"{place}/usages"]
    try:
        if subprocess.run(argv).returncode:
            raise BenchError("the test cluster did not start")
        done = subprocess.run(
            [program, "env", *where], stdout=subprocess.PIPE, text=True
        )
        for name in [n for n in os.environ if n.startswith("SLURM_")]:
            del os.environ[name]  # an allocation elsewhere
        for name, value in re.findall(r"^export (\w+)=(.*)$", done.stdout, re.M):
            os.environ[name] = value.strip("'")
        yield place
    finally:
        if os.path.isdir(f"{place}/cluster"):
            subprocess.run([program, "down", *where])
        shutil.rmtree(place, ignore_errors=True)


# ---- an allocation of all nodes of a test cluster ----
# Its steps do not wait for nodes, so that a time is that of the launch. Other launchers
# find their nodes in its environment.


def forget_defaults():
    for name in DEFAULTS:
        os.environ.pop(name, None)


def read_environment(pipe):
    """The environment that the command prints; without SLURM_JOB_ID if it ended before."""
    data = b""
    while MARK not in data:
        piece = os.read(pipe.fileno(), 65536)
        if not piece:
            return {}
        data += piece
    pairs = (line.partition("=") for line in os.fsdecode(data).split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def end_allocation(job):
    """The command in the allocation ends with its input, salloc with that."""
    job.stdin.close()
    try:
        job.wait(END_S)
    except subprocess.TimeoutExpired:
        job.kill()
        job.wait()
    job.stdout.close()


@contextlib.contextmanager
def allocation(nodes, per_node):
    """The environment of a job in a with block."""
    before = dict(os.environ)
    job = subprocess.Popen(
        ["salloc", "-Q", f"-N{nodes}", f"-n{nodes * per_node}"]
        + [f"--ntasks-per-node={per_node}", *COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is not for salloc
    )
    try:
        found = read_environment(job.stdout)
        if "SLURM_JOB_ID" not in found:
            raise BenchError("salloc on the test cluster failed")
        os.environ.update(
            {n: v for n, v in found.items() if n.startswith("SLURM")}
        )
        forget_defaults()
        yield
    finally:
        end_allocation(job)
        os.environ.clear()
        os.environ.update(before)
