# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm batch: whose DVM it uses, and what another run of the same command does."""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from dvms import env, living, status, there, wait_until
from harness import run

__all__ = ["env", "there"]

LOCAL = "batch", "--local", "1"


def heed_signals():
    """Shells and nohup may have started the tests with these ignored."""
    for number in signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


def ignore_hang_up():
    """As nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


@pytest.fixture
def start(prefix, env, tmp_path):
    """Starts a command in the test's directory; what is left of it is ended."""
    children = []

    def popen(*arguments, before=heed_signals, **more):
        child = subprocess.Popen(
            [prefix / "bin/pmi2x-dvm", *arguments], env={**env, **more.pop("env", {})},
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=before,
            **more,
        )  # fmt: skip
        children.append(child)
        return child

    yield popen
    for child in children:
        child.kill()
        child.communicate()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


@pytest.fixture
def here(prefix, env, tmp_path):
    """A command in the test's directory; job: as in a job of Slurm of this number."""

    def command(*arguments, job=None, **more):
        more["env"] = {**env, **({"SLURM_JOB_ID": job} if job else {})}
        return run([prefix / "bin/pmi2x-dvm", *arguments], cwd=tmp_path, **more)

    return command


@pytest.fixture
def tasks(tmp_path):
    """Writes lines that note that they ran, and wait for a file if told to; and reads that."""

    class Tasks:
        go, file = tmp_path / "go", tmp_path / "tasks"

        def line(self, name, more="true"):
            return f"echo {name} >> {tmp_path}/ran; {more}"

        def waiting(self, name):
            return self.line(name, f"until [ -e {self.go} ]; do sleep 0.05; done")

        def write(self, *lines, file="tasks"):
            (tmp_path / file).write_text("".join(line + "\n" for line in lines))

        def ran(self):
            path = tmp_path / "ran"
            return collections.Counter(path.read_text().split() if path.exists() else [])

        def results(self, file="tasks.results"):
            return [json.loads(line) for line in (tmp_path / file).read_text().splitlines()]

    return Tasks()


def is_left(env, tmp_path):
    return bool(living(env["PMI2X_DVM_DIR"])) or (tmp_path / "tasks.journal").exists()


# ---- nodes of this machine ----


@pytest.mark.parametrize("local", [["--local"], ["--local", "2"], ["--local=2"]])
def test_local_has_one_node_unless_a_number_follows(here, tasks, local):
    tasks.write(tasks.line("x"))
    up = "2 nodes" if len(local) == 2 or "=" in local[0] else "1 node"
    assert f"DVM local is up: {up}" in here("batch", *local, "tasks").ok().lines
    assert tasks.ran() == {"x": 1}


def test_local_with_a_word_is_wrong_usage(here, tasks):
    tasks.write(tasks.line("x"))
    wrong = here("batch", "--local=tasks", "tasks").says("--local=tasks: not a number of nodes")
    assert wrong.code == 2
    assert not tasks.ran()


# ---- the same command again ----


def test_batch_that_succeeds_leaves_its_results(here, env, tasks, tmp_path):
    tasks.write("# a comment", "", tasks.line("a", "echo out; echo err >&2"), tasks.line("b"))
    here(*LOCAL, "tasks").ok().says(f"results: {tmp_path}/tasks.results")
    first = next(r for r in tasks.results() if r["line"] == 3)
    assert first["command"] == tasks.file.read_text().splitlines()[2]
    assert (first["state"], first["out"], first["err"]) == ("done", "out\n", "err\n")
    assert first["nodes"] and len(first["t"]) == 4
    assert not is_left(env, tmp_path)
    here(*LOCAL, "tasks").ok()
    assert tasks.ran() == {"a": 2, "b": 2}
    assert len(tasks.results("tasks.results.1")) == len(tasks.results()) == 2


