# SPDX-License-Identifier: BSD-3-Clause
"""PMI2X_LEND: the report about threads and cores, and which steps get the library."""

import os
import pathlib
import re
import shutil

import pytest

from harness import below, command_line, wait_until
from test_config import configured  # noqa: F401
from test_lend_cores import lender  # noqa: F401
from test_site import make_site, place  # noqa: F401

LIBRARY = "libpmi2x-lend.so"
REPORT = {"PMI2X_LEND": "report"}
ALL = {"PMI2X_LEND": "report,all"}
TWO = "--ntasks-per-node=2"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}

pytestmark = pytest.mark.usefixtures("only_pmi2x")


@pytest.fixture(scope="session")
def threads(compile_program):
    return compile_program("programs/mpi-threads.c", "mpicc.mpich", "-fopenmp")


def reports(result):
    """{node: lines} of the report."""
    found, lines = {}, []
    for line in re.findall(r"^PMI2X_LEND: (.*)$", result.stderr, re.MULTILINE):
        head = re.match(r"node (\S+), (\d+) ranks?:", line)
        if head:
            assert head[1] not in found, result
            lines = found[head[1]] = []
        lines.append(line)
    return found


def says(lines, *parts):
    text = "\n".join(lines)
    for part in parts:
        assert part in text, f"no '{part}' in\n{text}"


def test_report_is_of_the_first_node(cluster, threads):
    env = {**REPORT, "OMP_NUM_THREADS": "3", "OMP_WAIT_POLICY": "active"}
    result = cluster.srun("-N2", TWO, threads, env=env).ok()
    assert sum("threads 3" in line for line in result.lines) == 4
    found = reports(result)
    assert list(found) == ["n1"], result
    says(found["n1"], "2 ranks:", "rank 0: ", "rank 1: ", "3 threads of libgomp",
         "MPI spins, libgomp spins")  # fmt: skip


def test_report_of_each_node(cluster, threads):
    result = cluster.srun("-N3", TWO, threads, env={**ALL, **ONE_THREAD}).ok()
    found = reports(result)
    assert sorted(found) == ["n1", "n2", "n3"], result
    says(found["n2"], "rank 2: ", "rank 3: ")


def test_threads_that_share_cores_have_a_remedy(cluster, threads):
    cores = len(os.sched_getaffinity(0))
    env = {**REPORT, "OMP_NUM_THREADS": str(cores)}
    result = cluster.srun("-N1", "-n2", threads, env=env).ok()
    says(reports(result)["n1"], f"the 2 ranks share {cores} core", "--cpu-bind=cores")
    env["OMP_NUM_THREADS"] = str(cores + 1)
    result = cluster.srun("-N1", "-n2", threads, env=env).ok()
    says(reports(result)["n1"], f"ranks 0-1 each have {cores + 1} threads on {cores} core",
         f": srun -c {cores + 1}, or OMP_NUM_THREADS={cores}")  # fmt: skip


def test_progress_thread_is_named(cluster, threads):
    cores = len(os.sched_getaffinity(0))
    env = {**REPORT, "MPICH_ASYNC_PROGRESS": "1", "OMP_NUM_THREADS": str(cores)}
    result = cluster.srun("-N1", "-n1", f"-c{cores}", threads, env=env).ok()
    says(reports(result)["n1"], "1 progress thread of MPI", "progress has no core of its own")


def test_program_of_open_mpi_is_reported(cluster, compile_program, needs_pmixd):
    program = compile_program("../../contrib/cluster/mpi-hello.c", "mpicc.openmpi")
    result = cluster.srun("-N1", "-n2", program, env=REPORT).ok()
    says(reports(result)["n1"], "2 ranks:", "rank 1: ", "no OpenMP", "MPI spins")


def test_processes_around_the_program_are_silent(cluster, threads):
    script = f"/usr/bin/python3 -c 'print(1)'; env {threads}; ls /proc/self"
    env = {**REPORT, **ONE_THREAD}
    result = cluster.srun("-N1", "-n2", "sh", "-c", script, env=env).ok()
    assert len(reports(result)) == 1
    assert result.stderr.count("node n1") == 1, result
    silent = cluster.srun("-N1", "-n2", "hostname", env=REPORT).ok()
    assert not silent.stderr, silent


def test_rank_without_mpi_is_counted(cluster, threads):
    """The report does not wait for it longer than 2 seconds."""
    script = f"[ $PMI_RANK = 1 ] && exec sleep 5; unset PMI_FD PMI_RANK; exec {threads}"
    result = cluster.srun("-N1", "-n2", "sh", "-c", script, env=REPORT)
    says(reports(result)["n1"], "1 of 2 ranks have not called MPI_Init yet")


def test_step_that_does_not_ask_gets_nothing(cluster):
    script = "env; ls -l /proc/self/fd"
    for env in {}, {"PMI2X_LEND": "off"}, {"PMI2X_LEND": ""}:
        result = cluster.srun("-N1", "-n1", "sh", "-c", script, env=env).ok()
        assert "LD_PRELOAD" not in result.stdout and "PMI2X_LEND_TABLE" not in result.stdout
        assert "memfd:pmi2x-lend" not in result.stdout, result


def test_inner_step_that_does_not_ask_gets_nothing(cluster):
    inner = f"srun --mpi={cluster.kind} -n1 --overlap env"
    script = f"unset PMI2X_LEND; {inner}"
    result = cluster.srun("-N1", "-n1", "sh", "-c", script, env=REPORT).ok()
    assert LIBRARY not in result.stdout and "PMI2X_LEND_TABLE" not in result.stdout, result


