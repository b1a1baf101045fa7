# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that misbehave: the step ends, soon, and says why."""

import pytest

SOON_S = 30


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("how", ["exit", "kill"])
def test_rank_leaves_without_finalize(srun, raw, version, how):
    """The others get an error in their fence, and srun names the rank."""
    result = srun("-N4", "-n8", *raw("leave", version, how, "3", "5"))
    result.failed()
    assert result.seconds < SOON_S, result
    assert "fence came back" not in result.stdout, result
    result.says("rank 5")


@pytest.mark.parametrize("version", ["1", "2"])
def test_rank_killed_in_the_middle_of_init(srun, raw, version):
    """It has named its PMI version and said nothing more."""
    result = srun("-N4", "-n8", *raw("leave", version, "half", "0", "5"))
    result.failed()
    assert result.seconds < SOON_S, result
    assert "fence came back" not in result.stdout, result
    result.says("fence 0 failed: rank 5 (node n")


def test_rank_leaves_a_grandchild_behind(srun, raw):
    """Its end is noticed although PMI_FD stays open."""
    result = srun("-N2", "-n4", *raw("leave", "2", "orphan", "3", "3"))
    result.failed()
    assert result.seconds < SOON_S, result
    assert "fence came back" not in result.stdout, result


def test_rank_leaves_with_exit_code_0(srun, raw):
    """Also a rank that ends well must not be waited for."""
    result = srun("-N2", "-n4", *raw("leave", "1", "exit", "0", "2"))
    assert result.seconds < SOON_S, result
    assert "fence came back" not in result.stdout, result


def test_rank_never_inits(srun, raw):
    """Some ranks use PMI, one ends without it."""
    exchange = " ".join(map(str, raw("exchange", "1")))
    script = f'[ "$PMI_RANK" = 2 ] && exit 0; exec {exchange}'
    result = srun("-N2", "-n4", "sh", "-c", script).failed()
    assert result.seconds < SOON_S, result


def test_no_rank_inits(srun):
    assert srun("-N4", "-n8", "sleep", "1").ok().seconds < SOON_S


def test_mpi_abort(srun, compile_program):
    program = compile_program("programs/mpi-abort.c", "mpicc")
    result = srun("-N4", "-n8", program, "3", "7").failed()
    assert result.seconds < SOON_S, result
    result.says("abort")


@pytest.mark.parametrize("version", ["1", "2"])
def test_abort_request(srun, raw, version):
    result = srun(
        "-N4", "-n8", *raw("abort", version, "5"), timeout=60
    ).failed()
    assert result.seconds < SOON_S, result
    result.says("abort")


def test_all_ranks_abort(srun, raw):
    """Aborts are merged: srun does not print one line for each."""
    result = srun("-N8", "-n64", *raw("abort", "2", "all")).failed()
    assert result.seconds < SOON_S, result
    named = [l for l in result.stderr.splitlines() if "why not" in l]
    assert len(named) <= 8, result


def test_cancelled_step(cluster, raw):
    """scancel during a fence leaves nothing behind; the fixture looks."""
    late = " ".join(map(str, raw("late", "2", "100")))
    script = (
        f"srun --mpi={cluster.kind} -N4 -n8 {late} & sleep 2; "
        "scancel -s KILL $SLURM_JOB_ID.0; wait"
    )
    result = cluster.run(
        "salloc", "-N4", "--ntasks-per-node=8", "sh", "-c", script
    )
    assert "late" not in result.lines
