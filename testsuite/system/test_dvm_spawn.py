# SPDX-License-Identifier: BSD-3-Clause
"""Requests of running tasks of pmi2x-dvm: other tasks, and names that all tasks share."""

import json
import os
import pathlib
import signal

import pytest

from dvms import dvm, env, living, local, status, there, wait_until

__all__ = ["dvm", "env", "local", "there"]


# Debian's MPICH, on UCX, has neither spawn nor connect.


@pytest.fixture
def mpich(ofi_program, ofi, env):
    """Compile with MPICH of a wheel, whose PMI-1 is of version 1.2."""
    env.update(ofi)
    return ofi_program


@pytest.fixture
def spawner(mpich):
    return mpich("programs/mpi-spawn.c")


def tasks(dvm):
    return json.loads(dvm("ps", "--ended", "--json").ok().stdout)["tasks"]


def log(env):
    return next(pathlib.Path(env["PMI2X_DVM_DIR"]).glob("*/log")).read_text()


def ended(dvm, task):
    return json.loads(dvm("show", "--json", str(task)).ok().stdout)


# ---- spawn ----


@pytest.mark.parametrize("nodes", [1, 2])
def test_spawn(local, spawner, nodes):
    result = local("run", "-n2", f"-N{nodes}", spawner, "spawn", "3").ok()
    assert result.stdout.count("child ") == 3, result
    assert result.stdout.count("parent done") == 2, result
    parent, child = sorted(tasks(local), key=lambda t: t["id"])
    assert (child["parent"], child["ranks"]) == (parent["id"], 3)


def test_spawn_by_one_rank(local, spawner):
    result = local("run", "--pmi", spawner, "spawn", "1").ok()
    assert sorted(result.lines) == ["child 0 of 1 appnum 0", "parent done"]


def test_spawn_multiple_numbers_the_commands(local, spawner):
    result = local("run", "-n2", spawner, "multiple", "4").ok()
    children = [line for line in result.lines if line.startswith("child ")]
    assert sorted(children) == [
        "child 0 of 4 appnum 0",
        "child 1 of 4 appnum 1",
        "child 2 of 4 appnum 1",
        "child 3 of 4 appnum 1",
    ], result


@pytest.mark.parametrize("key", ["wdir", "path"])
def test_info_keys_reach_the_children(local, spawner, key):
    result = local("run", "-n2", spawner, key, "2").ok()
    assert result.stdout.count("child ") == 2, result


def test_spawn_twice(local, spawner):
    result = local("run", "-n2", spawner, "twice", "2").ok()
    assert result.stdout.count("child ") == 4, result


def test_spawn_waits_for_room(local, spawner, tmp_path):
    """The child needs what another task has."""
    go = tmp_path / "go"
    hold = local("submit", "-n4", "sh", "-c", f"until test -e {go}; do sleep 0.01; done").ok()
    [parent] = local("submit", "-n2", spawner, "spawn", "4").ok().lines
    wait_until(lambda: any(t.get("parent") == int(parent) for t in tasks(local)))
    child = next(t for t in tasks(local) if "parent" in t)
    assert child["state"] == "queued"
    assert "needs room for 4 ranks" in local("why", child["id"]).ok().stdout
    go.touch()
    local("wait", parent, str(child["id"]), *hold.lines).ok()


def test_spawn_of_what_can_never_fit(local, raw, env):
    """The spawn is rejected at once: its parent would wait forever."""
    result = local("run", "-n8", *raw("spawn", "true")).ok()
    assert result.stdout.count("spawn answered") == 8, result
    assert "rc 0" not in result.stdout
    assert "can never fit beside the task that spawns them" in log(env)


def test_spawn_of_a_missing_program(local, raw, env):
    """The answer is an error, and the parent goes on."""
    result = local("run", "--pmi", *raw("spawn", "/nonexistent/program")).ok()
    assert "spawn answered" in result.stdout
    assert "rc 0" not in result.stdout
    assert "cannot execute /nonexistent/program" in log(env)


def test_spawn_of_a_program_without_pmi(local, raw):
    assert "rc 0" in local("run", "--pmi", *raw("spawn", "true")).ok().stdout


@pytest.fixture
def family(local, raw, tmp_path):
    """A task whose child runs: their numbers, and the processes."""
    child = tmp_path / "child"
    child.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 600\n")
    child.chmod(0o755)
    [parent] = local("submit", "--pmi", *raw("spawn", child)).ok().lines
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    [task] = [t["id"] for t in tasks(local) if t.get("parent") == int(parent)]
    return parent, task, int((tmp_path / "pid").read_text())


def gone(pid):
    return not pathlib.Path(f"/proc/{pid}").exists()


