# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x check and pmi2x probe --nodes, where a node is not as it should be."""

import os
import pathlib
import shutil
import signal
import tempfile
import time

import pytest

from faulty import restarted
from harness import Cluster, wait_until
from processes import of_process, read_text

STUCK_S = 60  # after which a node that is completing is named


@pytest.fixture
def late_plugin(prefix, scratch, kind, only_pmi2x, site):
    """A cluster of three nodes, whose daemons have started before the plugin came."""
    if site or os.getuid():
        pytest.skip("restarts slurmd outside of a node's namespaces, and looks into slurmd")
    plugins = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    plugins.chmod(0o755)
    cluster = Cluster(prefix, plugins / "cluster", kind, 3)
    cluster.options = ["--plugindir", plugins, "--slurm-conf-line", "MessageTimeout=10"]
    cluster.up()
    shutil.copy(prefix / "lib/slurm/mpi_pmi2x.so", plugins)
    yield cluster
    cluster.down()


def test_local_looks_at_this_host_and_starts_no_step(cluster, prefix, kind, site):
    if kind != "pmi2x" or site:
        pytest.skip("for the plugin, and a slurmd of this host")
    before = cluster.run("squeue", "-a", "-t", "all", "-h").stdout
    said = cluster.run(prefix / "bin/pmi2x", "check", "--local").ok().stdout
    assert "agent: pmi2x-agent starts, and has the plugin's build" in said, said
    assert "slurmd has loaded the plugin" in said or os.getuid(), said
    assert cluster.run("squeue", "-a", "-t", "all", "-h").stdout == before


def completing(cluster):
    shown = cluster.run("sinfo", "-h", "-N", "-o", "%N %T").lines
    return [line.split()[0] for line in shown if line.endswith("completing")]


def test_daemons_that_are_reloaded_load_the_plugin(late_plugin):
    """As the packages do it: "systemctl reload" of slurmd and slurmctld is SIGHUP."""
    cluster = late_plugin
    for path in (cluster.dir / "run").glob("slurm*.pid"):
        os.kill(int(path.read_text()), signal.SIGHUP)
    wait_until(lambda: "Pmi2xPorts" in cluster.run("scontrol", "show", "config").stdout)
    wait_until(lambda: all(has_loaded(path) for path in
                           (cluster.dir / "run").glob("slurmd.*.pid")))
    cluster.srun("-N3", "true").ok()


def has_loaded(pid_file):
    return "/mpi_pmi2x.so" in of_process(read_text(pid_file), "maps")


@pytest.mark.wide
def test_step_before_slurmd_knows_the_plugin(late_plugin, prefix):
    """The nodes complete the job until slurmd starts again: a bug of Slurm, which every
    MPI plugin meets. Before the step, check starts no trial; afterwards check and srun
    name the nodes."""
    check = [prefix / "bin/pmi2x", "check"]
    cluster = late_plugin
    said = cluster.run(*check, timeout=300).failed().stdout
    assert "slurmctld has not loaded the plugin" in said, said
    assert "trial:" not in said and not completing(cluster), said
    said = cluster.run(*check, "--local").failed().stdout
    assert "slurmd has not loaded the plugin" in said, said

    cluster.srun("-w", "n[1-2]", "-N2", "true", timeout=90).failed()
    since = time.monotonic()
    starts_anew = tuple(cluster.state["version"]) >= (23, 11)  # at a reconfigure
    if not starts_anew:
        cluster.run("scontrol", "reconfigure").ok()
    wait_until(lambda: time.monotonic() - since > STUCK_S + 1)
    assert completing(cluster) == ["n1", "n2"]
    probe = cluster.run(prefix / "bin/pmi2x-probe", "--nodes", "n[1-3]", timeout=180)
    assert probe.failed().stdout.count("completing for ") == 4, probe
    assert "for n1,n2 to end a job" in " ".join(probe.stdout.split()), probe
    said = cluster.run(*check, timeout=300).failed().stdout
    assert "2 nodes (n1, n2) have been completing a job for 1 minute" in said, said
    assert starts_anew or "a step of 1 node (n3) has exchanged data" in said, said

    if starts_anew:
        cluster.run("scontrol", "reconfigure").ok()
        all_nodes_work(cluster, check)
        return
    conf = cluster.dir / "slurm.conf"
    with restarted(cluster, "n1", conf), restarted(cluster, "n2", conf):
        all_nodes_work(cluster, check)


def all_nodes_work(cluster, check):
    wait_until(lambda: not completing(cluster))
    cluster.srun("-N3", "true").ok()
    said = cluster.run(*check, "--all", timeout=300).stdout
    assert "a step of 3 nodes (n1, n2, n3) has exchanged data" in said, said
