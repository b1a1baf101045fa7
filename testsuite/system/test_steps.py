# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which Slurm starts steps."""

import os
import re
import subprocess

ROOM = ["--ntasks-per-node=32"]  # CPUs for all the steps of an allocation


def test_label(srun, hello):
    result = srun("-N2", "-n4", "--label", hello).ok()
    assert result.lines[0].startswith("0: size 4 ")


def test_multi_prog(srun, raw, tmp_path):
    """Ranks of one step run different programs and meet in one fence."""
    one, two = (" ".join(map(str, raw("exchange", v))) for v in "12")
    conf = tmp_path / "multi.conf"
    conf.write_text(f"0-2 {one}\n3,5 {two}\n4 {one}\n* {two}\n")
    result = srun("-N3", "-n8", "--multi-prog", conf).ok()
    assert result.lines.count("exchanged 8") == 8


def test_kill_on_bad_exit(srun, raw):
    """With -K the step ends when one rank fails; the others wait in a fence."""
    result = srun("-N4", "-n8", "-K", *raw("leave", "1", "exit", "3")).failed()
    assert result.seconds < 30, result


def test_salloc(cluster, hello):
    step = f"srun --mpi={cluster.kind} -N4 -n8 {hello}"
    result = cluster.run(
        "salloc", "-N4", *ROOM, "sh", "-c", f"{step}; {step}"
    ).ok()
    assert len([l for l in result.lines if l.startswith("size 8 ")]) == 2


def test_sbatch(cluster, hello, scratch):
    script = scratch / "job.sh"
    script.write_text(f"#!/bin/sh\nsrun --mpi={cluster.kind} -n6 {hello}\n")
    output = scratch / "job.out"
    cluster.run(
        "sbatch",
        "--wait",
        "-N3",
        *ROOM,
        f"--output={output}",
        f"--chdir={scratch}",
        script,
    ).ok()
    assert output.read_text().startswith("size 6 ")


def test_het_step_of_het_job(srun, hello):
    result = srun("-n2", hello, ":", "-n3", hello).ok()
    assert result.lines[0].startswith("size 5 "), result


def test_het_step_on_swapped_nodes(srun, hello):
    """The second component's node comes first in the node list."""
    result = srun("-w", "n3", "-n2", hello, ":", "-w", "n1", "-n3", hello).ok()
    assert result.lines[0].startswith("size 5 "), result


def test_het_step_in_one_allocation(cluster, hello):
    step = (
        f"srun --mpi={cluster.kind} --overlap -N1 -n2 {hello} "
        f": -N1 -n3 {hello}"
    )
    result = cluster.run("salloc", "-N2", *ROOM, "sh", "-c", step).ok()
    assert result.lines[0].startswith("size 5 "), result


def test_several_steps_at_once(cluster, raw):
    """Steps of one job on the same nodes do not meet each other."""
    exchange = " ".join(map(str, raw("exchange", "1")))
    step = f"srun --mpi={cluster.kind} --overlap -N4 -n8 {exchange} & "
    result = cluster.run(
        "salloc", "-N4", *ROOM, "sh", "-c", step * 5 + "wait"
    ).ok()
    assert result.lines.count("exchanged 8") == 40


def test_jobs_at_once(cluster, raw):
    """Jobs that share nodes do not meet each other either."""
    command = ["srun", f"--mpi={cluster.kind}", "-N4", "-n8", *raw("exchange", "2")]
    streams = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    jobs = [cluster.start(*command, **streams) for _ in range(4)]
    for job in jobs:
        output, _ = job.communicate(timeout=60)
        assert job.returncode == 0, output
        assert output.count("exchanged 8") == 8, output


def test_overlap_in_steps_that_wait(cluster, raw, scratch):
    """A step whose rank 0 is not there yet does not hold up another one."""
    exchange = " ".join(map(str, raw("exchange", "1")))
    srun = f"srun --mpi={cluster.kind} --overlap -N2 -n4"
    go = scratch / "go"
    os.mkfifo(go)
    late = f"sh -c 'test $PMI_RANK != 0 || cat {go}; exec {exchange}'"
    script = f"{srun} {late} & exec 3>{go}; {srun} {exchange}; echo second; exec 3>&-; wait"
    result = cluster.run("salloc", "-N2", *ROOM, "sh", "-c", script).ok()
    assert result.lines == [*["exchanged 4"] * 4, "second", *["exchanged 4"] * 4]


def test_environment(srun):
    """A rank finds what PMI clients look for, and no secret of the plugin."""
    result = srun("-n2", "env").ok()
    names = {line.partition("=")[0] for line in result.lines}
    assert {"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_JOBID"} <= names
    assert not [name for name in names if re.search("SECRET|SEED", name, re.I)]


def test_export_none(srun, hello):
    result = srun("--export=NONE", "-N2", "-n4", hello).ok()
    assert result.lines[0].startswith("size 4 ")


def test_program_without_pmi(srun):
    assert srun("-N16", "-n32", "true").ok().seconds < 30


ANOTHER_SERVER = {
    "PMIX_NAMESPACE": "prterun-n1-17@1",
    "PMIX_RANK": "0",
    "PMIX_SERVER_URI2": "prterun-n1-17@0.0;tcp4://127.0.0.1:9",
    "PMIX_SERVER_URI41": "prterun-n1-17@0.0;tcp4://127.0.0.1:9",
    "PMIX_SERVER_URI61": "prterun-n1-17@0.0;tcp4://127.0.0.1:9",
    "PMIX_SERVER_TMPDIR": "/tmp/gone",
    "PMIX_DSTORE_21_BASE_PATH": "/tmp/gone",
    "PMIX_SECURITY_MODE": "native",
    "PMIX_VERSION": "5.0.3",
}


def test_server_of_another_launcher(srun, only_pmi2x):
    """What it has set does not reach ranks; what its user has set does."""
    mine = {"PMIX_MCA_gds": "hash", "PMIX_RANKS": "mine", "PMIXT": "mine"}
    env = {**ANOTHER_SERVER, **mine}
    offered = srun("-N2", "-n2", "env", env=env).ok()
    assert "prterun" not in offered.stdout and "/tmp/gone" not in offered.stdout
    result = srun("-N2", "-n2", "env", env={**env, "PMI2X_PMIX": "no"}).ok()
    assert len([line for line in result.lines if line.startswith("PMI_")]) == 8
    found = [line for line in result.lines if line.startswith("PMIX")]
    assert sorted(found) == sorted(2 * [f"{k}={v}" for k, v in mine.items()])


def test_variables_from_elsewhere(srun, raw):
    """What an outer step or its user left in the environment changes nothing."""
    left = {
        "PMI_FD": "3",
        "PMI_RANK": "77",
        "PMI_SIZE": "99",
        "PMI_SPAWNED": "1",
        "PMI2X_SECRET": "secret",
        "PMI2X_SRUN_PORT": "1",
        "PMI2X_STEP_JOBID": "9.9",
        "PMI2X_SPAWNER_JOBID": "1.1",
    }
    for fd in "4", "5", "99":  # srun's own, and none
        env = {**left, "PMI2X_SPAWN_FD": fd}
        result = srun("-N2", "-n4", *raw("exchange", "2"), env=env).ok()
        assert result.lines.count("exchanged 4") == 4, result
