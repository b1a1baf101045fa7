# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: several DVMs under one name are one target."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from dvms import dvm, env, living, status, there, wait_until
from processes import command_line
from test_dvm_nodes import client, launcher

__all__ = ["client", "dvm", "env", "launcher", "there"]

NAME = "many"
DVMS, NODES, SLOTS = 3, 4, 2
FIRST_OF = {0: 1, 1: 2, 2: 3, 3: 3}  # DVM of each node: the last one has two


@pytest.fixture
def many(dvm, env):
    dvm("up", "--local", NODES, "--slots", SLOTS, "--dvms", DVMS, "--name", NAME).ok()
    yield dvm
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def head_of(env, member):
    """The process number of the head of one of them."""
    for pid in living(env["PMI2X_DVM_DIR"]):
        if f" -n {NAME}.{member} " in command_line(pid) + " ":
            return pid
    raise AssertionError(f"no head of {NAME}.{member}")


def test_all_take_part(many, tmp_path):
    report = tmp_path / "report"
    result = many("submit", "--wait", "--report", report, "--array", "1-400", "true")
    result.ok().says("400 done, 0 failed")
    tasks = [json.loads(line) for line in report.read_text().splitlines()]
    assert len({task["id"] for task in tasks}) == 400
    assert {node for t in tasks for node in t["nodes"]} == {f"local{i}" for i in range(NODES)}
    share = [sum(t["id"] % DVMS == m % DVMS for t in tasks) for m in (1, 2, 3)]
    assert share == [100, 100, 200]  # as they have nodes
    now = status(many)
    assert (now["dvm"], now["ended"], len(now["nodes"])) == (NAME, 400, NODES)
    assert "0 running, 0 queued, 400 ended" in many("ps").ok().stdout


def test_the_least_loaded_has_the_next(many):
    many("submit", "--dvm", f"{NAME}.1", "sleep", "600").ok()
    many("submit", "--dvm", f"{NAME}.3", "-n4", "sleep", "600").ok()
    wait_until(lambda: status(many)["running"] == 2)
    first = int(many("submit", "sleep", "600").ok().lines[0])
    assert first % DVMS == 2
    ids = many("submit", "--array", "1-2", "sh", "-c", "sleep 600 # {}").ok().lines
    assert sorted(int(id) % DVMS for id in ids) == [1, 2]


def test_tasks_by_number(many):
    ids = many("submit", "--array", "1-6", "sh", "-c", "sleep 600 # {}").ok().lines
    wait_until(lambda: status(many)["running"] == 6)
    shown = json.loads(many("show", ids[4]).ok().stdout)
    assert shown["id"] == int(ids[4])
    assert f"task {ids[4]}: running" in many("why", ids[4]).ok().stdout
    assert "5 tasks are cancelled" in many("cancel", *ids[:5]).ok().stdout
    many("wait", *ids[:5]).failed().says("5 failed")
    many("down").failed().says("1 task has not ended")
    assert status(many)["running"] == 1
    many("show", "4711").failed().says("there is no task 4711")


def test_output_and_numbers_are_of_one_task(many, tmp_path):
    out = tmp_path / "out.%t"
    show = "echo $PMI2X_DVM_TASK"
    many("submit", "--wait", "-o", out, "--array", "1-40", "sh", "-c", show).ok()
    files = {path.name: path.read_text().strip() for path in tmp_path.glob("out.*")}
    assert len(files) == 40 and all(name == f"out.{id}" for name, id in files.items())


def test_a_task_that_names_a_node(many):
    for node, member in FIRST_OF.items():
        task = {"argv": ["sleep", "600"], "place": [{"node": f"local{node}", "cores": [1]}]}
        id = many("submit", "--json", "-", stdin=json.dumps(task) + "\n").ok().lines[0]
        assert int(id) % DVMS == member % DVMS
        wait_until(lambda: json.loads(many("show", id).stdout)["nodes"] == [f"local{node}"])
    many("drain", "local3").ok()
    states = {n["name"]: (n["state"], n["dvm"]) for n in status(many)["nodes"]}
    assert states["local3"] == ("drained", f"{NAME}.3")
    many("drain", "local9").failed().says("there is no node local9")


