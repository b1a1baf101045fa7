# SPDX-License-Identifier: BSD-3-Clause
"""Spawn, and names: MPI programs that find each other at run time."""

import pytest

ROOM = ["--ntasks-per-node=8"]  # CPUs for the children


@pytest.fixture
def spawn(cluster, ofi_program, ofi):
    program = ofi_program("programs/mpi-spawn.c")

    def start(mode, children, parents=2):
        step = (
            f"srun --mpi={cluster.kind} --overlap -N2 -n{parents} "
            f"{program} {mode} {children}"
        )
        return cluster.run(
            "salloc", "-N4", *ROOM, "sh", "-c", step, env=ofi, timeout=90
        ).ok()

    return start


@pytest.mark.parametrize("children", [1, 5])
def test_spawn(spawn, children):
    result = spawn("spawn", children)
    assert result.stdout.count("child ") == children, result
    assert result.stdout.count("parent done") == 2, result


def test_spawn_multiple_numbers_the_commands(spawn):
    """The processes of the k-th command have appnum k."""
    result = spawn("multiple", 4)
    children = [line for line in result.lines if line.startswith("child ")]
    assert sorted(children) == [
        "child 0 of 4 appnum 0",
        "child 1 of 4 appnum 1",
        "child 2 of 4 appnum 1",
        "child 3 of 4 appnum 1",
    ], result


@pytest.mark.parametrize("key", ["wdir", "path", "host"])
def test_info_keys_reach_the_children(spawn, key):
    result = spawn(key, 3)
    assert result.stdout.count("child ") == 3, result


def test_spawn_twice(spawn):
    result = spawn("twice", 2)
    assert result.stdout.count("child ") == 4, result


def test_spawn_of_a_missing_program(cluster, ofi, raw):
    """The answer is an error, and the parent goes on."""
    step = f"srun --mpi={cluster.kind} -n1 " + " ".join(
        map(str, raw("spawn", "/nonexistent/program"))
    )
    result = cluster.run("salloc", "-N2", *ROOM, "sh", "-c", step, timeout=90)
    assert "spawn answered" in result.stdout, result


def test_publish_and_connect(srun, ofi_program, ofi):
    program = ofi_program("programs/mpi-connect.c")
    result = srun("-N3", "-n6", program, "a-service", env=ofi).ok()
    assert "connected 6" in result.lines
