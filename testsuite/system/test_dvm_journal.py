# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: heads that are lost, others that go on with their journal; its reports."""

import collections
import contextlib
import csv
import io
import json
import os
import pathlib
import resource
import signal
import struct
import subprocess

import pytest

from dvms import dvm, env, kill_one, living, status, there, wait_until

__all__ = ["dvm", "env", "there"]

HEADER = 12
RECORD_HEADER = 16  # mark, checksum, length of the body, checksum of the record before
VERSION_AT = 8
SUBMIT, END = 3, 6
UP = ("up", "--local", "2", "--slots", "4")


def records(journal):
    """Type, task and offset of its records, all of which are whole."""
    data = journal.read_bytes()
    at = HEADER
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        kind, task = struct.unpack_from("<BQ", data, at + RECORD_HEADER)
        yield kind, task, at
        at += RECORD_HEADER + length


def ends(journal):
    """How often each task that was submitted has ended."""
    count = collections.Counter()
    for kind, task, _ in records(journal):
        if kind == SUBMIT:
            count[task] += 0
        elif kind == END:
            count[task] += 1
    return count


@pytest.fixture
def journal(dvm, env, tmp_path):
    """The journal of a DVM that is up; the DVM leaves nothing behind."""
    dvm(*UP, "--journal", tmp_path / "j").ok()
    yield tmp_path / "j" / "journal"
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def kill_head(env):
    kill_one(env, "pmi2x-dvm-head")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def resume(dvm, journal, *more):
    return dvm(*UP, "--resume", journal.parent, *more).ok()


def test_heads_that_are_killed(dvm, env, journal, tmp_path):
    """Whenever it is: each task ends, and once."""
    ran = tmp_path / "ran"
    ran.mkdir()
    work = f"sleep 0.02; echo x >> {ran}/$PMI2X_DVM_TASK"
    ids = dvm("submit", "--array", "1-500", "sh", "-c", work).ok().lines
    for moment in 50, 200, 350:
        wait_until(lambda: status(dvm)["ended"] >= moment)
        kill_head(env)
        resume(dvm, journal).says("tasks have ended")
    dvm("wait").ok().says(" 0 failed")
    assert ends(journal) == {int(i): 1 for i in ids}
    assert sorted(p.name for p in ran.iterdir()) == sorted(ids)
    again = sum(p.read_text() != "x\n" for p in ran.iterdir())
    assert again <= 3 * 8
    assert status(dvm)["ended"] == 500
    assert journal.stat().st_mode & 0o777 == 0o600


def test_running_tasks_are_run_again_or_lost(dvm, env, journal, tmp_path):
    go = tmp_path / "go"
    work = f"until [ -e {go} ]; do sleep 0.05; done; exit $PMI2X_DVM_INSTANCE"
    dvm("submit", "sh", "-c", work).ok()
    wait_until(lambda: status(dvm)["running"] == 1)
    kill_head(env)
    resume(dvm, journal).says("1 of these had been started")
    wait_until(lambda: status(dvm)["running"] == 1)
    kill_head(env)
    go.touch()
    resume(dvm, journal)
    dvm("wait", "1").failed().says("exit status 2")
    dvm("submit", "sleep", "600").ok()
    wait_until(lambda: status(dvm)["running"] == 1)
    kill_head(env)
    resume(dvm, journal, "--once").says("1 is lost")
    assert "the task was running when the head was lost" in dvm("show", "2").ok().stdout
    assert ends(journal) == {1: 1, 2: 1}


def test_a_task_of_run_is_not_run_again(dvm, env, prefix, journal):
    child = subprocess.Popen(
        [prefix / "bin/pmi2x-dvm", "run", "sleep", "600"],
        env=env,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: status(dvm)["running"] == 1)
    kill_head(env)
    assert child.wait(30) == 1
    resume(dvm, journal)
    assert status(dvm)["running"] == status(dvm)["queued"] == 0


def test_one_head_at_a_time(dvm, journal):
    for option in "--journal", "--resume":
        result = dvm(*UP, "--name", "b", option, journal.parent).failed()
        result.says("is in use: another DVM")


def test_a_journal_that_is_there_is_not_begun_again(dvm, env, journal):
    dvm("run", "true").ok()
    kill_head(env)
    dvm(*UP, "--journal", journal.parent).failed().says("continue with --resume")
    resume(dvm, journal).says("1 task has ended, 0 continue")


def test_no_journal(dvm, tmp_path):
    dvm(*UP, "--resume", tmp_path / "none").failed().says("there is nothing to resume")
    dvm(*UP, "--resume", "a", "--journal", "b").failed().says("give one of the two")


def head_of(env):
    return next(p for p, n in living(env["PMI2X_DVM_DIR"]).items() if "head" in n)


