# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: PMI and PMIx of tasks."""

import contextlib
import os
import pathlib
import shutil
import signal

import pytest

from dvms import (
    dvm, env, kill_one, living, local, status, there, up_here, wait_until,
)  # fmt: skip
from processes import opened_files

__all__ = ["dvm", "env", "local", "there"]

HELLO = pathlib.Path(__file__).parents[2] / "contrib/cluster/mpi-hello.c"


# ---- PMI of a task ----


@pytest.fixture(params=[1, 2], ids=["node", "nodes"])
def four(local, request):
    """Run four ranks on one node, or on two."""
    return lambda *command: local("run", "-n4", f"-N{request.param}", *map(str, command))


def test_an_mpi_program(four, hello):
    assert four(hello).ok().stdout.startswith("size 4 ")


@pytest.mark.parametrize("version", ["1", "2"])
def test_values_go_around(four, raw, version):
    assert four(*raw("exchange", version)).ok().lines == ["exchanged 4"] * 4


def test_an_mpi_program_that_aborts(four, compile_program):
    program = compile_program("programs/mpi-abort.c", "mpicc.mpich")
    result = four(program, "2", "7")
    assert result.code == 7, str(result)
    result.says("rank 2 called abort")


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_rank_that_others_wait_for(four, raw, version):
    """The rank exits well while others are in a fence, or soon will be."""
    result = four(*raw("leave", version, "exit", "0", "2"))
    assert result.code == 1, str(result)
    result.says("fence 1 failed: rank 2 (node local")
    result.says("exited with exit code 0 without finalizing PMI")


@pytest.mark.parametrize("leaver", [0, 1])
@pytest.mark.parametrize("waits", ["", "until [ -e gone ]; do sleep 0.02; done;"])
def test_a_node_whose_rank_never_uses_pmi(local, raw, tmp_path, leaver, waits):
    """The rank exits well, before or after the other node's rank waits for it in a
    fence."""
    use = " ".join(map(str, raw("exchange", "1")))
    script = f"[ $PMI_RANK = {leaver} ] && {{ touch gone; exit 0; }}; {waits} exec {use}"
    result = local("run", "-n2", "-N2", "sh", "-c", script, cwd=tmp_path)
    assert result.code == 1, str(result)
    result.says("fence 0 failed: ")


@pytest.mark.parametrize("how, code", [("exit", 3), ("kill", 128 + signal.SIGKILL)])
def test_a_rank_that_fails_between_fences(four, raw, how, code):
    """Other ranks may be in a fence or not: the exit code counts, not its effect on
    them."""
    assert four(*raw("leave", "1", how, "3", "2")).code == code


