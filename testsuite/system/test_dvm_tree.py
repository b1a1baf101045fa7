# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm with a tree of control: up --width."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest

from dvm_network import Network, check_allowed
from dvms import dvm, env, living, status, there, wait_until
from processes import opened_files

__all__ = ["dvm", "env", "there"]


@pytest.fixture
def up(dvm, env):
    """Start a DVM of this many nodes, which leaves nothing behind."""

    def start(nodes, width, *options):
        tree = ["--width", str(width)] if width is not None else []
        dvm("up", "--local", str(nodes), "--slots", "2", *tree, *options).ok()
        return dvm

    yield start
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def processes(env, name):
    """Process numbers of daemons or fork servers, by the position of their nodes."""
    found = {}
    for pid, comm in living(env["PMI2X_DVM_DIR"]).items():
        if comm == name:
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                node = next(w for w in words if w.startswith(b"local"))
                found[int(node[5:])] = pid
    return found


def states(dvm):
    return [node["state"] for node in status(dvm)["nodes"]]


def links_of(pid):
    """Established connections of a process."""
    inodes = set(opened_files(pid))
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(f"socket:[{w[9]}]" in inodes for w in map(str.split, lines) if w[3] == "01")


def read_log(env):
    return "".join(p.read_text() for p in pathlib.Path(env["PMI2X_DVM_DIR"]).rglob("log"))


