# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: the directory of a DVM goes with it, unless somebody has to read its log."""

import os
import pathlib
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from dvms import dvm, env, living, status, there, wait_until

__all__ = ["dvm", "env", "there"]

IN_JOB = {"SLURM_JOB_ID": "4711"}


def left(env):
    base = pathlib.Path(env["PMI2X_DVM_DIR"])
    return sorted(str(path.relative_to(base)) for path in base.rglob("*"))


def kill_daemons(env, count):
    daemons = [p for p, name in living(env["PMI2X_DVM_DIR"]).items() if name == "pmi2x-dvmd"]
    for pid in daemons[:count]:
        os.kill(pid, signal.SIGKILL)


def test_nothing_is_left(dvm, env):
    dvm("up", "--local", "3", "--dvms", "2").ok()
    dvm("run", "true").ok()
    assert "local.2/log" in left(env)
    assert dvm("down").ok().stderr == ""
    assert left(env) == []
    dvm("up", "--local", "2").ok()
    dvm("shrink", "-N", "1").ok()
    wait_until(lambda: len(living(env["PMI2X_DVM_DIR"])) == 3)  # no trouble, either
    dvm("down").ok()
    assert left(env) == []


def test_a_log_that_somebody_has_to_read(dvm, env):
    dvm("up", "--local", "2").ok()
    kill_daemons(env, 1)
    wait_until(lambda: any(node["state"] == "lost" for node in status(dvm)["nodes"]))
    log = pathlib.Path(env["PMI2X_DVM_DIR"]) / "local/log"
    dvm("down").ok().says(f"the log is in {log}")
    assert left(env) == ["local", "local/log"]
    assert " is lost: " in log.read_text()
    dvm("up", "--local", "2").ok()
    dvm("down").ok()
    assert left(env) == []


def test_a_dvm_whose_nodes_are_all_lost_ends(dvm, env, prefix):
    """As that of a job that ends. Its tasks are told how they ended before."""
    dvm("up", "--local", "2").ok()
    task = subprocess.Popen(
        [prefix / "bin/pmi2x-dvm", "run", "sleep", "600"],
        env=env, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: status(dvm)["running"] == 1)
    kill_daemons(env, 2)
    assert "node" in task.communicate(timeout=60)[1]
    assert task.returncode != 0
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert left(env) == ["local", "local/log"]


def test_one_that_does_not_come_up(dvm, env, tmp_path):
    dvm("up", "--local", "1", "--resume", tmp_path).failed()
    assert left(env) == []
    env.update(IN_JOB)
    quiet = dvm("up", "-N", "2", "--launcher", "sh -c 'exit 3'").failed()
    quiet.says("the command that starts the daemons has ended, with exit code 3")
    assert "the log is in" not in quiet.stderr
    assert left(env) == []
    says = "sh -c 'echo no such host >&2; exit 3'"
    told = dvm("up", "-N", "2", "--launcher", says).failed()
    log = pathlib.Path(env["PMI2X_DVM_DIR"]) / "job4711/log"
    told.says(f"the log is in {log}")
    assert log.read_text() == "no such host\n"


def test_many_of_one_name_that_come_and_go(dvm, env):
    """A DVM that starts while the last one ends gets its directory, or an error that
    names it."""

    def come_and_go():
        came = dvm("up", "--local", "1", "--slots", "1")
        if came.code == 0:
            dvm("down").ok()
            return True
        assert "is up already" in came.stderr or "another DVM uses" in came.stderr
        return False

    def often(_):
        for _ in range(5):
            while not come_and_go():
                assert time.monotonic() < limit

    limit = time.monotonic() + 60
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(often, range(4)))
    assert left(env) == []
    assert not living(env["PMI2X_DVM_DIR"])
