# SPDX-License-Identifier: BSD-3-Clause
"""Whether this machine holds a test cluster with steps of some size."""

import collections
import os
import re
import resource

from .errors import BenchError
from .matrix import GATHERS

# Measured with 8 slurmds and 256 ranks of pmi2x-bench-rank on Slurm 22.05, as
# the difference in MemAvailable, which has kernel memory in it, and in /proc:
# slurmd 2 MB and 1 thread (more while it serves a request); slurmstepd 1.6 MB,
# 5 threads and 5 files a rank; rank 350 KB. Rounded up, because a larger step
# has larger messages.
# base: slurmctld, munged, srun with its threads; node: slurmd; step: its step
# daemon; rank: with what the step daemon has for it.
Costs = collections.namedtuple("Costs", "base node step rank")  # KB
USUAL = Costs(300 * 1024, 4 * 1024, 6 * 1024, 512)
MPI_RANK_KB = 10 * 1024  # memory of a rank of an MPI program; 7.6 MB with MPICH
NODES_MOST = 4096  # nodes of a pmi2x cluster
CLUSTER_THREADS = 24  # threads that pmi2x cluster needs for each node
NODE_THREADS = 8
STEP_THREADS = 12
BASE_THREADS = 1024
RANK_FILES = 8  # in the step daemon: three pipes and a socket pair
NODE_FILES = 6  # in srun
BASE_FILES = 256
PORTS_FIRST = 20000  # as pmi2x cluster
PORTS_SPARE = 64


def read_number(path):
    """The number in a file; None: there is no file, or no number in it ("max")."""
    try:
        with open(path) as file:
            word = file.read().split()[0]
    except (OSError, IndexError):
        return None
    return int(word) if word.isdigit() else None


def available_kb():
    with open("/proc/meminfo") as file:
        return int(re.search(r"MemAvailable:\s+(\d+)", file.read())[1])


def cgroup_pids():
    """The pids.max that binds this process, with its file."""
    try:
        with open("/proc/self/cgroup") as file:
            text = file.read()
    except OSError:
        return None, None
    match = re.search(r"^0::(/.*)$|^\d+:pids:(/.*)$", text, re.M)
    if not match:
        return None, None
    top = "/sys/fs/cgroup" if match[1] else "/sys/fs/cgroup/pids"
    path = top + (match[1] or match[2]).rstrip("/")
    found = []
    while path.startswith(top):
        limit = read_number(f"{path}/pids.max")
        if limit is not None:
            found.append((limit, f"{path}/pids.max"))
        path = os.path.dirname(path)
    return min(found, default=(None, None))


def check_processes(size, need):
    for name in "pid_max", "threads-max":
        limit = read_number(f"/proc/sys/kernel/{name}")
        if limit is not None and limit < need:
            raise BenchError(
                f"{size} needs about {need} processes and threads, "
                f"kernel.{name} is {limit}; "
                f"as root: sysctl -w kernel.{name}={need * 2}"
            )
    limit, path = cgroup_pids()
    if limit is not None and limit < need:
        raise BenchError(
            f"{size} needs about {need} processes and threads, this control "
            f"group allows {limit}; as root: echo {need * 2} > {path}"
        )
    check_rlimit(size, resource.RLIMIT_NPROC, "processes", "u", need)


def check_rlimit(size, which, what, letter, need):
    """Raises the soft limit when the hard one allows."""
    soft, hard = resource.getrlimit(which)
    infinite = resource.RLIM_INFINITY
    if which == resource.RLIMIT_NPROC and os.geteuid() == 0:
        return
    if hard != infinite and hard < need:
        raise BenchError(
            f"{size} needs about {need} {what}, the limit is {hard}; "
            f"as root, in the shell that starts this: ulimit -{letter} {need}"
        )
    if soft != infinite and soft < need:
        resource.setrlimit(which, (need, hard))


def check_ports(nodes):
    """Agents, srun and the daemons listen below the ports that the kernel
    gives to anybody."""
    low = read_number("/proc/sys/net/ipv4/ip_local_port_range")
    need = 2 * nodes + PORTS_SPARE
    if low is not None and low - PORTS_FIRST < need:
        raise BenchError(
            f"{nodes} nodes need about {need} ports to listen on between "
            f"{PORTS_FIRST} and net.ipv4.ip_local_port_range, which begins at "
            f'{low}; as root: sysctl -w net.ipv4.ip_local_port_range='
            f'"{PORTS_FIRST + max(need, 12768)} 60999"'
        )


def gathered_kb(point):
    """Memory with which ranks hold the values of all ranks."""
    if point.op not in GATHERS:
        return 0
    return point.ranks * point.ranks * (point.bytes + 5) // 1024


def memory_kb(private_nodes, point, costs=USUAL):
    rank = MPI_RANK_KB if point.op == "mpi" else costs.rank
    ranks = point.ranks * rank + gathered_kb(point)
    steps = point.nodes * costs.step
    return costs.base + private_nodes * costs.node + steps + ranks


def check_memory(size, private_nodes, point, costs):
    need, free = memory_kb(private_nodes, point, costs), available_kb()
    if free < need:
        raise BenchError(
            f"{size} ({point.op}) on {private_nodes} private nodes needs about "
            f"{need // 1024} MB of memory, {free // 1024} MB are free; free -m "
            "shows what is taken. Ask for fewer, or end other programs"
        )


def check_private(private_nodes, points, costs=USUAL):
    """Whether this machine holds a test cluster and these steps on it."""
    if private_nodes > NODES_MOST:
        raise BenchError(
            f"{private_nodes} private nodes are more than the {NODES_MOST} "
            "that pmi2x cluster starts"
        )
    check_ports(private_nodes)
    check_processes(
        f"a test cluster of {private_nodes} nodes",
        private_nodes * CLUSTER_THREADS + BASE_THREADS,
    )
    for point in points:
        ranks, most = point.ranks, max(point.counts())
        size = f"{point.nodes} nodes x {point.per_node} ranks"
        check_processes(
            size,
            private_nodes * NODE_THREADS
            + point.nodes * STEP_THREADS
            + ranks
            + BASE_THREADS,
        )
        files = max(most * RANK_FILES, private_nodes * NODE_FILES)
        check_rlimit(
            size, resource.RLIMIT_NOFILE, "open files", "n", files + BASE_FILES
        )
        check_memory(size, private_nodes, point, costs)


def refusal(private_nodes, point, costs=USUAL):
    """Why this machine does not hold that; "" when it does."""
    try:
        check_private(private_nodes, [point], costs)
    except BenchError as error:
        return str(error)
    return ""


def most_nodes(point, costs=USUAL):
    """For steps as this one on all nodes, of any number: how many private
    nodes this machine holds, and what is in the way of one more."""

    def reason(nodes):
        return refusal(nodes, point._replace(nodes=nodes), costs)

    # Free memory changes meanwhile: what is asked again may be answered otherwise.
    low, high = 0, NODES_MOST + 1
    in_the_way = reason(high)
    while high - low > 1:
        middle = (low + high) // 2
        if why := reason(middle):
            high, in_the_way = middle, why
        else:
            low = middle
    return low, in_the_way
