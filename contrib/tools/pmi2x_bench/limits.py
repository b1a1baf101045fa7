# SPDX-License-Identifier: BSD-3-Clause
"""Whether this machine holds a private cluster with steps of some size."""

import os
import re
import resource

from .matrix import BenchError

# Estimates, on the safe side: daemon and step daemon of a node, and a rank.
NODE_KB = 12 * 1024
RANK_KB = 1024
BASE_KB = 300 * 1024
NODE_THREADS = 32
BASE_THREADS = 1024
RANK_FILES = 8  # in the step daemon: three pipes and a socket pair
NODE_FILES = 6  # in srun
BASE_FILES = 256


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


def check_private(private_nodes, points):
    """points: the largest steps that the cluster will run."""
    for point in points:
        ranks = point.nodes * point.per_node
        size = f"{point.nodes} nodes x {point.per_node} ranks"
        check_processes(
            size, private_nodes * NODE_THREADS + ranks + BASE_THREADS
        )
        files = max(point.per_node * RANK_FILES, private_nodes * NODE_FILES)
        check_rlimit(
            size, resource.RLIMIT_NOFILE, "open files", "n", files + BASE_FILES
        )
        need = BASE_KB + private_nodes * NODE_KB + ranks * RANK_KB
        if available_kb() < need:
            raise BenchError(
                f"{size} on {private_nodes} private nodes need about "
                f"{need // 1024} MB of memory, {available_kb() // 1024} MB "
                "are free; free -m shows what is taken. Ask for fewer"
            )
