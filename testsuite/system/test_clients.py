# SPDX-License-Identifier: BSD-3-Clause
"""Programs that pmi2x does not start, launchers below and above it, and other clients
than MPI libraries. doc/clients.md names these tests."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import wait_until

STEP = ["-N2", "-n4"]
ALLOCATION = ["-N2", "--ntasks-per-node=2"]
TOLD = "none of the 4 ranks used PMI"


@pytest.fixture
def alone(compile_program, scratch):
    """A program that needs an MPI library and does not speak PMI."""
    library = scratch / "alone" / "libmpi.so.40"
    if not library.exists():
        flags = ["-shared", "-fPIC", "-DLIBRARY", "-Wl,-soname,libmpi.so.40"]
        made = compile_program("programs/alone.c", "gcc", *flags)
        library.parent.mkdir()
        shutil.copy(made, library)
    flags = ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{library.parent}"]
    return compile_program("programs/alone.c", "gcc", *flags)


@pytest.fixture
def hydra():
    if not shutil.which("mpiexec.hydra"):
        pytest.skip("mpiexec.hydra is not there")
    return "mpiexec.hydra"


# Hydra's daemons would look up the name of this host, which new machines cannot.
HERE = ["-localhost", "127.0.0.1"]


# ---- singletons ----


def test_singletons_are_told_of(srun, only_pmi2x, alone):
    result = srun(*STEP, alone).ok()
    assert result.stderr.count(TOLD) == 1, result


def test_singletons_are_told_of_by_the_agent(cluster, only_pmi2x, alone, tmp_path):
    """After a second there is one on the first node, so that srun can ask it."""
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(cluster.srun, *STEP, alone, tmp_path / "go")
        wait_until(lambda: cluster.step_daemon("n1") and cluster.agent("n1"))
        (tmp_path / "go").touch()
        assert step.result().ok().stderr.count(TOLD) == 1


def test_programs_that_are_no_singletons_are_not_reported(srun, only_pmi2x, alone, hello):
    """A step of one rank; programs without MPI; an MPI program that is served."""
    for step in (["-n1", alone], [*STEP, "true"], [*STEP, hello]):
        assert "spoken" not in srun(*step).ok().stderr


# ---- launchers in launchers ----


def sizes(result):
    """The sizes that the MPI programs printed."""
    words = [line.split() for line in result.ok().lines]
    return sorted(int(w[1]) for w in words if w[:1] == ["size"])


def test_mpiexec_in_an_allocation(cluster, hydra, hello):
    """mpiexec starts its daemons with srun, under the default plugin, and serves its
    ranks."""
    env = {"SLURM_MPI_TYPE": cluster.kind}
    outer = [hydra, *HERE, "-n", "4", hello]
    result = cluster.run("salloc", *ALLOCATION, *outer, env=env)
    assert sizes(result) == [4]


def test_mpiexec_in_a_step(srun, hydra, hello):
    """Each of two ranks of a step starts four ranks, on its own node."""
    step = [hydra, "-launcher", "fork", "-hosts", "localhost", "-n", "3", hello]
    assert sizes(srun("-N2", "-n2", *step)) == [3, 3]


def test_srun_in_mpiexec(cluster, hydra, hello):
    """Two processes of mpiexec start a step each."""
    inner = ["srun", f"--mpi={cluster.kind}", "--overlap", "-N1", "-n2", hello]
    outer = [hydra, *HERE, "-n", "2", *inner]
    assert sizes(cluster.run("salloc", *ALLOCATION, *outer)) == [2, 2]


# ---- which PMI? ----


def test_probe_runs_it_in_an_allocation(cluster, only_pmi2x, probe, hello):
    command = [probe, "--mpi", hello, "--run"]
    result = cluster.run("salloc", *ALLOCATION, *command).ok()
    assert "has spoken   PMI-1 (2 of 2 ranks)" in result.lines, result