def test_failed_lines_run_again_only_when_asked_for(here, tasks, tmp_path):
    ok = tmp_path / "ok"
    tasks.write(tasks.line("a"), tasks.line("b", f"[ -e {ok} ]"))
    here(*LOCAL, "tasks").failed().says("task 2, line 2, failed: exit status 1: echo b")
    here(*LOCAL, "tasks").failed().says("2 had ended before, 1 of them failed")
    assert tasks.ran() == {"a": 1, "b": 1}
    ok.touch()
    here(*LOCAL, "--retry-failed", "tasks").ok()
    assert tasks.ran() == {"a": 1, "b": 2}
    assert not (tmp_path / "tasks.journal").exists()


def test_again_runs_all_lines(here, tasks):
    tasks.write(tasks.line("a"), tasks.line("b", "false"))
    here(*LOCAL, "tasks").failed()
    here(*LOCAL, "--again", "tasks").failed()
    assert tasks.ran() == {"a": 2, "b": 2}
    here(*LOCAL, "tasks").failed()
    assert tasks.ran() == {"a": 2, "b": 2}


def test_equal_lines_run_as_often_as_they_occur(here, tasks):
    tasks.write(*[tasks.line("a")] * 3, tasks.line("b", "false"))
    here(*LOCAL, "tasks").failed()
    assert tasks.ran() == {"a": 3, "b": 1}
    tasks.write(*[tasks.line("a")] * 5, tasks.line("b", "false"))
    here(*LOCAL, "tasks").failed()
    assert tasks.ran() == {"a": 5, "b": 1}


@pytest.mark.parametrize("number", ["SIGINT", "SIGHUP", "SIGQUIT", "SIGTERM", "SIGKILL"])
def test_interrupted_batch_goes_on_in_a_changed_file(start, here, env, tasks, tmp_path, number):
    """Ended lines stay ended; running and waiting ones run; new lines run, and removed
    ones do not."""
    many = [tasks.waiting(f"w{i}") for i in range(200)]
    tasks.write(tasks.line("a"), tasks.line("b", "false"), *many)
    child = start(*LOCAL, "tasks")
    wait_until(lambda: len(tasks.ran()) > 2 and tasks.results() and len(tasks.results()) >= 2)
    child.send_signal(getattr(signal, number))
    if number == "SIGTERM":
        tasks.go.touch()  # running tasks may finish
    _, said = child.communicate(timeout=60)
    assert child.returncode == -getattr(signal, number)
    if number != "SIGKILL":
        assert "this goes on: pmi2x-dvm batch --local 1 tasks" in said
        assert not living(env["PMI2X_DVM_DIR"])
    tasks.go.touch()
    gone = tasks.waiting("w199")
    tasks.write(tasks.line("new"), *many[:-1], tasks.line("b", "false"), tasks.line("a"))
    again = here(*LOCAL, "tasks").failed()
    again.says(f"no longer in the file, and is not started: {gone}")
    again.says("1 of them failed")
    ran = tasks.ran()
    assert set(ran) == {"a", "b", "new", *(f"w{i}" for i in range(199))}
    assert ran["a"] == ran["b"] == ran["new"] == 1
    ended = collections.Counter(
        r["command"] for r in tasks.results() if r["state"] in ("done", "failed")
    )
    assert set(ended.values()) == {1} and len(ended) == 202


def test_second_signal_does_not_wait(start, env, tasks):
    tasks.write(tasks.line("a", "trap '' TERM; " + f"until [ -e {tasks.go} ]; do sleep 0.05; done"))
    child = start(*LOCAL, "tasks")
    wait_until(lambda: tasks.ran())
    child.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(1)
    child.send_signal(signal.SIGINT)
    assert child.wait(5) == -signal.SIGINT
    tasks.go.touch()


def test_ignored_hang_up_stays_ignored(start, tasks):
    tasks.write(tasks.waiting("a"))
    child = start(*LOCAL, "tasks", before=ignore_hang_up)
    wait_until(lambda: tasks.ran())
    child.send_signal(signal.SIGHUP)
    tasks.go.touch()
    child.communicate(timeout=60)
    assert child.returncode == 0


def test_file_that_another_process_works_on(start, here, tasks):
    tasks.write(tasks.waiting("a"))
    child = start(*LOCAL, "tasks", env={"SLURM_JOB_ID": "4711"})
    wait_until(lambda: tasks.ran())
    here(*LOCAL, "tasks").failed().says(f"job 4711, process {child.pid} on ")
    assert tasks.ran() == {"a": 1}
    tasks.go.touch()
    assert child.wait(60) == 0


