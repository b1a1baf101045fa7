# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: when a command stops starting tasks, and what it says while it waits."""

import json
import os
import pty
import signal
import subprocess

import pytest

from dvms import dvm, env, kill_one, living, local, one, status, there, wait_until
from harness import run

__all__ = ["dvm", "env", "local", "one", "there"]

# The first argument is the number of the task; task 1 fails, and the next four wait.
ONE_FAILS = 'if [ {} = 1 ]; then exit 3; fi; echo {} >> ran; until [ -e go ]; do sleep 0.05; done'


def ran(tmp_path):
    path = tmp_path / "ran"
    return sorted(path.read_text().split()) if path.exists() else []


# ---- --max-fails ----


@pytest.fixture
def start(prefix, env, tmp_path):
    """Starts a command in the test's directory, with a pipe for what it says."""
    children = []

    def popen(*arguments):
        command = [prefix / "bin/pmi2x-dvm", *arguments]
        child = subprocess.Popen(command, env=env, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        children.append(child)
        return child

    yield popen
    for child in children:
        child.kill()
        child.communicate()


def test_running_tasks_continue_after_too_many_failures(one, start, tmp_path):
    """The failure frees one of four slots, so a fifth task may start."""
    child = start("submit", "--wait", "--max-fails", "0", "--array", "1-20", "sh", "-c", ONE_FAILS)
    while "1 task has failed, more than --max-fails allows" not in child.stderr.readline():
        pass
    wait_until(lambda: status(one)["queued"] == 0)
    (tmp_path / "go").touch()
    said = child.stderr.read()
    assert child.wait(60) == 1
    assert f"20 tasks: {len(ran(tmp_path))} done, 1 failed" in said, said
    assert f" {19 - len(ran(tmp_path))} not run" in said and len(ran(tmp_path)) <= 4, said


def test_running_tasks_are_ended_with_now(one, tmp_path):
    options = "--wait", "--max-fails", "0,now", "--array", "1-20"
    one("submit", *options, "sh", "-c", ONE_FAILS).failed().says("0 done, 1 failed, 19 not run")
    assert len(ran(tmp_path)) <= 4


def test_percentage_is_one_of_all_tasks(one):
    options = "submit", "--wait", "--array", "1-10"
    halves = "sh", "-c", "exit $(({} % 2))"
    one(*options, "--max-fails", "50%", *halves).failed().says("10 tasks: 5 done, 5 failed;")
    result = one(*options, "--max-fails", "100%", *halves).failed()
    assert "--max-fails allows" not in result.stderr


@pytest.mark.parametrize("wrong", ["x", "101%", "4294967297", "1,later"])
def test_wrong_max_fails_is_rejected(dvm, wrong):
    assert dvm("submit", "--wait", "--max-fails", wrong, "true").says("--max-fails is").code == 2


def test_batch_that_gave_up_continues(prefix, env, tmp_path):
    """No line succeeds twice, none is missed: each run gives up after one more failure."""
    ok = tmp_path / "ok"
    lines = [f"echo {i} >> ran; [ {i % 10} != 5 ] || [ -e {ok} ]" for i in range(40)]
    (tmp_path / "tasks").write_text("\n".join(lines) + "\n")

    def batch(*more):
        command = [prefix / "bin/pmi2x-dvm", "batch", "--local", *more, "tasks"]
        return run(command, env=env, cwd=tmp_path)

    for _ in range(4):
        batch("--max-fails", "0").failed()
    batch("--max-fails", "4").failed().says("4 of them failed")
    assert sorted(ran(tmp_path), key=int) == [str(i) for i in range(40)]
    ok.touch()
    batch("--retry-failed").ok()
    again = [line for line in ran(tmp_path) if ran(tmp_path).count(line) == 2]
    assert sorted(set(again)) == ["15", "25", "35", "5"]
    assert not living(env["PMI2X_DVM_DIR"])


# ---- a full queue ----


@pytest.fixture
def narrow(dvm, env):
    """A DVM whose queue has room for five tasks."""
    dvm("up", "--local", "--slots", "4", "--max-queued", "5").ok()
    yield dvm
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


@pytest.mark.parametrize(("wait", "tasks"), [(["--wait"], 1100), ([], 100)])
def test_full_queue_is_waited_for(narrow, tmp_path, wait, tasks):
    """Also when the tasks need more than one request."""
    command = "submit", *wait, "--array", f"1-{tasks}", "sh", "-c", "echo {} >> ran"
    narrow(*command).ok().says("queue of the DVM local is full: waiting for room")
    narrow("wait").ok()
    assert sorted(ran(tmp_path), key=int) == [str(i) for i in range(1, tasks + 1)]


def test_invalid_task_is_rejected_also_when_the_queue_is_full(narrow, tmp_path):
    tasks = [{"argv": ["true"], **({"cores": 99} if i == 30 else {})} for i in range(60)]
    (tmp_path / "tasks").write_text("\n".join(map(json.dumps, tasks)) + "\n")
    result = narrow("submit", "--wait", "--json", "tasks").failed()
    result.says("line 31 of tasks is rejected").says("59 tasks: 59 done, 0 failed, 1 refused")


# ---- standard input ----


def test_standard_input_goes_to_rank_0(one, prefix, env, tmp_path):
    """Each byte of it, up to the limit of 1 MiB."""
    data = bytes(range(256)) * 4096
    command = [prefix / "bin/pmi2x-dvm", "run", "--stdin", "-n", "2", "sh", "-c", "cat > got.$PMI2X_DVM_RANK"]
    subprocess.run(command, input=data, env=env, cwd=tmp_path, check=True)
    assert (tmp_path / "got.0").read_bytes() == data
    assert (tmp_path / "got.1").read_bytes() == b""
    more = subprocess.run(command, input=data + b"x", env=env, cwd=tmp_path, stderr=subprocess.PIPE)
    assert more.returncode == 1 and b"longer than 1048576 bytes" in more.stderr
    assert one("run", "--stdin", "cat", stdin="").ok().stdout == ""


def test_standard_input_goes_to_each_task(one, tmp_path):
    """Unless the task has its own, or its command reads it."""
    one("submit", "--wait", "--stdin", "--print", "--array", "1-3", "sh", "-c", "cat", stdin="text\n").ok().says("3 done")
    assert one("output", "2").ok().stdout == "text\n"
    (tmp_path / "tasks").write_text("cat\ncat; echo more\n")
    assert one("batch", "--stdin", "--print", "tasks", stdin="x").ok().stdout in ("xxmore\n", "xmore\nx")
    (tmp_path / "json").write_text('{"argv": ["cat"], "stdin": "own"}\n')
    assert one("submit", "--wait", "--stdin", "--print", "--json", "json", stdin="x").ok().stdout == "own"
    for command in ("batch", "-"), ("submit", "--json", "-"), ("submit", "cat", "::::", "-"):
        assert one(command[0], "--stdin", *command[1:], stdin="").says("--stdin needs them in a file").code == 2


def test_dropped_input_is_said(one, prefix, env):
    reader, writer = os.pipe()
    os.write(writer, b"text")
    command = [prefix / "bin/pmi2x-dvm", "run", "cat"]
    result = subprocess.run(command, stdin=reader, env=env, capture_output=True)
    os.close(reader)
    os.close(writer)
    assert (result.returncode, result.stdout) == (0, b"")
    assert b"standard input is not read: --stdin" in result.stderr
    assert not one("run", "cat").ok().stderr


# ---- commands in tasks ----


def test_task_can_submit_tasks(one, prefix):
    """The task finds the DVM by PMI2X_DVM_DIR of its submitter."""
    nested = f"{prefix}/bin/pmi2x-dvm run echo $PMI2X_DVM_TASK"
    assert one("run", "sh", "-c", nested).ok().lines == ["1"]
    assert one("run", prefix / "bin/pmi2x-dvm", "run", "sh", "-c", "echo $PMI2X_DVM_TASK").ok().lines == ["4"]


# ---- what is said ----


def test_terminal_shows_progress(prefix, env, one, tmp_path):
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(tmp_path)
        command = [str(prefix / "bin/pmi2x-dvm"), "submit", "--wait", "--array", "1-9", "sh", "-c", ONE_FAILS]
        os.execve(command[0], command, env)
    said = b""
    while b"1 failed, 4 running, 4 queued" not in said:
        said += os.read(terminal, 4096)
    (tmp_path / "go").touch()
    while b"9 tasks: 8 done, 1 failed" not in said:
        said += os.read(terminal, 4096)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (1, -signal.SIGHUP)


def test_lost_node_is_named(local, start, env, tmp_path):
    """The node's tasks run again on the other node."""
    waits = ONE_FAILS.replace("= 1", "= none")
    child = start("submit", "--wait", "--array", "1-8", "sh", "-c", waits)
    wait_until(lambda: len(ran(tmp_path)) == 8)
    kill_one(env, "pmi2x-dvmd")
    said = child.stderr.readline()
    (tmp_path / "go").touch()
    assert child.wait(60) == 0
    assert " is lost: " in said and said.endswith("; 4 tasks ran there\n"), said
