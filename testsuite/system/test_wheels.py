# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py with the MPI libraries of PyPI, as they are; older ones with a C program."""

import pathlib

import pytest

HELLO = pathlib.Path(__file__).parents[2] / "contrib" / "cluster" / "mpi-hello.c"
SESSIONS = pathlib.Path(__file__).parent / "programs" / "mpi-sessions.c"
# What testsuite/run installs besides the newest.
OLDER = ["3.4.3.post1", "4.0.3", "4.1.3", "4.2.3", "4.3.2"]

PROGRAM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
size = world.Get_size()
assert world.allreduce(world.Get_rank()) == size * (size - 1) // 2
assert world.allgather(world.Get_rank()) == list(range(size))
print("mpi4py", size)
"""

UNEVEN = ["-N3", "-n7"]
EVEN = ["-N3", "-n6", "--ntasks-per-node=2"]


@pytest.fixture
def program(scratch):
    path = scratch / "program.py"
    path.write_text(PROGRAM)
    return path


def mpi4py(srun, python, program, env, layout=UNEVEN):
    result = srun(*layout, python, program, env=env, timeout=120).ok()
    ranks = int(layout[1][2:])
    assert result.lines.count(f"mpi4py {ranks}") == ranks, result


def test_mpich(srun, mpich_wheel, program, ofi):
    mpi4py(srun, mpich_wheel / "bin" / "python", program, ofi)


def test_mpich_sessions(srun, ofi_program, ofi):
    """MPICH finalizes PMI at exit only, and sends init for each session."""
    result = srun(*UNEVEN, ofi_program(SESSIONS), "3", env=ofi).ok()
    assert result.lines == ["good 7"] * 3, result


@pytest.mark.parametrize("version", OLDER)
def test_older_mpich(srun, ofi_program, older_mpich, ofi, version):
    """All have one ABI."""
    env = {**ofi, "LD_LIBRARY_PATH": str(older_mpich(version) / "lib")}
    result = srun(*UNEVEN, ofi_program(HELLO), env=env).ok()
    assert result.stdout.startswith("size 7 "), result


def test_mpich_below_another_launcher(srun, mpich_wheel, program, ofi):
    """MPICH 5 does not start when it finds two servers."""
    env = {**ofi, "PMIX_NAMESPACE": "prterun-n1-17@1", "PMIX_RANK": "0"}
    mpi4py(srun, mpich_wheel / "bin" / "python", program, env)


def test_intel_mpi(srun, impi_wheel, program):
    """With its own PMI-1 client, which does not ask where the ranks are: it reads
    Slurm's variables, and does not find a lone rank's node, with any MPI plugin."""
    env = {"I_MPI_ROOT": str(impi_wheel), "FI_PROVIDER": "tcp"}
    mpi4py(srun, impi_wheel / "bin" / "python", program, env, EVEN)


def test_intel_mpi_with_our_library(srun, impi_wheel, program, dropin):
    env = {
        "I_MPI_ROOT": str(impi_wheel),
        "I_MPI_PMI_LIBRARY": f"{dropin}/libpmi2.so.0",
        "FI_PROVIDER": "tcp",
    }
    mpi4py(srun, impi_wheel / "bin" / "python", program, env)
