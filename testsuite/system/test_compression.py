# SPDX-License-Identifier: BSD-3-Clause
"""Compressed results between nodes: that they are, and every value."""

import re

import pytest

from harness import Cluster

NODES = 16
# Node n1 is the root of the tree.
WIDTH = 16
LAYOUT = [f"-N{NODES}", f"-n{8 * NODES}", "--ntasks-per-node=8"]
# pmi2x-probe checks every value; 50 keys of all ranks are more than 64 KiB.
OPERATIONS = ["kvs", "50", "allgather", "ring", "kvs", "1", "iallgather"]
COMPRESSED = re.compile(r"a result of (\d+) bytes goes out in (\d+)")


@pytest.fixture(scope="module")
def talking(prefix, scratch, kind):
    """Clusters whose agents write down what they do, by their mpi.conf."""
    if kind != "pmi2x":
        pytest.skip("these options are pmi2x's")
    made = {}

    def make(text):
        if text not in made:
            conf = scratch / f"compression-{len(made)}.conf"
            conf.write_text(f"Pmi2xTreeWidth={WIDTH}\n{text}")
            options = ["--mpi-conf", conf]
            options += ["--slurm-conf-line", "SlurmdDebug=debug"]
            directory = scratch / f"compression-{len(made)}"
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


def exchange(cluster, probe, env):
    result = cluster.srun(*LAYOUT, probe, *OPERATIONS, env=env).ok()
    assert result.stderr == "", result
    said = [line for line in result.lines if ": ok, " in line]
    assert len(said) == 5, result
    assert cluster.wait_until_clean() == []


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
    exchange(cluster, probe, env)
    sizes = [tuple(map(int, found)) for found in log.find(COMPRESSED)]
    assert sizes and all(packed < raw for raw, packed in sizes), sizes
    assert max(raw for raw, _ in sizes) >= 1 << 16


def test_not_compressed_unless_asked_for(talking, probe):
    cluster = talking("")
    log = Log(cluster, "n1")
    exchange(cluster, probe, {})
    assert log.find(COMPRESSED) == []
