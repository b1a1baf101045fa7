# SPDX-License-Identifier: BSD-3-Clause
"""mpi.conf, and plugins that are missing or strange."""

import os
import shutil
import signal
import subprocess
import time

import pytest

from harness import Cluster, below, process_table, run


@pytest.fixture
def configured(prefix, scratch, kind):
    """Brings up a cluster with this text as its mpi.conf."""
    made = []

    def make(text, nodes=4):
        if kind != "pmi2x":
            pytest.skip("these options are pmi2x's")
        conf = scratch / "mpi.conf"
        conf.write_text(text)
        cluster = Cluster(
            prefix,
            scratch / f"configured-{len(made)}",
            kind,
            nodes,
            ["--mpi-conf", conf],
        )
        made.append(cluster)
        cluster.up()
        return cluster

    yield make
    for cluster in made:
        run([cluster.program, "down", "--dir", cluster.dir])


@pytest.mark.parametrize("width", ["2", "3", "64"])
def test_tree_width(configured, raw, width):
    cluster = configured(f"Pmi2xTreeWidth={width}\n")
    shown = cluster.run("scontrol", "show", "config").ok().stdout
    assert any("Pmi2xTreeWidth" in l and width in l for l in shown.splitlines())
    result = cluster.srun("-N4", "-n9", *raw("exchange", "2")).ok()
    assert result.lines.count("exchanged 9") == 9


@pytest.mark.parametrize("width", ["0", "1", "1000000000", "-3", "many"])
def test_bad_tree_width(configured, raw, width):
    """Slurm stays up; the value is refused or clamped, and the log says so."""
    cluster = configured(f"Pmi2xTreeWidth={width}\n")
    result = cluster.srun("-N4", "-n4", *raw("exchange", "1"))
    assert result.code == 0 or "Pmi2xTreeWidth" in result.stderr, result
    assert "Pmi2xTreeWidth" in result.stderr + logs(cluster)


def options_of(manual):
    """{option: its variable or None}, as the manual lists them."""
    found, option = {}, None
    for line in manual.read_text().splitlines():
        if line.startswith((".It", ".El")):
            option = None
        if line.startswith(".It Cm Pmi2x"):
            option = line.split()[2]
            found[option] = None
        if option and line.startswith(".Ev PMI2X_"):
            found[option] = line.split()[1]
    return found


def assert_line(text, where, option):
    """One line with the place, the value, what is allowed, what is used."""
    said = [l for l in text.splitlines() if f" no value for {option}:" in l]
    assert said, f"nothing about {option} in\n{text}"
    for line in said:
        assert f'{where}: "-wrong" is' in line, line
        assert ": use " in line and "; going on with " in line, line


def test_every_option_wrong(configured, prefix, raw):
    """In mpi.conf, and in the environment: lines, defaults, and a good step."""
    manual = prefix / "share" / "man" / "man5" / "mpi_pmi2x.conf.5"
    options = options_of(manual)
    assert len(options) > 10
    cluster = configured("".join(f"{name}=-wrong\n" for name in options))
    said = logs(cluster)
    for name in options:
        assert_line(said, "mpi.conf", name)
    shown = cluster.run("scontrol", "show", "config").ok().stdout
    assert all(name in shown for name in options), shown
    assert "-wrong" not in shown
    env = {name: "-wrong" for name in options.values() if name}
    assert len(env) > 7
    result = cluster.srun("-N4", "-n4", *raw("exchange", "2"), env=env).ok()
    assert result.lines.count("exchanged 4") == 4
    for name, variable in options.items():
        if variable:
            assert_line(result.stderr, variable, name)


def test_unknown_option(configured, raw):
    cluster = configured("Pmi2xTreeWitdh=4\n")
    cluster.srun("-N2", "-n2", *raw("exchange", "1")).ok()
    assert "Pmi2xTreeWitdh" in logs(cluster)


@pytest.mark.parametrize("mib", ["0", "1", "16384", "16385", "1048576"])
def test_region_size(srun, raw, kind, mib):
    """A size is served, or refused by name and the default serves."""
    if kind != "pmi2x":
        pytest.skip("this option is pmi2x's")
    env = {"PMI2X_REGION_SIZE": mib}
    result = srun("-N2", "-n4", *raw("exchange", "2"), env=env).ok()
    assert ("Pmi2xRegionSize" in result.stderr) == (int(mib) > 16384), result


def logs(cluster):
    return "".join(
        path.read_text(errors="replace")
        for path in (cluster.dir / "log").iterdir()
    )


def test_plugin_missing_on_a_node(prefix, scratch, kind, raw):
    """The step ends with an error, and the node is not lost."""
    if kind != "pmi2x":
        pytest.skip("the stock plugin is never missing")
    cluster = Cluster(prefix, scratch / "missing", kind, 2)
    cluster.options += ["--slurm-conf-line", "MessageTimeout=10"]
    cluster.up()
    slurmd = None
    try:
        slurmd = restart_without_plugin(cluster, scratch)
        result = cluster.srun("-N2", "-n2", *raw("exchange", "1"), timeout=90)
        result.failed()
    finally:
        if slurmd:
            slurmd.kill()
            slurmd.wait()
        cluster.down()


def restart_without_plugin(cluster, scratch):
    """Start node n2's slurmd again as if the plugin had not been installed."""
    table = process_table()
    for pid in below(cluster.state["guard"]):
        words = open(f"/proc/{pid}/cmdline").read().split("\0")
        if table.get(pid, (0, ""))[1] == "slurmd" and "n2" in words:
            os.kill(pid, signal.SIGTERM)
    time.sleep(1)
    conf = scratch / "without.conf"
    text = (cluster.dir / "slurm.conf").read_text()
    conf.write_text(
        "".join(l + "\n" for l in text.splitlines() if "PluginDir" not in l)
    )
    shutil.copy(cluster.dir / "cgroup.conf", scratch)
    slurmd = subprocess.Popen(
        [cluster.state["programs"]["slurmd"], "-D", "-N", "n2", "-f", conf],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(2)
    return slurmd
