# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm on a disk that fails: what was confirmed is in the journal."""

import errno
import os
import pathlib
import socket
import subprocess

import pytest

from dvms import dvm, living, status, there, wait_until
from processes import opened_files
from test_dvm_journal import ends, head_of, kill_head

__all__ = ["dvm", "there"]

UP = ("up", "--local", "2", "--slots", "4")
BIG = "x" * 100_000  # of a task: soon the journal has the 64 MiB at which it is made smaller
MANY = 700


class Disk:
    """The results of a head's system calls, and the calls that it made."""

    def __init__(self, path):
        self.path = path
        path.mkdir(mode=0o700)

    def fail(self, call, error, times=1):
        """From the next call on; `times` -1: always."""
        new = self.path / "new"
        new.write_text(f"{error} {times}\n")
        new.rename(self.path / call)

    def locks_nothing(self):
        (self.path / "flock").touch()

    def calls(self):
        path = self.path / "calls"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path / "errors")


@pytest.fixture
def env(compile_program, disk, base):
    """A place for DVMs that is this test's alone, with a disk that may fail."""
    shim = compile_program("programs/disk-errors.c", "gcc", "-shared", "-fPIC", "-ldl")
    before = os.environ.get("LD_PRELOAD")
    return {
        **os.environ,
        "PMI2X_DVM_DIR": str(base),
        "LD_PRELOAD": f"{before}:{shim}" if before else str(shim),
        "DISK_ERRORS": str(disk.path),
    }


@pytest.fixture
def journal(dvm, env, tmp_path):
    dvm(*UP, "--journal", tmp_path / "j").ok()
    yield tmp_path / "j" / "journal"
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def log_of(env, name="local"):
    return pathlib.Path(env["PMI2X_DVM_DIR"], name, "log").read_text()


def test_a_failed_sync_is_not_believed(dvm, env, disk, journal):
    """Before the next one everything that it was to write is written again."""
    dvm("submit", "--wait", "true").ok()
    disk.fail("fdatasync", errno.EIO)
    dvm("submit", "--wait", "true").ok()
    calls = disk.calls()
    failed = calls.index(["fdatasync", str(errno.EIO)])
    good = calls.index(["fdatasync", "0"], failed)
    last_good = max(i for i in range(failed) if calls[i] == ["fdatasync", "0"])
    lost = {int(at) for call, at, *_ in calls[last_good:failed] if call == "pwrite"}
    again = [(int(at), int(n)) for call, at, n, *_ in
             (c + ["0"] for c in calls[failed:good]) if call == "pwrite"]  # fmt: skip
    assert lost
    assert all(any(at <= offset < at + n for at, n in again) for offset in lost), calls
    assert log_of(env).count("the journal is not safe on its disk: Input/output error") == 1
    assert status(dvm)["journal"] == "written"


@pytest.fixture
def begin(prefix, env):
    """Starts a command that waits for the disk."""

    def command(*arguments):
        child = subprocess.Popen(
            [prefix / "bin/pmi2x-dvm", *arguments], env=env, stdout=subprocess.PIPE, text=True
        )
        children.append(child)
        return child

    children = []
    yield command
    for child in children:
        child.kill()
        child.wait()


def test_a_disk_that_fails_refuses_submits_and_says_so(dvm, env, disk, journal, begin):
    """A client that submitted before the failure was known waits, and gets its answer
    when the disk has the task."""
    disk.fail("fdatasync", errno.EDQUOT, -1)
    child = begin("submit", "true")
    wait_until(lambda: status(dvm)["journal"] == os.strerror(errno.EDQUOT))
    dvm("submit", "true").failed().says("no task of the request is accepted")
    assert "Disk quota exceeded" in dvm("status").ok().stdout
    assert child.poll() is None
    disk.fail("fdatasync", 0, 0)
    assert child.communicate(timeout=60)[0] == "1\n"
    assert child.returncode == 0
    assert status(dvm)["journal"] == "written"
    dvm("submit", "--wait", "true").ok()
    assert log_of(env).count("is not safe on its disk") == 1


