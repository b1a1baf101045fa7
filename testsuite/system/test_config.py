# SPDX-License-Identifier: BSD-3-Clause
"""mpi.conf, and plugins that are missing or strange."""

import contextlib
import os
import shutil
import socket

import pytest

from faulty import give_up_node, listener, restarted
from harness import Cluster, free_ports, run, taken_ports, wait_until


@pytest.fixture
def configured(prefix, scratch, kind, only_pmi2x):
    """Brings up a cluster with this text as its mpi.conf."""
    made = []

    def make(text, nodes=4):
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


def test_an_option_that_is_no_more(configured, raw):
    """An mpi.conf of before still works; the log says that the line does nothing."""
    cluster = configured("Pmi2xAlgorithm=ring\n")
    result = cluster.srun("-N4", "-n9", *raw("exchange", "2")).ok()
    assert result.lines.count("exchanged 9") == 9
    assert "unknown option Pmi2xAlgorithm" in result.stderr + logs(cluster)


def test_torch_without_free_ports_is_named(configured):
    """Pmi2xTorch is the default of a site, and a job switches it off."""
    with free_ports(2) as (first, last):
        cluster = configured(f"Pmi2xPorts={first}-{last}\nPmi2xTorch=env\n", nodes=1)
        got = cluster.srun("-N1", "-n1", "env").ok().stdout
        assert f"MASTER_PORT={first}" in got or f"MASTER_PORT={last}" in got
        with taken_ports(first, last):
            result = cluster.srun("-N1", "-n1", "true").failed()
            result.says(f"no port from {first} to {last} that PMI2X_TORCH can give to the tasks (Address already in use)")
            cluster.srun("-N1", "-n1", "true", env={"PMI2X_TORCH": "off"}).ok()


def test_steps_of_a_node_have_other_ports_of_torch(configured, tmp_path):
    """Also while nobody listens at the ports of the first step."""
    with free_ports(4) as (first, last):
        cluster = configured(f"Pmi2xPorts={first}-{last}\nPmi2xTorch=env\n", nodes=1)
        show = "echo $MASTER_PORT ${JAX_COORDINATOR_ADDRESS##*:}"
        os.mkfifo(tmp_path / "gate")
        waits = ["sh", "-c", f"{show}; read gate <{tmp_path}/gate"]
        step = cluster.start("srun", "--mpi=pmi2x", "-N1", "-n1", "--overcommit", *waits)
        ports = step.stdout.readline().split()
        ports += cluster.srun("-N1", "-n1", "--overcommit", "sh", "-c", show).ok().lines[0].split()
        (tmp_path / "gate").write_text("go\n")
        assert step.wait(60) == 0
        assert sorted(map(int, ports)) == list(range(first, last + 1)), ports


@pytest.mark.parametrize("width", ["0", "1", "1000000000", "-3", "many"])
def test_bad_tree_width(configured, raw, width):
    """Slurm stays up; the value is refused or clamped, and the log says so."""
    cluster = configured(f"Pmi2xTreeWidth={width}\n")
    result = cluster.srun("-N4", "-n4", *raw("exchange", "1"))
    assert result.code == 0 or "Pmi2xTreeWidth" in result.stderr, result
    assert "Pmi2xTreeWidth" in result.stderr + logs(cluster)


def test_network(configured, raw, tmp_path):
    """Nodes listen there only; none finds another but by what it is told."""
    cluster = configured("Pmi2xNetwork=127.0.0.1/32\n")
    command = ["srun", "--mpi=pmi2x", "-N4", "-n8", "--ntasks-per-node=2"]
    command += raw("gate", "2", "7", tmp_path / "go")
    with cluster.start(*command, stdout=None, stderr=None) as step:
        pid = wait_until(lambda: cluster.agent("n2"))
        assert listener(pid).getsockname()[0] == "127.0.0.1"
        (tmp_path / "go").touch()
        assert step.wait(timeout=60) == 0
    result = cluster.srun("-N4", "-n9", *raw("exchange", "2")).ok()
    assert result.lines.count("exchanged 9") == 9


def test_network_without_the_node(configured, raw):
    cluster = configured("Pmi2xNetwork=240.0.0.0/4\n", nodes=2)
    result = cluster.srun("-N2", "-n2", *raw("exchange", "1")).failed()
    result.says("has no address in 240.0.0.0/4")
    result.says("fix Pmi2xNetwork in mpi.conf")
    cluster.srun("-N1", "-n2", *raw("exchange", "1")).ok()


def test_nodes_of_ipv6_alone(prefix, scratch, kind, raw):
    """Links, what is told, and srun are reached at ::1."""
    line = "CommunicationParameters=EnableIPv6,DisableIPv4"
    options = ["--slurm-conf-line", line]
    if not has_ipv6():
        pytest.skip("no IPv6 on the loopback interface")
    cluster = Cluster(prefix, scratch / "ipv6", kind, 4, options)
    cluster.up()
    try:
        result = cluster.srun("-N4", "-n9", *raw("exchange", "2")).ok()
        assert result.lines.count("exchanged 9") == 9
        cluster.srun("-N4", "-n4", *raw("names")).ok()
        result = cluster.srun("-N4", "-n4", *raw("abort", "2", "3")).failed()
        result.says("rank 3 on node n4 called abort")
    finally:
        cluster.down()


