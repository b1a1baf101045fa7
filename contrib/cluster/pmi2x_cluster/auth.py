# SPDX-License-Identifier: BSD-3-Clause
"""How the daemons and commands of a cluster prove who they are: by munge, or by
Slurm's own auth/slurm, whose sackd signs for the commands (from 25.05 on)."""

import os
import shutil

from .machine import ClusterError, find_program
from .state import is_insecure

KINDS = ("munge", "slurm")
KEY_BYTES = {"munge": 128, "slurm": 1024}
FIRST_WITH_SACK_SOCKET = (25, 5)  # earlier commands look in /run/slurm alone


def choose(wanted, plugin_dir, version):
    """munge unless this Slurm was built without it."""
    kind = wanted
    if not kind:
        has_munge = os.path.exists(f"{plugin_dir}/auth_munge.so")
        kind = "munge" if has_munge or not plugin_dir else "slurm"
    if kind == "slurm" and tuple(version) < FIRST_WITH_SACK_SOCKET:
        raise ClusterError(
            "auth/slurm of a Slurm before 25.05 cannot have a cluster of its own; "
            "use --auth munge"
        )
    if kind == "slurm" and not os.access(runtime_base(), os.W_OK):
        raise ClusterError(
            f"auth/slurm needs a socket in {runtime_base()}, where you cannot make "
            "one; be root, or a user with a session of systemd"
        )
    return kind


def program(kind, prefix):
    """Name and path of the daemon that signs."""
    name = "munged" if kind == "munge" else "sackd"
    return name, find_program(name, prefix)


def slurm_options(kind, path, old):
    """The lines of slurm.conf; only sackd is to make a socket in /run."""
    if kind == "slurm":
        return {
            "AuthType": "auth/slurm",
            "AuthInfo": "disable_sack",
            "CredType": "auth/slurm",
        }
    return {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={path}/run/munge.socket",
        "CredType": "cred/munge" if old else "auth/munge",
    }


def runtime_base():
    """sackd takes no directory that is not below /run."""
    return "/run" if os.getuid() == 0 else f"/run/user/{os.getuid()}"


def runtime_dir(state):
    """No two clusters on a machine have the same port."""
    return f"{runtime_base()}/pmi2x-cluster-{state['first_port']}"


def socket_path(state):
    if state["auth"] == "slurm":
        return f"{runtime_dir(state)}/sack.socket"
    return f"{state['dir']}/run/munge.socket"


def environment(state):
    """Variables that daemons and commands need besides SLURM_CONF."""
    if state["auth"] == "slurm":
        return {"SLURM_SACK_SOCKET": socket_path(state)}
    return {}


def command(state):
    """Arguments and environment of the daemon that signs."""
    if state["auth"] == "slurm":
        os.makedirs(runtime_dir(state), 0o755, exist_ok=True)
        return (
            [state["programs"]["sackd"], "-D"],
            {"RUNTIME_DIRECTORY": runtime_dir(state)},
        )
    path = state["dir"]
    argv = [
        state["programs"]["munged"],
        "--foreground",
        f"--key-file={path}/munge.key",
        f"--socket={path}/run/munge.socket",
        f"--pid-file={path}/run/munged.pid",
        f"--log-file={path}/log/munged.log",
        f"--seed-file={path}/run/munge.seed",
        "--num-threads=4",
    ]
    return argv + (["--force"] if is_insecure(path) else []), {}


def clean(state):
    if state["auth"] == "slurm":
        shutil.rmtree(runtime_dir(state), ignore_errors=True)