def test_a_failed_sync_of_the_directory_loses_nothing(dvm, env, disk, journal):
    """When the journal has been made smaller, and its new name may not last."""
    disk.fail("fsync-directory", errno.EIO)
    dvm("submit", "--wait", "--array", f"1-{MANY}", "true", BIG).ok()
    wait_until(lambda: ["fsync-directory", str(errno.EIO)] in disk.calls())
    dvm("submit", "--wait", "--array", "1-50", "true").ok()
    files = opened_files(head_of(env))
    assert str(journal) in files
    assert not [f for f in files if "(deleted)" in f and "journal" in f]
    kill_head(env)
    result = dvm(*UP, "--resume", journal.parent).ok()
    result.says(f"{MANY + 50} tasks have ended, 0 continue")
    assert dvm("submit", "true").ok().lines == [str(MANY + 51)]


def test_a_second_head_is_refused_without_locks(dvm, env, disk, journal):
    disk.locks_nothing()
    result = dvm(*UP, "--name", "b", "--resume", journal.parent).failed()
    result.says("is in use: another DVM")
    result.says(f"process {head_of(env)} on {socket.gethostname()}")
    dvm("submit", "--wait", "true").ok()


def test_a_head_that_was_taken_over_ends(dvm, env, disk, journal):
    """Also with a lock, which the first head still has."""
    dvm("submit", "--wait", "--array", "1-5", "true").ok()
    first = head_of(env)
    dvm(*UP, "--name", "b", "--resume", journal.parent, "--take-over").ok()
    wait_until(lambda: first not in living(env["PMI2X_DVM_DIR"]))
    assert "has taken over the journal" in log_of(env)
    assert dvm("submit", "--dvm", "b", "--wait", "true").ok()
    assert ends(journal) == dict.fromkeys(range(1, 7), 1)
    dvm("down", "--dvm", "b").ok()


def test_a_requeued_job_takes_over_by_itself(dvm, env, disk, journal):
    dvm("down", "--cancel").ok()
    env.update(SLURM_JOB_ID="77", SLURM_CLUSTER_NAME="c")
    dvm(*UP, "--resume", journal.parent).ok()
    dvm(*UP, "--name", "b", "--resume", journal.parent).failed().says("in job 77")
    env["SLURM_RESTART_COUNT"] = "1"
    first = head_of(env)
    dvm(*UP, "--name", "b", "--resume", journal.parent).ok()
    wait_until(lambda: first not in living(env["PMI2X_DVM_DIR"]))
    dvm("down", "--dvm", "b").ok()


def test_a_directory_that_others_can_write_to_is_refused(dvm, tmp_path):
    (tmp_path / "j").mkdir()
    (tmp_path / "j").chmod(0o777)
    dvm(*UP, "--journal", tmp_path / "j").failed().says("chmod go-w")


def test_a_new_journal_is_not_written_through_a_link(dvm, env, journal, tmp_path):
    """Another file at the path of the next journal is removed."""
    kill_head(env)
    other = tmp_path / "other"
    for number in range(1, 9):
        (journal.parent / f"journal.new.{number}").symlink_to(other)
    dvm(*UP, "--resume", journal.parent).ok()
    assert not other.exists()
    assert not list(journal.parent.glob("journal.new*"))


def test_with_once_a_task_is_launched_after_a_sync(dvm, env, disk, tmp_path, begin):
    dvm(*UP, "--journal", tmp_path / "j", "--once").ok()
    ran = tmp_path / "ran"
    disk.fail("fdatasync", errno.EIO, -1)
    begin("submit", "touch", ran)
    wait_until(lambda: status(dvm)["journal"] != "written")
    assert not ran.exists()
    disk.fail("fdatasync", 0, 0)
    wait_until(ran.exists)
    dvm("down", "--cancel").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
