# SPDX-License-Identifier: BSD-3-Clause
"""Traces of start-up: what a step leaves, and what pmi2x trace makes of it."""

import json
import os
import pathlib

import pytest

from harness import run

PHASES = (
    "srun until slurmstepd starts",
    "prefork ",
    "tasks start, until the first init",
    "init, in the rank",
    "from init to the first put",
    "first fence, in the rank",
    "first allgather, in the rank",
    "fence 0: ranks enter, first to last",
    "fence 0: up and down the tree",
    "fence 0: ranks answered",
    "last finalize until the agent leaves",
)
LAYOUT = ["-N4", "-n12", "--ntasks-per-node=3"]


@pytest.fixture
def traces(tmp_path):
    return tmp_path


def files(directory):
    return sorted(pathlib.Path(directory).glob("pmi2x-trace.*.jsonl"))


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def division(tool, target):
    """{name: [parts]} of a trace, which sum to the whole for all ranks."""
    shown = json.loads(run([tool, "--json", target]).ok().stdout)
    total = sum(part["mean"] for part in shown["division"])
    assert abs(total - shown["whole"]) < 1000, shown
    names = {}
    for part in shown["division"]:
        names.setdefault(part["name"], []).append(part)
    return names, shown["waits"]


def in_order(stamps):
    done = [stamp for stamp in stamps if stamp]
    return done == sorted(done)