def test_a_full_disk(dvm, env, journal, tmp_path):
    """Running tasks go on, and the pending records are written when there is room."""
    go = tmp_path / "go"
    dvm("submit", "sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done").ok()
    wait_until(lambda: status(dvm)["running"] == 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = journal.stat().st_size
    resource.prlimit(head_of(env), resource.RLIMIT_FSIZE, (size + 10, limits[1]))
    result = dvm("submit", "--array", "1-10", "true").failed()
    result.says("the journal cannot be written: File too large: no task of the")
    assert status(dvm)["queued"] == 0
    assert "journal cannot be written: File too large" in dvm("status").ok().stdout
    go.touch()
    wait_until(lambda: status(dvm)["running"] == 0)
    assert ends(journal) == {1: 0}
    resource.prlimit(head_of(env), resource.RLIMIT_FSIZE, limits)
    wait_until(lambda: ends(journal) == {1: 1})
    assert status(dvm)["journal"] == "written"
    dvm("submit", "--wait", "--array", "1-10", "true").ok()
    assert ends(journal) == dict.fromkeys(range(1, 12), 1)


def damage(dvm, env, journal):
    """Damages the first end of nine tasks, and cuts a record; where, and what is left."""
    dvm("submit", "--wait", "--array", "1-9", "true").ok()
    kill_head(env)
    at = next(at for kind, _, at in records(journal) if kind == END)
    data = bytearray(journal.read_bytes())
    data[at + 30] ^= 1
    journal.write_bytes(data + b"_DVJ of a record that was cut")
    return at, data


def test_a_damaged_journal(dvm, env, journal):
    at, data = damage(dvm, env, journal)
    result = resume(dvm, journal)
    result.says(f"bytes at offset {at} are damaged")
    result.says(f"cut off at offset {len(data)}")
    result.says("8 tasks have ended, 1 continues")
    assert (journal.parent / "journal.damaged").read_bytes().startswith(data)
    dvm("wait").ok()
    assert ends(journal) == dict.fromkeys(range(1, 10), 1)


# ---- reports ----


def report(dvm, journal):
    return json.loads(dvm("report", "--json", journal.parent).ok().stdout)


def test_a_report(dvm, env, journal):
    """The report is the same while the head is up and when it has gone."""
    dvm("submit", "--wait", "--array", "1-20", "-J", "many", "true").ok()
    dvm("submit", "--wait", "sh", "-c", "sleep 0.5; exit 3").failed()
    dvm("submit", "--wait", "-n", "5", "sh", "-c", "[ $PMI2X_DVM_RANK != 4 ]").failed()
    dvm("submit", "sleep", "600").ok()
    wait_until(lambda: status(dvm)["running"] == 1)
    dvm("cancel", "23").ok()
    dvm("wait", "23").failed()
    dvm("submit", "-c", "4", "sleep", "600").ok()
    wait_until(lambda: status(dvm)["running"] == 1)
    living_report = report(dvm, journal)
    tasks = living_report["tasks"]
    assert (tasks["done"], tasks["failed"], tasks["cancelled"]) == (20, 2, 1)
    assert (tasks["running"], tasks["queued"], tasks["earlier"]) == (1, 0, 0)
    assert (living_report["nodes"], living_report["slots"]) == (2, 8)
    assert living_report["failures"]["codes"] == {"1": 1, "3": 1}
    assert sum(living_report["failures"]["nodes"].values()) == 2
    slowest = [t["seconds"] for t in living_report["slowest"]]
    assert slowest == sorted(slowest, reverse=True)
    assert slowest[0] >= 0.5
    assert 0 < living_report["used"] <= 1
    assert 0 < living_report["setup"]["median"] <= living_report["setup"]["p99"]
    kill_head(env)
    assert report(dvm, journal) == living_report
    assert [t["command"] for t in living_report["failed"]] == [
        "sh -c sleep 0.5; exit 3",
        "sh -c [ $PMI2X_DVM_RANK != 4 ]",
    ]
    table = dvm("report", journal.parent).ok().stdout
    assert "sh -c sleep 0.5; exit 3" in table
    assert " 20 done, 2 failed, 1 cancelled, 1 running, 0 queued\n" in table


def test_a_report_as_csv(dvm, journal):
    dvm("submit", "--wait", "-J", 'a "b", c', "-n", "3", "sh", "-c", "exit 3").failed()
    dvm("submit", "--wait", "true").ok()
    text = dvm("report", "--csv", journal.parent).ok().stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["id"], r["state"], r["slots"], r["code"]) for r in rows] == [
        ("1", "failed", "3", "3"),
        ("2", "done", "1", "0"),
    ]
    assert rows[0]["name"] == 'a "b", c'
    assert [r["command"] for r in rows] == ["sh -c exit 3", "true"]
    names = [n["name"] for n in status(dvm)["nodes"]]
    for row in rows:
        times = [float(row[k]) for k in ("submitted", "placed", "started", "ended")]
        assert times == sorted(times)
        assert row["node"] in names


