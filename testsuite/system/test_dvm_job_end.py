# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: a head with a journal stops before its Slurm job ends.

squeue is a program of the test, which says what is in a file, and notes how it was called."""

import json
import os
import time

import pytest

from dvms import env, living, there, wait_until
from harness import run

__all__ = ["env", "there"]

BEFORE_S = 7  # two grace times and five seconds
JOB = "4711"
SQUEUE = """#!/bin/sh
[ -z "$SQUEUE_STATES" ] || exit 1 # the job would be left out
echo "$*" >> {base}/asked
cat {base}/left
"""


@pytest.fixture
def in_job(prefix, env, tmp_path):
    """A command in a job, where squeue gives the rest of the job's time."""

    class InJob:
        journal = tmp_path / "j"

        def __call__(self, *arguments, end=None):
            path = f"{tmp_path}:/usr/bin:/bin"
            more = {"SLURM_JOB_END_TIME": str(int(time.time()) + end)} if end else {}
            return run(
                [prefix / "bin/pmi2x-dvm", *arguments],
                env={**env, "SLURM_JOB_ID": JOB, "PATH": path, "SQUEUE_STATES": "PD", **more},
                cwd=tmp_path,
            )

        def up(self, *journal, end=None):
            return self("up", "--local", "1", "--slots", "2", "--grace", "1", *journal, end=end)

        def set_left(self, text):
            (tmp_path / "left").write_text(text)

        def asked(self):
            path = tmp_path / "asked"
            return path.read_text().splitlines() if path.exists() else []

        def wait_for_end(self):
            wait_until(lambda: not living(env["PMI2X_DVM_DIR"]), 60)

    (tmp_path / "squeue").write_text(SQUEUE.format(base=tmp_path))
    (tmp_path / "squeue").chmod(0o755)
    in_job = InJob()
    yield in_job
    in_job("down", "--cancel")
    in_job.wait_for_end()


def test_head_stops_before_the_end_that_squeue_tells(in_job):
    """Tasks that exit with an error when they are ended have not failed: they run again."""
    in_job.set_left(f"0:{BEFORE_S + 3:02}\n")
    in_job.up("--journal", in_job.journal).ok()
    task = "trap 'exit 1' TERM; while :; do sleep 0.05; done"
    in_job("submit", "--array", "1-4", "sh", "-c", task).ok()
    in_job.wait_for_end()
    assert in_job.asked() == [f"-h -j {JOB} -o %L"]
    in_job.set_left("1-00:00:00\n")
    in_job.up("--resume", in_job.journal).ok().says("0 tasks have ended, 4 continue")


def test_head_of_a_job_whose_limit_was_extended_goes_on(in_job):
    """Otherwise the head would have stopped in two seconds, and ended the task a second
    later."""
    in_job.set_left("1-00:00:00\n")
    in_job.up("--journal", in_job.journal, end=BEFORE_S + 3).ok()
    in_job("run", "sleep", "5").ok()
    assert in_job.asked() == [f"-h -j {JOB} -o %L"]


@pytest.mark.parametrize("text", ["UNLIMITED\n", "INVALID\n"])
def test_head_of_a_job_without_a_limit_serves(in_job, text):
    in_job.set_left(text)
    in_job.up("--journal", in_job.journal).ok()
    wait_until(in_job.asked)
    in_job("run", "true").ok()


@pytest.mark.wide
def test_head_stops_before_the_end_of_the_environment_if_squeue_fails(in_job):
    in_job.up("--journal", in_job.journal, end=BEFORE_S + 20).ok()
    in_job("submit", "sleep", "600").ok()
    in_job.wait_for_end()
    in_job.set_left("UNLIMITED\n")
    in_job.up("--resume", in_job.journal).ok().says("0 tasks have ended, 1 continues")


@pytest.mark.wide
def test_lines_that_the_end_of_a_job_interrupts_run_in_the_next_job(cluster, prefix, tmp_path):
    """Tasks catch SIGTERM and exit with an error. A minute is Slurm's shortest limit."""
    base, lines = tmp_path / "dvm", 40
    base.mkdir(mode=0o700)
    task = f"trap 'exit 1' TERM; until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    (tmp_path / "tasks").write_text(f"{task}\n" * lines)

    def submit(minutes, output):
        return cluster.run(
            "env", f"PATH={prefix}/bin:{os.environ['PATH']}", f"PMI2X_DVM_DIR={base}", "sbatch",
            "--wait", "-N", "2", f"--time={minutes}", f"--chdir={tmp_path}", "-o", output,
            "--wrap", "pmi2x-dvm batch tasks", timeout=150,
        )  # fmt: skip

    submit(1, "first").failed()
    assert "this goes on: pmi2x-dvm batch tasks" in (tmp_path / "first").read_text()
    wait_until(lambda: not living(base), 60)
    (tmp_path / "go").touch()
    submit(2, "second").ok()
    results = (tmp_path / "tasks.results").read_text().splitlines()
    assert [json.loads(line)["state"] for line in results].count("done") == lines
    assert not [line for line in results if json.loads(line)["state"] == "failed"]
    wait_until(lambda: not living(base), 60)