@pytest.mark.parametrize("nodes", [12, pytest.param(64, marks=pytest.mark.wide)])
def test_mpi_tasks_over_many_nodes_after_a_loss_and_after_growth(dvm, env, hello, nodes):
    """The tree of a task has inner nodes; a node knows the addresses of its neighbours."""
    for many in up_here(dvm, env, nodes):

        def sizes(count, *per_node):
            ran = [many("run", f"-N{count}", f"-n{n * count}", hello) for n in per_node]
            return [int(r.ok().stdout.split()[1]) // count for r in ran]

        assert sizes(nodes, 1, 2) == [1, 2]
        kill_one(env, "pmi2x-dvmd")
        wait_until(lambda: sum(n["state"] == "up" for n in status(many)["nodes"]) == nodes - 1)
        assert sizes(nodes - 1, 1) == [1]
        many("grow", "-N", "2").ok()
        assert sizes(nodes + 1, 1) == [1]


def test_nothing_is_left_of_a_task_that_has_ended(local, env, raw):
    """Nor of one that is cancelled while it waits in a fence."""
    pids = [p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvmd"]

    def descriptors():
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)

    before = descriptors()
    for version in "1", "2", "1":
        local("run", "-n4", "-N1", *map(str, raw("exchange", version))).ok()
    waits = local("submit", "-n4", "-N1", *map(str, raw("late", "2", "600"))).ok().lines
    wait_until(lambda: status(local)["running"] == 1)
    local("cancel", *waits).ok()
    assert "fence" not in local("wait", *waits).failed().stderr
    wait_until(lambda: descriptors() == before)


def test_a_task_without_pmi_pays_for_none(local, env, raw, tmp_path):
    """The task's daemons make no agent, and so no shared memory, until a rank uses PMI."""
    pids = [p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvmd"]

    def daemons_with_memory():
        return sum(any("memfd:" in link for link in opened_files(pid)) for pid in pids)

    late = " ".join(map(str, raw("late", "1", "600")))
    script = f"touch here.$PMI_RANK; until [ -e go ]; do sleep 0.02; done; exec {late}"
    local("submit", "-n4", "-N2", "sh", "-c", script, cwd=tmp_path).ok()
    wait_until(lambda: len(list(tmp_path.glob("here.*"))) == 4)
    assert daemons_with_memory() == 0
    (tmp_path / "go").touch()
    wait_until(lambda: daemons_with_memory() == 2)


# ---- PMIx of a task ----


def pmix_servers(local):
    """By node: one that serves the tasks of a DVM is told its name, and the node's."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().decode().split("\0")
            if words[0] == "pmi2x-pmixd" and words[3] == "pmi2x-dvm":
                found[words[4], words[5]] = int(path.name)
    return found


@pytest.fixture
def open_mpi_hello(prefix, open_mpi):
    if not (prefix / "libexec/pmi2x/pmi2x-pmixd").exists():
        pytest.skip("pmi2x-pmixd was not built: the headers of PMIx are missing")
    return open_mpi(HELLO, "5")


def test_an_open_mpi_program(four, open_mpi_hello):
    assert four(open_mpi_hello).ok().stdout.startswith("size 4 ")


def test_a_pmix_server_that_is_killed(local, open_mpi_hello, env, tmp_path):
    """The task that it serves fails by its name, and the next has another; one directory."""
    env["TMPDIR"] = str(tmp_path)
    local("down").ok()
    local("up", "--local", "1", "--slots", "4").ok()
    directory = f"{tmp_path}/pmi2x-dvm-pmix-"

    def own():
        return [pid for (_, path), pid in pmix_servers(local).items() if path.startswith(directory)]

    wait = f"{open_mpi_hello} && touch here.$PMIX_RANK && exec sleep 600"
    number = local("submit", "-n2", "sh", "-c", wait, cwd=tmp_path).ok().lines
    wait_until(lambda: len(list(tmp_path.glob("here.*"))) == 2)
    [pid] = own()
    assert "\nSeccomp:\t2\n" in pathlib.Path(f"/proc/{pid}/status").read_text()
    os.kill(pid, signal.SIGKILL)
    local("wait", *number).failed().says("the PMIx server of node local0 has died")
    assert local("run", "-n2", open_mpi_hello).ok().stdout.startswith("size 2 ")
    assert own() != [pid]
    local("down").ok()
    wait_until(lambda: not own() and not list(tmp_path.glob("pmi2x-dvm-pmix-*")))


def test_an_open_mpi_program_where_nobody_serves_pmix(dvm, prefix, env, open_mpi, tmp_path):
    """Each rank is a singleton, and the reason is printed."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("pmi2x-dvm-head", "pmi2x-dvmd", "pmi2x-dvm-zygote"):
        shutil.copy2(prefix / "libexec/pmi2x" / name, programs)
    env["PMI2X_DVM_LIBEXEC"] = str(programs)
    dvm("up", "--local", "1", "--slots", "4").ok()
    result = dvm("run", "-n2", open_mpi(HELLO, "5"))
    words = "needs PMIx, which node local0 cannot serve: each rank runs as a singleton"
    assert result.stderr.count(words) == 1, result
    assert words not in dvm("run", "-n2", "true").ok().stderr
    dvm("down").ok()


def test_a_daemon_that_is_killed_leaves_no_files(local, open_mpi_hello, env, tmp_path):
    """The files of its PMIx server, which ends with the daemon."""
    env["TMPDIR"] = str(tmp_path)
    local("down").ok()
    local("up", "--local", "1", "--slots", "4").ok()
    local("run", "-n2", open_mpi_hello).ok()
    assert len(list(tmp_path.glob("pmi2x-dvm-pmix-*"))) == 1
    kill_one(env, "pmi2x-dvmd")
    wait_until(lambda: not list(tmp_path.glob("pmi2x-dvm-pmix-*")))
    assert not [path for _, path in pmix_servers(local) if path.startswith(str(tmp_path))]


def test_open_mpi_programs_in_an_allocation(in_allocation, open_mpi_hello, open_mpi, base):
    """Programs of Open MPI 5 and of 4.1, which looks for a step of Slurm."""
    older = open_mpi(HELLO, "Debian")
    runs = "".join(f" && pmi2x-dvm run -n4 -N2 {p}" for p in (open_mpi_hello, older))
    script = f"pmi2x-dvm up{runs}; code=$?; pmi2x-dvm down; exit $code"
    result = in_allocation(2, script).ok()
    assert result.stdout.count("size 4 ") == 2
    assert not living(base)
