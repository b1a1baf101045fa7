# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py with the MPI libraries of PyPI, as they are."""

import pytest

PROGRAM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
size = world.Get_size()
assert world.allreduce(world.Get_rank()) == size * (size - 1) // 2
assert world.allgather(world.Get_rank()) == list(range(size))
print("mpi4py", size)
"""


@pytest.fixture
def program(scratch):
    path = scratch / "program.py"
    path.write_text(PROGRAM)
    return path


def mpi4py(srun, python, program, env):
    result = srun("-N3", "-n7", python, program, env=env, timeout=120).ok()
    assert result.lines.count("mpi4py 7") == 7, result


def test_mpich(srun, mpich_wheel, program, ofi):
    mpi4py(srun, mpich_wheel / "bin" / "python", program, ofi)


def test_intel_mpi(srun, impi_wheel, program):
    """With its own PMI-1 client."""
    env = {"I_MPI_ROOT": str(impi_wheel), "FI_PROVIDER": "tcp"}
    mpi4py(srun, impi_wheel / "bin" / "python", program, env)


def test_intel_mpi_with_our_library(srun, impi_wheel, program, dropin):
    env = {
        "I_MPI_ROOT": str(impi_wheel),
        "I_MPI_PMI_LIBRARY": f"{dropin}/libpmi2.so.0",
        "FI_PROVIDER": "tcp",
    }
    mpi4py(srun, impi_wheel / "bin" / "python", program, env)
