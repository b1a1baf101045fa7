# SPDX-License-Identifier: BSD-3-Clause
"""One wait of each kind: after Pmi2xStallReport srun and pmi2x why name those that are late."""

import re

import pytest

pytestmark = pytest.mark.usefixtures("needs_pmixd")
STEP = ["-N2", "-n4", "--ntasks-per-node=2"]
ONE_NODE = ["-N1", "-n4"]
# Nothing can be said while libpmix gathers the ranks of one node.
UNSEEN = "some of them: libpmix does not report which"
SOME = "PMIx operation of some ranks, which ranks of nodes below have entered: "
OWN = ", node n1 waits for its own ranks: some must enter, and none has"
# Of the node with the late rank, where libpmix collects the others: it may be named first.
INSIDE = (r"PMIx on node n\d: \d+ s, clients may wait for ranks? [\d-]+: the last request of"
          r" ranks? [\d, -]+ has no answer")
ONE_LATE = (r"PMIx on node n1: \d+ s, clients may wait for rank 1: the last request of"
            r" ranks 0, 2-3 has no answer")
NAMES = r"lookup of a name, or connection by rank \d \(node n\d\): "

# What all ranks enter, the rank that is late, the options of srun, what is said.
WAITS = [
    pytest.param("start", 1, ONE_NODE,
                 r"PMIx on node n1: \d+ s, clients may wait: rank 1 has not started PMIx",
                 id="PMIx not started"),
    pytest.param("start", 1, STEP,
                 r"PMIx (fence 0: \d+ s, waiting for 1 of 4 ranks: 1 \(node n1; PMIx not started\)"
                 r"|on node n1: \d+ s, clients may wait: rank 1 has not started PMIx)",
                 id="PMIx not started, two nodes"),
    pytest.param("fence", 1, ONE_NODE, ONE_LATE, id="fence, one node"),
    pytest.param("connect", 1, ONE_NODE, ONE_LATE, id="connect, one node"),
    pytest.param("group", 1, ONE_NODE, ONE_LATE, id="group, one node"),
    pytest.param("fence", 3, STEP,
                 rf"PMIx fence 0: \d+ s, waiting for 2 of 4 ranks: 2-3 \(node n2; {UNSEEN}\)",
                 id="fence"),
    pytest.param("connect", 3, STEP,
                 r"PMIx connect of 4 ranks: \d+ s, node n1 waits for ranks of or below these"
                 r" nodes: n2", id="connect"),
    pytest.param("connect", 1, STEP, SOME + r"\d+ s" + OWN, id="connect, first node late"),
    pytest.param("group", 3, STEP,
                 r"PMIx group construct of 4 ranks \(late\): \d+ s, node n1 waits for ranks of or"
                 r" below these nodes: n2", id="group"),
    pytest.param("group", 1, STEP, SOME + r"\d+ s" + OWN, id="group, first node late"),
    pytest.param("some", 3, STEP,
                 r"PMIx fence of 3 ranks: \d+ s, node n1 waits for ranks of or below these nodes:"
                 r" n2", id="fence of some"),
    pytest.param("lookup", 1, STEP, NAMES + r'\d+ s, nobody has published "late"', id="lookup"),
]
SPAWNS = [
    pytest.param("spawn", r"spawn of processes by rank 0 \(node n1\): \d+ s, their first process"
                 r" has not started PMI or PMIx", id="spawn"),
    pytest.param("meet", NAMES + r"\d+ s, processes of \S+\.1 have not come",
                 id="connect with spawned processes"),
]


@pytest.fixture
def waits(pmix_program):
    return pmix_program("programs/pmix-waits.c")


@pytest.fixture
def asked(cluster, prefix):
    """What pmi2x why says of step 0 of a job of this name."""

    def why(name):
        job = cluster.run("squeue", "-h", "-o", "%i", "-n", name).lines[0]
        return cluster.run(prefix / "bin" / "pmi2x", "why", f"{job}.0").ok().stdout

    return why


def assert_named(step, why, said, gate):
    """Both say so, and nobody says that a rank waits which is in."""
    lines = [step.stderr.readline()]
    try:
        while re.search(f"pmi2x: {INSIDE}$", lines[-1]) and not re.search(said, lines[-1]):
            lines.append(step.stderr.readline())
        assert re.search(f"pmi2x: {said}$", lines[-1].strip()), lines
        shown = why()
        assert re.search(f"^{said}$", shown, re.M), shown
        assert "its own are in" not in shown, shown
    finally:
        gate.touch()
        lines += step.stderr.readlines()
    assert step.wait(60) == 0, lines
    assert all(re.search(f"{said}|{INSIDE}", line) for line in lines), lines


@pytest.mark.parametrize(("what", "late", "options", "said"), WAITS)
def test_late_rank_is_named(cluster, waits, asked, tmp_path, what, late, options, said):
    argv = ["srun", "--mpi=pmi2x", "-J", "waits", *options, waits, what, str(late)]
    gate = tmp_path / "gate"
    step = cluster.start(*argv, gate, env={"PMI2X_STALL_REPORT": "1"})
    assert_named(step, lambda: asked("waits"), said, gate)


@pytest.mark.parametrize(("what", "said"), SPAWNS)
def test_late_spawned_process_is_named(cluster, waits, asked, tmp_path, what, said):
    gate = tmp_path / "gate"
    step = f"srun --mpi=pmi2x --overlap -n2 {waits} {what} 0 {gate}"
    argv = ["salloc", "-Q", "-J", "waits", "-N1", "--ntasks-per-node=4", "sh", "-c", step]
    step = cluster.start(*argv, env={"PMI2X_STALL_REPORT": "1"})
    assert_named(step, lambda: asked("waits"), said, gate)


def test_node_that_never_came_is_named(cluster, raw, asked, tmp_path):
    """Its ranks are there, and its agent has not started: none of them uses PMI."""
    gate = tmp_path / "gate"
    wait = f"while [ $PMI_RANK -gt 1 ] && ! [ -e {gate} ]; do sleep 0.1; done; exec"
    command = " ".join([wait, *map(str, raw("exchange", "2"))])
    argv = ["srun", "--mpi=pmi2x", "-J", "waits", *STEP, "sh", "-c", command]
    step = cluster.start(*argv, env={"PMI2X_STALL_REPORT": "1"})
    said = r"fence 0: \d+ s, waiting for 2 of 4 ranks: 2-3 \(node n2; PMI not started\)"
    assert_named(step, lambda: asked("waits"), said, gate)
