# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-pmixd, which runs what libpmix loads, may use what its step may use, loads
nothing that the user chooses, and is no process that Slurm shows, kills or waits for."""

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import subprocess

import pytest

from harness import SLOWNESS, below, command_line, process_table, read_text, run, wait_until
from test_site import forgotten, make_site, place, shown_pids  # noqa: F401

pytestmark = pytest.mark.usefixtures("needs_pmixd")
SERVER = "pmi2x-pmixd"
USER = "daemon"
GUEST = "pmix_mca_pcompress_guest.so"  # named as a component of libpmix
HWLOC_GUEST = "hwloc_guest.so"
WHEN = pytest.mark.parametrize("when", ["auto", "early"])
PROGRAM = """
import os, sys

os.sched_setaffinity(0, range(os.cpu_count()))
print(sorted(os.sched_getaffinity(0)))
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDONLY))
        print("opened")
    except OSError as error:
        print(error.strerror)
"""


@pytest.fixture(scope="module")
def home(place):
    """The user's, by name: pmi2x-pmixd has no environment."""
    path = place / "home"
    path.mkdir()
    shutil.chown(path, USER)
    return path


def cover_passwd(cluster, home):
    """With a copy in which the user's home is that of the tests, on each node."""
    copy = cluster.dir / "passwd"
    text = pathlib.Path("/etc/passwd").read_text()
    old = pwd.getpwnam(USER).pw_dir
    copy.write_text(re.sub(rf"(?m)^({USER}:.*):{old}:", rf"\1:{home}:", text))
    command = [cluster.program, "run", "--dir", cluster.dir, "--host"]
    for node in "n1", "n2":
        run([*command, node, "mount", "--bind", copy, "/etc/passwd"]).ok()


