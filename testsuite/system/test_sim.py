# SPDX-License-Identifier: BSD-3-Clause
"""What the simulator counts is what real agents send: messages and bytes, exactly."""

import csv
import io
import json
import os
import pathlib
import subprocess

import pytest

from harness import run

ROUNDS = 3
OPS = ("fence", "allgather", "ring")
# nodes, ranks a node, layout, width, bytes; so small that no message is cut
# on its way up, where the cuts depend on what comes first
CASES = [
    (1, 3, "block", 16, 64),
    (16, 1, "block", 16, 64),
    (13, 3, "cyclic", 2, 5),
    (16, 8, "block", 3, 1000),
]


@pytest.fixture(scope="module")
def programs(prefix):
    sim = prefix / "libexec" / "pmi2x" / "pmi2x-sim-run"
    rank = prefix / "libexec" / "pmi2x" / "sim-rank"
    if not os.access(sim, os.X_OK) or not os.access(rank, os.X_OK):
        pytest.skip("the simulator is not installed")
    return sim, rank


def simulated(sim, nodes, per_node, layout, width, size):
    """Messages and bytes of each operation."""
    text = "\n".join(
        ["[step]", f"nodes = {nodes}", f"ranks_per_node = {per_node}",
         f"layout = {layout}", f"tree_width = {width}",
         "key_bytes = 16", "[operations]"]
        + [f"run = {op} {size}" for op in OPS * ROUNDS])
    done = subprocess.run([sim, "-q", "--csv", "-", "-"], input=text, text=True,
                          capture_output=True, check=True)
    rows = csv.DictReader(io.StringIO(done.stdout))
    return [(row["operation"], int(row["messages"]), int(row["bytes"]))
            for row in rows if row["operation"] in OPS]


def counted(directory):
    """The same, from the traces of all agents."""
    (path,) = pathlib.Path(directory).glob("pmi2x-trace.*.jsonl")
    found = {}
    for line in path.read_text().splitlines():
        for c in json.loads(line).get("collectives", []):
            messages, sent = found.get((c[1], c[0]), (0, 0))
            found[c[1], c[0]] = (messages + c[7], sent + c[8])
    return [(op, *found.get((seq, op), (0, 0)))
            for seq in range(ROUNDS) for op in OPS]


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_counts(srun, programs, tmp_path, case):
    sim, rank = programs
    nodes, per_node, layout, width, size = case
    env = {"PMI2X_TRACE": str(tmp_path),
           "PMI2X_TREE_WIDTH": str(width)}
    srun(f"-N{nodes}", f"-n{nodes * per_node}", f"-m{layout}",
         f"--ntasks-per-node={per_node}", rank, str(size), str(ROUNDS), *OPS,
         env=env).ok()
    assert counted(tmp_path) == simulated(sim, *case)


def test_calibration_of_few_nodes_predicts_many(in_allocation, prefix, tmp_path):
    """The times themselves are not looked at: the machine is busy."""
    file = tmp_path / "site.scenario"
    script = f"""
set -e
pmi2x sim calibrate --nodes 4 --ranks-per-node 1,2 --repeats 1 {file}
pmi2x sim calibrate --nodes 4 --ranks-per-node 3 {file}.none && exit 1
pmi2x sim calibrate --nodes 5 {file}.none && exit 1
pmi2x sim calibrate {tmp_path}/none/file && exit 1
exit 0
"""
    done = in_allocation(4, script, "-n8", "--ntasks-per-node=2").ok()
    assert "fitted at 10 points of 4 nodes" in done.stdout, done
    assert f"written: {file}" in done.stdout, done
    done.says("--ranks-per-node: the job has 2 CPUs of a node, not 3")
    done.says("--nodes: the allocation has 4 nodes, not 5")
    done.says("none/file.part: No such file or directory")
    assert [path.name for path in tmp_path.glob("*scenario*")] == [file.name]
    shown = run([prefix / "bin/pmi2x", "sim", "run", "--calibration", file, "--nodes", 1000]).ok()
    assert "1000 nodes of 1 ranks, 100 runs" in shown.stdout, shown
    rows = [line.split() for line in shown.lines if line[:1].isdigit()]
    assert [row[1] for row in rows] == ["fence", "allgather", "ring"]
    for *_, width, percent in rows:
        assert percent == "%" and int(width) > 0, shown


@pytest.mark.wide
def test_simulated_dvm_sends_what_a_real_one_sends(prefix):
    """A DVM of --local and a simulated one have the same tasks on each node, and the same
    messages and bytes. Their times differ here: the machine is busy."""
    done = subprocess.run(
        ["/usr/bin/python3", "-B", prefix / "libexec/pmi2x/pmi2x-sim-validate", "--dvm",
         "--calibrate", "2", "--nodes", "5", "--repeats", "1"],
        text=True, capture_output=True)
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.count(" equal ") == 2, done.stdout