def test_only_the_largest_can_have_it(many):
    ids = many("submit", "--wait", "-N2", "-n4", "true").ok()
    ids.says("1 done")
    many("run", "-n5", "true").failed().says("can never fit")


def test_nodes_come_to_one_of_them(many):
    many("grow", "-N1").failed().says(f"choose one with --dvm {NAME}.1 to {NAME}.3")
    many("grow", "--dvm", f"{NAME}.2", "-N1").ok()
    assert len(status(many)["nodes"]) == NODES + 1


def test_one_that_dies_harms_no_other(many, env, prefix):
    many("submit", "--wait", "--array", "1-40", "true").ok()
    waits = subprocess.Popen(
        [prefix / "bin/pmi2x-dvm", "submit", "--wait", "--report", "/dev/null", "--array", "1-4", "sh", "-c",
         f"until [ -e {env['PMI2X_DVM_DIR']}/go ]; do sleep 0.05; done # {{}}"],
        env=env, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: status(many)["running"] == 4)
    os.kill(head_of(env, 2), signal.SIGKILL)
    wait_until(lambda: status(many)["gone"] == [f"{NAME}.2"])
    with open(f"{env['PMI2X_DVM_DIR']}/go", "w"):
        pass
    _, said = waits.communicate(timeout=60)
    assert waits.returncode == 1
    assert f"lost the DVM {NAME}.2, and with it 1 task" in said
    assert "4 tasks: 3 done, 1 failed" in said
    many("submit", "--wait", "--array", "1-20", "true").ok().says("20 done")
    assert f"DVM {NAME}.2 is no longer up." in many("status").ok().stdout
    many("show", "2").failed().says(f"the DVM {NAME}.2 is not up")


def test_journals(dvm, env, tmp_path):
    up = "up", "--local", "2", "--slots", "2", "--dvms", "2"
    journal = tmp_path / "journal"
    dvm(*up, "--journal", journal).ok()
    dvm("submit", "sleep", "600", ":::", *"6666").ok()  # each of two arguments, in seconds
    dvm("down", "--keep").ok()
    dvm(*up[:-1], "1", "--resume", journal).failed().says("more than 1 DVMs")
    dvm(*up, "--resume", journal).ok()
    assert status(dvm)["running"] + status(dvm)["queued"] == 4
    new = int(dvm("submit", "true").ok().lines[0])
    assert new > 4
    dvm("down", "--cancel").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    dvm("report", journal / "1").ok()


def test_wrong_numbers(dvm, env):
    dvm("up", "--local", "2", "--dvms", "3").failed().says("3 DVMs need at least 3 nodes")
    dvm("up", "--local", "2", "--dvms", "2", "--dvm-nodes", "1").failed().says("give one of the two")
    dvm("up", "--local", "2", "--name", "a.2").failed().says("--name a and --dvms")
    assert not living(env["PMI2X_DVM_DIR"])