def test_lines_of_standard_input(here, tasks):
    tasks.write(tasks.line("a"), tasks.line("b", "false"))
    text = tasks.file.read_text()
    here(*LOCAL, "-", stdin=text).failed()
    here(*LOCAL, "--journal", "j", "-", stdin=text).failed()
    here(*LOCAL, "--journal", "j", "-", stdin=text).failed().says("2 had ended before")
    assert tasks.ran() == {"a": 2, "b": 2}


# ---- whose DVM ----


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0"])
def test_pipe_is_read_as_standard_input(here, tasks, name):
    here(*LOCAL, name, stdin=tasks.line("a") + "\n").ok().says("results: pmi2x-dvm.local.1.results")
    assert tasks.ran() == {"a": 1}


def test_only_rejected_lines_need_no_other_option(here, tasks):
    tasks.file.write_bytes(b"true\necho \xff\n")
    here(*LOCAL, "tasks").failed().says("the same command tries the rejected lines again")
    tasks.write("true", "false")
    here(*LOCAL, "tasks").failed().says("--retry-failed runs the lines that have failed again")


def test_second_batch_joins_and_the_last_ends_the_dvm(start, here, env, tasks):
    tasks.write(tasks.line("a"), tasks.waiting("b"), file="one")
    tasks.write(*[tasks.waiting(f"c{i}") for i in range(9)], file="two")
    one = start(*LOCAL, "one")
    wait_until(lambda: tasks.ran()["b"])
    two = start(*LOCAL, "two")
    wait_until(lambda: status(here)["running"] + status(here)["queued"] == 10)
    one.send_signal(signal.SIGINT)
    _, said = one.communicate(timeout=60)
    assert "goes on for 1 other client" in said
    assert living(env["PMI2X_DVM_DIR"])
    tasks.go.touch()
    _, said = two.communicate(timeout=60)
    assert "batch joins the DVM local" in said
    assert "the log is in" not in said
    assert two.returncode == 0
    assert not living(env["PMI2X_DVM_DIR"])
    here(*LOCAL, "one").ok()
    assert tasks.ran() == {"a": 1, "b": 2, **{f"c{i}": 1 for i in range(9)}}


def test_dvm_of_up_stays(here, env, tasks, tmp_path):
    here("up", "--local", "1").ok()
    tasks.write(tasks.line("a"), tasks.line("b", "false"))
    for _ in range(2):
        here("batch", "tasks").failed().says("batch joins the DVM local")
    assert tasks.ran() == {"a": 1, "b": 1}
    assert status(here)["running"] == 0
    here("down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_dvm_of_up_stays_if_batch_uses_its_journal(here, env, tasks):
    here("up", "--local", "1", "--journal", "j").ok()
    tasks.write(tasks.line("a"), tasks.line("b"))
    for _ in range(2):
        here("batch", "--journal", "j", "tasks").ok().says("batch joins the DVM local")
    assert tasks.ran() == {"a": 2, "b": 2}
    assert status(here)["running"] == 0
    here("down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_last_client_of_a_batch_whose_process_was_killed_ends_its_dvm(start, here, env, tasks):
    """Queued tasks stay in the journal."""
    tasks.write(*[tasks.waiting(f"w{i}") for i in range(64)])
    batch = start(*LOCAL, "tasks")
    wait_until(lambda: tasks.ran())
    other = start("wait", "1")
    wait_until(lambda: status(here)["queued"] > 0)
    batch.kill()
    batch.wait()
    here("cancel", "1").ok()
    other.wait(60)
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))  # it may see batch go last
    tasks.go.touch()
    here(*LOCAL, "tasks").ok().says("1 task has ended, 63 continue")
    assert set(tasks.ran()) == {f"w{i}" for i in range(64)}


