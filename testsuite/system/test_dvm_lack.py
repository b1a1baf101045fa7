# SPDX-License-Identifier: BSD-3-Clause
"""Limits around a DVM: nodes that lack descriptors, and what tasks and daemons inherit."""

import pytest

from dvms import dvm, env, living, there, wait_until
from harness import run

__all__ = ["dvm", "env", "there"]


@pytest.fixture
def under(prefix, dvm, env, tmp_path):
    """pmi2x-dvm, executed by another command; the DVM ends with the test."""

    def command(wrapper, *arguments):
        program = prefix / "bin/pmi2x-dvm"
        return run([*wrapper, program, *arguments], env=env, cwd=tmp_path)

    yield command
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_more_tasks_than_descriptors(dvm, under):
    under(["prlimit", "--nofile=100:100"], "up", "--local", "1", "--slots", "200").ok()
    array = "--array", "1-100", "sh", "-c", "sleep 0.3"
    dvm("submit", "--wait", *array).ok().says("100 done, 0 failed")


def test_task_has_umask_and_limits_of_its_submitter(under, tmp_path):
    under(["prlimit", "--nofile=200:", "--stack=2097152:"], "up", "--local", "1").ok()
    mine = "prlimit", "--nofile=300:", "--stack=1048576:", "sh", "-c", 'umask 077; "$@"', "-"
    asked = under(mine, "run", "sh", "-c", "umask; ulimit -Sn; ulimit -Ss").ok()
    assert asked.lines == ["0077", "300", "1024"]
    written = tmp_path / "written"
    under(mine, "submit", "--wait", "-o", written, "true").ok()
    assert written.stat().st_mode & 0o777 == 0o600


def test_descriptors_of_the_caller_of_up_go_no_further(dvm, under, tmp_path):
    """A lock that a script holds over the call is free when the script has ended."""
    lock = tmp_path / "lock"
    script = f'exec 7>{lock}; flock 7; "$@"'
    under(["sh", "-c", script, "-"], "up", "--local", "1").ok()
    run(["flock", "--nonblock", lock, "true"]).ok()
    listed = dvm("run", "ls", "/proc/self/fd").ok()
    assert listed.lines == ["0", "1", "2", "3"]