def test_preloads_of_the_user_stay(cluster):
    env = {**REPORT, "LD_PRELOAD": "libm.so.6"}
    result = cluster.srun("-N1", "-n1", "env", env=env).ok()
    (line,) = [line for line in result.lines if line.startswith("LD_PRELOAD=")]
    assert re.fullmatch(rf"LD_PRELOAD=libm.so.6:/\S+/{LIBRARY}", line), line


def test_unknown_word_ends_the_step_before_it_starts(cluster, tmp_path):
    env = {"PMI2X_LEND": "reprot"}
    result = cluster.srun("-N1", "-n1", "touch", tmp_path / "ran", env=env).failed()
    result.says("PMI2X_LEND=reprot is not a value of PMI2X_LEND: use on, report, report,all or off")
    option = "--export=ALL,PMI2X_LEND=reprot"
    result = cluster.srun("-N1", "-n1", option, "touch", tmp_path / "ran").failed()
    result.says("PMI2X_LEND=reprot is not a value of PMI2X_LEND")
    assert not (tmp_path / "ran").exists()


def test_site_forbids_it(configured, threads):  # noqa: F811
    cluster = configured("Pmi2xLend=no\n", nodes=1)
    env = {**REPORT, **ONE_THREAD}
    result = cluster.srun("-N1", "-n2", threads, env=env).ok()
    result.says("PMI2X_LEND has no effect: Pmi2xLend=no in mpi.conf forbids it")
    assert not reports(result)
    assert LIBRARY not in cluster.srun("-N1", "-n1", "env", env=REPORT).stdout


def maps(pid):
    return pathlib.Path(f"/proc/{pid}/maps").read_text()


def test_processes_of_root_do_not_load_the_library(cluster, raw, tmp_path):
    """Neither slurmstepd nor what it starts; the tasks do."""
    command = ["srun", f"--mpi={cluster.kind}", "-N1", "-n2"]
    command += raw("gate", "2", "1", tmp_path / "go")
    with cluster.start(*command, stdout=None, stderr=None, env=REPORT) as step:
        loaded = wait_until(lambda: who_has_loaded(cluster))
        (tmp_path / "go").touch()
        assert step.wait(timeout=60) == 0
    assert loaded == (False, False, [True, True])


def who_has_loaded(cluster):
    """slurmstepd, the agent, each task; None while one of them has yet to start."""
    agent, stepd = cluster.agent("n1"), cluster.step_daemon("n1")
    tasks = [pid for pid in below(stepd) if "gate" in command_line(pid)] if stepd else []
    if not agent or len(tasks) < 2:
        return None
    try:
        return LIBRARY in maps(stepd), LIBRARY in maps(agent), [LIBRARY in maps(p) for p in tasks]
    except OSError:
        return None


@pytest.fixture(scope="module")
def two_nodes_of_all_cores(prefix, kind, place):  # noqa: F811
    """Each node has all cores of the machine, and steps have cpusets."""
    cpus = len(os.sched_getaffinity(0))
    if cpus < 2:
        pytest.skip("there is one CPU only")
    cluster = make_site(prefix, kind, place / "lend", 2, "--cpus", str(cpus))
    yield cluster
    cluster.down()


def put(place, program):  # noqa: F811
    path = place / program.name
    shutil.copy(program, path)
    return path


def test_nodes_of_a_machine_lend_each_other_nothing(two_nodes_of_all_cores, place, lender):  # noqa: F811
    """Ranks of one node use each other's cores inside of the step's cpuset."""
    program, env = put(place, lender), {"PMI2X_LEND": "on", **ONE_THREAD}
    step = ["-c1", "--cpu-bind=cores", "--chdir", place, program]
    result = two_nodes_of_all_cores.srun("-N1", "-n2", *step, "moves", env=env).ok()
    assert sorted(result.lines) == ["rank 0 threads 2 ok", "rank 1 threads 2 ok"]
    result = two_nodes_of_all_cores.srun("-N2", "-n4", *step, "nodes", env=env).ok()
    assert sorted(result.lines) == [f"rank {rank} threads 2 ok" for rank in range(4)]


def test_cpus_that_the_step_did_not_get_are_named(kind, two_nodes_of_all_cores, place, threads):  # noqa: F811
    """sbatch -c 2, and an srun that reads SRUN_CPUS_PER_TASK only: two threads, one core."""
    program, script, cluster = put(place, threads), place / "job.sh", two_nodes_of_all_cores
    script.write_text(
        f"#!/bin/sh\nexport OMP_NUM_THREADS=2 PMI2X_LEND=report\n"
        f"srun --mpi={kind} -n1 {program}\n"
        f"SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK srun --mpi={kind} -n1 {program}\n")
    output = place / "job.out"
    cluster.run("sbatch", "--wait", "-N1", "-n1", "-c2", f"--output={output}",
                f"--chdir={place}", script).ok()  # fmt: skip
    text = output.read_text()
    if "threads 2 cores 1" in text:  # Slurm 22.05 and 23.02
        assert "rank 0 has 2 threads on 1 core: the job has asked for 2 CPUs per task" in text
        assert "export SRUN_CPUS_PER_TASK=2; or: srun -c 2" in text, text
    assert "threads 2 cores 2" in text, text
    assert text.rstrip().count("each thread has a core") >= 1, text