def has_ipv6():
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as one:
        one.bind(("::1", 0))
        return True
    return False


def options_of(manual):
    """{option: its variable or None}, as the manual lists them."""
    found, option = {}, None
    for line in manual.read_text().splitlines():
        if line.startswith((".Ss", ".Sh")):
            option = None
        if line.startswith(".It Cm Pmi2x"):
            option = line.split()[2]
            found[option] = None
        if option and line.startswith(".Ev PMI2X_"):
            found[option] = line.split()[1]
    return found


def assert_line(text, where, option):
    """A line with the place, the value, the allowed values, and the value in use."""
    said = [l for l in text.splitlines() if f" is not a value of {option}:" in l]
    assert said, f"nothing about {option} in\n{text}"
    for line in said:
        assert f'{where}: "-wrong" is' in line, line
        assert ": use " in line and "; continuing with " in line, line


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
    del env["PMI2X_LEND"]  # with which no step begins: test_lend.py
    assert len(env) > 7
    result = cluster.srun("-N4", "-n4", *raw("exchange", "2"), env=env).ok()
    assert result.lines.count("exchanged 4") == 4
    for name, variable in options.items():
        if variable in env:
            assert_line(result.stderr, variable, name)


def test_unknown_option(configured, raw):
    cluster = configured("Pmi2xTreeWitdh=4\n")
    cluster.srun("-N2", "-n2", *raw("exchange", "1")).ok()
    assert "Pmi2xTreeWitdh" in logs(cluster)


@pytest.mark.parametrize(
    "mib, says",
    [
        ("0", ""),
        ("1", ""),
        ("1024", ""),
        ("16384", "is above Pmi2xRegionSize=1024, which a job can only lower"),
        ("1048576", "is not a value of Pmi2xRegionSize"),
    ],
)
def test_region_size(srun, raw, only_pmi2x, mib, says):
    """A size is served, or refused by name and the default serves."""
    env = {"PMI2X_REGION_SIZE": mib}
    result = srun("-N2", "-n4", *raw("exchange", "2"), env=env).ok()
    assert result.stderr.count("Pmi2xRegionSize") == bool(says), result
    result.says(says)


def test_job_cannot_raise_limits_of_the_site(configured, raw):
    """A job can raise how long it waits itself, not how long it holds a node."""
    cluster = configured(
        "Pmi2xDrainTimeout=3\nPmi2xRegionSize=16\nPmi2xConnectTimeout=5\n"
    )
    env = {
        "PMI2X_DRAIN_TIMEOUT": "600",
        "PMI2X_REGION_SIZE": "1024",
        "PMI2X_CONNECT_TIMEOUT": "600",
    }
    exchange = ["-N4", "-n8", *raw("exchange", "2")]
    result = cluster.srun(*exchange, env=env).ok()
    said = [l for l in result.stderr.splitlines() if "can only lower" in l]
    assert len(said) == 1, result
    assert "PMI2X_DRAIN_TIMEOUT=600 is above Pmi2xDrainTimeout=3" in said[0]
    assert "PMI2X_REGION_SIZE=1024 is above Pmi2xRegionSize=16" in said[0]
    assert "PMI2X_CONNECT_TIMEOUT" not in result.stderr
    lower = {"PMI2X_DRAIN_TIMEOUT": "2", "PMI2X_REGION_SIZE": "16"}
    assert not cluster.srun(*exchange, env=lower).ok().stderr


def logs(cluster):
    return "".join(
        path.read_text(errors="replace")
        for path in (cluster.dir / "log").iterdir()
    )


def test_plugin_missing_on_a_node(prefix, scratch, kind, only_pmi2x, raw):
    """The step ends with an error. Its slurmd and a slurmstepd then wait for each other,
    until slurmd is restarted: Slurm's own fault, which every MPI plugin meets."""
    cluster = Cluster(prefix, scratch / "missing", kind, 2)
    cluster.options += ["--slurm-conf-line", "MessageTimeout=10"]
    cluster.up()
    step = ["-N2", "-n2", *raw("exchange", "1")]
    try:
        with restarted(cluster, "n2", without_plugin(cluster, scratch)) as slurmd:
            cluster.srun(*step, timeout=90).failed()
            slurmd.kill()
            slurmd.wait()
            give_up_node(cluster, "n2")
            with restarted(cluster, "n2", cluster.dir / "slurm.conf"):
                cluster.srun(*step, timeout=90).ok()
    finally:
        cluster.down()


def without_plugin(cluster, scratch):
    """A configuration as if the plugin had not been installed."""
    conf = scratch / "without.conf"
    text = (cluster.dir / "slurm.conf").read_text()
    conf.write_text(
        "".join(l + "\n" for l in text.splitlines() if "PluginDir" not in l)
    )
    shutil.copy(cluster.dir / "cgroup.conf", scratch)
    return conf
