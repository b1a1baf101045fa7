# SPDX-License-Identifier: BSD-3-Clause
"""Ways between nodes that are forced: the values, and that it was that way."""

import re

import pytest

from harness import Cluster

NODES = 16
# Node n1 is the root of the tree: with this width the parent of all others.
WIDTH = 16
LAYOUT = [f"-N{NODES}", f"-n{8 * NODES}", "--ntasks-per-node=8"]
CYCLIC = [f"-N{NODES}", f"-n{3 * NODES + 5}", "-m", "cyclic"]
# pmi2x-probe checks every value; 50 keys of all ranks are more than 64 KiB.
OPERATIONS = ["kvs", "50", "allgather", "ring", "kvs", "1", "iallgather"]
# Nodes to which n10 is linked.
LINKS = {
    "tree": {"n1"},
    "ring": {"n1", "n9", "n11"},
    "doubling": {"n1", "n2", "n6", "n8", "n9", "n11", "n12", "n14"},
}
UP = re.compile(r"link to node (n\d+) is up")
COMPRESSED = re.compile(r"a result of (\d+) bytes goes out in (\d+)")


@pytest.fixture(scope="module")
def talking(prefix, scratch, kind):
    """Clusters whose agents write down what they do, by their mpi.conf."""
    if kind != "pmi2x":
        pytest.skip("these options are pmi2x's")
    made = {}

    def make(text):
        if text not in made:
            conf = scratch / f"algorithms-{len(made)}.conf"
            conf.write_text(f"Pmi2xTreeWidth={WIDTH}\n{text}")
            options = ["--mpi-conf", conf]
            options += ["--slurm-conf-line", "SlurmdDebug=debug"]
            directory = scratch / f"algorithms-{len(made)}"
            made[text] = Cluster(prefix, directory, kind, NODES, options)
            made[text].up()
        return made[text]

    yield make
    for cluster in made.values():
        cluster.down()


class Log:
    """What the agent of a node writes from now on."""

    def __init__(self, cluster, node):
        self.path = cluster.dir / "log" / f"slurmd.{node}.log"
        self.begin = len(self.read_all())

    def read_all(self):
        return self.path.read_text(errors="replace")

    def find(self, pattern):
        return pattern.findall(self.read_all()[self.begin :])


def exchange(cluster, probe, layout, env):
    """Nodes to which n10 was linked."""
    log = Log(cluster, "n10")
    result = cluster.srun(*layout, probe, *OPERATIONS, env=env).ok()
    assert result.stderr == "", result
    said = [line for line in result.lines if ": ok, " in line]
    assert len(said) == 5, result
    assert cluster.wait_until_clean() == []
    return set(log.find(UP))


@pytest.mark.parametrize("layout", [LAYOUT, CYCLIC], ids=["block", "cyclic"])
@pytest.mark.parametrize("algorithm", LINKS)
def test_forced_by_the_environment(talking, probe, algorithm, layout):
    env = {"PMI2X_ALGORITHM": algorithm}
    assert exchange(talking(""), probe, layout, env) == LINKS[algorithm]


@pytest.mark.parametrize("algorithm", LINKS)
def test_forced_by_the_site(talking, probe, algorithm):
    cluster = talking(f"Pmi2xAlgorithm={algorithm}\n")
    shown = cluster.run("scontrol", "show", "config").ok().stdout
    assert re.search(rf"Pmi2xAlgorithm\s*=\s*{algorithm}\n", shown), shown
    assert exchange(cluster, probe, LAYOUT, {}) == LINKS[algorithm]


def test_the_environment_goes_before_the_site(talking, probe):
    cluster = talking("Pmi2xAlgorithm=ring\n")
    env = {"PMI2X_ALGORITHM": "tree"}
    assert exchange(cluster, probe, LAYOUT, env) == LINKS["tree"]


def test_no_such_algorithm(talking, probe):
    cluster = talking("")
    result = cluster.srun(
        *LAYOUT, probe, "allgather", env={"PMI2X_ALGORITHM": "star"}
    ).ok()
    result.says("PMI2X_ALGORITHM")


@pytest.fixture
def lz4(build):
    """Skips where this build cannot compress."""
    text = (build / "tree" / "config.h").read_text()
    if not re.search(r"^#define HAVE_LZ4", text, re.M):
        pytest.skip("this build of pmi2x has no lz4")


@pytest.mark.parametrize("where", ["site", "environment"])
def test_compressed(talking, probe, lz4, where):
    """Of the results the large one gets shorter, and every value is right."""
    site = where == "site"
    cluster = talking("Pmi2xCompression=on\n" if site else "")
    log = Log(cluster, "n1")
    env = {} if site else {"PMI2X_COMPRESSION": "on"}
    exchange(cluster, probe, LAYOUT, env)
    sizes = [tuple(map(int, found)) for found in log.find(COMPRESSED)]
    assert sizes and all(packed < raw for raw, packed in sizes), sizes
    assert max(raw for raw, _ in sizes) >= 1 << 16


def test_not_compressed_unless_asked_for(talking, probe):
    cluster = talking("")
    log = Log(cluster, "n1")
    exchange(cluster, probe, LAYOUT, {})
    assert log.find(COMPRESSED) == []
