# SPDX-License-Identifier: BSD-3-Clause
"""Every client library against every server: Slurm's own and ours."""

import pytest

STOCK = "pmi2"


@pytest.fixture
def pmi2_client(compile_program):
    return compile_program(
        "programs/pmi2-client.c", "gcc", "-I/usr/include/slurm", "-lpmi2"
    )


@pytest.fixture
def pmi_client(compile_program, prefix, dropin):
    return compile_program(
        "programs/pmi-client.c",
        "gcc",
        f"-I{prefix}/include/pmi2x",
        f"-L{dropin}",
        "-l:libpmi.so.0",
    )


def test_stock_library(srun, pmi2_client):
    result = srun("-N4", "-n9", pmi2_client).ok()
    assert result.lines.count("pmi2 client of 9") == 9


@pytest.mark.parametrize("server, join", [("ours", ";"), (STOCK, ",")])
def test_dropin_libpmi2(srun, kind, pmi2_client, dropin, server, join):
    env = {"LD_LIBRARY_PATH": str(dropin)}
    mpi = kind if server == "ours" else STOCK
    loaded = srun("-n1", "ldd", pmi2_client, env=env, mpi="none").ok()
    assert f"{dropin}/libpmi2.so.0" in loaded.stdout
    result = srun("-N4", "-n9", pmi2_client, join, env=env, mpi=mpi).ok()
    assert result.lines.count("pmi2 client of 9") == 9


@pytest.mark.parametrize("server", ["ours", STOCK])
def test_dropin_libpmi(srun, kind, pmi_client, dropin, server):
    env = {"LD_LIBRARY_PATH": str(dropin)}
    mpi = kind if server == "ours" else STOCK
    result = srun("-N4", "-n9", pmi_client, env=env, mpi=mpi).ok()
    assert result.lines.count("pmi client of 9") == 9


def test_mixed_libraries_in_one_step(srun, pmi2_client, dropin):
    """Extended ranks and plain ones meet in the same fences."""
    script = (
        f'[ $((PMI_RANK % 2)) = 1 ] && export LD_LIBRARY_PATH="{dropin}"; '
        f'exec "{pmi2_client}"'
    )
    result = srun("-N3", "-n8", "sh", "-c", script).ok()
    assert result.lines.count("pmi2 client of 8") == 8


@pytest.fixture
def executes(compile_program, prefix, dropin):
    return compile_program(
        "programs/executes.c",
        "gcc",
        f"-I{prefix}/include/pmi2x",
        f"-L{dropin}",
        f"-Wl,-rpath,{dropin}",
        "-l:libpmi2.so.0",
    )


def test_exec_before_init(srun, executes):
    """A program that takes the place of another one gets the connection."""
    script = f'exec env sh -c "exec {executes} :"'
    result = srun("-N2", "-n4", "sh", "-c", script).ok()
    assert result.lines.count("fence: 0") == 4


def test_exec_after_init(srun, executes):
    """Rank 1 executes a shell in a session: others are told when that exits."""
    looks = "test -S /proc/self/fd/$PMI_FD && echo open"
    result = srun("-N2", "-n4", "--kill-on-bad-exit=1", executes, looks).failed()
    assert result.lines.count("open") == 1
    assert "rank 1 (node n1) exited with exit code 0 without finalizing PMI" in result.stderr


def test_dropin_without_server(cluster, pmi2_client, dropin):
    """A program that is started by hand is a job of one."""
    env = {"LD_LIBRARY_PATH": str(dropin), "SLURM_LOCALID": "0"}
    result = cluster.run(pmi2_client, env=env).ok()
    assert result.lines == ["pmi2 client of 1"]


def test_little_address_space(srun, pmi2_client, dropin):
    """Where the region cannot be mapped the library goes over the socket."""
    script = f"ulimit -v 60000; exec {pmi2_client}"
    env = {"LD_LIBRARY_PATH": str(dropin)}
    result = srun("-N2", "-n4", "sh", "-c", script, env=env).ok()
    assert result.lines.count("pmi2 client of 4") == 4