def test_output_of_a_killed_batch_comes_from_the_head(start, here, tasks):
    """The batch is stopped while a task ends, so that it cannot write the result."""
    tasks.write(tasks.waiting("a") + "; echo out", tasks.line("b", "until [ -e end ]; do sleep 0.05; done"))
    batch = start(*LOCAL, "tasks")
    wait_until(lambda: len(tasks.ran()) == 2)
    until_end = "touch other; until [ -e end ]; do sleep 0.05; done"
    other = start("run", "-c", "0", "sh", "-c", until_end)  # so that the DVM goes on
    wait_until((tasks.go.parent / "other").exists)
    batch.send_signal(signal.SIGSTOP)
    tasks.go.touch()
    wait_until(lambda: status(here)["running"] == 2)
    batch.kill()
    batch.wait()
    again = start(*LOCAL, "tasks")
    wait_until(lambda: "batch joins" in again.stderr.readline())
    (tasks.go.parent / "end").touch()
    again.communicate(timeout=60)
    other.communicate(timeout=60)
    result = next(r for r in tasks.results() if r["line"] == 1)
    assert (result["out"], "output_lost" in result) == ("out\n", False)
    assert tasks.ran() == {"a": 1, "b": 1}


@pytest.fixture
def late(prefix, tmp_path):
    """Programs of a DVM whose daemons come up when there is a file."""
    own = prefix / "libexec/pmi2x"
    place = tmp_path / "late"
    place.mkdir()
    for name in "pmi2x-dvm-head", "pmi2x-dvm-zygote":
        shutil.copy(own / name, place)
    wait = f"until [ -e {tmp_path}/up ]; do sleep 0.05; done"
    (place / "pmi2x-dvmd").write_text(f'#!/bin/sh\n{wait}\nexec {own}/pmi2x-dvmd "$@"\n')
    (place / "pmi2x-dvmd").chmod(0o755)
    return {"PMI2X_DVM_LIBEXEC": str(place)}


@pytest.mark.parametrize("more", [[], ["--again"]], ids=["same", "again"])
def test_results_of_a_finished_run_do_not_count_after_a_killed_start(start, here, env, tasks, late, more):
    """The DVM has begun a journal, and no line was submitted."""
    tasks.write(tasks.line("a"), "  # an indented comment")
    here(*LOCAL, "tasks").ok().says("1 task: 1 done")
    place = tasks.file.parent
    killed = start(*LOCAL, *more, "tasks", env=late)
    wait_until(lambda: "pmi2x-dvmd" in living(env["PMI2X_DVM_DIR"]).values())
    killed.send_signal(signal.SIGSTOP)
    (place / "up").touch()
    wait_until((place / "tasks.journal/journal").exists)
    killed.kill()
    killed.communicate(timeout=60)
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    here(*LOCAL, "tasks").ok().says("1 task: 1 done")
    assert tasks.ran() == {"a": 2}


def test_output_of_a_killed_batch_comes_from_the_journal(start, here, env, tasks):
    """Neither the client nor the head lives when the same command continues."""
    tasks.write(tasks.waiting("a") + "; seq 0 4999; echo err >&2", tasks.line("b", "sleep 600"))
    batch = start(*LOCAL, "tasks")
    wait_until(lambda: len(tasks.ran()) == 2)
    batch.send_signal(signal.SIGSTOP)
    tasks.go.touch()
    wait_until(lambda: status(here)["ended"] == 1)
    for pid, name in living(env["PMI2X_DVM_DIR"]).items():
        if name == "pmi2x-dvm-zygot":
            continue  # it ends the task that is left, and itself
        with contextlib.suppress(ProcessLookupError):  # one may end with another
            os.kill(pid, signal.SIGKILL)
    batch.kill()
    batch.wait()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    tasks.write(tasks.waiting("a") + "; seq 0 4999; echo err >&2")
    here(*LOCAL, "tasks").ok()
    [result] = tasks.results()
    assert result["err"] == "err\n"
    assert result["out"].endswith("4999\n")
    assert here("output", "tasks").ok().stdout == "".join(f"{i}\n" for i in range(5000))
    assert tasks.ran() == {"a": 1, "b": 1}