def test_a_report_of_a_damaged_journal(dvm, env, journal):
    at, data = damage(dvm, env, journal)
    result = dvm("report", "--json", journal.parent).failed()
    result.says(f"bytes at offset {at} are damaged")
    result.says(f"cut off at offset {len(data)}")
    assert result.code == 1
    assert json.loads(result.stdout)["tasks"]["done"] == 8


def test_a_report_of_no_journal(dvm, tmp_path):
    dvm("report", tmp_path / "none").failed().says("there is no journal in")
    dvm("report", tmp_path).failed().says("there is no journal in")
    dvm("report").failed().says("name the directory")
    (tmp_path / "journal").write_text("something else")
    dvm("report", tmp_path).failed().says("not those of a journal")


# ---- other journals ----


def test_other_journals(dvm, env, journal):
    kill_head(env)
    data = bytearray(journal.read_bytes())
    data[VERSION_AT] += 1
    journal.write_bytes(data)
    dvm(*UP, "--resume", journal.parent).failed().says(f"has version {data[VERSION_AT]}")
    data[0] += 1
    journal.write_bytes(data)
    dvm(*UP, "--resume", journal.parent).failed().says("not those of a journal")
    if os.getuid() == 0:
        os.chown(journal, 1, -1)
        dvm(*UP, "--resume", journal.parent).failed().says("is not your file")


ONCE_LONG = "[ $PMI2X_DVM_INSTANCE = 1 ] || exec sleep 600"


@pytest.fixture
def short(dvm, env, tmp_path):
    """Brings up a DVM of two slots with this grace time; its journal."""

    def up(grace):
        dvm("up", "--local", "1", "--slots", "2", "--grace", grace, "--journal", tmp_path / "j").ok()
        return tmp_path / "j" / "journal"

    yield up
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_a_head_that_is_told_to_end(dvm, env, short, tmp_path):
    """Running tasks may finish; no task is started; the rest is for the next head."""
    journal = short("5")
    go = tmp_path / "go"
    scripts = [f"until [ -e {go} ]; do sleep 0.05; done", ONCE_LONG, "true"]
    ids = [int(dvm("submit", "sh", "-c", s).ok().lines[0]) for s in scripts]
    wait_until(lambda: status(dvm)["running"] == 2)
    os.kill(head_of(env), signal.SIGTERM)
    go.touch()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert [ends(journal)[i] for i in ids] == [1, 0, 0]
    again = resume(dvm, journal)
    again.says("1 task has ended, 2 continue, 1 of these had been started")
    dvm("wait").ok()
    assert ends(journal) == dict.fromkeys(ids, 1)


def test_tasks_that_are_kept(dvm, short):
    """Running tasks get no time at all."""
    journal = short("0")
    dvm("submit", "--array", "1-5", "sh", "-c", ONCE_LONG).ok()
    wait_until(lambda: status(dvm)["running"] == 2)
    dvm("down").failed().says("or --keep")
    dvm("down", "--keep").ok()
    assert set(ends(journal).values()) == {0}
    resume(dvm, journal, "--once").says("2 are lost")
    dvm("cancel", "--all").ok()


def test_tasks_cannot_be_kept_without_a_journal(dvm):
    dvm("up", "--local", "1").ok()
    dvm("down", "--keep").failed().says("needs a journal")
    dvm("down").ok()


def test_all_nodes_are_lost(dvm, env, journal):
    """As when an allocation ends: what waits is there for the next."""
    dvm("submit", "--array", "1-9", "sleep", "600").ok()
    wait_until(lambda: status(dvm)["running"] == 8)
    for pid, name in living(env["PMI2X_DVM_DIR"]).items():
        if name == "pmi2x-dvmd":
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    resume(dvm, journal).says("0 tasks have ended, 9 continue, ")


