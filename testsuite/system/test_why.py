# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x why and pmi2x check on a real Slurm: what the ranks do that others wait for."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from harness import Cluster, run, stop, wait_until

LAYOUT = ["-N4", "-n8", "--ntasks-per-node=2"]
LATE = 5  # a rank of node n3
SCRIPT = """#!/bin/sh
[ "$SLURM_PROCID" != {late} ] || {{ {what}; }}
exec "$@"
"""


# Of linux/fanotify.h.
FAN_CLASS_CONTENT, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM = 4, 1, 0x40000
AT_FDCWD = -100


@contextlib.contextmanager
def slow_to_execute(path):
    """Who executes this file waits until the end, as for a file server."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.fanotify_init(FAN_CLASS_CONTENT, os.O_RDONLY)
    if watch < 0:
        pytest.skip(f"fanotify: {os.strerror(ctypes.get_errno())}")
    try:
        event = ctypes.c_uint64(FAN_OPEN_EXEC_PERM)
        if libc.fanotify_mark(watch, FAN_MARK_ADD, event, AT_FDCWD, os.fsencode(path)):
            pytest.skip(f"fanotify: {os.strerror(ctypes.get_errno())}")
        yield
    finally:
        os.close(watch)


@pytest.fixture
def pmi2x(prefix):
    path = prefix / "bin" / "pmi2x"
    if not os.access(path, os.X_OK):
        pytest.skip("pmi2x is not installed")
    return path


class Step:
    """One in which rank LATE does something before its fence."""

    def __init__(self, cluster, what, directory, program, options=(), user=()):
        self.cluster, self.user = cluster, user
        self.name = f"why-{os.getpid()}-{time.monotonic_ns()}"
        script = directory / "late"
        script.write_text(SCRIPT.format(late=LATE, what=what))
        script.chmod(0o755)
        argv = [*user, "srun", f"--mpi={cluster.kind}", "-J", self.name]
        argv += [*LAYOUT, *options, script, *program]
        self.srun = cluster.start(*argv, stdin=subprocess.DEVNULL, stdout=None,
                                  stderr=None, cwd="/")

    @property
    def id(self):
        argv = ["squeue", "-h", "-o", "%i", "-n", self.name, "-t", "R"]
        return wait_until(lambda: self.cluster.run(*argv).stdout.strip(), 60) + ".0"

    def end(self):
        if self.srun.poll() is None:
            self.srun.terminate()
        self.srun.wait(timeout=60)


@pytest.fixture
def start(cluster, raw, tmp_path):
    made = []
    tmp_path.chmod(0o755)

    def start_one(what, directory=tmp_path, program=raw("exchange", "2"), **more):
        made.append(Step(cluster, what, directory, program, **more))
        return made[-1]

    yield start_one
    for step in made:
        step.end()


def await_words(pmi2x, step, *patterns):
    """What why says, once it says all of these."""
    def says():
        shown = step.cluster.run(*step.user, pmi2x, "why", step.id, cwd="/").ok().stdout
        return shown if all(re.search(p, shown, re.M) for p in patterns) else None

    return wait_until(says, 120)


WAITED_FOR = rf"^fence 0: .* waiting for 1 of 8 ranks: {LATE} \(node n3"


def test_a_rank_that_sleeps(pmi2x, start):
    step = start("sleep 1000")
    shown = await_words(pmi2x, step, WAITED_FOR,
                        rf"^rank {LATE} \(node n3\): sleep is in clock_nanosleep$")
    assert len(re.findall("^rank", shown, re.M)) == 1, shown


def test_a_rank_that_opens_a_file(pmi2x, start, tmp_path):
    os.mkfifo(tmp_path / "input")
    step = start(f"cat {tmp_path}/input")
    await_words(pmi2x, step, WAITED_FOR,
                rf"^rank {LATE} \(node n3\): cat is in openat of {tmp_path}/input \(\w+")


def test_a_rank_that_is_stopped(pmi2x, start):
    step = start("exec sleep 1000")
    await_words(pmi2x, step, WAITED_FOR)
    found = json.loads(step.cluster.run(pmi2x, "why", "--json", step.id).ok().stdout)
    (rank,) = found["nodes"]["n3"]
    stop(rank["processes"][-1]["pid"])
    await_words(pmi2x, step, rf"^rank {LATE} \(node n3\): sleep is stopped by a signal")


def test_chosen_ranks(pmi2x, start):
    step = start("sleep 1000")
    await_words(pmi2x, step, WAITED_FOR)
    shown = step.cluster.run(pmi2x, "why", "--ranks", "0-1,5", step.id).ok().stdout
    assert "rank 5 (node n3): sleep " in shown
    assert "ranks 0-1 (node n1): python3 is in recvfrom of a socket" in shown
    assert not re.search(r"ranks? [^ ]*[2467]", shown.partition("\n\n")[2]), shown


def test_a_rank_before_its_exec(pmi2x, start, tmp_path):
    """A task prolog is slow: the rank has not executed its program."""
    prolog = tmp_path / "prolog"
    prolog.write_text(f'#!/bin/sh\n[ "$SLURM_PROCID" != {LATE} ] || sleep 1000\n')
    prolog.chmod(0o755)
    step = start(":", options=[f"--task-prolog={prolog}"])
    await_words(pmi2x, step, rf"^rank {LATE} \(node n3\): has not executed its program, "
                r"\d+ s after it began: waits for sleep, which is in clock_nanosleep$")


def test_a_program_that_is_slow_to_execute(pmi2x, cluster, tmp_path):
    """As from a file system that does not answer. Root may know the file."""
    program = tmp_path / "program"
    shutil.copy("/bin/true", program)
    name = f"slow-{os.getpid()}"
    argv = ["srun", "-J", name, f"--mpi={cluster.kind}", *LAYOUT, program]
    with slow_to_execute(program):
        srun = cluster.start(*argv, stdin=subprocess.DEVNULL, stdout=None, stderr=None)
        argv = ["squeue", "-h", "-o", "%i", "-n", name, "-t", "R"]
        job = wait_until(lambda: cluster.run(*argv).stdout.strip(), 60)
        said = re.compile(
            r"^ranks 0-7 \(4 nodes\): has not executed its program, \d+ s after it began: "
            rf"waits for a device or a file server \(state D\), in execve of {program} \(",
            re.M)
        wait_until(lambda: said.search(cluster.run(pmi2x, "why", f"{job}.0").stdout), 120)
    assert srun.wait(timeout=60) == 0


def test_a_step_of_an_ordinary_user(pmi2x, start, public, ordinary_user):
    program = ["/usr/bin/python3", "-SE", public / "programs" / "exchange.py", "2"]
    step = start("sleep 1000", directory=public, program=program, user=ordinary_user)
    await_words(pmi2x, step, WAITED_FOR,
                rf"^rank {LATE} \(node n3\): sleep is in clock_nanosleep$")


def test_anothers_step(pmi2x, start, ordinary_user, cluster):
    """Root starts the step; whom it waits for is not told to others."""
    step = start("sleep 1000")
    result = cluster.run(*ordinary_user, pmi2x, "why", step.id)
    assert "who waits for whom is not known" in result.stdout + result.stderr
    assert result.code == 1, result


def test_no_such_step(pmi2x, cluster):
    result = cluster.run(pmi2x, "why", "99999999.0")
    assert result.code == 2
    result.says("no step 99999999.0")


# ---- check ----


def test_check(pmi2x, cluster, only_pmi2x):
    shown = cluster.run(pmi2x, "check", "--all", timeout=300)
    assert shown.code in (0, 1), shown  # this machine's limits may be low
    assert re.search(r"^OK +trial: a step of 16 nodes .* has exchanged data$",
                     shown.stdout, re.M), shown
    assert re.search(r"^OK +build: all have build ", shown.stdout, re.M), shown


def test_check_in_an_allocation(pmi2x, cluster, only_pmi2x):
    shown = cluster.run("salloc", "-N2", pmi2x, "check", "--json", timeout=300)
    found = {f["check"]: f for f in json.loads(shown.stdout)["findings"]}
    assert found["trial"]["level"] == "OK", shown
    assert "a step of 2 nodes" in found["trial"]["text"]


def test_check_without_a_cluster(pmi2x, tmp_path):
    conf = tmp_path / "slurm.conf"
    conf.write_text("")  # for one that is not there Slurm waits a minute
    result = run([pmi2x, "check"], env={"SLURM_CONF": str(conf)})
    assert result.code == 3, result
    assert result.stdout.startswith("PMI2X UNKNOWN - slurmctld does not answer"), result


PLUGIN_OF_ANOTHER = """
const char plugin_name[] = "of another Slurm", plugin_type[] = "mpi/pmi2x";
const unsigned int plugin_version = 0x140b05;
"""


def test_plugin_of_another_slurm(pmi2x, cluster, only_pmi2x, scratch):
    """srun refuses it, and check says which one is needed."""
    place = scratch / "of-another"
    place.mkdir()
    (place / "plugin.c").write_text(PLUGIN_OF_ANOTHER)
    run(["cc", "-shared", "-fPIC", "-o", place / "mpi_pmi2x.so", place / "plugin.c"]).ok()
    lines = (cluster.dir / "slurm.conf").read_text()
    (place / "slurm.conf").write_text(re.sub("(?m)^(PluginDir=).*", rf"\1{place}:"
                                             + cluster.state["plugin_dir"], lines))
    with_it = ["env", f"SLURM_CONF={place}/slurm.conf"]
    cluster.run(*with_it, "srun", "--mpi=pmi2x", "true").failed().says(
        "mpi_pmi2x.so version (20.11.5)")
    shown = cluster.run(*with_it, pmi2x, "check", "--no-trial", "--nodes", "n1").stdout
    assert "the installed one is for Slurm 20.11.5" in shown
    assert re.search(r"built for Slurm \d[\d.]+, as mpi_pmi2x.so in ", shown), shown


def test_without_authentication(pmi2x, prefix, scratch, kind, only_pmi2x):
    """Neither munge nor auth/slurm is at work."""
    cluster = Cluster(prefix, scratch / "unproven", kind, 2)
    cluster.up()
    try:
        munged = cluster.dir / "run" / "munged.pid"
        if not munged.exists():
            pytest.skip("this cluster authenticates with auth/slurm")
        os.kill(int(munged.read_text()), signal.SIGTERM)
        wait_until(lambda: not munged.exists())
        check, why = (cluster.run(pmi2x, *words) for words in (["check"], ["why", "1.0"]))
    finally:
        cluster.down()
    assert (check.code, why.code) == (3, 2), (check, why)
    for said in check.stdout, why.stderr:
        assert "Slurm cannot authenticate on this host: scontrol: error: Munge" in said
        assert "start munge here" in said


def test_check_program(pmi2x, probe):
    result = run([pmi2x, "check", "--mpi", probe]).ok()
    assert "srun --mpi=pmi2x" in result.stdout, result
    assert run([pmi2x, "check", "--mpi", "/bin/true"]).code == 2
