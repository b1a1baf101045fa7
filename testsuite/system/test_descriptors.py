# SPDX-License-Identifier: BSD-3-Clause
"""Descriptors of slurmstepd and of tasks."""

import os

import pytest

from harness import Cluster, free_ports, taken_ports

NODES = 2
PORTS = 10
RANK_FD = "60"  # PMI_FD, says pmi2x(7)


@pytest.fixture
def ports():
    """First and last."""
    with free_ports(PORTS) as both:
        yield both


@pytest.fixture
def watched(prefix, scratch, kind, only_pmi2x, compile_program, tmp_path, monkeypatch, ports):
    """A cluster with few ports, and the file of what its daemons close wrongly."""
    conf, log = tmp_path / "mpi.conf", tmp_path / "closes"
    conf.write_text("Pmi2xPorts={}-{}\n".format(*ports))
    shim = compile_program("programs/closes.c", "gcc", "-shared", "-fPIC")
    before = os.environ.get("LD_PRELOAD")
    cluster = Cluster(prefix, scratch / "watched", kind, NODES)
    cluster.options += ["--mpi-conf", conf]
    with monkeypatch.context() as m:
        m.setenv("LD_PRELOAD", f"{before}:{shim}" if before else str(shim))
        m.setenv("CLOSES_LOG", str(log))
        cluster.up()
    yield cluster, log
    cluster.down()


def test_each_is_closed_once(watched, ports, raw):
    """Each descriptor is closed once, also when the agent cannot start."""
    cluster, log = watched
    exchange = raw("exchange", "2")
    cluster.srun(f"-N{NODES}", "-n4", *exchange).ok()
    assert not cluster.wait_until_clean()  # nor its ports
    with taken_ports(*ports):
        result = cluster.srun(f"-N{NODES}", "-n4", *exchange).failed()
        result.says("no free port")
    assert not cluster.wait_until_clean()
    assert not log.exists(), log.read_text()


SHOW = 'echo fd $PMI_FD; readlink /proc/self/fd/$PMI_FD >&2'


def numbers(result, ranks):
    """PMI_FD of each rank, which is a socket after an exec, too."""
    result.ok()
    assert result.stderr.count("socket:[") == ranks, result
    return [line.split()[1] for line in result.lines if line.startswith("fd ")]


@pytest.mark.parametrize(
    "layout, ranks",
    [(["-N4", "--ntasks-per-node=4"], 16), (["-N1", "-n100", "-O"], 100)],
    ids=["four a node", "a hundred on one"],
)
def test_number_of_pmi_fd(spank_cluster, only_pmi2x, layout, ranks):
    """PMI_FD is the same in every rank, however many descriptors slurmstepd has open."""
    found = numbers(spank_cluster.srun(*layout, "sh", "-c", SHOW), ranks)
    assert found == [RANK_FD] * ranks


def test_pmi_fd_is_taken(spank_cluster, plugstack, compile_spank, raw, only_pmi2x, tmp_path):
    """An inherited descriptor of a task stays; PMI_FD is the next one."""
    held = tmp_path / "held"
    held.write_text("held\n")
    plugin = compile_spank("programs/spank-holder.c")
    plugstack.write_text(f"required {plugin} {RANK_FD} {held}\n")
    show = f"{SHOW}; readlink /proc/self/fd/{RANK_FD}"
    result = spank_cluster.srun("-N2", "-n4", "sh", "-c", show)
    assert numbers(result, 4) == [str(int(RANK_FD) + 1)] * 4
    assert result.lines.count(str(held)) == 4, result
    exchanged = spank_cluster.srun("-N2", "-n4", *raw("exchange", "2")).ok()
    assert exchanged.lines.count("exchanged 4") == 4


def test_pmi_fd_is_moved(spank_cluster, raw):
    """As pmi2x(7) says for runtimes that pass on descriptors from 3 on."""
    exchange = " ".join(map(str, raw("exchange", "2")))
    move = "exec 3<&$PMI_FD 60<&-"
    script = f"{move}\nPMI_FD=3 exec {exchange}"
    result = spank_cluster.srun("-N2", "-n4", "bash", "-c", script).ok()
    assert result.lines.count("exchanged 4") == 4
