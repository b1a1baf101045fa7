# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm why: what a task waits for, and where its ranks are."""

import json
import os
import signal
import subprocess

import pytest

from dvms import dvm, env, living, local, there, wait_until
from processes import command_line, state_of

__all__ = ["dvm", "env", "local", "there"]


def submit(dvm, *words):
    return dvm("submit", *map(str, words)).ok().lines[0]


def why(dvm, task):
    return json.loads(dvm("why", "--json", task).ok().stdout)


def test_a_task_that_waits(local):
    running = submit(local, "-c3", "--name", "first", "sleep", "600")
    waits = submit(local, "-n2", "-c3", "sleep", "600")
    behind = submit(local, "-c2", "true", ":::", "a")
    local("wait", behind).ok()
    lines = local("why", waits).ok().lines
    assert lines[0].startswith(f"task {waits}: queued for ")
    assert lines[1:] == ["  needs room for 2 ranks of 3 cores; there is room for 1"]
    lines = local("why", running).ok().lines
    assert lines[0].startswith(f"task {running} (first): running for ")
    assert local("why", behind).ok().lines == [f"task {behind}: done, exit status 0: true a"]


@pytest.mark.parametrize("nodes", [1, 2])
def test_ranks_of_a_task_that_runs(local, nodes, tmp_path):
    script = f"echo $$ >{tmp_path}/$PMI2X_DVM_RANK.new; cd {tmp_path}; "
    script += "mv $PMI2X_DVM_RANK.new $PMI2X_DVM_RANK; exec sleep 600"
    task = submit(local, "-n4", f"-N{nodes}", "sh", "-c", script)
    pids = wait_until(lambda: pids_in(tmp_path, 4))
    os.kill(pids[2], signal.SIGSTOP)
    wait_until(lambda: state_of(pids[2]) == "T")
    answer = why(local, task)
    ranks = [r for n in answer["nodes"] for r in n["ranks"]]
    assert {r["rank"]: r["pid"] for r in ranks} == pids
    assert [r["rank"] for r in ranks if r["state"] == "T"] == [2]
    assert len({n["node"] for n in answer["nodes"]}) == len(answer["nodes"]) == nodes
    assert answer["waits"] == answer["silent"] == answer["reasons"] == []
    line = next(line for line in local("why", task).ok().lines if str(pids[2]) in line)
    assert line.endswith("is stopped by a signal")


def pids_in(directory, count):
    paths = [path for path in directory.iterdir() if path.name.isdigit()]
    return len(paths) == count and {int(p.name): int(p.read_text()) for p in paths}


@pytest.mark.parametrize("nodes", [1, 2])
def test_why_names_the_late_rank(local, raw, nodes):
    """Rank 0 enters the fence late, the others wait in it."""
    task = submit(local, "-n4", f"-N{nodes}", *raw("late", "2", "600"))
    words = "waiting for 1 of 4 ranks: 0 (node local"
    wait_until(lambda: words in "".join(why(local, task)["waits"]))
    assert local("why", task).ok().lines[1].startswith("  fence 0: ")


def test_a_node_that_does_not_use_pmi(local, raw):
    """Rank 1, on the other node, never begins with it."""
    use = " ".join(map(str, raw("exchange", "1")))
    task = submit(local, "-n2", "-N2", "sh", "-c", f"[ $PMI_RANK = 1 ] || {use}; sleep 600")
    wait_until(lambda: why(local, task)["waits"])
    assert why(local, task)["waits"][0].endswith(
        "waiting for 1 of 2 ranks: 1 (node local1; PMI not started)")


def test_output_file_that_takes_nothing(local, env, prefix, tmp_path):
    """Its process stands for a file server that hangs."""
    go = tmp_path / "go"
    script = f"seq 2000; until [ -e {go} ]; do sleep 0.1; done; yes | head -c 4000000"
    (tmp_path / "tasks").write_text(script + "\n")
    tasks = subprocess.Popen(
        [prefix / "bin/pmi2x-dvm", "batch", "tasks"], cwd=tmp_path, env=env, stderr=subprocess.PIPE)
    stopped = wait_until(lambda: [
        p for p, name in living(env["PMI2X_DVM_DIR"]).items() if name == "pmi2x-output"])[0]
    os.kill(stopped, signal.SIGSTOP)
    go.touch()
    words = f"for the output file in {tmp_path}/tasks.outputs: ranks that print more"
    wait_until(lambda: words in local("why", "1").stdout)
    os.kill(stopped, signal.SIGCONT)
    assert tasks.wait() == 0
    tasks.stderr.close()
    assert (tmp_path / "tasks.outputs/1.out").stat().st_size > 4000000


def test_a_node_that_is_silent(local, env, tmp_path):
    """why names the silent node, and has the answers of the others."""
    mark = tmp_path / "here"
    task = submit(local, "-n2", "-N2", "sh", "-c", f"touch {mark}$PMI2X_DVM_RANK; sleep 600")
    wait_until(lambda: len(list(tmp_path.glob("here?"))) == 2)
    daemons = [p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvmd"]
    stopped = next(p for p in daemons if "local1" in command_line(p))
    os.kill(stopped, signal.SIGSTOP)
    try:
        answer = why(local, task)
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert answer["silent"] == ["local1"]
    assert [n["node"] for n in answer["nodes"]] == ["local0"]


def test_wrong_tasks(local):
    local("why", "7").failed().says("there is no task 7 here")
    assert local("why", "x").code == 2
    assert local("why").code == 2


# ---- Slurm ----

ALLOCATION = """
export PMI2X_DVM_DIR={base}
pmi2x-dvm up || exit
task=$(pmi2x-dvm submit -n4 -N4 {late})
until pmi2x-dvm why $task | grep 'waiting for 1 of'; do sleep 0.1; done
pmi2x-dvm down --cancel
"""


def test_in_an_allocation(in_allocation, raw, base):
    late = " ".join(map(str, raw("late", "2", "600")))
    result = in_allocation(4, ALLOCATION.format(base=base, late=late)).ok()
    assert "waiting for 1 of 4 ranks: 0 (node " in result.stdout
