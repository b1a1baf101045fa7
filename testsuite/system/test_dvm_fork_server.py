# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: a zygote that stands still, as where a file system hangs in its vfork."""

import contextlib
import json
import os
import signal

import pytest

from dvms import dvm, env, living, local, there, wait_until
from processes import state_of

__all__ = ["dvm", "env", "local", "there"]


@contextlib.contextmanager
def standing_still(env):
    zygotes = [p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvm-zygot"]
    assert len(zygotes) == 2
    for zygote in zygotes:
        os.kill(zygote, signal.SIGSTOP)
    try:
        yield
    finally:
        for zygote in zygotes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(zygote, signal.SIGCONT)


def submit(dvm, *words):
    return dvm("submit", *map(str, words)).ok().lines[0]


def has_ended(pid):
    """Nobody may have reaped it."""
    return state_of(pid) in ("Z", "")


def test_pmi_output_and_answers_go_on(local, env, raw, tmp_path):
    use = " ".join(map(str, raw("exchange", "1")))
    script = f"touch {tmp_path}/here.$PMI_RANK; until [ -e {tmp_path}/go ]; do sleep 0.05; done; "
    script += f"{use} && touch {tmp_path}/done.$PMI_RANK; sleep 600"
    task = submit(local, "-n2", "-N2", "sh", "-c", script)
    wait_until(lambda: len(list(tmp_path.glob("here.*"))) == 2)
    with standing_still(env):
        answer = json.loads(local("why", "--json", task).ok().stdout)
        assert answer["silent"] == []
        assert len(answer["nodes"]) == 2
        (tmp_path / "go").touch()
        wait_until(lambda: len(list(tmp_path.glob("done.*"))) == 2)
    local("cancel", task).ok()


def test_time_limit_ends_ranks(local, env, tmp_path):
    pid = tmp_path / "pid"
    task = submit(local, "--time", "2s", "sh", "-c", f"echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 600")
    wait_until(pid.exists)
    with standing_still(env):
        wait_until(lambda: has_ended(int(pid.read_text())))
    result = local("wait", task)
    assert result.code == 1
    result.says("time limit")


def test_tasks_start_when_it_goes_on(local, env):
    with standing_still(env):
        tasks = [submit(local, "sh", "-c", "exit 3"), submit(local, "true")]
        cancelled = submit(local, "sleep", "600")
        local("cancel", cancelled).ok()
        assert json.loads(local("why", "--json", tasks[0]).ok().stdout)["silent"] == []
    assert local("wait", *tasks).code == 1
    result = local("wait", cancelled)
    assert result.code == 1


def test_lost_head_ends_daemons_and_ranks(local, env, tmp_path):
    pid = tmp_path / "pid"
    submit(local, "sh", "-c", f"echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 600")
    wait_until(pid.exists)
    with standing_still(env):
        names = living(env["PMI2X_DVM_DIR"])
        os.kill(next(p for p, n in names.items() if n == "pmi2x-dvm-head"), signal.SIGKILL)
        wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert has_ended(int(pid.read_text()))


def test_zygote_whose_daemon_was_killed_starts_nothing(local, env, tmp_path):
    """The orders that it has not read are old: another node may have the tasks."""
    words = "sh", "-c", f"touch {tmp_path}/ran.$PMI2X_DVM_TASK"
    with standing_still(env):
        tasks = [submit(local, *words) for _ in range(8)]
        for task in tasks:
            wait_until(lambda t=task: json.loads(local("why", "--json", t).ok().stdout)["nodes"])
        for pid, name in living(env["PMI2X_DVM_DIR"]).items():
            if name == "pmi2x-dvmd":
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: "pmi2x-dvmd" not in living(env["PMI2X_DVM_DIR"]).values())
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert not list(tmp_path.glob("ran.*"))


@pytest.mark.wide
def test_down_ends_a_node_whose_zygote_stands_still(dvm, env, tmp_path):
    """The daemons kill their zygotes five seconds after the head has given them up."""
    dvm("up", "--local", "2", "--grace", "1").ok()
    pid = tmp_path / "pid"
    submit(dvm, "sh", "-c", f"echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 600")
    wait_until(pid.exists)
    with standing_still(env):
        dvm("down", "--cancel")
        wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    assert has_ended(int(pid.read_text()))
