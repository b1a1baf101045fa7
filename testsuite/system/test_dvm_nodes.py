# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm over several nodes: clients that are not on the head's.

Its daemons are processes of this machine. A client is on another node when it does not
have the head's unix socket.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys

import pytest

from dvms import dvm, env, living, local, status, there, wait_until
from harness import run
from processes import opened_files

__all__ = ["dvm", "env", "local", "there"]

JOB = "7700077"
# Starts as many processes as srun would, each with the standard input and a number.
LAUNCHER = """#!/bin/sh
! [ -e $0.broken ] || { echo no nodes today >&2; exit 3; }
n=$PMI2X_DVM_NODES
input=$(cat)
while [ $n -gt 0 ]; do
    n=$((n - 1))
    printf '%s\\n\\n' "$input" | SLURM_PROCID=$n SLURMD_NODENAME=n$n "$@" &
done
wait
"""


@pytest.fixture
def launcher(tmp_path):
    path = tmp_path / "launch"
    path.write_text(LAUNCHER)
    path.chmod(0o755)
    return path


@pytest.fixture
def client(prefix, env, tmp_path):
    """A command with other variables."""
    return lambda more, *arguments: run(
        [prefix / "bin/pmi2x-dvm", *arguments], env={**env, **more}, cwd=tmp_path
    )


@pytest.fixture
def up(client, dvm, env, launcher):
    """A DVM of two nodes, as in a job; leaves nothing behind. The file by which clients
    on other nodes find it."""
    job = {"SLURM_JOB_ID": JOB}
    client(job, "up", "-N2", "--slots", "4", "--launcher", f"{launcher}").ok()
    yield pathlib.Path(env["PMI2X_DVM_DIR"]) / f"job{JOB}.address"
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


@pytest.fixture(params=["directory", "home", "file"])
def elsewhere(request, up, tmp_path):
    """Environments of a client on another node that shares a directory with this one."""
    names = {"directory": "shared", "home": "home/.pmi2x-dvm", "file": "any"}
    shared = tmp_path / names[request.param]
    shared.mkdir(mode=0o700, parents=True)
    file = shutil.copy(up, shared)
    by = {"directory": {"PMI2X_DVM_DIR": str(shared)},
          "home": {"PMI2X_DVM_DIR": "", "HOME": str(tmp_path / "home")},
          "file": {"PMI2X_DVM_DIR": str(tmp_path / "empty"), "PMI2X_DVM": file}}  # fmt: skip
    base = pathlib.Path(f"/tmp/pmi2x-dvm-{os.getuid()}")  # "home" makes it
    was_there = base.exists()
    yield by[request.param]
    if not was_there:
        with contextlib.suppress(OSError):
            base.rmdir()


