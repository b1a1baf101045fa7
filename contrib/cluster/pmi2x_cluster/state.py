# SPDX-License-Identifier: BSD-3-Clause
"""The state directory of a cluster: who owns it, and what is in it."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import stat

from . import cgroups
from .machine import ClusterError
from .processes import kill_abandoned

STATE_FILE = "cluster.json"
LOCK_FILE = "lock"
SOCKET_PATH_MAX = 107


def default_dir():
    return (
        os.environ.get("PMI2X_CLUSTER_DIR")
        or f"/var/tmp/pmi2x-cluster-{os.getuid()}"
    )


def check_others_enter(path):
    """munged runs as a user of its own, also where root starts the cluster."""
    for parent in pathlib.Path(path).parents:
        if parent.exists() and not parent.stat().st_mode & stat.S_IXOTH:
            raise ClusterError(f"other users cannot enter {parent}, which the daemons "
                               "need; choose another --dir")


def check_dir(path):
    """slurm.conf and munge cannot have every path."""
    if re.search(r'[\s#,;=%"\\:\[\]]', path):
        raise ClusterError(
            f"'{path}' has characters that slurm.conf "
            "cannot have; choose another --dir"
        )
    if os.geteuid() == 0:
        check_others_enter(path)
    if len(f"{path}/run/slurmctld.pid.lock") > SOCKET_PATH_MAX:
        raise ClusterError(
            f"'{path}' is too long for a socket's path; " "choose another --dir"
        )


def is_held(path):
    """Whether a guard holds the lock of this state directory."""
    try:
        with open(f"{path}/{LOCK_FILE}") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def load_state(path):
    try:
        with open(f"{path}/{STATE_FILE}") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def running_state(path):
    state = load_state(path)
    if not state or not is_held(path):
        raise ClusterError(
            f"no cluster is up in {path}; " "start one with: pmi2x cluster up"
        )
    return state


def daemon_pid(path, name):
    """The pid of a running Slurm daemon, or None. A slurmd that has written it listens."""
    try:
        with open(f"{path}/run/{name}.pid") as file:
            pid = int(file.read())
        os.kill(pid, 0)
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None
    return pid


def make_dir(path):
    """Take an empty or an abandoned state directory; never another's."""
    if os.path.lexists(path):
        info = os.lstat(path)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise ClusterError(f"{path} is not a directory of yours")
        if is_held(path):
            raise ClusterError(
                f"a cluster is up in {path}; bring it "
                "down first, or choose another --dir"
            )
        if os.listdir(path) and not load_state(path):
            raise ClusterError(
                f"{path} is not empty and not the state "
                "directory of a cluster"
            )
        end_abandoned(path)
        shutil.rmtree(path)
    os.makedirs(path, 0o755)
    for name in "run", "log", "spool", "ctld":
        os.mkdir(f"{path}/{name}", 0o755)


def end_abandoned(path):
    """End processes that are left after guard and supervisor were killed."""
    kill_abandoned(path)
    cgroups.remove((load_state(path) or {}).get("cgroups", {}))


def remove_dir(path, keep_logs):
    if not keep_logs:
        shutil.rmtree(path)
        return
    for name in os.listdir(path):
        full = f"{path}/{name}"
        if os.path.isdir(full) and name != "log":
            shutil.rmtree(full)
        elif name not in (STATE_FILE, "log"):
            os.unlink(full)


def write_file(path, text, mode=0o644):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)


def is_insecure(path):
    """Whether munged would refuse to work below this directory."""
    while path != "/":
        path = os.path.dirname(path)
        info = os.stat(path)
        if info.st_uid not in (0, os.getuid()):
            return True
        if info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX:
            return True
    return False