def send(number, pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def gone(pids):
    return not [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]


TRAPS = "trap 'exit 3' TERM; while :; do sleep 0.05; done"


@pytest.mark.parametrize(
    ("first", "continued", "work"),
    [("ranks", False, "exec sleep 600"), ("ranks", True, TRAPS), ("daemons", True, TRAPS)],
)
def test_tasks_that_are_ended_with_their_daemons(dvm, env, journal, tmp_path, first, continued, work):
    """As Slurm does at a requeue, a time limit or scancel: no task has failed by that."""
    pids = tmp_path / "pids"
    dvm("submit", "--array", "1-9", "sh", "-c", f"echo $$ >> {pids}; {work}").ok()
    wait_until(lambda: pids.exists() and len(pids.read_text().splitlines()) == 8)
    ranks = list(map(int, pids.read_text().split()))
    there = living(env["PMI2X_DVM_DIR"])
    daemons = [p for p, name in there.items() if name in ("pmi2x-dvmd", "pmi2x-dvm-zygot")]
    assert len(daemons) == 4
    if continued:
        send(signal.SIGCONT, [*ranks, *daemons])
    if first == "ranks":
        send(signal.SIGTERM, ranks[:1])
        while not gone(ranks[:1]):
            pass  # its end is known to the daemon then, whose own follows soon
        send(signal.SIGTERM, ranks)
    send(signal.SIGTERM, daemons)
    send(signal.SIGTERM, ranks)
    wait_until(lambda: gone(ranks + daemons))
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))  # the head ends without nodes
    assert set(ends(journal).values()) == {0}
    resume(dvm, journal).says("0 tasks have ended, 9 continue")


def test_a_batch_that_is_begun_again(dvm, env, prefix, tmp_path):
    """Ended tasks are not run again, and their failures count."""
    go = tmp_path / "go"
    line = f"echo %d >> {tmp_path}/ran; until [ %d -lt 200 -o -e {go} ]; do sleep 0.05; done; [ %d != 3 ]"
    lines = [line % (i, i, i) for i in range(400)]
    (tmp_path / "tasks").write_text("# a comment\n" + "\n".join(lines) + "\n")
    command = "batch", "--local", "2", "--journal", tmp_path / "j", tmp_path / "tasks"
    child = subprocess.Popen(
        [prefix / "bin/pmi2x-dvm", *command], env=env, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: (tmp_path / "ran").exists())
    wait_until(lambda: len((tmp_path / "ran").read_text().splitlines()) > 100)
    kill_head(env)
    assert child.wait(30) == 1
    go.touch()
    result = dvm(*command).failed()
    result.says("1 of them failed")
    ran = collections.Counter((tmp_path / "ran").read_text().splitlines())
    assert set(ran) == {str(i) for i in range(400)}
    assert sum(ran.values()) <= 400 + 2 * os.cpu_count()
    assert ends(tmp_path / "j/journal") == dict.fromkeys(range(1, 401), 1)
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_a_batch_that_is_terminated(dvm, env, prefix, tmp_path):
    """The head lets running tasks finish, and starts none; the rest is run the next
    time."""
    line = f"echo %d >> {tmp_path}/ran; until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    (tmp_path / "tasks").write_text("".join(line % i + "\n" for i in range(400)))
    command = "batch", "--local", "2", "--journal", tmp_path / "j", tmp_path / "tasks"
    child = subprocess.Popen(
        [prefix / "bin/pmi2x-dvm", *command], env=env, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: (tmp_path / "ran").exists())
    full = sum(n["cores"] for n in status(dvm)["nodes"])
    wait_until(lambda: status(dvm)["running"] == full)
    child.terminate()
    log = pathlib.Path(env["PMI2X_DVM_DIR"]) / "local/log"
    wait_until(lambda: "the head is stopping" in log.read_text())
    (tmp_path / "go").touch()
    assert child.wait(30) == -signal.SIGTERM
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert sum(ends(tmp_path / "j/journal").values()) == full
    dvm(*command).ok()
    assert sorted((tmp_path / "ran").read_text().split(), key=int) == list(map(str, range(400)))


ALLOCATION = """
export PMI2X_DVM_DIR={base}
pmi2x-dvm up --journal {base}/j
pmi2x-dvm submit --array 1-400 sh -c 'sleep 0.05; echo x >> {base}/ran.$PMI2X_DVM_TASK'
until pmi2x-dvm status | grep -q ' [1-9][0-9]* ended'; do sleep 0.05; done
for process in /proc/[0-9]*; do
    [ "$(cat $process/comm)" = pmi2x-dvm-head ] &&
        grep -qz "^PMI2X_DVM_DIR={base}$" $process/environ &&
        kill -9 ${{process#/proc/}}
done 2>/dev/null
while pmi2x-dvm status; do sleep 0.05; done
PMI2X_DVM_LEASE=6000 pmi2x-dvm up --resume {base}/j  # tasks that ran wait for that, and a quarter
pmi2x-dvm wait
pmi2x-dvm status
pmi2x-dvm down
"""


def test_a_head_that_is_killed_in_an_allocation(in_allocation, base):
    in_allocation(2, ALLOCATION.format(base=base)).ok()
    assert ends(base / "j/journal") == dict.fromkeys(range(1, 401), 1)
    assert len(list(base.glob("ran.*"))) == 400
    assert not living(base)