@pytest.fixture
def python(prefix):
    """Where the Python client is."""
    return prefix / "share/pmi2x/python"


def test_batch_ends_its_dvm_while_a_client_looks(start, python, env, tasks):
    """As `status` does that is about to leave."""
    tasks.write(tasks.waiting("a"))
    batch = start(*LOCAL, "tasks")
    wait_until(tasks.ran)
    [path] = pathlib.Path(env["PMI2X_DVM_DIR"]).glob("*/head.sock")
    text = (python / "pmi2x_dvm/_connection.py").read_text()
    version = int(re.search(r"^VERSION = (\d+)", text, re.M).group(1))
    with socket.socket(socket.AF_UNIX) as looks:
        looks.connect(str(path))
        looks.sendall(b'{"op": "hello", "version": %d, "looks": true}\n' % version)
        assert b'"hello"' in looks.makefile("rb").readline()
        tasks.go.touch()
        _, said = batch.communicate(timeout=60)
        assert batch.returncode == 0
        assert "goes on for" not in said
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


LAST = """
import os, sys
import pmi2x_dvm

dvm = pmi2x_dvm.connect()
dvm.submit(["true"]).result()
print("ready", flush=True)
daemons = sys.stdin.readline().split()
dvm.close()
print([pid for pid in daemons if os.path.exists("/proc/" + pid)])
"""


