# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: a head with a journal stops before its Slurm job ends.

squeue is a program of the test, which says what is in a file, and notes how it was called."""

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
def site(prefix, env, tmp_path):
    """A command in a job, where squeue gives the rest of the job's time."""

    class Site:
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
    site = Site()
    yield site
    site("down", "--cancel")
    site.wait_for_end()


def test_head_stops_before_the_end_that_squeue_tells(site):
    """Tasks that exit with an error when they are ended have not failed: they run again."""
    site.set_left(f"0:{BEFORE_S + 3:02}\n")
    site.up("--journal", site.journal).ok()
    task = "trap 'exit 1' TERM; while :; do sleep 0.05; done"
    site("submit", "--array", "1-4", "sh", "-c", task).ok()
    site.wait_for_end()
    assert site.asked() == [f"-h -j {JOB} -o %L"]
    site.set_left("1-00:00:00\n")
    site.up("--resume", site.journal).ok().says("0 tasks have ended, 4 continue")


def test_head_of_a_job_whose_limit_was_extended_goes_on(site):
    """It would have stopped in two seconds, and ended the task a second later."""
    site.set_left("1-00:00:00\n")
    site.up("--journal", site.journal, end=BEFORE_S + 3).ok()
    site("run", "sleep", "5").ok()
    assert site.asked() == [f"-h -j {JOB} -o %L"]


@pytest.mark.parametrize("text", ["UNLIMITED\n", "INVALID\n"])
def test_head_of_a_job_without_a_limit_serves(site, text):
    site.set_left(text)
    site.up("--journal", site.journal).ok()
    wait_until(site.asked)
    site("run", "true").ok()


@pytest.mark.wide
def test_head_stops_before_the_end_of_the_environment_if_squeue_fails(site):
    site.up("--journal", site.journal, end=BEFORE_S + 20).ok()
    site("submit", "sleep", "600").ok()
    site.wait_for_end()
    site.set_left("UNLIMITED\n")
    site.up("--resume", site.journal).ok().says("0 tasks have ended, 1 continue")
