# SPDX-License-Identifier: BSD-3-Clause
"""Limits that sites set for users, memory of agents, and what slurmstepd locks."""

import contextlib
import os
import pathlib

import pytest

from faulty import RANKS, TREE, ranks_of
from harness import Cluster, wait_until

WORDS = ["init", "fence", "allgather", "ring", "ifence", "wait", "put=2"]
WORDS += ["fence", "finalize"]
RANK_LIMITS = {
    "descriptors": "-n 4",
    "address space": "-v 50000",
    "locked memory": "-l 0",
    "file size": "-f 0",
    "data": "-d 10000",
    "stack": "-s 128",
}
MEMORY_GROUPS = pathlib.Path("/sys/fs/cgroup/memory")
LITTLE_KB = 256 << 10  # far less than the region that is reserved; Slurm 26.05 has 110 MB


def check(step):
    result = step.end().ok()
    assert step.seen("done") == RANKS, result


@pytest.mark.parametrize("limit", RANK_LIMITS.values(), ids=RANK_LIMITS)
def test_limit_of_ranks(srun, fault_client, tmp_path, limit):
    """Three standard descriptors and PMI_FD are enough, and so is the memory of a
    small program: where the region has no room, results come over the socket."""
    command = f'ulimit {limit} && exec "$@"'
    argv = ["sh", "-c", command, "sh", fault_client, tmp_path, *WORDS]
    result = srun(*TREE, *argv).ok()
    assert {f"done.{rank}" for rank in RANKS} <= set(os.listdir(tmp_path)), result


@pytest.mark.parametrize("propagate", ["ALL", "NONE", "NOFILE"])
def test_propagate(cluster, fault_client, tmp_path, propagate):
    """The limits of srun's shell become those of the ranks, or do not."""
    srun = f"srun --mpi={cluster.kind} --propagate={propagate}"
    shell = f'ulimit -S -n 40; ulimit -S -s 1024; exec {srun} "$@"'
    rank = ["sh", "-c", 'ulimit -S -n; exec "$@"', "sh", fault_client, tmp_path]
    result = cluster.run("sh", "-c", shell, "sh", *TREE, *rank, *WORDS).ok()
    assert result.lines.count("40") == (0 if propagate == "NONE" else 10), result
    assert {f"done.{rank}" for rank in RANKS} <= set(os.listdir(tmp_path)), result


@contextlib.contextmanager
def memory_group(size):
    """A control group with a limit of `size` bytes; its processes go back at the end."""
    if not os.access(MEMORY_GROUPS / "cgroup.procs", os.W_OK):
        pytest.skip("no memory hierarchy of version 1 that we may use")
    group = MEMORY_GROUPS / f"pmi2x-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(size))
        yield group
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_memory_of_an_agent_is_used_up(cluster, faulty):
    """The kernel kills it, and the step ends by its name."""
    much = [f"{rank}:put=2000" for rank in ranks_of("n2")]
    step = faulty("init", "fence", "touch=at", "gate=go", *much, "fence", "finalize")
    step.wait_for("at", RANKS)
    with memory_group(8 << 20) as group:
        (group / "cgroup.procs").write_text(str(cluster.agent("n2")))
        step.make("go")
        result = step.fails("the agent of node n2 has died: .*lack of memory")
    assert not step.seen("done"), result


def memory_kb(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: int(fields[name].split()[0]) for name in ("VmRSS", "VmLck")}


@pytest.mark.skipif(os.getuid() != 0, reason="only root may lock all memory")
def test_locked_step_daemon(prefix, scratch, kind, only_pmi2x, start_faulty):
    """LaunchParameters=slurmstepd_memlock_all locks what there is, no more."""
    line = "LaunchParameters=slurmstepd_memlock_all"
    options = ["--slurm-conf-line", line]
    cluster = Cluster(prefix, scratch / "locked", kind, 5, options)
    cluster.up()
    try:
        step = start_faulty(cluster, *WORDS[:-1], "touch=in", "gate=go", "finalize")
        step.wait_for("in", RANKS)
        memory = memory_kb(cluster.step_daemon("n2"))
        assert memory["VmLck"] > 0, memory
        assert memory["VmRSS"] < LITTLE_KB, memory
        step.make("go")
        check(step)
    finally:
        cluster.down()
