# SPDX-License-Identifier: BSD-3-Clause
"""libpmi2x-allgather in steps of a real Slurm: every layout, both PMI servers."""

import os
import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).resolve().parent

LAYOUTS = [
    ("-N1", "-n4"),
    ("-N4", "-n4"),
    ("-N4", "-n9", "--ntasks-per-node=4"),
    ("-N3", "-n8", "-m", "cyclic"),
    ("-N3", "-n12", "-m", "plane=2"),
]
FAULTS = {"PMI2X_ALLGATHER_TRANSPORT": "tcp", "PMI2X_ALLGATHER_CONNECT_TIMEOUT": "20"}


@pytest.fixture
def exercise(compile_program, prefix):
    return compile_program(
        "../fake/ring-exercise.c",
        "gcc",
        HERE / "../fake/ring-fault.c",
        f"-I{prefix}/include/pmi2x",
        f"-L{prefix}/lib",
        f"-Wl,-rpath,{prefix}/lib",
        "-lpmi2x-allgather",
        "-lpmi2x",
    )


@pytest.mark.parametrize("layout", LAYOUTS, ids=" ".join)
def test_gathers(srun, exercise, layout):
    via = "shm" if "-N1" in layout else "tcp"
    env = {"PMI2X_ALLGATHER_TRANSPORT": "tcp", "RING_EXPECT": via}
    srun(*layout, exercise, env=env).ok()


@pytest.fixture
def unmodified(compile_program, prefix):
    """A program that knows nothing of rings, and what it is preloaded with."""
    program = compile_program(
        "../fake/exercise.c",
        "gcc",
        f"-I{prefix}/include/pmi2x",
        f"-L{prefix}/lib",
        f"-Wl,-rpath,{prefix}/lib",
        "-lpmi2x",
    )
    library = prefix / "lib" / "pmi2x" / "libpmi2x-allgather-preload.so"
    before = os.environ.get("LD_PRELOAD")  # of a sanitizer, wants to be first
    return program, f"{before}:{library}" if before else str(library)


@pytest.mark.parametrize(
    "layout", [("-N8", "-n8"), ("-N8", "-n20", "-m", "cyclic")], ids=" ".join
)
def test_preloaded(srun, unmodified, layout):
    """As its man page says, also in srun's own environment."""
    program, preload = unmodified
    env = {
        "LD_PRELOAD": preload,
        "PMI2X_ALLGATHER_TRANSPORT": "tcp",
        "PMI2X_ALLGATHER_MIN": "1",
        "PMI2X_ALLGATHER_DEBUG": "1",
    }
    result = srun(*layout, program, env=env).ok()
    lines = [line for line in result.stderr.splitlines() if "allgather" in line]
    assert len(lines) == 1 and "8 elements: tcp" in lines[0], str(result)


def test_preloaded_with_a_wrong_setting(srun, unmodified):
    """The first rank says what is wrong; the program runs as without."""
    program, preload = unmodified
    env = {
        "LD_PRELOAD": preload,
        "PMI2X_ALLGATHER_TRANSPORT": "ib",
        "PMI2X_ALLGATHER_MIN": "1k",
    }
    result = srun("-N8", "-n16", program, env=env).ok()
    lines = [line for line in result.stderr.splitlines() if "allgather" in line]
    assert len(lines) == 1 and "PMI2X_ALLGATHER_MIN=1k" in lines[0], str(result)


def test_over_the_stock_server(srun, exercise):
    """Slurm's own mpi/pmi2 has a ring, too."""
    env = {"PMI2X_ALLGATHER_TRANSPORT": "tcp", "RING_EXPECT": "tcp"}
    srun("-N3", "-n6", exercise, env=env, mpi="pmi2").ok()


def test_one_rank_that_may_not(srun, exercise):
    """All ranks agree on PMI when one rank has no other transport."""
    script = (
        '[ "$PMI_RANK" = 2 ] && export PMI2X_ALLGATHER_TRANSPORT=pmi; '
        f'exec "{exercise}"'
    )
    env = {"PMI2X_ALLGATHER_TRANSPORT": "tcp,pmi", "RING_EXPECT": "pmi"}
    srun("-N4", "-n4", "sh", "-c", script, env=env).ok()


@pytest.mark.parametrize("layout", [("-N4", "-n4"), ("-N4", "-n8")], ids=" ".join)
def test_death_is_named_everywhere(srun, exercise, layout):
    """Killing a rank in the middle: all others are told who it was, and where."""
    size = int(layout[1][2:])
    result = srun(
        *layout, "--kill-on-bad-exit=0", exercise, "kill", "1", env=FAULTS
    )
    told = [line for line in result.stdout.splitlines() if "was told" in line]
    assert len(told) == size - 1, result.stdout + result.stderr
    assert all(re.search(r"rank 1 on node n\d+", line) for line in told), told