def test_one_that_cannot_start_ends_all(dvm, env):
    taken = os.path.join(env["PMI2X_DVM_DIR"], f"{NAME}.2", "head.sock", "x")
    os.makedirs(taken, mode=0o700)
    dvm("up", "--local", "2", "--dvms", "2", "--name", NAME).failed()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_dvm_nodes_sets_the_size_of_each_dvm(dvm, env):
    up = dvm("up", "--local", "5", "--slots", "1", "--dvm-nodes", "2", "--name", NAME)
    assert "5 nodes, 3 DVMs" in up.ok().stdout
    of = [n["dvm"] for n in status(dvm)["nodes"]]
    assert of == [f"{NAME}.{i}" for i in (1, 1, 2, 2, 3)]
    dvm("down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_on_another_node(client, env, launcher, tmp_path):
    up = "up", "-N2", "--dvms", "2", "--slots", "2", "--launcher", launcher
    client({"SLURM_JOB_ID": "7700078"}, *up).ok()
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    for file in pathlib.Path(env["PMI2X_DVM_DIR"]).glob("*.address"):
        shutil.copy(file, shared)
    away = {"PMI2X_DVM_DIR": f"{shared}"}
    client(away, "submit", "--wait", "--array", "1-20", "true").ok().says("20 done")
    assert client(away, "run", "echo", "here").ok().stdout == "here\n"
    now = json.loads(client(away, "status", "--json").ok().stdout)
    assert (now["dvm"], now["ended"], now["gone"]) == ("job7700078", 21, [])
    client(away, "down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert not list(pathlib.Path(env["PMI2X_DVM_DIR"]).glob("*.address"))


CLIENT = """
import pmi2x_dvm

with pmi2x_dvm.connect() as dvm:
    results = list(dvm.map([["sh", "-c", f"exit {i % 3}"] for i in range(90)]))
    assert [r.code for r in results] == [i % 3 for i in range(90)]
    assert len({r.nodes[0] for r in results}) == 4
    future = dvm.submit(["sleep", "600"])
    assert dvm.cancel(future) == 1 and future.result().code
    assert dvm.status()["ended"] == 91
    try:
        dvm.submit(["true"], ranks=5)
    except pmi2x_dvm.Refused:
        pass
    else:
        raise AssertionError("it was taken")
"""


def test_python(many, prefix, env):
    python = {"PYTHONPATH": str(prefix / "share/pmi2x/python"), **env}
    done = subprocess.run([sys.executable, "-B", "-c", CLIENT], env=python, timeout=60)
    assert done.returncode == 0


LARGE = """
import pmi2x_dvm

# More than a request has, for each of two DVMs.
tasks = [{"argv": ["true"], "time": 10}] * 2400 + [{"argv": ["true"], "time": 600}] * 2
with pmi2x_dvm.connect() as dvm:
    futures = dvm.submit_many(tasks)
for member in 0, 1:
    own = [future for future in futures if future.id % 2 == member]
    first = min(own, key=lambda future: future.result().times[2])
    assert first is own[-1] and first in futures[-2:], futures.index(first)
"""


def test_python_orders_a_submit_of_many_requests(dvm, prefix, env):
    dvm("up", "--local", 2, "--slots", 1, "--dvms", 2, "--name", NAME, "--order", "large").ok()
    python = {"PYTHONPATH": str(prefix / "share/pmi2x/python"), **env}
    done = subprocess.run([sys.executable, "-B", "-c", LARGE], env=python, timeout=60)
    dvm("down", "--cancel").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert done.returncode == 0


ALLOCATION = """
set -e
export PMI2X_DVM_DIR={base}
pmi2x-dvm up --dvms 2
pmi2x-dvm up --name other 2>&1 && exit 1
pmi2x-dvm up --name other --share
pmi2x-dvm down --dvm other
pmi2x-dvm status --json >{base}/status
srun -N1 -n1 --overlap --mem=0 env PMI2X_DVM_DIR={base} pmi2x-dvm ps >{base}/elsewhere
pmi2x-dvm submit --wait --report {base}/report --array 1-8 sh -c 'sleep 0.2; exit # {{}}'
pmi2x-dvm submit --wait -N2 -n2 true
pmi2x-dvm down
pmi2x-dvm up -N2
pmi2x-dvm down
"""


def test_in_an_allocation(in_allocation, tmp_path, base):
    result = in_allocation(4, ALLOCATION.format(base=base), cwd=tmp_path)
    result.ok().says("8 done").says("1 done")
    assert "4 nodes, 2 DVMs" in result.stdout
    assert "another DVM of this job is on this node" in result.stdout
    now = json.loads((base / "status").read_text())
    by = {name: [n["dvm"].rpartition(".")[2] for n in now["nodes"] if n["name"] == name]
          for name in {n["name"] for n in now["nodes"]}}  # fmt: skip
    assert sorted(by.values()) == [["1"], ["1"], ["2"], ["2"]]
    assert "0 running" in (base / "elsewhere").read_text()
    tasks = [json.loads(line) for line in (base / "report").read_text().splitlines()]
    assert {t["nodes"][0] for t in tasks} == set(by)
    assert not living(str(base))