def test_clients_on_other_nodes(client, up, elsewhere, tmp_path):
    assert stat.S_IMODE(up.stat().st_mode) == 0o600
    result = client(elsewhere, "run", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (result.code, result.stdout, result.stderr) == (7, "out\n", "err\n")
    long = tmp_path / "long"  # of several frames
    long.write_text("".join(f'{{"argv":["echo","{i:30000}"]}}\n' for i in range(100)))
    client(elsewhere, "submit", "--wait", "--json", long).ok().says("100 done")
    assert json.loads(client(elsewhere, "status", "--json").ok().stdout)["dvm"] == f"job{JOB}"
    client(elsewhere, "down").ok()
    assert not up.exists()
    client(elsewhere, "ps").failed().says("no DVM" if "PMI2X_DVM" not in elsewhere else "refused")


CLIENT = """
import pmi2x_dvm

with pmi2x_dvm.connect() as dvm:
    assert dvm.submit(["sh", "-c", "exit 3"]).result().code == 3
    results = list(dvm.map([["printf", str(i) + " " * 30000] for i in range(100)]))
    assert not any(r.code for r in results) and len(results) == 100
    assert dvm.status()["ended"] == 101
"""


def test_python_on_another_node(prefix, env, elsewhere):
    python = {"PYTHONPATH": str(prefix / "share/pmi2x/python"), **env, **elsewhere}
    run([sys.executable, "-B", "-c", CLIENT], env=python).ok()


def test_a_client_on_another_node_that_is_killed(prefix, env, up, dvm):
    """The task of the client is ended."""
    run_there = [prefix / "bin/pmi2x-dvm", "run", "sleep", "600"]
    child = subprocess.Popen(run_there, env={**env, "PMI2X_DVM": str(up)})
    wait_until(lambda: status(dvm)["running"] == 1)
    child.kill()
    child.wait()
    wait_until(lambda: status(dvm)["ended"] == 1)


def test_a_file_that_others_can_read(client, dvm, up):
    up.chmod(0o640)
    client({"PMI2X_DVM": str(up)}, "ps").failed().says("no other user may read")
    dvm("ps").ok()


def secret_of(file):
    return next(line for line in file.read_text().splitlines() if "secret" in line)


def test_another_user_on_another_node(prefix, env, up, dvm, ordinary_user, public):
    """He cannot read the file, and is not heard without the secret."""
    for path in up.parents[:3]:
        path.chmod(0o755)
    assert run([*ordinary_user, "cat", up]).code
    guess = public / "guess"
    guess.write_text(up.read_text().replace(secret_of(up), "secret " + "0" * 64))
    guess.chmod(0o600)
    shutil.chown(guess, "daemon")
    base = public / "his"
    base.mkdir(mode=0o700)
    shutil.chown(base, "daemon")
    his = {**env, "PMI2X_DVM_DIR": str(base), "PMI2X_DVM": str(guess)}
    ask = [*ordinary_user, prefix / "bin/pmi2x-dvm", "ps"]
    run(ask, env=his).failed().says("another DVM answers there")
    run(ask, env={**his, "PMI2X_DVM": str(up)}).failed().says("the file must be yours")
    up.parent.chmod(0o700)
    assert dvm("status").ok().lines[0].startswith(f"DVM job{JOB}")


UNPROVED_MAX = 256 + 2  # at the head: STRANGERS_MAX, and one for each node


def head_of(address):
    words = [line.split() for line in address.read_text().splitlines()]
    return next((w[1], int(w[2])) for w in words if w[:1] == ["head"] and ":" not in w[1])


def test_idle_connections_of_strangers_shut_out_nobody(client, dvm, env, up):
    """The oldest goes when there are too many; the log has their address once."""
    with contextlib.ExitStack() as held:
        for _ in range(UNPROVED_MAX + 40):
            held.enter_context(socket.create_connection(head_of(up)))
        there = {"PMI2X_DVM": str(shutil.copy(up, up.parent.parent))}
        client(there, "run", "true").ok()
        dvm("grow", "-N1").ok()
        assert states(dvm)["n0"] == "up"
        log = (up.parent / f"job{JOB}" / "log").read_text()
        assert log.count("refused a connection from") == 1
        assert "too many connections wait for authentication" in log


PROBE_S = 15  # TCP_KEEPIDLE of a connection that is to end in a minute
KEEPALIVE = "02"  # its timer, in /proc/net/tcp


def probe_in(pid):
    """Seconds until a connection of a process sends a probe; None: it has no such timer."""
    tick = os.sysconf("SC_CLK_TCK")
    held = opened_files(pid)
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        timer, when = fields[5].split(":")
        if f"socket:[{fields[9]}]" in held and timer == KEEPALIVE:
            return int(when, 16) / tick
    return None


@pytest.mark.parametrize("language", ["c", "python"])
def test_client_on_another_node_probes_its_head(prefix, env, up, dvm, tmp_path, language):
    """The client notices within a minute that the head's machine has died, and not
    after two hours."""
    script = "import pmi2x_dvm\npmi2x_dvm.connect().submit(['sleep', '600']).result()"
    command = {
        "c": [prefix / "bin/pmi2x-dvm", "run", "sleep", "600"],
        "python": [sys.executable, "-B", "-c", script],
    }
    there = {"PMI2X_DVM": str(shutil.copy(up, up.parent.parent))}
    path = {"PYTHONPATH": str(prefix / "share/pmi2x/python")}
    up.unlink()
    child = subprocess.Popen(command[language], env={**env, **there, **path})
    wait_until(lambda: status(dvm)["running"] == 1)
    wait_until(lambda: (probe_in(child.pid) or 99) <= PROBE_S)
    child.kill()
    child.wait()


# ---- nodes that go ----


def states(dvm):
    return {n["name"]: n["state"] for n in status(dvm)["nodes"]}


def test_a_node_leaves(dvm, up, tmp_path):
    """When what runs there has ended."""
    go = tmp_path / "go"
    work = f"until [ -e {go} ]; do sleep 0.05; done"
    number = dvm("submit", "-n2", "-N2", "sh", "-c", work).ok().lines
    wait_until(lambda: status(dvm)["running"] == 1)
    assert dvm("shrink", "n1").ok().lines == ["1 node leaves when nothing runs there"]
    assert states(dvm) == {"n0": "up", "n1": "leaving"}
    dvm("shrink", "-N1").failed().says("that would remove all nodes")
    go.touch()
    dvm("wait", *number).ok()
    wait_until(lambda: states(dvm)["n1"] == "left")
    assert dvm("run", "sh", "-c", "echo $SLURMD_NODENAME").ok().lines == ["n0"]


def test_task_over_the_grace_of_a_leaving_node_is_moved(dvm, up):
    work = "[ $PMI2X_DVM_INSTANCE = 1 ] || exec sleep 600; echo on $SLURMD_NODENAME"
    numbers = dvm("submit", "-c4", "--array", "1-2", "sh", "-c", work).ok().lines
    wait_until(lambda: status(dvm)["running"] == 2)
    dvm("shrink", "--grace", "0", "n1").ok()
    wait_until(lambda: states(dvm)["n1"] == "left")
    shown = [json.loads(dvm("show", n).ok().stdout) for n in numbers]
    stays, moves = sorted(shown, key=lambda t: t["instance"])
    assert (stays["state"], moves["state"]) == ("running", "queued")
    dvm("cancel", str(stays["id"])).ok()
    dvm("wait", str(moves["id"])).ok()
    assert json.loads(dvm("show", str(moves["id"])).stdout)["out"] == "on n0\n"


# ---- nodes that do not come, or later ----


def test_one_of_the_first_does_not_come(client, launcher, env):
    """The launcher goes on, as srun does with -K0; the DVM is given up."""
    launcher.write_text(launcher.read_text().replace("n=$PMI2X_DVM_NODES", "n=1"))
    few = "up", "-N2", "--within", "1", "--launcher", str(launcher)
    result = client({"SLURM_JOB_ID": JOB}, *few).failed()
    result.says("1 of 2 nodes were up 1 s after the first")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_nodes_that_come_later(local, hello):
    """A task that is too large waits for none; afterwards it has ranks on all of them."""
    local("run", "-N4", "-n4", hello).failed().says("fit on 2 nodes")
    assert local("grow", "-N", "2").ok().lines == ["2 nodes more are up"]
    assert states(local) == {f"local{i}": "up" for i in range(4)}
    assert "size 4 " in local("run", "-N4", "-n4", hello).ok().stdout
    local("shrink", "local2").ok()
    wait_until(lambda: states(local)["local2"] == "left")
    local("grow", "-N", "1").ok()
    assert states(local) == {f"local{i}": "left" if i == 2 else "up" for i in range(5)}
    assert "size 4 " in local("run", "-N4", "-n4", hello).ok().stdout
    local("grow", "local7").failed().says("only a DVM in a Slurm job can grow by a job or by names")
    local("grow", "-N1", "local7").failed()
    local("grow").failed().says("their number with -N")


def test_nodes_that_cannot_come(dvm, up, launcher):
    """Nothing changes, and others can."""
    broken = pathlib.Path(f"{launcher}.broken")
    broken.touch()
    result = dvm("grow", "-N2").failed()
    result.says("exit code 3, before all nodes were up\nno nodes today")
    broken.unlink()
    assert len(status(dvm)["nodes"]) == 2
    dvm("grow", "-N2").ok()
    assert [n["state"] for n in status(dvm)["nodes"]] == ["up"] * 4
    dvm("run", "-N4", "-n4", "true").ok()


@pytest.mark.parametrize("who", ["launcher", "daemon"])
def test_one_ends_before_all_have_come(who, prefix, dvm, up, launcher, env):
    """Nodes that have come leave; earlier nodes stay."""
    before, text = living(env["PMI2X_DVM_DIR"]), launcher.read_text()
    end = f"until [ -e {launcher}.end ]; do sleep 0.05; done; exit 4"
    launcher.write_text(text.replace("NODES", "NODES; : $((n -= 1))").replace("wait", end))
    child = subprocess.Popen([prefix / "bin/pmi2x-dvm", "grow", "-N2"], env=env)
    wait_until(lambda: len(living(env["PMI2X_DVM_DIR"])) == len(before) + 2)
    dvm("grow", "-N1").failed().says("is growing already")
    if who == "launcher":
        pathlib.Path(f"{launcher}.end").touch()
    else:
        new = {p: n for p, n in living(env["PMI2X_DVM_DIR"]).items() if p not in before}
        os.kill(next(p for p, n in new.items() if n == "pmi2x-dvmd"), signal.SIGKILL)
    assert child.wait() == 1
    wait_until(lambda: living(env["PMI2X_DVM_DIR"]) == before)
    launcher.write_text(text)
    wait_until(lambda: dvm("grow", "-N1").code == 0)
    dvm("run", "-N3", "-n3", "true").ok()


GROWING = """
export PMI2X_DVM_DIR={base}
until_there_is() {{ until pmi2x-dvm status | grep -qw $1; do sleep 0.05; done; }}
pmi2x-dvm up -N2 && pmi2x-dvm grow -N1 || exit
pmi2x-dvm run -N3 -n3 {program}
first=$(pmi2x-dvm run sh -c 'echo $SLURMD_NODENAME')
pmi2x-dvm shrink $first
until_there_is left
pmi2x-dvm grow $first
pmi2x-dvm run -N3 -n3 sh -c 'echo at $SLURMD_NODENAME'
pmi2x-dvm grow $first
pmi2x-dvm grow -N1
other=$(sbatch --parsable -x $SLURM_JOB_NODELIST -N1 -o /dev/null --wrap 'sleep 600')
until [ "$(squeue -h -o %T -j $other)" = RUNNING ]; do sleep 0.1; done
SQUEUE_PARTITION=none pmi2x-dvm grow --jobid $other
pmi2x-dvm run -N4 -n4 {program}
scancel $other
until_there_is lost
pmi2x-dvm run -N3 -n3 echo still here
pmi2x-dvm down
"""


def test_growing_in_an_allocation(in_allocation, hello, base):
    """By a node that the job has beside them, by one that had left, and by another job's."""
    result = in_allocation(3, GROWING.format(base=base, program=hello)).ok()
    assert result.lines.count("1 node more is up") == 3
    assert "size 3 " in result.stdout and "size 4 " in result.stdout
    assert len({line for line in result.lines if line.startswith("at ")}) == 3
    result.says("is here already").says("srun: error: ")
    assert result.lines.count("still here") == 3
    assert not living(base)


TWO = """
export PMI2X_DVM_DIR={base}
pmi2x-dvm up --name first || exit
pmi2x-dvm up --name second && exit 3
pmi2x-dvm up --name second --share || exit
PMI2X_DVM=second pmi2x-dvm run -N2 -n2 echo of the second
PMI2X_DVM=second pmi2x-dvm down
PMI2X_DVM=first pmi2x-dvm run -N2 -n2 echo of the first
PMI2X_DVM=first pmi2x-dvm down
"""


def test_second_dvm_of_a_job_needs_share(in_allocation, base):
    result = in_allocation(2, TWO.format(base=base)).ok()
    result.says("another DVM of this job is on this node").says("--share")
    assert result.lines.count("of the first") == 2
    assert result.lines.count("of the second") == 2
    assert not living(base)


def test_connection_that_is_no_client_is_closed(up, dvm):
    """Only that connection is closed."""
    port = next(line for line in up.read_text().splitlines() if "head" in line).split()[2]
    with socket.create_connection(("127.0.0.1", int(port))) as s:
        s.sendall(b'{"op":"status"}\n')
        with contextlib.suppress(ConnectionResetError):
            assert s.recv(1000) == b""
    dvm("status").ok()
