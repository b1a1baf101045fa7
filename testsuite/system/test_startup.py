# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x bench launch on a private cluster: what it starts, says and leaves."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

from harness import below, command_line, process_table, run, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "contrib" / "bench"))

from pmi2x_bench.record import rows_of  # noqa: E402

PROGRAM = "libexec/pmi2x/pmi2x-bench-launch"
COLUMNS = "test method nodes ranks_per_node source outcome".split()


@pytest.fixture
def startup(prefix):
    def start(*argv, **options):
        return run([prefix / PROGRAM, *argv], **options)

    return start


def rows(path):
    return list(rows_of(path.read_text().splitlines()))


def have(found, outcome="ok"):
    """(test, method, nodes x ranks a node, source) of rows that went well."""
    return {
        (
            row["test"],
            row["method"],
            f"{row['nodes']}x{row['ranks_per_node']}",
            row["source"],
        )
        for row in found
        if row["outcome"] == outcome
    }


def test_a_matrix(startup, tmp_path):
    """All tests and methods that there are, and beyond the nodes that run."""
    path = tmp_path / "start.csv"
    result = startup(
        *("--private", 16, "--configs", "2x1,16x2,20x1", "--repeats", 2),
        *("--methods", "none,pmi2,pmi2x", "--csv", path),
        *("--beyond", "emulated"),
        timeout=300,
    ).ok()
    found = rows(path)
    assert {row["outcome"] for row in found} == {"ok", "skipped"}, result
    done = have(found)
    for config in "2x1", "16x2":
        for method in "none", "pmi2", "pmi2x":
            for test in "true", "hostname":
                assert (test, method, config, "private") in done
        for method in "pmi2", "pmi2x":
            assert ("pmi", method, config, "private") in done
    assert ("pmi", "pmi2x", "20x1", "emulated") in done
    assert ("pmi", "pmi2", "20x1", "-") in have(found, "skipped")
    ok = [row for row in found if row["outcome"] == "ok"]
    assert {row["repeat"] for row in ok} == {"1", "2"}
    assert all(float(row["seconds"]) > 0 for row in ok)
    assert "emulated: measured with the agents" in result.stdout
    assert "SKIP pmi, mpi with none" in result.stdout
    assert re.search(r"^ +16 +2 +32 +pmi2x:own +private ", result.stdout, re.M)


def test_repeats_are_interleaved(startup, tmp_path):
    path = tmp_path / "start.csv"
    startup(
        *("-q", "--private", 2, "--configs", "2x1", "--repeats", 2),
        *("--methods", "none,pmi2x", "--tests", "true,hostname"),
        *("--csv", path),
        timeout=120,
    ).ok()
    order = [(r["repeat"], r["test"], r["method"]) for r in rows(path)]
    once = [("true", "none"), ("true", "pmi2x")]
    once += [("hostname", "none"), ("hostname", "pmi2x")]
    assert order == [(repeat, *what) for repeat in "12" for what in once]


def test_mpi_programs_that_are_alone(startup, tmp_path, hello):
    """MPICH does not speak PMIx: as many programs as ranks are no result."""
    path = tmp_path / "start.csv"
    result = startup(
        *("-q", "--private", 2, "--configs", "2x2", "--repeats", 1),
        *("--methods", "pmi2x,pmix", "--tests", "mpi", "--csv", path),
        *("--mpicc", "mpicc.mpich", "--beyond", "none"),
        timeout=120,
    )
    done = have(rows(path))
    assert ("mpi", "pmi2x", "2x2", "private") in done, result
    assert ("mpi", "pmix", "2x2", "private") not in done, result
    assert result.code == 0 and "of one rank each" in result.stdout, result


def test_hydra(startup, tmp_path, hello):
    """MPICH's own launcher, inside the allocation of the private cluster."""
    if not pathlib.Path("/usr/bin/mpiexec.hydra").exists():
        pytest.skip("mpiexec.hydra is not there")
    path = tmp_path / "start.csv"
    result = startup(
        *("-q", "--private", 4, "--configs", "3x2", "--repeats", 1),
        *("--methods", "hydra,pmi2x", "--csv", path, "--beyond", "none"),
        timeout=120,
    ).ok()
    for test in "true", "hostname", "pmi", "mpi":
        wanted = test, "hydra", "3x2", "private"
        assert wanted in have(rows(path)), result