def test_cancel_ends_children(local, family):
    parent, child, pid = family
    local("cancel", parent).ok()
    wait_until(lambda: gone(pid))
    local("wait", parent, str(child))
    assert ended(local, child)["state"] == "cancelled"
    assert ended(local, child)["why"] == f"its parent, task {parent}, was cancelled"


def test_a_parent_that_dies_ends_children(local, family):
    parent, child, pid = family
    local("signal", "9", parent).ok()
    wait_until(lambda: gone(pid))
    local("wait", parent, str(child))
    assert "failed" in ended(local, child)["why"]


def test_a_child_that_dies_is_answered(local, family):
    """Before it has spoken: the parent hears that there is none."""
    parent, child, pid = family
    os.kill(pid, signal.SIGKILL)
    local("wait", parent).ok()
    assert "rc 0" not in ended(local, parent)["out"]
    local("wait", str(child)).failed()
    assert ended(local, child)["code"] == 128 + signal.SIGKILL


# ---- names ----


def test_names(local, compile_program):
    program = compile_program("programs/mpi-names.c", "mpicc.mpich")
    result = local("run", "-n3", "-N2", program, "a-service").ok()
    assert "found and gone" in result.lines, result


def test_two_tasks_meet(local, mpich):
    """One task publishes a port, and the other one looks it up and connects."""
    meet = mpich("programs/mpi-meet.c")
    submitted = [
        local("submit", "--time", "1", "-n2", "-N2", meet, role, "here").ok().lines[0]
        for role in ("serve", "call")
    ]
    local("wait", *submitted).ok()
    assert [ended(local, t)["out"] for t in submitted] == ["2 met 2\n"] * 2


def test_names_go_with_their_task(local, raw):
    """Then another task may publish the same name."""

    def name(what):
        return local("run", "--pmi", *raw("name", what, "here")).ok().lines[0]

    assert [name("publish"), name("publish")] == ["publish ok "] * 2
    assert not name("lookup").startswith("lookup ok")


# ---- Open MPI ----


@pytest.fixture
def open_mpi_5(prefix, open_mpi):
    if not (prefix / "libexec/pmi2x/pmi2x-pmixd").exists():
        pytest.skip("pmi2x-pmixd was not built: the headers of PMIx are missing")
    return lambda source: open_mpi(source, "5")


def test_open_mpi_spawns(local, open_mpi_5):
    result = local("run", "-n2", open_mpi_5("programs/mpi-spawn.c"), "spawn", "3").ok()
    assert result.stdout.count("child ") == 3, result
    assert result.stdout.count("parent done") == 2, result


def test_a_pmix_child_that_dies(local, open_mpi_5, exercise, env):
    """On another node, before it connects: its parents do not wait for it, and go on."""
    result = local("run", "-n4", "-N1", exercise, "deserted", "-", exercise, "die")
    assert result.lines.count("deserted") == 4, result
    assert ", which ended before the connection was made" in log(env)


def test_open_mpi_tasks_meet(local, open_mpi_5):
    meet = open_mpi_5("programs/mpi-meet.c")
    submitted = [
        local("submit", "--time", "1", "-n2", meet, role, "here").ok().lines[0]
        for role in ("serve", "call")
    ]
    local("wait", *submitted).ok()
    assert [ended(local, t)["out"] for t in submitted] == ["2 met 2\n"] * 2


@pytest.mark.parametrize("nodes", [1, 2])
def test_open_mpi_abort_ends_the_task_alone(local, open_mpi_5, nodes):
    """By name; other tasks and the DVM go on."""
    [other] = local("submit", "-n2", "sleep", "600").ok().lines
    result = local("run", "-n4", f"-N{nodes}", open_mpi_5("programs/mpi-abort.c"), "2", "7")
    assert result.code == 7, str(result)
    result.says("rank 2 called abort")
    assert ended(local, other)["state"] == "running"
    assert status(local)["running"] == 1


# ---- in an allocation ----


def test_in_an_allocation(in_allocation, ofi_program, ofi, base):
    """Over nodes: spawn, and two tasks that meet."""
    spawn, meet = ofi_program("programs/mpi-spawn.c"), ofi_program("programs/mpi-meet.c")
    script = f"""
pmi2x-dvm up || exit 1
pmi2x-dvm run -n4 -N2 {spawn} spawn 4
pmi2x-dvm run -n2 -N2 {meet} serve here &
pmi2x-dvm run -n2 -N2 {meet} call here
wait
pmi2x-dvm down
"""
    result = in_allocation(4, script, "--ntasks-per-node=4", env=ofi, timeout=90).ok()
    assert result.stdout.count("child ") == 4, result
    assert result.stdout.count("2 met 2") == 2, result
    assert not living(base)