def test_phases(srun, tool, probe, traces, tmp_path):
    """Every phase is there, and the stamps of one clock are in order."""
    env = {"PMI2X_TRACE": str(traces)}
    operations = ["put", "k-%r=v", "fence", "allgather"]
    srun(*LAYOUT, probe, *operations, env=env).ok()
    (path,) = files(traces)
    assert path.stat().st_uid == os.getuid()
    head, *nodes, end = records(path)
    assert end["nodes"] == end["received"] == len(nodes) == 4
    assert head["step"] in path.name
    seen = []
    for node in nodes:
        began, prefork, ready, wired, first, last, left = node["agent"]
        assert in_order([began, prefork, ready, first, last, left]), node
        assert ready < wired < left
        for rank, init, put, enter, final, *own in node["ranks"]:
            seen.append(rank)
            assert all([init, put, enter, final, *own]), node
            assert in_order([init, put, enter, final])
            assert in_order(own)
            assert first <= init <= last
            assert own[0] <= init <= own[1]
        for kind, _, *stamps, messages, sent in node["collectives"]:
            assert kind in ("fence", "allgather")
            assert sent > messages > 0
            assert all(stamps) and in_order(stamps), node
    assert sorted(seen) == list(range(12))
    chrome = tmp_path / "chrome.json"
    shown = run([tool, "--all", "--chrome", chrome, traces]).ok()
    for phase in PHASES:
        assert phase in shown.stdout, shown
    assert "note:" not in shown.stdout
    events = json.loads(chrome.read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert {"node n1", "agent", "rank 0", "rank 11"} <= names
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X")


def test_other_client(srun, tool, raw, traces):
    """Ranks with a PMI client of their own are seen by their agents."""
    env = {"PMI2X_TRACE": str(traces)}
    srun(*LAYOUT, *raw("exchange", "1"), env=env).ok()
    (path,) = files(traces)
    nodes = records(path)[1:-1]
    # An agent that a neighbour has called may be there before any of its ranks speaks.
    assert any(rest[2] for node in nodes for rest in node["rests"])
    for node in nodes:
        for _, init, put, enter, final, *own in node["ranks"]:
            assert init and put and enter and final and not any(own)
        assert len(node["entered"]) == len(node["collectives"])
        assert len(node["rests"]) == len(node["entered"][0]) == 3
        assert 0 in node["entered"][0] and -1 not in node["entered"][0]
        for forked, left, early, *_, requests, served in node["rests"]:
            assert node["agent"][0] <= forked <= left <= node["agent"][5]
            assert early in (0, 1) and requests > 3 and served > 0
    shown = run([tool, "--all", path]).ok()
    assert "as the agent sees it" in shown.stdout
    assert "init, in the rank" not in shown.stdout
    names, waits = division(tool, path)
    assert {"launch", "loading", "exchange", "rank", "end"} <= set(names)
    assert "other" not in names and "topology" not in names
    assert [w["ranks"] for w in waits] == [12] * len(waits) and waits


def test_trace_names_the_last_rank_and_the_waits(srun, tool, raw, traces):
    """Who came last, and how long the others waited; all nodes have one clock."""
    env = {"PMI2X_TRACE": str(traces)}
    srun(*LAYOUT, *raw("exchange", "1"), env=env).ok()
    (path,) = files(traces)
    came = {}
    for node in records(path)[1:-1]:
        for rank, after in zip(node["ranks"], node["entered"][0]):
            came[rank[0]] = node["collectives"][0][2] + after
    last = max(came, key=came.get)
    names, (first, *_) = division(tool, path)
    waited = came[last] - sum(came.values()) / len(came)
    assert first["last"] == last and abs(first["mean"] - waited) < 1e6, first
    (part,) = [p for p in names["waiting"] if p["part"].startswith("fence 0")]
    assert part["ranks"] == 11 and abs(part["mean"] - waited) < 1e6
    assert f"last was rank {last} (" in run([tool, path]).ok().stdout


def test_trace_names_the_rank_a_group_waits_for(srun, tool, raw, traces):
    """Barriers of some ranks, by their members; no part of what requests took."""
    env = {"PMI2X_TRACE": str(traces)}
    srun("-N3", "--ntasks-per-node=2", *raw("groups", "meet"), env=env).ok()
    (path,) = files(traces)
    came = {}
    for node in records(path)[1:-1]:
        assert all(node["group_sent"])
        for name, number, first, done, entered in node["groups"]:
            assert first + max(entered) <= done
            for (rank, *_), after in zip(node["ranks"], entered, strict=True):
                if after >= 0:
                    came.setdefault((name, number), {})[rank] = first + after
    everybody = min(came.values(), key=lambda ranks: min(ranks.values()))
    assert set(everybody) == set(range(6))
    names, waits = division(tool, path)
    waits = {w["seq"]: w for w in waits if w["kind"] == "group barrier"}
    assert len(waits) > 5 and max(waits) < 16
    assert {w["ranks"] for w in waits.values()} == {2, 3, 6}
    assert everybody[waits[0]["last"]] > max(everybody.values()) - 1e6
    parts = {part["part"]: part for part in names["waiting"]}
    assert parts["group barrier 0: for its last rank"]["ranks"] in (5, 6)


def test_without_pmi(srun, tool, traces):
    srun("-N2", "-n4", "true", env={"PMI2X_TRACE": str(traces)}).ok()
    names, waits = division(tool, files(traces)[0])
    assert {"launch", "rank"} == set(names) and not waits
    (part,) = names["rank"]
    assert part["part"] == "without PMI" and part["ranks"] == 4


def test_killed_rank(srun, tool, probe, raw, traces):
    """What a rank that dies has not told is noted, and the rest is shown."""
    env = {"PMI2X_TRACE": str(traces), "PMI2X_KILL_ON_FAILURE": "off"}
    dies = " ".join(map(str, raw("leave", "2", "kill", "1", "5")))
    script = f"[ $PMI_RANK = 5 ] && exec {dies}; exec {probe} fence fence"
    srun(*LAYOUT, "sh", "-c", script, env=env).failed()
    (path,) = files(traces)
    shown = run([tool, "--all", path]).ok()
    assert "library: rank 5\n" in shown.stdout, shown
    assert "first fence, in the rank" in shown.stdout


def test_off(srun, probe, traces):
    """Nothing is recorded, and ranks are not told to."""
    result = srun("-n2", "env", env={"PMI2X_TRACE": ""}).ok()
    assert "PMI2X_STAMPS" not in result.stdout
    srun("-N2", "-n4", probe, "fence", env={"PMI2X_TRACE": ""}).ok()
    assert not files(traces)


def test_bad_directory(srun, probe):
    """A trace that cannot be written is said; the step runs."""
    for bad in "relative", "/proc/nonexistent", "/proc":
        result = srun("-n2", probe, "fence", env={"PMI2X_TRACE": bad}).ok()
        result.says("no trace").says(bad)


def test_run(cluster, tool, probe, traces):
    """"run" sets the variable, keeps what is asked for, and passes the code."""
    wrapped = [cluster.program, "run", "--dir", cluster.dir, "--", "srun"]
    wrapped += [f"--mpi={cluster.kind}", "-N2", "-n4"]
    shown = run([tool, "run", *wrapped, probe, "fence"]).ok()
    assert "2 nodes, 4 ranks" in shown.stdout
    shown = run([tool, "--json", "run", *wrapped, probe, "fence"]).ok()
    assert json.loads(shown.stdout)["ranks"] == 4
    assert "fence: ok" in shown.stderr
    failed = run([tool, "--dir", traces, "run", *wrapped, "sh", "-c", "exit 7"])
    assert failed.code == 7
    assert len(files(traces)) == 1


def test_bad_file(tool, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    for target in empty, tmp_path, tmp_path / "none", "/etc/passwd":
        assert run([tool, target]).code == 2
