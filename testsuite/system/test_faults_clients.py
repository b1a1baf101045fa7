# SPDX-License-Identifier: BSD-3-Clause
"""Programs that misuse their connection harm nobody but themselves."""

import pathlib
import re
import subprocess

import pytest

from faulty import RANKS
from harness import wait_until

AGENT_MAX_KB = 64 << 10
LOST = 3


def resident_kb(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1])


@pytest.mark.parametrize("how", ["slow", "hasty"])
def test_odd_client(srun, raw, tmp_path, how):
    result = srun("-N2", "-n4", *raw("misbehave", how, tmp_path)).ok()
    assert result.lines.count("behaved 4") == 4, result


def test_client_that_never_reads(cluster, raw, tmp_path):
    """The agent stops reading from this client, serves the others, and loses nothing."""
    argv = ["srun", f"--mpi={cluster.kind}", "-w", "n[1-2]", "-n4"]
    argv += ["--ntasks-per-node=2", *raw("misbehave", "deaf", tmp_path)]
    with cluster.start(*argv, stdin=subprocess.DEVNULL, stderr=None) as job:
        try:
            wait_until((tmp_path / "full").exists, 60)
            assert resident_kb(cluster.agent("n1")) < AGENT_MAX_KB
            (tmp_path / "measured").touch()
            output, _ = job.communicate(timeout=60)
        finally:
            job.terminate()
    assert output.count("behaved 4") == 4


def test_client_forks(faulty):
    """A child that ends as programs do takes nothing with it."""
    step = faulty("init", "fence", "3:fork", "fence", "5:fork", "ring",
                  "finalize")
    step.end().ok()
    assert step.seen("done") == RANKS


def test_nobody_reads_what_a_rank_says(faulty):
    """A message of libpmi2x into a broken pipe does not kill the rank."""
    step = faulty("init", "mute", "ask=nobody", "fence", "finalize",
                  env={"PMI2X_DEBUG": "1"})
    step.end().ok()
    assert step.seen("done") == RANKS


@pytest.mark.parametrize("version", [None, "PMI2X_DISABLE"])
def test_client_replaces_its_connection(faulty, version):
    """A program that closes all descriptors, and opens a file of its own: it
    is not written to, and the others learn who is gone."""
    step = faulty(
        "init", "fence", f"{LOST}:replace=mine", "fence", "fence",
        env={version: "1"} if version else None,
    )
    step.fails(
        rf"fence \d failed: rank {LOST} \(node n2\) (exited (or closed|with exit)|closed PMI_FD)"
    )
    assert step.seen("error") == RANKS
    assert (step.dir / f"mine.{LOST}").stat().st_size == 0
