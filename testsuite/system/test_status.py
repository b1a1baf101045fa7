# SPDX-License-Identifier: BSD-3-Clause
"""Who waits for whom: the stall report, the timeout, pmi2x trace --live."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from harness import (
    below,
    command_line,
    process_table,
    run,
    stopped,
    wait_until,
)

LAYOUT = ["-N4", "-n8", "--ntasks-per-node=2"]
REPORT = re.compile(r"fence 0: (\d+) s, waiting for 1 of 8 ranks: (\d+) "
                    r"\(node (n\d+)(; stopped)?\)")
MARGIN = 1.5  # a report may come so much earlier than doubled


class Step:
    """A step in which rank 5 comes to its fence when the test says so."""

    def __init__(self, cluster, directory, env, command):
        self.cluster, self.gate = cluster, pathlib.Path(directory) / "gate"
        self.errors = pathlib.Path(directory) / "stderr"
        self.name = f"live-{os.getpid()}-{time.monotonic_ns()}"
        argv = ["srun", f"--mpi={cluster.kind}", "-J", self.name, *LAYOUT]
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.srun = cluster.start(
                *argv, *command, self.gate,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=env,
            )  # fmt: skip

    @property
    def stderr(self):
        return self.errors.read_text(errors="replace")

    def reports(self):
        return [
            (int(m[1]), int(m[2]), m[3], bool(m[4]))
            for m in REPORT.finditer(self.stderr)
        ]

    def job(self):
        argv = ["squeue", "-h", "-o", "%i", "-n", self.name]
        return wait_until(lambda: self.cluster.run(*argv).stdout.strip(), 60)

    def rank(self, rank):
        """The process of a rank."""
        table = process_table()
        mark = b"PMI_RANK=%d\0" % rank
        for pid in below(self.cluster.state["guard"]):
            if table.get(pid, (0, ""))[1] != "python3":
                continue
            with contextlib.suppress(OSError):
                if mark in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                    if str(self.gate) in command_line(pid):
                        return pid
        return None

    def go_on(self):
        self.gate.touch()
        return self.srun.wait(timeout=60)


@pytest.fixture
def start(cluster, raw, tmp_path):
    made = []

    def start_one(command=("gate", "2", "5"), **env):
        step = Step(cluster, tmp_path, env, raw(*command))
        made.append(step)
        return step

    yield start_one
    for step in made:
        step.gate.touch()
        if step.srun.poll() is None:
            step.srun.terminate()
            step.srun.wait(timeout=60)


def live(tool, step, *options):
    """On the host of srun, which is the one that is asked."""
    return step.cluster.run(tool, *options, "--live", f"{step.job()}.0")


def test_report_grows(start):
    """The wait is said once, and again when it has doubled; nothing fails."""
    step = start(PMI2X_STALL_REPORT="1")
    wait_until(lambda: len(step.reports()) >= 3, 60)
    assert step.go_on() == 0
    reports = step.reports()
    assert {(rank, node) for _, rank, node, _ in reports} == {(5, "n3")}
    for (first, *_), (second, *_) in zip(reports, reports[1:]):
        assert second + 1 > MARGIN * first, reports  # srun prints whole seconds


def test_report_of_a_node_attribute(start):
    """What a rank waits for that another of its node puts late: said by a node, and again."""
    step = start(["attributes"], PMI2X_STALL_REPORT="1")
    line = re.compile(r"node attribute where: \d+ s, rank (\d) waits for it, and no rank of "
                      r"node n(\d) has put it")
    wait_until(lambda: len(line.findall(step.stderr)) >= 2, 60)
    assert step.go_on() == 0
    for rank, node in line.findall(step.stderr):
        assert int(rank) == 2 * (int(node) - 1), step.stderr


def test_report_off(start, tool):
    """No report is wanted: the state can be asked for all the same."""
    step = start(PMI2X_STALL_REPORT="0")

    def waits_for_rank_5():
        return "waiting for 1 of 8 ranks: 5 " in live(tool, step).stdout

    wait_until(waits_for_rank_5, 60)
    assert step.go_on() == 0
    assert not step.reports()


def test_live(start, tool):
    """Names exactly the rank that sleeps, and its node."""
    step = start()
    wait_until(lambda: "1 of 8 ranks: 5 (" in live(tool, step).stdout, 60)
    shown = live(tool, step).ok().stdout
    assert "waiting for 1 of 8 ranks: 5 (node n3)" in shown
    (line,) = [text for text in shown.splitlines() if text[:3] == "n3:"]
    assert "waits for rank 5;" in line
    assert shown.count("waits for rank") == 1
    assert "lost" not in shown and "not connected" not in shown
    answer = json.loads(live(tool, step, "--json").ok().stdout)
    assert [n["node"] for n in answer["nodes"]] == ["n1", "n2", "n3", "n4"]
    assert all(n["answered"] for n in answer["nodes"])
    assert step.go_on() == 0


def test_live_before_init(cluster, tool):
    """A step that has not started PMI can be asked, too: all nodes answer."""
    name = f"idle-{os.getpid()}"
    argv = ["srun", f"--mpi={cluster.kind}", "-J", name, *LAYOUT, "sleep", "60"]
    srun = cluster.start(*argv, stdin=subprocess.DEVNULL, stdout=None, stderr=None)
    try:
        argv = ["squeue", "-h", "-o", "%i", "-n", name, "-t", "R"]
        job = wait_until(lambda: cluster.run(*argv).stdout.strip(), 60)

        def all_idle():
            shown = cluster.run(tool, "--live", f"{job}.0").stdout
            return shown.count("before init") and "no answer" not in shown

        wait_until(all_idle, 60)
    finally:
        srun.terminate()
        srun.wait(timeout=60)


def test_live_with_a_silent_node(cluster, start, tool):
    """A node whose agent is stopped is named; the others are shown."""
    step = start()
    wait_until(lambda: "1 of 8 ranks: 5 (" in live(tool, step).stdout, 60)
    with stopped(cluster.agent("n2")):
        shown = live(tool, step).ok().stdout
    assert "no answer from node n2" in shown
    assert "no answer from 1 node: n2" in shown
    assert "ranks: 5 (node n3)" in shown
    assert step.go_on() == 0


def test_stopped_rank(start):
    """A rank that a signal has stopped is named as such."""
    step = start(PMI2X_STALL_REPORT="2")
    wait_until(step.reports, 60)
    with stopped(step.rank(5)):
        wait_until(lambda: any(r[3] for r in step.reports()), 60)
    assert step.go_on() == 0


def test_suspended_step(cluster, start):
    """While a step is suspended nothing is reported, and nothing times out."""
    step = start(PMI2X_STALL_REPORT="3", PMI2X_COLLECTIVE_TIMEOUT="12")
    job = step.job()
    wait_until(step.reports, 60)
    cluster.run("scontrol", "suspend", job).ok()
    before = len(step.reports())
    time.sleep(15)  # longer than both limits
    assert len(step.reports()) <= before + 1  # one may have been on its way
    cluster.run("scontrol", "resume", job).ok()
    assert step.go_on() == 0, step.stderr
    assert "failed" not in step.stderr


def test_timeout(start):
    """With Pmi2xCollectiveTimeout the wait is the failure, by name."""
    step = start(PMI2X_COLLECTIVE_TIMEOUT="2", PMI2X_STALL_REPORT="0")
    want = re.compile(
        r"fence 0 failed: Pmi2xCollectiveTimeout after \d+ s, waiting for "
        r"1 of 8 ranks: 5 \(node n3\)"
    )
    wait_until(lambda: want.search(step.stderr), 60)
    assert step.go_on() != 0


def test_bad_values(srun):
    """srun says which value is none; the step runs."""
    for name in "PMI2X_STALL_REPORT", "PMI2X_COLLECTIVE_TIMEOUT":
        result = srun("-n1", "true", env={name: "-1"}).ok()
        result.says(name).says("is not a value")


def test_live_of_no_step(tool):
    for step in "4711", "x.y", "99999999.0":
        result = run([tool, "--live", step])
        assert result.code == 2 and "pmi2x trace: " in result.stderr
