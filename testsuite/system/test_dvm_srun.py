# SPDX-License-Identifier: BSD-3-Clause
"""srun for workflow engines, which do not know that their steps are tasks of a DVM."""

import contextlib
import os
import signal
import subprocess
import time

import pytest

from conftest import wheel
from dvms import dvm, env, living, local, status, there, wait_until
from engines import RADICAL, radical_resource
from harness import run

__all__ = ["dvm", "env", "living", "local", "there"]

pytestmark = pytest.mark.usefixtures("only_pmi2x")


def test_tasks_and_daemons_are_on_named_nodes(in_allocation):
    """One DVM, then two that share the named nodes; n1 is in neither."""
    result = in_allocation(
        4,
        "pmi2x-dvm up --nodelist n[3-4],n2 --slots 2 && pmi2x-dvm status --json;"
        "pmi2x-dvm run -w n4 hostname; pmi2x-dvm run -w n1 true; echo rc $?; pmi2x-dvm down;"
        "pmi2x-dvm up --nodelist n[2-4] --dvms 2 --slots 2;"
        "pmi2x-dvm run -w n3 true; echo rc $?; pmi2x-dvm down",
    ).ok()
    assert [f'"name":"n{i}"' in result.stdout.replace(" ", "") for i in range(1, 5)] == [
        False, True, True, True]  # fmt: skip
    assert "there is no node n1 here" in result.stderr
    assert [line for line in result.lines if line.startswith("rc")] == ["rc 1", "rc 0"]


def test_wrong_lists_of_nodes_are_refused(in_allocation):
    result = in_allocation(
        1,
        "pmi2x-dvm up --nodelist n[ ; pmi2x-dvm up --nodelist n1,n2 -N1;"
        "pmi2x-dvm up --local --nodelist n1; pmi2x-dvm run -w , true",
    )
    assert result.stderr.count("--nodelist is a list of nodes") == 2
    assert "--nodelist names 2 nodes, and -N says 1" in result.stderr
    assert "--nodelist is for srun" in result.stderr

NEXT = """#!/bin/sh
echo next: "$@"
"""
EXECUTORLIB = """
from executorlib import SlurmJobExecutor

with SlurmJobExecutor(max_cores=2, hostname_localhost=True) as executor:
    futures = [executor.submit(sum, [i, i]) for i in range(3)]
    print("sums", [future.result() for future in futures])
"""
LIBENSEMBLE = """
from libensemble.executors.mpi_executor import MPIExecutor

executor = MPIExecutor(custom_info={"mpi_runner": "srun"})
executor.register_app(full_path="/bin/hostname", app_name="name")
task = executor.submit(app_name="name", num_procs=4, num_nodes=2, procs_per_node=2)
task.wait(timeout=60)
print("state", task.state, task.runline.split("srun", 1)[1])
"""


@pytest.fixture
def steps(local, prefix, env, tmp_path):
    """Run a command whose first srun is the DVM's, and whose second says `next:`."""
    (tmp_path / "next").mkdir()
    (tmp_path / "next/srun").write_text(NEXT)
    (tmp_path / "next/srun").chmod(0o755)
    engines = local("engines").ok().stdout.strip()
    path = f"{engines}:{engines}:{tmp_path}/next:{os.environ['PATH']}"
    return {**env, "PATH": path}


@pytest.fixture
def step(steps, tmp_path):
    return lambda *words, **more: run(words, env={**steps, **more}, cwd=tmp_path)


def ended(dvm):
    return status(dvm)["ended"]


def test_step_of_an_engine_is_a_task(local, step):
    # The rank that fails ends the other one, so it waits for that.
    script = (
        "echo $PMI_SIZE; [ $PMI_RANK = 0 ] || exec touch said; "
        "until [ -e said ]; do sleep 0.01; done; exit 7"
    )
    said = step("srun", "-n2", "--exact", "sh", "-c", script)
    assert said.code == 7
    assert said.lines == ["2", "2"]
    assert ended(local) == 1


@pytest.mark.parametrize(
    "words", [["-V"], ["true"], ["-n1", "--overlap", "true"], ["-n1", "-w", "other", "true"]]
)
def test_other_steps_go_to_the_next_srun(local, step, words):
    assert step("srun", *words).ok().lines == [" ".join(["next:", *words])]
    assert ended(local) == 0


def test_steps_go_to_the_next_srun_without_a_dvm(local, step, tmp_path):
    (tmp_path / "none").mkdir(mode=0o700)
    for more in {"PMI2X_DVM_DIR": f"{tmp_path}/none"}, {"PMI2X_DVM": "other"}:
        assert step("srun", "-n1", "true", **more).ok().lines == ["next: -n1 true"]


def test_missing_srun_is_reported(local, step, steps):
    said = step("srun", "-V", PATH=steps["PATH"].split(":")[0])
    assert said.code == 1
    assert "PATH has no other srun" in said.stderr


def test_task_ends_with_the_cancelled_step(local, steps, tmp_path):
    """As RADICAL-Pilot cancels: SIGINT, SIGINT, SIGKILL to the group in 0.2 s."""
    process = subprocess.Popen(
        ["srun", "-n1", "sh", "-c", "trap '' INT; echo runs; sleep 1000"], env=steps,
        cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout.readline() == "runs\n"
    for number in signal.SIGINT, signal.SIGINT, signal.SIGKILL:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        time.sleep(0.1)  # as the engine does
    process.wait()
    wait_until(lambda: status(local)["running"] == 0)


@pytest.fixture
def engine(build, in_allocation, prefix, tmp_path):
    """Run a script of an engine in an allocation of two nodes; says how many tasks ended."""
    bin = wheel(build, "venv-engines") / "bin"
    radical_resource(tmp_path, prefix, bin.parent, "SRUN")

    def script(text):
        (tmp_path / "script.py").write_text(text)
        command = (
            f"cd {tmp_path}; export HOME=$PWD RADICAL_BASE=$PWD; pmi2x-dvm up --slots 4;"
            f'export PATH={bin}:$(pmi2x-dvm engines):$PATH; python -B script.py; echo rc $?;'
            "pmi2x-dvm status --json; pmi2x-dvm down --cancel"
        )
        return in_allocation(2, command, timeout=500).ok()

    return script


@pytest.mark.wide
def test_radical_pilot_runs_its_tasks(engine):
    result = engine(RADICAL)
    assert "states {'DONE'}" in result.lines
    assert f"ranks {[str(i) for i in range(8)]}" in result.lines
    assert '"ended": 7' in result.stdout


def test_executorlib_runs_its_workers(engine):
    result = engine(EXECUTORLIB)
    assert "sums [0, 2, 4]" in result.lines
    assert "rc 0" in result.lines
    assert '"ended": 0' not in result.stdout


def test_libensemble_runs_its_applications(engine):
    result = engine(LIBENSEMBLE)
    assert "state FINISHED" in result.stdout
    assert "--ntasks 4 --nodes 2 --ntasks-per-node 2" in result.stdout
    assert '"ended": 1' in result.stdout