@pytest.fixture(scope="module")
def confined_cluster(prefix, kind, place, home):
    """Whose nodes claim two CPUs, so that steps are confined to cores."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one CPU only")
    cluster = make_site(prefix, kind, place / "confined", 2, "--cpus", "2")
    cover_passwd(cluster, home)
    yield cluster
    cluster.down()


@pytest.fixture
def cluster(confined_cluster):
    yield from confined_cluster.left_clean()


@pytest.fixture(scope="module")
def guest(place):
    """A library that stays where it has been loaded."""
    path = place / GUEST
    command = ["cc", "-shared", "-fPIC", "-Wl,-z,nodelete", "-xc", "-", "-o", path]
    subprocess.run(command, input=b"int guest;", check=True)
    return path


@pytest.fixture(scope="module")
def gate(pmix_program, place):
    """The PMIx client where every user reaches it."""
    path = place / "pmix-gate"
    shutil.copy(pmix_program("programs/pmix-gate.c"), path)
    return path


class Step:
    """One of PMIx clients of the user, which wait until it is left."""

    def __init__(
        self, cluster, place, gate, options, mpi=None, shell="exec {0}", env=None, job=(),
        fails=False,
    ):  # fmt: skip
        self.cluster, self.go, self.fails = cluster, place / "go", fails
        up = place / "up"
        for path in [self.go, *place.glob("up.*")]:
            path.unlink(missing_ok=True)
        gid = pwd.getpwnam(USER).pw_gid
        become = ["setpriv", f"--reuid={USER}", f"--regid={gid}", "--clear-groups"]
        script = shell.format(f"{gate} {up}.$SLURM_PROCID {self.go}")
        srun = ["srun", f"--mpi={mpi or cluster.kind}", *options, "sh", "-c", script]
        self.process = cluster.start(*become, *job, *srun, env=env, cwd="/")
        self.ranks = int(next(o[2:] for o in options if o.startswith("-n")))
        self.up = lambda: len(list(place.glob("up.*"))) == self.ranks

    def __enter__(self):
        wait_until(lambda: self.up() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()
        return self

    def __exit__(self, kind, *_):
        self.go.touch()
        _, err = self.process.communicate(timeout=60 * SLOWNESS)
        assert kind or bool(self.process.returncode) == self.fails, err

    def job(self):
        return self.cluster.run("squeue", "-h", "-o", "%i", "-u", USER).ok().lines[0]

    def pids(self, name):
        table = process_table()
        return [
            pid
            for pid in below(self.cluster.state["guard"]) & table.keys()
            if pathlib.Path(command_line(pid).split(" ")[0]).name == name
        ]

    def server(self):
        (pid,) = self.pids(SERVER)
        return pid


@pytest.fixture
def start(cluster, place, gate):
    (place / "up.d").mkdir(exist_ok=True)
    directory = place / "up.d"
    shutil.chown(directory, USER)
    return lambda *options, **more: Step(cluster, directory, gate, options, **more)


# ---- what it loads ----


@pytest.fixture
def files(home, guest):
    """Leads libpmix to the guest, as the user can by files in the home."""
    place = home / ".pmix"

    def make(how):
        directory = place / "components"
        if how == "parameters":
            directory = home / "components"
            place.mkdir()
            line = f"mca_base_component_path = {directory}\n"
            (place / "mca-params.conf").write_text(line)
        directory.mkdir(parents=True)
        shutil.copy(guest, directory)

    yield make
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(home / "components", ignore_errors=True)


def loads(pid, name):
    return name in read_text(pathlib.Path(f"/proc/{pid}/maps"))


@WHEN
@pytest.mark.parametrize("how", ["parameters", "components"])
def test_pmixd_loads_no_component_of_the_home(start, files, home, how, when):
    """Ranks do, which is how it is known that libpmix is led there."""
    files(how)
    with start("-N1", "-n1", env={"PMI2X_PMIX": when, "HOME": str(home)}) as step:
        assert {loads(pid, GUEST) for pid in step.pids("pmix-gate")} == {True}
        assert not loads(step.server(), GUEST)


@pytest.mark.parametrize("how", ["parameters", "components"])
def test_pmixd_of_a_dvm_loads_no_component_of_the_home(start, files, home, prefix, how):
    files(how)
    dvm = prefix / "bin" / "pmi2x-dvm"
    if not dvm.exists():
        pytest.skip("built without pmi2x-dvm")
    shell = f"{dvm} up --local 1 --slots 2 && {dvm} run -n2 {{0}} && {dvm} down"
    env = {"HOME": str(home)}
    with start("-N1", "-n1", mpi="none", env=env, shell=shell) as step:
        assert {loads(pid, GUEST) for pid in step.pids("pmix-gate")} == {True}
        assert not loads(step.server(), GUEST)


def test_pmixd_loads_no_hwloc_plugin_of_its_directory(start, guest):
    """Which is the user's, and which a rank finds before it connects."""
    env = {"PMI2X_TOPOLOGY": "variables"}
    copy = f"cp {guest} $PMIX_SERVER_TMPDIR/{HWLOC_GUEST} 2>/dev/null"
    shell = f"(until {copy}; do :; done) & sleep 0.1; exec {{0}}"
    with start("-N1", "-n2", env=env, shell=shell) as step:
        server = step.server()
        (directory,) = step.cluster.dir.glob("spool/n1/pmi2x.pmix.*")
        assert (directory / HWLOC_GUEST).exists()
        assert not loads(server, HWLOC_GUEST)


# ---- where it lives ----


def groups_of(pid):
    """{controllers of a hierarchy: the directory of its group}; "" for version 2."""
    groups = {}
    for line in read_text(pathlib.Path(f"/proc/{pid}/cgroup")).splitlines():
        _, names, path = line.split(":", 2)
        mount = pathlib.Path("/sys/fs/cgroup", names)
        if (mount / "cgroup.procs").exists():
            groups[names] = mount / path.lstrip("/")
    return groups


def in_groups(pid, *paths):
    """What a process of the user finds that is in the groups of another."""
    user = pwd.getpwnam(USER)

    def become():
        for group in groups_of(pid).values():
            (group / "cgroup.procs").write_text("0")
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)

    command = ["/usr/bin/python3", "-SEc", PROGRAM, *map(str, paths)]
    done = subprocess.run(
        command, preexec_fn=become, cwd="/", text=True, check=True, stdout=subprocess.PIPE
    )
    return done.stdout.splitlines()


def is_in_step(pid):
    return any(re.search(r"/step_\d+", str(path)) for path in groups_of(pid).values())


def cpus_of(pid):
    return sorted(os.sched_getaffinity(pid))


@WHEN
@pytest.mark.parametrize("gres", [False, True], ids=["without", "with"])
def test_pmixd_may_use_what_its_step_may(start, cluster, when, gres):
    options = ["-N1", "-n1", "-c1", *(["--gres=nic:1"] if gres else [])]
    with start(*options, env={"PMI2X_PMIX": when}) as step:
        server, (rank,) = step.server(), step.pids("pmix-gate")
        assert len(cpus_of(rank)) == 1
        assert cpus_of(server) == cpus_of(rank)
        device = cluster.dir / "device0"
        opened = "opened" if gres else "Operation not permitted"
        for pid in rank, server:
            found = in_groups(pid, device)
            assert found == [str(cpus_of(rank)), opened], command_line(pid)


