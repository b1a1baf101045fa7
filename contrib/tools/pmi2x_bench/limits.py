# SPDX-License-Identifier: BSD-3-Clause
"""Whether this machine holds a private cluster with steps of some size."""

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
NODE_KB = 4 * 1024
STEP_KB = 6 * 1024
RANK_KB = 512
BASE_KB = 300 * 1024  # slurmctld, munged, srun with its threads
NODE_THREADS = 8
STEP_THREADS = 12
BASE_THREADS = 1024
RANK_FILES = 8  # in the step daemon: three pipes and a socket pair
NODE_FILES = 6  # in srun
BASE_FILES = 256
PORTS_FIRST = 20000  # as pmi2x-cluster
PORTS_SPARE = 64


def read_number(path):
    """None when there is no such file, or no number in it ("max")."""
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
    """What ranks take to hold the values of all ranks."""
    if point.op not in GATHERS:
        return 0
    return point.ranks * point.ranks * (point.bytes + 5) // 1024


def memory_kb(private_nodes, point):
    ranks = point.ranks * RANK_KB + gathered_kb(point)
    steps = point.nodes * STEP_KB
    return BASE_KB + private_nodes * NODE_KB + steps + ranks


def check_memory(size, private_nodes, point):
    need, free = memory_kb(private_nodes, point), available_kb()
    if free < need:
        raise BenchError(
            f"{size} ({point.op}) on {private_nodes} private nodes needs about "
            f"{need // 1024} MB of memory, {free // 1024} MB are free; free -m "
            "shows what is taken. Ask for fewer, or end other programs"
        )


def check_private(private_nodes, points):
    """Whether this machine holds a private cluster and these steps on it."""
    check_ports(private_nodes)
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
        check_memory(size, private_nodes, point)