def head_of(env):
    return next(p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvm-head")


def run_on_all(dvm, nodes):
    """A task on each node: the names of the nodes."""
    out = dvm("run", "-N", str(nodes), "-n", str(nodes), "printenv", "PMI2X_DVM_TASK").ok()
    assert len(out.stdout.split()) == nodes


def test_head_has_links_to_its_children_only(up, env):
    dvm = up(21, 4)
    run_on_all(dvm, 21)
    wait_until(lambda: links_of(head_of(env)) == 4)
    dvm("down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert read_log(env) == ""


def start_tasks(prefix, env, report, count, work):
    return subprocess.Popen(
        [
            prefix / "bin/pmi2x-dvm", "submit", "--wait", "--report", report,
            "--array", f"1-{count}", "sh", "-c", work,
        ],
        env=env, cwd=report.parent,
    )  # fmt: skip


def check_report(report, count):
    tasks = [json.loads(line) for line in report.read_text().splitlines()]
    assert sorted(t["id"] for t in tasks) == list(range(1, count + 1))
    assert {t["code"] for t in tasks} == {0}
    return tasks


def kill_inner(up, env, prefix, tmp_path, nodes, width, inner, names):
    """Each task ends once; tasks of other nodes are not started again."""
    dvm, report, go = up(nodes, width), tmp_path / "report", tmp_path / "go"
    runs, tasks = tmp_path / "runs", 2 * nodes
    work = f"echo $PMI2X_DVM_TASK >> {runs}; until [ -e {go} ]; do sleep 1; done"
    client = start_tasks(prefix, env, report, tasks, work)
    wait_until(lambda: status(dvm)["running"] == tasks, 120)
    found = [processes(env, name) for name in names]
    for position in inner:
        for pids in found:
            with contextlib.suppress(ProcessLookupError):  # it ends with its daemon
                os.kill(pids[position], signal.SIGKILL)
    wait_until(lambda: states(dvm).count("lost") == len(inner), 60)
    assert states(dvm).count("up") == nodes - len(inner)
    go.touch()
    assert client.wait(300) == 0
    again = 2 * len(inner)
    assert sum(t["instance"] for t in check_report(report, tasks)) == again
    assert len(runs.read_text().split()) == tasks + again
    run_on_all(dvm, nodes - len(inner))


@pytest.mark.parametrize("names", [["pmi2x-dvmd"], ["pmi2x-dvmd", "pmi2x-dvm-zygot"]])
def test_inner_daemons_that_are_killed_cost_their_own_nodes_only(
    up, env, prefix, tmp_path, names
):
    """Two of them are children of the third."""
    kill_inner(up, env, prefix, tmp_path, 40, 3, [0, 4, 5], names)


@pytest.mark.wide
def test_tree_is_the_default_of_many_nodes(up, env):
    dvm = up(513, None)
    wait_until(lambda: links_of(head_of(env)) == 23)
    run_on_all(dvm, 513)


@pytest.mark.wide
def test_inner_daemons_of_256_nodes_are_killed(up, env, prefix, tmp_path):
    """On all inner levels: children of the head, and a child and a grandchild of one."""
    kill_inner(up, env, prefix, tmp_path, 256, 4, [0, 2, 5, 24, 50], ["pmi2x-dvmd"])


def test_short_tasks_while_inner_daemons_are_killed(up, env, prefix, tmp_path):
    dvm, report = up(31, 2), tmp_path / "report"
    client = start_tasks(prefix, env, report, 2000, "exit 0")
    for position in (2, 6, 0):
        pid = processes(env, "pmi2x-dvmd")[position]
        done = status(dvm)["ended"]
        wait_until(lambda: status(dvm)["ended"] > done or client.poll() is not None)
        os.kill(pid, signal.SIGKILL)
    assert client.wait(120) == 0
    check_report(report, 2000)
    wait_until(lambda: states(dvm).count("lost") == 3)


def test_nodes_that_join_have_parents_among_the_others(up, env):
    dvm = up(7, 2)
    dvm("grow", "-N", "8").ok()
    run_on_all(dvm, 15)
    wait_until(lambda: links_of(head_of(env)) == 2)


def test_inner_node_leaves_and_its_children_stay(up, env):
    dvm = up(15, 2)
    dvm("shrink", "local0").ok()
    wait_until(lambda: 0 not in processes(env, "pmi2x-dvmd"))
    run_on_all(dvm, 14)
    assert states(dvm).count("up") == 14


def test_head_that_is_killed_takes_all_daemons_along(up, env):
    up(15, 2)
    os.kill(head_of(env), signal.SIGKILL)
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_tasks_outlive_the_head_of_a_tree(up, env, tmp_path):
    """The next head has links to all nodes."""
    journal, go = tmp_path / "journal", tmp_path / "go"
    orphan = ["--orphan", "60"]
    dvm = up(15, 2, "--journal", journal, *orphan)
    dvm("submit", "--array", "1-30", "sh", "-c", f"until [ -e {go} ]; do sleep 0.2; done").ok()
    wait_until(lambda: status(dvm)["running"] == 30)
    os.kill(head_of(env), signal.SIGKILL)
    wait_until(lambda: read_log(env).count("waiting 60 s for another") == 15)
    dvm("up", "--local", "15", "--slots", "2", "--resume", journal, *orphan).ok()
    assert status(dvm)["running"] == 30
    assert links_of(head_of(env)) >= 15
    go.touch()
    dvm("wait").ok().says("30 done")


ALLOCATION = """
pmi2x-dvm up --width 1 || exit
pmi2x-dvm run -N4 -n4 {program}
pmi2x-dvm down
"""


def test_tree_in_an_allocation(in_allocation, base, hello):
    """srun passes its standard input on as it comes."""
    result = in_allocation(4, ALLOCATION.format(program=hello)).ok()
    assert "size 4 " in result.stdout
    assert not living(base)


# As srun: each process has a number, and gets the standard input as it comes.
LAUNCHER = """#!/bin/bash
all=()
for n in $(cat $0.nodes); do
    mkfifo $0.$n
    all+=($0.$n)
    SLURM_PROCID=$n SLURMD_NODENAME=n$n ip netns exec {name}-n$n "$@" < $0.$n &
done
tee "${{all[@]}}" > /dev/null
wait
"""


@pytest.fixture
def network(prefix, tmp_path):
    check_allowed()
    with Network(prefix, tmp_path, nodes=5) as network:
        network.launcher.write_text(LAUNCHER.format(name=network.name))
        yield network


def test_children_of_a_daemon_that_hangs_go_to_the_head(network):
    """n2 and n3 are children of n0, which costs its own node only."""
    network.up("--width", "2")
    hanging = network.daemon_of(0)
    os.kill(hanging, signal.SIGSTOP)
    wait_until(lambda: network.state(0) == "lost", 60)
    os.kill(hanging, signal.SIGCONT)
    assert [network.state(n) for n in (1, 2, 3, 4)] == ["up"] * 4
    network("run", "-N", "4", "-n", "4", "true").ok()


def test_children_of_a_node_that_is_cut_off_go_to_the_head(network):
    network.up("--width", "2")
    network.link(0, "down")
    wait_until(lambda: network.state(0) == "lost", 60)
    assert [network.state(n) for n in (1, 2, 3, 4)] == ["up"] * 4
    network("run", "-N", "4", "-n", "4", "true").ok()