def test_agent_stays_on_the_processors_of_slurmstepd(start, cluster):
    """With version 1 it is at the root of cpuset, which has all of the node."""
    with start("-N1", "-n1", "-c1") as step:
        (agent,) = step.pids("pmi2x-agent")
        if "cpuset" in cluster.state["cgroups"]:
            assert "/job_" not in str(groups_of(agent)["cpuset"])
        assert cpus_of(agent) == cpus_of(cluster.step_daemon("n1"))
        assert len(cpus_of(agent)) == 1


@WHEN
def test_pmixd_may_not_use_what_another_step_of_its_job_may(start, cluster, when):
    """A job with both CPUs of a node, and a step with one."""
    job, step = ["salloc", "-Q", "-N1", "-n2"], ["-N1", "-n1", "-c1", "--exact"]
    with start(*step, env={"PMI2X_PMIX": when}, job=job) as step:
        server, (rank,) = step.server(), step.pids("pmix-gate")
        assert len(cpus_of(rank)) == 1
        for pid in rank, server:
            assert in_groups(pid) == [str(cpus_of(rank))], command_line(pid)


@WHEN
def test_pmixd_is_in_no_group_that_slurm_kills_or_freezes(start, when):
    with start("-N1", "-n1", env={"PMI2X_PMIX": when}) as step:
        groups = groups_of(step.server())
        if "" in step.cluster.state["cgroups"]:
            groups = {"freezer": groups[""]}
        for names in set(groups) & {"freezer", "memory", "cpuacct"}:
            path = str(groups[names])
            assert re.search(r"/job_\d+/(step_\d+/)?pmi2x[^/]*$", path), path


@WHEN
def test_pmixd_goes_on_when_the_ranks_of_its_node_have_ended(start, cluster, when):
    """And Slurm has tried to remove the control groups of the step there."""
    ends = "if [ $SLURM_PROCID = 0 ]; then set -- {0}; exec $1 $2 $1; fi; exec {0}"
    with start("-N2", "-n2", env={"PMI2X_PMIX": when}, shell=ends) as step:
        wait_until(lambda: len(step.pids("pmix-gate")) == 1)
        if "" not in cluster.state["cgroups"]:
            assert is_in_step(cluster.step_daemon("n2"))
            wait_until(lambda: not is_in_step(cluster.step_daemon("n1")))
        assert len(step.pids(SERVER)) == 2


@WHEN
@pytest.mark.parametrize("how", ["well", "scancel", "killed"])
def test_no_group_of_pmixd_is_left(start, cluster, when, how):
    """However the step ends, in whatever order Slurm and pmi2x remove them."""
    before = set(cluster.groups())
    fails = how != "well"
    with start("-N2", "-n2", env={"PMI2X_PMIX": when}, fails=fails) as step:
        assert len(step.pids(SERVER)) == 2
        if how == "scancel":
            cluster.run("scancel", step.job()).ok()
        elif how == "killed":
            os.kill(step.pids("pmix-gate")[0], 9)
        if fails:
            step.process.wait(timeout=60 * SLOWNESS)

    def left():
        groups = set(cluster.groups()) - before
        return groups - forgotten(groups)

    with contextlib.suppress(AssertionError):
        wait_until(lambda: not left())
    assert not left()


# ---- what Slurm shows ----


def shown(step):
    """Rows of scontrol listpids on both nodes, tasks, and whether there are times."""
    job = step.job()
    pids = [shown_pids(step.cluster, node, job) for node in ("n1", "n2")]
    fields = "NTasks,MaxRSSNode,AveCPU,Pids"
    text = step.cluster.run("sstat", "-Pn", "-j", job, "-o", fields).ok().lines
    tasks, _, cpu, _ = text[-1].split("|")
    return [[row[1:] for row in rows] for rows in pids], tasks, bool(cpu)


def test_listpids_and_sstat_show_no_pmixd(start, cluster, kind):
    seen = {}
    for plugin in "none", kind:
        with start("-N2", "-n2", mpi=plugin, env={"PMI2X_PMIX": "early"}) as step:
            seen[plugin] = shown(step)
    assert seen["none"] == seen[kind], seen