def test_python_client_that_is_the_last_ends_the_dvm_of_a_batch(start, python, env, tasks):
    """Its close() returns when the daemons have ended."""
    tasks.write(tasks.waiting("a"))
    batch = start("batch", "--local", "2", "tasks")
    wait_until(tasks.ran)
    path = {**env, "PYTHONPATH": str(python)}
    with subprocess.Popen(
        [sys.executable, "-B", "-c", LAST], env=path, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as client:  # fmt: skip
        assert client.stdout.readline() == "ready\n"
        tasks.go.touch()
        _, said = batch.communicate(timeout=60)
        assert "goes on for 1 other client" in said
        daemons = [p for p, n in living(env["PMI2X_DVM_DIR"]).items() if "head" not in n]
        assert daemons
        out, _ = client.communicate(" ".join(map(str, daemons)) + "\n", timeout=60)
        assert out == "[]\n"
    assert client.returncode == 0


def test_dvm_of_another_job_is_not_found(here, env, tasks):
    here("up", "--local", "1", job="4711").ok()
    here("run", "true", job="4712").failed().says("this job has no DVM")
    here("run", "--dvm", "job4711", "true", job="4712").ok()
    tasks.write(tasks.line("a", "echo $PMI2X_DVM_TASK"))
    here(*LOCAL, "tasks", job="4712").ok()
    assert tasks.results()[0]["out"] == "1\n"
    assert "0 running" in here("ps").ok().stdout
    here("down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


PYTHON_CLIENT = "import pmi2x_dvm; pmi2x_dvm.connect().submit(['true'], check=True).result()"


def test_clients_wait_for_a_dvm_that_is_starting(start, here, prefix, env, tmp_path):
    job = {"SLURM_JOB_ID": "4711"}
    go = tmp_path / "go"
    launcher = f"sh -c 'until [ -e {go} ]; do sleep 0.05; done; SLURM_PROCID=0 exec \"$@\"' -"
    up = start("up", "-N1", "--launcher", launcher, env=job)
    run = start("run", "echo", "ran", env=job)
    wait_until(lambda: living(env["PMI2X_DVM_DIR"]))
    paths = {"PYTHONPATH": str(prefix / "share/pmi2x/python")}
    client = subprocess.Popen([sys.executable, "-B", "-c", PYTHON_CLIENT], env={**env, **job, **paths})
    for waiting in run, client:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
    go.touch()
    assert run.communicate(timeout=60)[0] == "ran\n"
    assert client.wait(60) == 0
    assert up.wait(60) == 0
    here("down", job="4711").ok()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_up_leaves_nothing(start, env, number):
    base = pathlib.Path(env["PMI2X_DVM_DIR"])
    up = start("up", "-N1", "--launcher", "sleep 600; true", env={"SLURM_JOB_ID": "4711"})
    wait_until(lambda: living(base))
    up.send_signal(number)
    up.communicate(timeout=60)
    assert up.returncode == -number
    wait_until(lambda: not living(base))


def test_continued_batch_counts_its_own_time(start, here, tmp_path):
    (tmp_path / "tasks").write_text("[ -e go ] || { touch began; sleep 600; }\n")
    first = start("batch", "--local", "1", "tasks")
    wait_until((tmp_path / "began").exists)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    (tmp_path / "go").touch()
    time.sleep(2)  # a time that must not count
    began = time.monotonic()
    said = here("batch", "--local", "1", "tasks").ok()
    assert float(re.search(r"; ([0-9.]+) s, ", said.stderr)[1]) <= time.monotonic() - began


# ---- submit --wait ----


def test_submit_keeps_results(here, env, tmp_path):
    here("up", "--local", "1").ok()
    said = here("submit", "--wait", "sh", "-c", "echo $0; exit $0", ":::", "0", "3").failed()
    said.says("results: pmi2x-dvm.local.1.results")
    said.says("task 2, line 2, failed: exit status 3: sh -c echo $0; exit $0 3")
    lines = (tmp_path / "pmi2x-dvm.local.1.results").read_text().splitlines()
    found = sorted((r["line"], r["out"], r["code"]) for r in map(json.loads, lines))
    assert found == [(1, "0\n", 0), (2, "3\n", 3)]
    here("down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_interrupted_submit_leaves_its_tasks(start, here, env):
    here("up", "--local", "1", "--slots", "2").ok()
    child = start("submit", "--wait", "--array", "1-5", "sleep", "600")
    wait_until(lambda: status(here)["running"] == 2)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT
    assert "5 tasks go on: pmi2x-dvm wait, or pmi2x-dvm cancel --all" in said
    assert status(here)["running"] == 2
    here("down", "--cancel").ok()


# ---- in a job ----


def test_requeued_batch_waits_for_its_earlier_run(start, here, tasks):
    """Slurm may start a job again while what it ran before is ending."""
    tasks.write(tasks.line("ended"), tasks.waiting("running"))
    before = start(*LOCAL, "tasks", env={"SLURM_JOB_ID": "77"})
    wait_until(lambda: len(tasks.ran()) == 2)
    again = start(*LOCAL, "tasks", env={"SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": "1"})
    said = again.stderr.readline()
    assert f"process {before.pid} on" in said and "ran before it was requeued" in said
    before.send_signal(signal.SIGINT)
    assert before.wait() == -signal.SIGINT
    tasks.go.touch()
    assert again.wait() == 0
    assert tasks.ran() == {"ended": 1, "running": 2}


def test_array_of_jobs_on_one_node(cluster, prefix, tmp_path, base):
    """Each element of the array has its own DVM and results, also where elements share
    a file."""
    (tmp_path / "tasks").write_text("".join(
        f"echo $SLURM_ARRAY_TASK_ID {i} >> {tmp_path}/ran; sleep 0.5\n" for i in range(3)
    ))  # fmt: skip
    cluster.run(
        "env", f"PATH={prefix}/bin:{os.environ['PATH']}", f"PMI2X_DVM_DIR={base}",
        "sbatch", "--array=1-3", "-w", "n1", "-n1", f"--chdir={tmp_path}",
        "-o", "out.%a", "--wrap", "pmi2x-dvm batch tasks",
    ).ok()  # fmt: skip
    wait_until(lambda: len(list(tmp_path.glob("tasks.*.results"))) == 3)
    wait_until(lambda: not living(base) and not list(tmp_path.glob("*.journal")), 60)
    ran = (tmp_path / "ran").read_text().splitlines()
    assert sorted(ran) == sorted(f"{k} {i}" for k in (1, 2, 3) for i in range(3))
    for k in 1, 2, 3:
        assert len((tmp_path / f"tasks.{k}.results").read_text().splitlines()) == 3


def test_options_may_follow_the_file(here, tasks):
    tasks.write("true")
    here("batch", "tasks", "--local", "1").ok().says("1 done")
