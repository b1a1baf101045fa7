# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm wait: the exit status is the same whether a task ended before or after it began."""

import pytest

from dvms import dvm, env, kill_one, living, local, one, status, there, wait_until

__all__ = ["dvm", "env", "local", "one", "there"]

FAIL = "sh", "-c", "exit 3"


def ended(dvm, count):
    wait_until(lambda: status(dvm)["ended"] == count)


def test_task_that_failed_before_wait(local):
    local("submit", *FAIL).ok()
    ended(local, 1)
    result = local("wait")
    assert result.code == 1
    result.says("1 failed")


def test_task_is_reported_by_one_wait(local):
    id = local("submit", *FAIL).ok().lines[0]
    local("wait").failed()
    local("wait").ok().says("0 tasks")
    local("wait", id).failed().says("1 failed")
    local("run", *FAIL)
    local("submit", "--wait", *FAIL).failed()
    local("wait").ok().says("0 tasks")


def test_cancelled_task_that_exits_well(local, tmp_path):
    go = tmp_path / "ready"
    work = f"trap 'exit 0' TERM; touch {go}; while :; do sleep 0.05; done"
    local("submit", "sh", "-c", work).ok()
    wait_until(go.exists)
    local("cancel", "--all").ok()
    assert local("wait").code == 1


def test_failure_before_the_head_was_lost(dvm, env, tmp_path):
    """The exit status of submit --wait and of waits, interrupted and complete."""
    up = "up", "--local", "1", "--slots", "4"
    dvm(*up, "--journal", tmp_path / "j").ok()
    dvm("submit", *FAIL).ok()
    dvm("wait").failed()
    dvm("submit", *FAIL).ok()
    ended(dvm, 2)
    kill_one(env, "pmi2x-dvm-head")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    dvm(*up, "--resume", tmp_path / "j").ok()
    dvm("wait").failed().says("1 task: 0 done, 1 failed")
    dvm("wait").ok()
    dvm("down").ok()


@pytest.mark.wide
def test_failed_task_whose_result_is_not_kept(local):
    id = local("submit", *FAIL).ok().lines[0]
    ended(local, 1)
    local("submit", "--wait", "--quiet", "--array", "1-10200", "true").ok()
    result = local("wait", id)
    assert result.code == 1
    result.says("are not kept any more")
    local("wait").failed().says("1 had ended before, 1 of them failed")
    local("wait").ok()


def test_wait_any_reports_each_task_once(one, tmp_path):
    waits = "sh", "-c", "until [ -e {}.go ]; do sleep 0.05; done; [ {} != 2 ]"
    one("submit", "--array", "1-3", *waits).ok()
    for number in "2", "1", "3":
        (tmp_path / f"{number}.go").touch()
        result = one("wait", "--any")
        assert (result.lines, result.code) == ([number], 1 if number == "2" else 0), str(result)
    one("wait", "--any").failed().says("no task is left to wait for")
    assert one("wait", "--any", "3,1").ok().lines[0] in ("1", "3")
    one("wait").ok()
