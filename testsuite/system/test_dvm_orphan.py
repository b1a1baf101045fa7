# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm up --orphan: daemons and tasks that outlive their head, and wait for another."""

import json
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from dvms import dvm, env, living, status, there, wait_until
from processes import state_of, thread_states
from test_dvm_journal import ends, head_of

__all__ = ["dvm", "env", "there"]

UP = ("up", "--local", "2", "--slots", "4", "--grace", "5")


@pytest.fixture
def journal(dvm, env, tmp_path):
    """The journal of a DVM that is up; the DVM leaves nothing behind."""
    dvm(*UP, "--orphan", "60", "--journal", tmp_path / "j").ok()
    yield tmp_path / "j" / "journal"
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert not (tmp_path / "j/daemons").exists()


def lose_head(env):
    head = head_of(env)
    os.kill(head, signal.SIGKILL)
    wait_until(lambda: has_ended(head))


def has_ended(pid):
    """True: the process has ended and closed its sockets, which its threads may still
    be writing to."""
    return state_of(pid) in ("", "X") or thread_states(pid) == {"Z"}


def daemons(env):
    return {p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvmd"}


def resume(dvm, journal, *more):
    return dvm(*UP, "--resume", journal.parent, *more).ok()


def until(path, then=":"):
    """A shell script: note that it runs, and wait."""
    return f"echo $$ >> {path.parent}/ran.$PMI2X_DVM_TASK.$PMI2X_DVM_RANK; until [ -e {path} ]; do sleep 0.05; done; {then}"


def ran(tmp_path):
    """How often each rank that has been started was."""
    return {p.name: len(p.read_text().split()) for p in tmp_path.glob("ran.*")}


def test_running_tasks_go_on(dvm, env, journal, tmp_path):
    """The same processes go on; tasks that end without a head have ended."""
    dvm("submit", "--array", "1-7", "sh", "-c", until(tmp_path / "go")).ok()
    dvm("submit", "sh", "-c", until(tmp_path / "early", "exit 3")).ok()
    dvm("submit", "--array", "1-2", "sh", "-c", until(tmp_path / "go")).ok()
    wait_until(lambda: len(ran(tmp_path)) == 8)
    before = daemons(env)
    lose_head(env)
    (tmp_path / "early").touch()
    result = resume(dvm, journal, "--once")
    result.says("8 tasks still run on their nodes")
    result.says("0 are lost")
    assert daemons(env) == before
    wait_until(lambda: status(dvm)["ended"] == 1)
    lose_head(env)
    resume(dvm, journal).says("1 task has ended")
    (tmp_path / "go").touch()
    dvm("wait")
    assert (status(dvm)["ended"], status(dvm)["failed"]) == (10, 1)
    assert ends(journal) == dict.fromkeys(range(1, 11), 1)
    assert set(ran(tmp_path).values()) == {1}
    assert (journal.parent / "daemons").stat().st_mode & 0o777 == 0o600


def connects(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_daemon_that_is_killed_refuses_connections_when_its_ranks_have_ended(
    dvm, env, journal, tmp_path
):
    """The next head takes that for proof, and runs their tasks elsewhere."""
    dvm("submit", "--array", "1-8", "sh", "-c", until(tmp_path / "go")).ok()
    wait_until(lambda: len(ran(tmp_path)) == 8)
    lines = (journal.parent / "daemons").read_text().splitlines()
    ports = [int(line.split()[3]) for line in lines if line.startswith("node ")]
    zygotes = {p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvm-zygot"}
    lose_head(env)
    try:
        for zygote in zygotes:
            os.kill(zygote, signal.SIGSTOP)
        for daemon in daemons(env):
            os.kill(daemon, signal.SIGKILL)
            wait_until(lambda daemon=daemon: has_ended(daemon))
        assert len(ports) == 2 and all(map(connects, ports))
    finally:
        for zygote in zygotes:
            os.kill(zygote, signal.SIGCONT)
    wait_until(lambda: not any(map(connects, ports)))
    ranks = [int(path.read_text()) for path in tmp_path.glob("ran.*")]
    assert all(map(has_ended, ranks))
    resume(dvm, journal)
    (tmp_path / "go").touch()
    dvm("wait").ok()


def test_head_that_was_taken_over_leaves_daemons_to_the_next(dvm, env, journal, tmp_path):
    """Both heads live: the first one ends nothing of what the second one has."""
    dvm("submit", "--array", "1-3", "sh", "-c", until(tmp_path / "go")).ok()
    wait_until(lambda: len(ran(tmp_path)) == 3)
    first, before = head_of(env), daemons(env)
    result = resume(dvm, journal, "--name", "b", "--take-over", "--once")
    result.says("3 tasks still run on their nodes")
    wait_until(lambda: has_ended(first))
    assert daemons(env) == before
    (tmp_path / "go").touch()
    dvm("wait").ok()
    assert (status(dvm)["ended"], status(dvm)["failed"]) == (3, 0)
    assert set(ran(tmp_path).values()) == {1}


def as_many_as_fit(dvm, tmp_path, tasks):
    """How many run when all slots are taken; 0: not yet."""
    now, running = status(dvm), len(ran(tmp_path))
    fit = min(tasks, sum(node["cores"] for node in now["nodes"]))
    return running if now["running"] == running == fit else 0


def test_a_batch_whose_tasks_outlive_its_head(dvm, env, prefix, tmp_path):
    """The same command takes up the running tasks: no line is run twice."""
    (tmp_path / "lines").write_text(f"{until(tmp_path / 'go')}\n" * 8)
    command = (
        "batch", "--local", "2", "--orphan", "60", "--journal", tmp_path / "j", tmp_path / "lines",
    )  # fmt: skip
    first = subprocess.Popen(
        [prefix / "bin/pmi2x-dvm", *command], env=env, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: ran(tmp_path))
    running = wait_until(lambda: as_many_as_fit(dvm, tmp_path, 8))
    before = daemons(env)
    lose_head(env)
    assert first.wait(30) == 1
    assert daemons(env) == before
    (tmp_path / "go").touch()
    still = "task still runs on its nodes" if running == 1 else "tasks still run on their nodes"
    dvm(*command).ok().says(f"{running} {still}")
    assert ran(tmp_path) == {f"ran.{i}.0": 1 for i in range(1, 9)}
    assert ends(tmp_path / "j/journal") == dict.fromkeys(range(1, 9), 1)
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_batch_orphan_needs_a_journal(dvm):
    """Standard input has none by itself."""
    dvm("batch", "--local", "1", "--orphan", "9", "-", stdin="").failed().says("--journal DIR")
    dvm("run", "--orphan", "9", "true").failed().says("options of up and batch")


def test_an_mpi_program_over_nodes(dvm, env, journal, raw, tmp_path):
    """Three ranks wait for one in a fence while there is no head."""
    use = " ".join(map(str, raw("exchange", "2")))
    script = f"[ $PMI2X_DVM_RANK = 3 ] && {{ {until(tmp_path / 'go')}; }}; exec {use}"
    dvm("submit", "-n4", "-N2", "sh", "-c", script).ok()
    wait_until(lambda: ran(tmp_path))
    lose_head(env)
    resume(dvm, journal).says("1 task still runs on its nodes")
    (tmp_path / "go").touch()
    dvm("wait").ok()
    assert ran(tmp_path) == {"ran.1.3": 1}
    assert ends(journal) == {1: 1}


def test_no_head_comes(dvm, env, tmp_path):
    """Running tasks get SIGTERM, and nothing is left."""
    dvm(*UP, "--orphan", "1", "--journal", tmp_path / "j").ok()
    trap = f"trap 'echo asked > {tmp_path}/asked; exit' TERM; "
    dvm("submit", "sh", "-c", trap + until(tmp_path / "go")).ok()
    wait_until(lambda: ran(tmp_path))
    lose_head(env)
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert (tmp_path / "asked").exists()
    resume(dvm, tmp_path / "j/journal").says("1 of these had been started")
    wait_until(lambda: ran(tmp_path) == {"ran.1.0": 2})
    dvm("down", "--cancel").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_a_daemon_that_is_lost_with_the_head(dvm, env, journal, tmp_path):
    """Another is started; what ran there is run again, and the rest goes on."""
    dvm("submit", "--array", "1-8", "sh", "-c", until(tmp_path / "go")).ok()
    wait_until(lambda: len(ran(tmp_path)) == 8)
    before = daemons(env)
    os.kill(min(before), signal.SIGKILL)
    wait_until(lambda: len(daemons(env)) == 1)
    lose_head(env)
    result = resume(dvm, journal)
    result.says("4 of these had been started")
    result.says("4 tasks still run on their nodes")
    assert len(daemons(env)) == 2
    assert max(before) in daemons(env)
    wait_until(lambda: sum(ran(tmp_path).values()) == 12)
    (tmp_path / "go").touch()
    dvm("wait").ok()
    assert ends(journal) == dict.fromkeys(range(1, 9), 1)


def test_more_nodes_than_wait(dvm, env, journal):
    lose_head(env)
    dvm("up", "--local", "3", "--slots", "4", "--resume", journal.parent).ok()
    assert [n["state"] for n in status(dvm)["nodes"]] == ["up"] * 3
    assert dvm("submit", "--wait", "-N3", "-n3", "true").ok()


def test_cancelled_tasks_end(dvm, env, journal, tmp_path):
    """A cancelled task does not end before another head comes, which cancels it again."""
    trap = f"trap '[ -e {tmp_path}/deaf ] || exit 5' TERM; "
    (tmp_path / "deaf").touch()
    dvm("submit", "sh", "-c", trap + until(tmp_path / "go")).ok()
    wait_until(lambda: ran(tmp_path))
    dvm("cancel", "1").ok()
    lose_head(env)
    resume(dvm, journal)
    wait_until(lambda: ends(journal) == {1: 1})
    assert set(ran(tmp_path).values()) == {1}


def test_one_head_at_a_time(dvm, env, journal):
    result = dvm(*UP, "--name", "b", "--resume", journal.parent).failed()
    result.says("is in use: another DVM")
    assert status(dvm)["nodes"][0]["state"] == "up"


def test_unreadable_list_of_daemons_is_an_error(dvm, env, journal, tmp_path):
    """The daemons wait on, for a head that finds them."""
    dvm("submit", "sh", "-c", until(tmp_path / "go")).ok()
    wait_until(lambda: ran(tmp_path))
    lose_head(env)
    where = journal.parent / "daemons"
    text = where.read_text()
    for wrong, says in (
        (text.replace("pmi2x-dvm ", "pmi2x-dvm 99", 1), "was written by another version"),
        (text.replace("node 1 ", "node 7 "), "is damaged"),
        (text[: text.index("secret")], "is damaged"),
    ):
        where.write_text(wrong)
        dvm(*UP, "--resume", journal.parent).failed().says(says)
    where.write_text(text)
    where.chmod(0o644)
    dvm(*UP, "--resume", journal.parent).failed().says("can be read by other users")
    where.chmod(0o600)
    resume(dvm, journal).says("1 task still runs on its nodes")


def test_a_head_of_another_dvm(dvm, env, journal, tmp_path):
    """Without the secret it is nobody: others are started, and these are not its own."""
    lose_head(env)
    before = daemons(env)
    where = journal.parent / "daemons"
    text = where.read_text()
    secret = text.split("secret ")[1].split()[0]
    where.write_text(text.replace(secret, secret[::-1]))
    resume(dvm, journal)
    assert len(daemons(env) - before) == 2
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert [n["state"] for n in status(dvm)["nodes"]] == ["up"] * 2


def test_an_orphan_needs_a_journal(dvm):
    dvm(*UP, "--orphan", "5").failed().says("give --journal DIR, too")
    dvm(*UP, "--orphan", "soon").failed().says("--orphan must be a number")


def check_heads(dvm, env, journal, tmp_path, tasks, moments):
    """Without --once, for which a start that was written and not sent counts as one."""
    work = f"sleep 0.02; echo $$ >> {tmp_path}/ran.$PMI2X_DVM_TASK"
    dvm("submit", "--array", f"1-{tasks}", "sh", "-c", work).ok()
    for moment in moments:
        wait_until(lambda: status(dvm)["ended"] >= moment, 120)
        lose_head(env)
        resume(dvm, journal)
    dvm("wait").ok().says(" 0 failed")
    assert ends(journal) == dict.fromkeys(range(1, tasks + 1), 1)
    assert list(ran(tmp_path).values()) == [1] * tasks


def test_heads_that_are_killed(dvm, env, journal, tmp_path):
    """Whenever it is, each task is run once, and ends once."""
    check_heads(dvm, env, journal, tmp_path, 300, (50, 120, 200))


@pytest.mark.wide
def test_heads_that_are_killed_at_20_moments(dvm, env, journal, tmp_path):
    check_heads(dvm, env, journal, tmp_path, 10000, range(300, 9800, 475))


ALLOCATION = """
export PMI2X_DVM_DIR={base}
head() {{
    for process in /proc/[0-9]*; do
        [ "$(cat $process/comm)" = pmi2x-dvm-head ] &&
            grep -qz "^PMI2X_DVM_DIR={base}$" $process/environ && echo ${{process#/proc/}}
    done 2>/dev/null
}}
# As the function of that name in Python.
has_ended() {{
    [ "$(ls /proc/$1/task)" = $1 ] || return
    sed 's/.*) //' /proc/$1/stat | grep -q "^[ZX]"
}}
pmi2x-dvm up --journal {base}/j --orphan 60
pmi2x-dvm submit -n4 -N4 sh -c '{script}'
pmi2x-dvm submit --array 1-40 sh -c '{work}'
until [ -e {base}/ran.1.3 ] && [ -e {base}/ran.5.0 ]; do sleep 0.05; done
pid=$(head)
kill -9 $pid
while [ -e /proc/$pid ] && ! has_ended $pid; do sleep 0.05; done
pmi2x-dvm up --resume {base}/j --once
touch {base}/go
pmi2x-dvm wait
pmi2x-dvm status
pmi2x-dvm down
"""


def test_a_head_that_is_killed_in_an_allocation(in_allocation, raw, base):
    """Daemons of an srun step, and a task that is in a fence over four nodes."""
    use = " ".join(map(str, raw("exchange", "2")))
    script = f"[ $PMI2X_DVM_RANK = 3 ] && {{ {until(base / 'go')}; }}; exec {use}"
    text = ALLOCATION.format(base=base, script=script, work=until(base / "go"))
    result = in_allocation(4, text).ok()
    result.says("0 are lost")
    result.says("5 tasks still run on their nodes")
    assert len([line for line in result.lines if line.split()[1:2] == ["up"]]) == 4
    assert ends(base / "j/journal") == dict.fromkeys(range(1, 42), 1)
    assert list(ran(base).values()) == [1] * 41
    wait_until(lambda: not living(base))  # the head did not start them


def test_a_spawn_whose_head_is_lost(dvm, env, journal, raw, tmp_path):
    """The spawn fails, and its caller goes on; spawned tasks end with the next head."""
    child, pid = tmp_path / "child", tmp_path / "pid"
    child.write_text(f"#!/bin/sh\necho $$ >{pid}.new; mv {pid}.new {pid}\nexec sleep 600\n")
    child.chmod(0o755)
    [parent] = dvm("submit", "--pmi", *map(str, raw("spawn", child))).ok().lines
    wait_until(pid.exists)
    lose_head(env)
    resume(dvm, journal).says("still run on their nodes")
    dvm("wait", parent).ok()
    out = json.loads(dvm("show", "--json", parent).ok().stdout)["out"]
    assert "spawn answered" in out and "rc 0" not in out
    wait_until(lambda: not pathlib.Path(f"/proc/{pid.read_text().strip()}").exists())
