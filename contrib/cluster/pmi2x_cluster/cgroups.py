# SPDX-License-Identifier: BSD-3-Clause
"""Control groups of a site, in the machine's own hierarchy, whichever it is.

Each node has one directory in every hierarchy that Slurm uses, which its slurmd takes
for the root: the node's cgroup namespace begins there. The directories of a cluster lie
in one of its own. In v1 that is below the caller's; in v2, where a group with processes
cannot hand controllers on, at the top of what is mounted.
"""

import contextlib
import os
import signal
import time

from .machine import ClusterError
from .namespaces import bind, mount

ROOT = "/sys/fs/cgroup"
WANTED = ("freezer", "cpuset", "memory", "cpuacct", "devices")  # by Slurm, of v1
MEMBERS = "cgroup.procs"
V2_LEAF = "slurmd"  # only leaves may hold processes
V2_SLICE = "system.slice"  # in which Slurm has its steps, and which it expects to find
REMOVE_S = 10


def is_v2():
    return os.path.exists(f"{ROOT}/cgroup.controllers")


def own_groups():
    """{controllers of a hierarchy of v1: the caller's group in it}"""
    groups = {}
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            _, names, path = line.strip().split(":", 2)
            if set(names.split(",")) & set(WANTED):
                groups[names] = path
    return groups


def top_directories(name):
    """{controllers: directory} of a cluster of this name; v2: {"": directory}."""
    if is_v2():
        return {"": f"{ROOT}/{name}"}
    tops = {}
    for names, path in own_groups().items():
        base = f"{ROOT}/{names}{path}".rstrip("/")
        if os.path.isdir(base):
            tops[names] = f"{base}/{name}"
    missing = set(WANTED) - set(",".join(tops).split(","))
    if missing:
        raise ClusterError(
            f"--site needs control groups, and finds no {' '.join(sorted(missing))} "
            f"below {ROOT}: mount cgroup2 there, or those of v1"
        )
    return tops


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def make_directory(names, path):
    """A new group; in v1 a cpuset begins with nothing."""
    os.mkdir(path)
    for name in "cpuset.cpus", "cpuset.mems":
        if "cpuset" in names:
            with open(f"{os.path.dirname(path)}/{name}", encoding="ascii") as file:
                write(f"{path}/{name}", file.read())


def hand_on(path):
    """v2: what is below may use all that this group has."""
    with open(f"{path}/cgroup.controllers", encoding="ascii") as file:
        for controller in file.read().split():
            with contextlib.suppress(OSError):  # not all can be handed on
                write(f"{path}/cgroup.subtree_control", f"+{controller}")


def make(tops):
    """The directories of a cluster; raises OSError."""
    for names, top in tops.items():
        make_directory(names, top)
        if not names:
            hand_on(ROOT)
            check_controllers(top)
            hand_on(top)


def check_controllers(top):
    with open(f"{top}/cgroup.controllers", encoding="ascii") as file:
        missing = {"cpuset", "cpu", "memory"} - set(file.read().split())
    if missing:
        raise OSError(f"{ROOT} does not hand on {' '.join(sorted(missing))}")


def check_allowed(tops):
    """Raises OSError where this process may not make them."""
    try:
        make(tops)
    finally:
        remove(tops)


def make_host(tops, host):
    for names, top in tops.items():
        path = f"{top}/{host}"
        make_directory(names, path)
        if not names:
            os.mkdir(f"{path}/{V2_LEAF}")
            os.mkdir(f"{path}/{V2_SLICE}")


def divide(tops, host):
    """v2: once nobody is in the host's own group, those below it get controllers.

    Slurm hands three controllers on to its steps, memory last, and 22.05 does not see
    the last of a list: the slice hands on all."""
    for path in (f"{top}/{host}" for names, top in tops.items() if not names):
        hand_on(path)
        hand_on(f"{path}/{V2_SLICE}")


def join_root(tops, host):
    """Where the namespace of a host begins."""
    for top in tops.values():
        write(f"{top}/{host}/{MEMBERS}", str(os.getpid()))


def join(tops, host):
    """Where the slurmd of a host runs."""
    for names, top in tops.items():
        leaf = "" if names else f"/{V2_LEAF}"
        write(f"{top}/{host}{leaf}/{MEMBERS}", str(os.getpid()))


def mount_all(tops):
    """In new cgroup and mount namespaces, over an empty /sys/fs/cgroup.

    v2: before it removes its step's groups a slurmstepd leaves them for the root, which
    on a real host may have processes beside groups that have controllers. Here it is
    the leaf that takes them."""
    if "" in tops:
        mount("cgroup2", ROOT, "cgroup2")
        bind(f"{ROOT}/{V2_LEAF}/{MEMBERS}", f"{ROOT}/{MEMBERS}")
        return
    mount("tmpfs", ROOT, "tmpfs", data="mode=755")
    for names in tops:
        os.mkdir(f"{ROOT}/{names}")
        mount("cgroup", f"{ROOT}/{names}", "cgroup", data=names)
        for name in names.split(","):
            if name != names:
                os.symlink(names, f"{ROOT}/{name}")


def end_members(path):
    with contextlib.suppress(OSError):
        with open(f"{path}/{MEMBERS}", encoding="ascii") as file:
            for pid in map(int, file):
                if pid not in (0, os.getpid()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)


def thaw(path):
    """A process that is frozen does not even die."""
    for name, text in ("freezer.state", "THAWED"), ("cgroup.freeze", "0"):
        with contextlib.suppress(OSError):
            if os.path.exists(f"{path}/{name}"):
                write(f"{path}/{name}", text)


def remove(tops):
    """Ends what is in the groups of a cluster, and removes them."""
    deadline = time.monotonic() + REMOVE_S
    for top in tops.values():
        while os.path.isdir(top):
            for path, _, _ in os.walk(top, topdown=False):
                thaw(path)
                end_members(path)
                with contextlib.suppress(OSError):
                    os.rmdir(path)
            if time.monotonic() > deadline:
                print(f"control groups that do not go: {top}", flush=True)
                return
            if os.path.isdir(top):
                time.sleep(0.02)