def test_inside_an_allocation(cluster, prefix, tmp_path):
    """As on a real cluster: under salloc, and not more than it has."""
    path = tmp_path / "start.csv"
    salloc = ["salloc", "-Q", "-N4", "-n8", "--ntasks-per-node=2"]
    argv = [prefix / PROGRAM, "--tests", "true,pmi"]
    argv += ["--methods", "pmi2x", "--beyond", "none", "-q"]
    result = cluster.run(
        *salloc, *argv, "--configs", "4x2,2x1", "--csv", path, cwd=tmp_path
    ).ok()
    assert have(rows(path)) == {
        (test, "pmi2x", config, "real")
        for test in ("true", "pmi")
        for config in ("4x2", "2x1")
    }, result
    assert os.listdir(tmp_path) == ["start.csv"]
    over = cluster.run(*salloc, *argv, "--configs", "5x1", cwd=tmp_path)
    over.failed().says("salloc -N5")


def test_a_type_that_is_not_there(startup):
    argv = ["-q", "--private", 1, "--configs", "1x1", "--tests", "true"]
    startup(*argv, "--methods", "pmi9", timeout=120).failed().says(
        "srun --mpi=list has no 'pmi9'"
    )
    result = startup(
        *argv, "--methods", "none", "--timeout", 60, timeout=120
    ).ok()
    assert "true: /bin/true" in result.stdout


def test_a_program_that_fails(startup, tmp_path, prefix):
    """Its failure is in the table, in the file and in the exit status."""
    programs = tmp_path / "programs"
    programs.mkdir()
    broken = programs / "pmi2x-noop"
    broken.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    broken.chmod(0o755)
    tmp_path.chmod(0o755)
    path = tmp_path / "start.csv"
    result = startup(
        *("-q", "--private", 2, "--configs", "2x1", "--tests", "true,pmi"),
        *("--methods", "pmi2x", "--programs", programs, "--csv", path),
        timeout=120,
    )
    assert result.code == 1, result
    result.says("broken")
    (row,) = [r for r in rows(path) if r["outcome"] == "failed"]
    assert (row["test"], row["repeat"]) == ("pmi", "0")
    assert ("true", "pmi2x", "2x1", "private") in have(rows(path))


def test_capacity(startup):
    result = startup(
        "--capacity", "--private", 2, "--configs", "1x1,1x4", timeout=120
    ).ok()
    assert re.search(r"^ +\d+\.\d\d MB  slurmd$", result.stdout, re.M), result
    fits = re.findall(r"^ +(\d+)  (pmi|mpi) +(\d+) +\d+ +\d+  (.*)$", result.stdout, re.M)
    assert {(width, test) for width, test, _, _ in fits} == {
        (width, test) for width in "14" for test in ("pmi", "mpi")
    }, result
    for _, _, nodes, reason in fits:
        assert int(nodes) > 0 and reason, result


def test_counters_of_steps_and_jobs(startup, tmp_path):
    """Each process has each figure, which the plugin's own descriptors show in."""
    path = tmp_path / "counters.csv"
    argv = ["--counters", "-q", "--configs", "1x2,2x2,3x2", "--repeats", 1]
    argv += ["--methods", "none,pmi2x", "--csv", path]
    result = startup(*argv, timeout=180).ok()
    found = {
        (r["launch"], r["nodes"], r["method"], r["subject"], r["figure"]): float(r["value"])
        for r in rows(path)
    }
    for nodes in "123":
        for launch in "step", "job":
            for subject in "srun", "slurmctld":
                assert found[launch, nodes, "none", subject, "CPU time, ms"] > 0
        for figure in "CPU time, ms", "descriptors", "of it not shared, KiB":
            assert found["step", nodes, "pmi2x", "slurmstepd", figure] > 0
    for method, subject in ("pmi2x", "srun"), ("pmi2x", "slurmstepd"):
        row = "descriptors"
        mine = found["step", "2", method, subject, row]
        assert mine > found["step", "2", "none", subject, row], result
    assert "srun, a job, none, 2 ranks/node" in result.stdout, result
    counted = [name for name in found if name[4] == "system calls"]
    assert bool(counted) == bool(shutil.which("strace")), result


def test_an_interrupt(prefix, tmp_path):
    """Ends steps and cluster, and shows what there is."""
    path = tmp_path / "start.csv"
    argv = [prefix / PROGRAM, "--private", 3, "--csv", path]
    argv += ["--configs", "3x1", "--repeats", 1000, "--tests", "true"]
    argv += ["--methods", "pmi2x,none"]
    child = subprocess.Popen(
        list(map(str, argv)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell has its background jobs ignore it, and these tests with them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        wait_until(lambda: path.exists() and len(have(rows(path))) == 2, 60)
        ours = below(child.pid)
        guards = [
            pid
            for pid in process_table()
            if f"--until-exit {child.pid}" in command_line(pid)
        ]
        assert guards
        for guard in guards:
            ours |= below(guard)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 130, out + err
    assert "what there is so far" in err
    assert "true: /bin/true, the whole launch" in out
    left = process_table().keys() & {*ours, *guards}
    assert not left, [command_line(pid) for pid in left]
    assert have(rows(path)) >= {("true", "none", "3x1", "private")}
