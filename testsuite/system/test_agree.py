# SPDX-License-Identifier: BSD-3-Clause
"""Settings on which the nodes of a step must agree, whatever each has: where links are
made, and how nodes find each other where that is not enough."""

import contextlib
import os
import re
import signal
import tempfile

import pytest

from faulty import daemon
from harness import Cluster, free_ports, run, taken_ports

NODES = 2
STEPS = 4
TOLD = re.compile(r"telling node \S+ to connect to port")
ELSEWHERE = re.compile(r"the node listens on another port, and tells them")
DEBUG = ["--slurm-conf-line", "SlurmdDebug=debug"]
DEFAULT_PORTS = "29000-32000"  # the middle of pmi2x's default range
SPOOL_USUAL = 60
SPOOL_LONG = 93  # where slurmd itself still works, with n1_JOB.STEP
SPOOL_MOST = 92  # bytes of SlurmdSpoolDir, says mpi_pmi2x.conf(5)


@pytest.fixture
def make_cluster(prefix, kind, only_pmi2x, scratch):
    """Clusters that go with the test."""
    made = []

    def make(*options):
        path = tempfile.mkdtemp(prefix="agree-", dir=scratch)
        cluster = Cluster(prefix, path, kind, NODES, [*DEBUG, *options])
        made.append(cluster)
        cluster.up()
        return cluster

    yield make
    for cluster in made:
        run([cluster.program, "down", "--dir", cluster.dir])


def logged(cluster, pattern):
    """How often the nodes have logged it."""
    nodes = [f"n{i + 1}" for i in range(cluster.nodes)]
    return sum(len(pattern.findall(cluster.log_of(node))) for node in nodes)


def messages(cluster):
    """How many connect-back messages the agents have sent."""
    return logged(cluster, TOLD)


def elsewhere(cluster):
    """How many agents had to listen where no other node expects them."""
    return logged(cluster, ELSEWHERE)


def links_are_made_at_once(cluster, raw):
    """Links of a step are made at once. A step may meet a port of slurmd: it takes
    another one, and reports it."""
    told = 0
    for _ in range(STEPS):
        before = messages(cluster)
        cluster.srun(f"-N{NODES}", "-n4", *raw("exchange", "1")).ok()
        told += messages(cluster) > before
    assert "link to node" in cluster.log_of("n1")
    assert told <= 1, f"{told} of {STEPS} steps needed messages through slurmd"


def test_links_need_no_message_where_slurmd_ports_lie_in_the_default_range(
    make_cluster, raw
):
    links_are_made_at_once(make_cluster("--ports", DEFAULT_PORTS), raw)


# ---- the socket for messages through slurmd ----


@pytest.fixture
def crowded(make_cluster, scratch, tmp_path):
    """Makes a cluster whose links need a message, because two ports of many are free, and
    whose SlurmdSpoolDir has a path of a given length."""
    with free_ports(400) as (first, last):
        conf = tmp_path / "mpi.conf"
        conf.write_text(f"Pmi2xPorts={first}-{last}\nPmi2xConnectTimeout=5\n")

        def make(length):
            spool = scratch / ("s" * (length - len(f"{scratch}//n1")))
            spool.mkdir()
            line = f"SlurmdSpoolDir={spool}/%n"
            return make_cluster("--mpi-conf", conf, "--slurm-conf-line", line)

        with taken_ports(first + 1, last - 1):
            yield make


@contextlib.contextmanager
def step_without_its_ports(cluster, raw, go):
    """A step whose nodes listen where no other node expects them; its ranks meet once the
    file is there. Few steps get one of the two free ports: they run to their end."""
    script = f"echo at; while [ ! -e {go} ]; do sleep 0.1; done; exec \"$@\""
    command = ["srun", "--mpi=pmi2x", f"-N{NODES}", "-n2", "sh", "-c", script, "sh"]
    for _ in range(STEPS):
        before = elsewhere(cluster)
        with cluster.start(*command, *raw("exchange", "2")) as step:
            assert [step.stdout.readline() for _ in range(NODES)] == ["at\n"] * NODES
            if elsewhere(cluster) - before == NODES:
                yield step
                return
            go.touch()
        go.unlink()
    raise AssertionError("each step got a port where nodes look")


def test_spool_directory_of_92_bytes_has_room_for_the_socket(crowded, raw, tmp_path):
    cluster = crowded(SPOOL_MOST)
    with step_without_its_ports(cluster, raw, tmp_path / "go") as step:
        (tmp_path / "go").touch()
        said = step.communicate()[1]
    assert step.returncode == 0, said
    assert messages(cluster)


def test_longer_spool_directory_is_named_where_the_socket_is_needed(
    crowded, raw, tmp_path
):
    """srun says the remedy, and not to open ports that are open."""
    cluster = crowded(SPOOL_LONG)
    with step_without_its_ports(cluster, raw, tmp_path / "go") as step:
        (tmp_path / "go").touch()
        said = step.communicate()[1]
    assert step.returncode, said
    spool = re.search(r"SlurmdSpoolDir=(\S+) has too long a path", said)
    assert spool and len(spool[1].replace("%n", "n1")) == SPOOL_LONG, said
    assert f"shorten that to {SPOOL_MOST} bytes" in said
    cluster.srun("-N1", "-n2", *raw("exchange", "1")).ok()


def test_slurmd_that_is_away_is_named_where_its_message_is_needed(crowded, raw, tmp_path):
    cluster = crowded(SPOOL_USUAL)
    with step_without_its_ports(cluster, raw, tmp_path / "go") as step:
        for node in "n1", "n2":
            os.kill(daemon(cluster, "slurmd", node), signal.SIGKILL)
        (tmp_path / "go").touch()
        said = step.communicate()[1]
    assert step.returncode, said
    assert re.search(r"slurmd of node n\d does not answer, .*: start slurmd there", said), said
    assert "does not answer" in cluster.log_of("n1") + cluster.log_of("n2")
