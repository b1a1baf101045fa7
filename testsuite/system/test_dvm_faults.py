# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: what dies, and what is left of it."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from dvms import dvm, env, kill_one, living, local, status, there, wait_until

__all__ = ["dvm", "env", "local", "there"]


@pytest.mark.parametrize("name", ["pmi2x-dvmd", "pmi2x-dvm-zygot"])
def test_a_node_that_dies(local, env, prefix, tmp_path, name):
    """Tasks of the node run again elsewhere: each task ends once."""
    mark = tmp_path / "go"
    work = f"until [ -e {mark} ]; do sleep 0.05; done"
    report = tmp_path / "report"
    child = subprocess.Popen(
        [
            prefix / "bin/pmi2x-dvm", "submit", "--wait", "--report", report,
            "--array", "1-8", "sh", "-c", work,
        ],
        env=env,
    )  # fmt: skip
    wait_until(lambda: status(local)["running"] == 8)
    kill_one(env, name)
    wait_until(lambda: "lost" in [n["state"] for n in status(local)["nodes"]])
    wait_until(lambda: status(local)["queued"] == 4)
    mark.touch()
    assert child.wait(60) == 0
    tasks = [json.loads(line) for line in report.read_text().splitlines()]
    assert sorted(t["id"] for t in tasks) == list(range(1, 9))
    assert sorted(t["instance"] for t in tasks) == [0] * 4 + [1] * 4


@pytest.fixture
def stray(tmp_path):
    """A program that is this test's alone, and the number of its processes."""
    program = tmp_path / "stray"
    shutil.copy(shutil.which("sleep"), program)

    def count():
        running = 0
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                running += os.readlink(path / "exe") == str(program)
        return running

    return program, count


STRAYS = """
setsid {0} 600 &
setsid sh -c '({0} 600 &)'
setsid env -i {0} 600 > /dev/null 2>&1 &
"""


def test_process_that_left_its_group_ends_with_its_task(local, tmp_path, stray):
    """... and not before, whatever else ends."""
    program, count = stray
    go = tmp_path / "go"
    work = STRAYS.format(program) + f"until [ -e {go} ]; do sleep 0.05; done"
    local("submit", "sh", "-c", work).ok()
    wait_until(lambda: count() == 3)
    local("submit", "--wait", "--array", "1-20", "true").ok()
    assert count() == 3
    go.touch()
    local("wait").ok()
    wait_until(lambda: not count())


# What a classic daemon does: fork, setsid, fork. The process between ends at once.
DAEMON = """
import os, sys
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    sys.exit()
for fd in range(3):
    os.close(fd)
os.execv(sys.argv[1], [sys.argv[1], "600"])
"""


def test_daemon_of_a_task_runs_until_its_task_has_ended(local, tmp_path, stray):
    program, count = stray
    go, script = tmp_path / "go", tmp_path / "daemon.py"
    script.write_text(DAEMON)
    work = f"{sys.executable} {script} {program}; until [ -e {go} ]; do sleep 0.05; done"
    number = local("submit", "sh", "-c", work).ok().lines
    wait_until(lambda: count() == 1)
    local("submit", "--wait", "--array", "1-20", "true").ok()  # each end is a look at strays
    assert count() == 1
    go.touch()
    local("wait", *number).ok()
    wait_until(lambda: not count())


# As `pkill -9 -s 0`.
KILL_SESSION = r"""
import os, pathlib, signal
own = os.getsid(0)
for path in pathlib.Path("/proc").glob("[0-9]*"):
    pid = int(path.name)
    try:
        if pid != os.getpid() and os.getsid(pid) == own:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
"""


def test_task_that_kills_its_session_costs_one_node(local, env, tmp_path):
    script, done = tmp_path / "kill.py", tmp_path / "done"
    script.write_text(KILL_SESSION)
    local("submit", "sh", "-c", f"mkdir {done} && exec {sys.executable} {script}").ok()
    wait_until(lambda: "lost" in [n["state"] for n in status(local)["nodes"]])
    assert sorted(n["state"] for n in status(local)["nodes"]) == ["lost", "up"]
    local("submit", "--wait", "true").ok()


# A rank: is its session that of its node's daemon?
SESSION = r"""
import os
pid, name = os.getpid(), ""
while name != "pmi2x-dvmd":
    with open(f"/proc/{pid}/stat") as stat:
        pid = int(stat.read().rsplit(")", 1)[1].split()[1])
    with open(f"/proc/{pid}/comm") as comm:
        name = comm.read().strip()
os.write(1, b"daemon\n" if os.getsid(0) == os.getsid(pid) else b"another\n")
"""


@pytest.fixture
def session(tmp_path):
    script = tmp_path / "session.py"
    script.write_text(SESSION)
    return script


def test_ranks_have_the_session_of_their_daemon(local, session):
    result = local("run", "-n4", "-N2", sys.executable, session).ok()
    assert result.lines == ["daemon"] * 4


def test_ranks_have_the_session_of_their_daemon_in_a_step_of_slurm(in_allocation, session, base):
    """So Slurm finds them by that, too, when it ends or counts the step."""
    script = f"pmi2x-dvm up && pmi2x-dvm run -n4 -N2 python3 {session}; pmi2x-dvm down"
    result = in_allocation(2, script).ok()
    assert result.lines.count("daemon") == 4
    assert not living(base)


@pytest.mark.parametrize("name", ["pmi2x-dvmd", "pmi2x-dvm-zygot", "pmi2x-dvm-head"])
def test_ranks_of_a_daemon_that_dies_are_ended(local, env, stray, name):
    program, count = stray
    local("submit", "sh", "-c", STRAYS.format(program) + f"exec {program} 600").ok()
    wait_until(lambda: count() == 4)
    for pid, each in living(env["PMI2X_DVM_DIR"]).items():
        if each == name:
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not count())


def test_a_node_that_dies_under_an_mpi_program(local, env, raw):
    """The program waits in a fence; too few nodes are left to run it again."""
    waits = map(str, raw("late", "2", "600"))
    number = local("submit", "-n2", "-N2", *waits).ok().lines
    wait_until(lambda: status(local)["running"] == 1)
    kill_one(env, "pmi2x-dvmd")
    local("wait", *number).failed().says("all nodes that could run the task are lost")
    local("run", "-n2", "-N1", *map(str, raw("exchange", "1"))).ok()


def test_a_head_that_dies(local, env, prefix):
    """Nothing goes on without it, and who waits is told."""
    child = subprocess.Popen(
        [prefix / "bin/pmi2x-dvm", "submit", "--wait", "--report", "/dev/null", "sleep", "600"],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: status(local)["running"] == 1)
    kill_one(env, "pmi2x-dvm-head")
    assert "the DVM has ended" in child.communicate(timeout=30)[1]
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    local("status").failed().says("no DVM is up")
    local("up", "--local", "1").ok()
