# SPDX-License-Identifier: BSD-3-Clause
"""Finds and ends processes."""

import contextlib
import ctypes
import os
import signal
import sys
import time

COMMANDS = ("srun", "salloc", "sbatch", "scancel", "sinfo", "squeue")
DAEMONS = (
    "munged",
    "sackd",
    "slurmctld",
    "slurmd",
    "slurmstepd",
    "slurmdbd",
    "mariadbd",
)
KILL_S = 10
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)


def descendants(root):
    """Every process below root, the nearest first."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found[1:]


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


def opened_files(pid):
    links = []
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return links


def uses_config(pid, path):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/environ", "rb") as file:
            setting = f"SLURM_CONF={path}/slurm.conf".encode()
            return setting in file.read().split(b"\0")
    return False


def members(path):
    """Daemons that log into this state directory, whoever their parent is, and
    commands that would wait for them forever."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        name = name_of(pid)
        if name in DAEMONS:
            logs = opened_files(pid)
            if any(link.startswith(f"{path}/log/") for link in logs):
                yield int(pid)
        elif name in COMMANDS and uses_config(pid, path):
            yield int(pid)


def send(pids, signum):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def kill_all(list_pids):
    """Kill until none is left: they may fork while we look."""
    deadline = time.monotonic() + KILL_S
    while pids := list(list_pids()):
        send(pids, signal.SIGKILL)
        reap()
        if time.monotonic() > deadline:
            print(f"processes that do not die: {pids}", file=sys.stderr)
            return
        time.sleep(0.02)


def kill_abandoned(path):
    """Kill processes that are left after the supervisor, and perhaps the guard, was
    killed."""
    kill_all(
        lambda: [
            pid for root in members(path) for pid in [root] + descendants(root)
        ]
    )


def reap(note=None):
    """Returns the children that have ended as {pid: status}.

    note(name, status, usage) is called for each, both as in os.wait4.
    """
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while info := os.waitid(
            os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT
        ):
            name = name_of(info.si_pid) if note else None
            pid, status, usage = os.wait4(info.si_pid, 0)
            ended[pid] = status
            if note:
                note(name, status, usage)
    return ended


def die_with_parent(parent, signum):
    """To be called in a child: the parent may be gone already."""
    LIBC.prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signum)


def become_subreaper():
    """Orphans below this process become its children."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
