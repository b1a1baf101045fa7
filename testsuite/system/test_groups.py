# SPDX-License-Identifier: BSD-3-Clause
"""Barriers of groups: PMI-1 1.2, which MPICH 5 speaks."""

import pytest

SESSION = """
from mpi4py import MPI
session = MPI.Session.Init()
group = session.Create_group("mpi://WORLD")
comm = MPI.Intracomm.Create_from_group(group)
size = comm.Get_size()
assert comm.allreduce(comm.Get_rank()) == size * (size - 1) // 2
print("session", size)
comm.Free()
group.Free()
session.Finalize()
"""


@pytest.mark.parametrize("layout", [["-N4", "-n10"], ["-N1", "-n4"]])
def test_groups_meet(srun, raw, layout):
    result = srun(*layout, *raw("groups", "meet")).ok()
    ranks = layout[1][2:]
    assert result.lines.count(f"groups {ranks}") == int(ranks), result
    assert "sent barrier_in with an invalid group" in result.stderr


@pytest.mark.parametrize("how", ["exit", "finalize", "kill"])
def test_a_member_that_leaves(srun, raw, how):
    """Nobody is let out, and srun says who is missing."""
    result = srun("-N3", "-n3", *raw("groups", how), timeout=30)
    assert result.code != 0, result
    assert "answered" not in result.stdout, result
    assert "barrier of a group" in result.stderr, result
    assert "rank 2 " in result.stderr, result


def test_a_node_without_members_that_leaves(srun, raw):
    """It is there as long as members need it."""
    result = srun("-N3", "-n3", *raw("groups", "without"), timeout=60).ok()
    assert result.lines.count("without 3") == 3, result
    assert "barrier of a group" not in result.stderr, result


def test_a_group_ends_a_step_that_was_to_go_on(srun, raw):
    """Its members cannot be told that it has failed."""
    env = {"PMI2X_KILL_ON_FAILURE": "off"}
    result = srun("-N3", "-n3", *raw("groups", "kill"), env=env, timeout=30)
    assert result.code != 0, result
    assert "answered" not in result.stdout, result
    assert "barrier of a group" in result.stderr, result


def test_mpich_under_1_2(srun, mpich_wheel, scratch, ofi):
    """The wheel's MPICH 5 takes the answer 1.2 and tags. (It has its own PMI client, and
    then MPICH 5.0 is built without its use of groups.)"""
    program = scratch / "groups-init.py"
    program.write_text("from mpi4py import MPI\nprint('init')\n")
    python = mpich_wheel / "bin" / "python"
    env = {**ofi, "PMI_DEBUG": "1"}
    result = srun("-N3", "-n7", python, program, env=env, timeout=60).ok()
    assert result.lines.count("init") == 7, result
    said = result.stdout + result.stderr
    assert "pmi_subversion=2" in said, result
    assert "cmd=barrier_out rc=0 tag=" in said, result


def test_mpich_session(srun, mpich_wheel, scratch, ofi):
    program = scratch / "groups-session.py"
    program.write_text(SESSION)
    python = mpich_wheel / "bin" / "python"
    result = srun("-N3", "-n7", python, program, env=ofi, timeout=60).ok()
    assert result.lines.count("session 7") == 7, result
