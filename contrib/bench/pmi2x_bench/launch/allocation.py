# SPDX-License-Identifier: BSD-3-Clause
"""An allocation of all nodes of a private cluster, so that what is timed is the
launch and not the wait for nodes, and other launchers find their nodes."""

import contextlib
import os
import subprocess

from ..errors import BenchError

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


def forget_defaults():
    for name in DEFAULTS:
        os.environ.pop(name, None)


def read_environment(pipe):
    """Of the command; without SLURM_JOB_ID when it has not come so far."""
    data = b""
    while MARK not in data:
        piece = os.read(pipe.fileno(), 65536)
        if not piece:
            return {}
        data += piece
    pairs = (line.partition("=") for line in os.fsdecode(data).split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def end(job):
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
            raise BenchError("salloc on the private cluster failed")
        os.environ.update(
            {n: v for n, v in found.items() if n.startswith("SLURM")}
        )
        forget_defaults()
        yield
    finally:
        end(job)
        os.environ.clear()
        os.environ.update(before)
