# SPDX-License-Identifier: BSD-3-Clause
"""Steps that no srun stays with: srun --async of Slurm 26.05."""

import pytest

from harness import Cluster

NODES = 2


@pytest.fixture(scope="module")
def async_cluster(prefix, scratch):
    """A cluster whose Slurm knows srun --async, which needs a step manager."""
    cluster = Cluster(prefix, scratch / "async", "pmi2x", NODES)
    for line in "SlurmctldParameters=enable_stepmgr", "PrologFlags=contain":
        cluster.options += ["--slurm-conf-line", line]
    cluster.up()
    if "--async" not in cluster.run("srun", "--help").stdout:
        cluster.down()
        pytest.skip("this Slurm has no srun --async")
    yield cluster
    cluster.down()


@pytest.fixture
def async_steps(async_cluster, only_pmi2x, tmp_path):
    """Start steps with srun --async in one job, wait for them, and show their output."""

    def start(*steps):
        outputs = [tmp_path / f"output-{n}" for n in range(len(steps))]
        lines = [
            # The slurmstepd of each node opens the file.
            f"srun --async --mpi=pmi2x --overlap --open-mode=append --output={output} "
            + " ".join(map(str, step))
            for step, output in zip(steps, outputs)
        ]
        begun = [f"until [ -s {output} ]; do sleep 0.2; done" for output in outputs]
        over = "while squeue -h -s -o %i -j $SLURM_JOB_ID | grep -q '[.][0-9]*$'; do sleep 0.2; done"
        script = "; ".join([f"{line} || exit 1" for line in lines] + begun + [over])
        job = ["salloc", f"-N{NODES}", "--ntasks-per-node=16"]
        async_cluster.run(*job, "sh", "-c", script).ok()
        return [output.read_text(errors="replace") for output in outputs]

    return start


@pytest.mark.parametrize("version", ["1", "2"])
def test_async_step_exchanges(async_steps, raw, version):
    (output,) = async_steps(["-N2", "-n4", *raw("exchange", version)])
    assert output.splitlines().count("exchanged 4") == 4, output


def test_async_step_uses_extensions(async_steps, hello):
    (output,) = async_steps(["-N2", "-n4", hello])
    assert "size 4 " in output, output


def test_async_step_runs_open_mpi(async_steps, debian_open_mpi):
    """By PMIx, in two steps at once."""
    step = ["-N2", "-n4", debian_open_mpi]
    for output in async_steps(step, step):
        assert "size 4 " in output, output


def test_async_step_names_a_rank_that_fails_before_pmix(async_steps, debian_open_mpi):
    """Others wait for it in MPI_Init."""
    script = f"[ $SLURM_PROCID != 3 ] || exit 5; exec {debian_open_mpi}"
    (output,) = async_steps(["-N2", "-n4", "sh", "-c", f"'{script}'"])
    assert "rank 3" in output and "exited with exit code 5" in output, output


def test_tasks_of_an_async_step_meet(async_steps, prefix):
    script = f"PATH={prefix}/bin:$PATH; pmi2x-sync barrier && pmi2x-sync allgather $SLURM_PROCID"
    (output,) = async_steps(["-N2", "-n4", "sh", "-c", f"'{script}'"])
    assert output.split() == ["0", "1", "2", "3"] * 4, output


def test_async_step_serves_pytorch(async_steps, raw):
    """What srun would read of the environment the nodes read."""
    step = ["--export=ALL,PMI2X_TORCH=store", "-N2", "-n4", *raw("tcpstore", "2.6", "all")]
    for output in async_steps(step, step):
        assert output.splitlines().count("done all") == 4, output


def test_async_steps_run_at_once(async_steps, raw):
    """Each has a secret and ports of its own."""
    step = ["-N2", "-n4", *raw("exchange", "2")]
    for output in async_steps(step, step, step):
        assert output.splitlines().count("exchanged 4") == 4, output


def test_async_step_publishes_names(async_steps, raw):
    """The agent of the first node keeps them."""
    (output,) = async_steps(["-N2", "-n4", *raw("names")])
    assert output.splitlines().count("names 4") == 4, output


def test_async_step_aborts_by_name(async_steps, raw):
    (output,) = async_steps(["-N2", "-n4", *raw("abort", "2", "3")])
    assert "rank 3 called abort: why not" in output, output


def test_async_step_reports_failed_collective(async_steps, raw):
    (output,) = async_steps(["-N2", "-n4", *raw("leave", "2", "exit", "3")])
    assert "exited with exit code 3" in output, output


def test_async_step_refuses_spawn_by_name(async_steps, raw):
    (output,) = async_steps(["-N2", "-n2", *raw("spawn", "true")])
    assert "a step of srun --async cannot spawn" in output, output
    assert "spawn answered" in output, output


def test_async_step_has_no_variables_of_the_launch(async_steps):
    (output,) = async_steps(["-N2", "-n2", "env"])
    assert "PMI_SIZE=2" in output and "PMI2X_SECRET" not in output, output
