# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x cluster: several at once, and nothing left when it is killed."""

import os
import shutil
import signal
import subprocess

import pytest

from harness import Cluster, below, run, wait_until
from processes import state_of

PROGRAM = "libexec/pmi2x/pmi2x-cluster"


@pytest.fixture
def small(prefix, scratch, kind):
    """Makes small clusters that are gone after the test."""
    made = []

    def make(name, *options, nodes=2):
        cluster = Cluster(prefix, scratch / name, kind, nodes, options)
        cluster.up()
        made.append(cluster)
        return cluster

    yield make
    for cluster in made:
        run([cluster.program, "down", "--dir", cluster.dir])


def test_two_clusters_at_once(small, raw):
    one, two = small("one"), small("two", nodes=3)
    assert one.state["first_port"] != two.state["first_port"]
    for cluster in one, two:
        result = cluster.srun("-n4", *raw("exchange", "1")).ok()
        assert result.lines.count("exchanged 4") == 4


@pytest.mark.parametrize("victim", ["guard", "supervisor"])
def test_killed(small, victim):
    """Whichever of the two is killed, daemons and steps are gone."""
    cluster = small(victim)
    job = cluster.start(
        "srun", "-N2", "sleep", "1000",
        stdin=subprocess.DEVNULL, stdout=None, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    guard = cluster.state["guard"]
    wait_until(lambda: len(cluster.strays()) >= 4)
    everything = below(guard)
    (supervisor,) = {p for p in everything if below(p) | {p} == everything}
    os.kill(guard if victim == "guard" else supervisor, signal.SIGKILL)
    wait_until(lambda: not {p for p in everything if is_alive(p)})
    job.wait(timeout=30)
    wait_until(lambda: not (cluster.dir / "run").exists())


def is_alive(pid):
    return state_of(pid) not in ("Z", "")


def test_ends_with_its_owner(prefix, scratch):
    program = prefix / PROGRAM
    path = scratch / "owned"
    owner = subprocess.Popen(["sleep", "1000"])
    up = run([program, "up", "-N1", "--dir", path, "--until-exit", owner.pid]).ok()
    up.says(f"1 node is up; try: pmi2x cluster run --dir {path} srun -N1 hostname")
    owner.kill()
    owner.wait()
    status = [program, "status", "--dir", path]
    wait_until(lambda: run(status).code == 1)


def test_restart(small):
    """Other processes; the steps that run, and their commands, go on."""
    cluster = small("restarted")
    before = pids(cluster)
    with cluster.start("srun", "-N2", "cat", stdin=subprocess.PIPE, stderr=None) as job:
        wait_until(lambda: len(cluster.strays()) >= 4)
        cluster.restart("slurmctld", "slurmd.n2")
        assert job.communicate("on\n", timeout=60)[0] == "on\n" * 2
    assert job.returncode == 0
    after = pids(cluster)
    assert {n for n in before if before[n] != after[n]} == {"slurmctld", "slurmd.n2"}


def pids(cluster):
    files = (cluster.dir / "run").glob("slurm*.pid")
    return {path.stem: int(path.read_text()) for path in files}


def test_restart_of_nobody(small):
    cluster = small("complete")
    command = [cluster.program, "restart", "--dir", cluster.dir, "slurmd.n3"]
    run(command).failed().says("no slurmd.n3 is up")


def test_run_without_cluster(prefix, scratch):
    result = run(
        [prefix / PROGRAM, "run"]
        + ["--dir", scratch / "nothing", "srun", "true"]
    )
    result.failed().says("no cluster is up")


def test_run_in_its_own_cluster(prefix):
    program = prefix / PROGRAM
    result = run(
        [program, "run", "-N2", "-q", "srun", "-N2", "sh", "-c", "exit 3"]
    )
    assert result.code == 3, result


def test_bad_options(prefix, scratch):
    program = prefix / PROGRAM
    for options, words in (
        (["--dir", f"{scratch}/with space"], "cannot have"),
        (["--dir", scratch, "--ports", "5"], "LOW-HIGH"),
        (["--dir", "/usr"], "not empty"),
        (["--plugindir", "/proc/nonexistent"], "not a directory"),
        (["--slurm-prefix", "/nonexistent"], "there is no bin/srun"),
        (["--mpi-conf", "/nonexistent"], "there is no such file"),
    ):
        run([program, "up", "-N2", *options]).failed().says(words)


def test_failure_shows_the_log(prefix, scratch):
    result = run(
        [prefix / PROGRAM, "up", "-N2"]
        + ["--dir", scratch / "broken"]
        + ["--slurm-conf-line", "SelectType=select/nonsense"]
    )
    result.failed().says("select/nonsense".split("/")[1])


def test_ordinary_user(session_cluster, prefix, ordinary_user, public, kind):
    """Slurm works for one user without root, for that user's jobs."""
    result = run(
        [*ordinary_user, prefix / PROGRAM, "run", "-N2", "-q"]
        + ["--plugindir", prefix / "lib" / "slurm"]
        + ["srun", f"--mpi={kind}", "-n4", "/usr/bin/python3", "-SE"]
        + [public / "programs" / "exchange.py", "1"],
        cwd="/",
    )
    if session_cluster.state["auth"] == "slurm":
        result.failed().says("auth/slurm needs a socket in /run/user/")
        return
    result.ok()
    assert result.lines.count("exchanged 4") == 4


def test_authentication_by_slurm(session_cluster, small, scratch, raw):
    state = session_cluster.state
    if state["version"] < [25, 5]:
        up = ["up", "--dir", scratch / "auth", "--auth", "slurm"]
        run([session_cluster.program, *up]).failed().says("before 25.05")
        return
    if not os.path.exists(f"{state['plugin_dir']}/serializer_json.so"):
        pytest.skip("this Slurm has been built without JSON")
    cluster = small("auth", "--auth", "slurm")
    assert "AuthType=auth/slurm" in (cluster.dir / "slurm.conf").read_text()
    socket = cluster.srun("-n1", "printenv", "SLURM_SACK_SOCKET").ok().lines[0]
    result = cluster.srun("-n4", *raw("exchange", "1")).ok()
    assert result.lines.count("exchanged 4") == 4
    cluster.down()
    assert not os.path.exists(os.path.dirname(socket))


def test_too_few_open_files(prefix, scratch):
    """A limit that is too low is named with the command that raises it."""
    up = f"'{prefix}/{PROGRAM}' up -N16 --dir {scratch}/limited"
    result = run(["sh", "-c", f"ulimit -n 300; exec {up}"])
    result.failed().says("ulimit -n")


def test_plugin_directory_with_a_space(prefix, scratch, raw, kind):
    plugins = scratch / "with space"
    shutil.copytree(prefix / "lib" / "slurm", plugins)
    result = run(
        [prefix / PROGRAM, "run", "-N2", "-q"]
        + ["--plugindir", plugins]
        + ["srun", f"--mpi={kind}", "-n4", *raw("exchange", "1")]
    ).ok()
    assert result.lines.count("exchanged 4") == 4
