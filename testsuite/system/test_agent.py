# SPDX-License-Identifier: BSD-3-Clause
"""The agent of a node, which is a process of the step's user beside slurmstepd: how it
ends, what it may do, what it is spared, and its file."""

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import time

import pytest

from faulty import (
    HANGS_S,
    NODES,
    RANKS,
    TREE,
    Step,
    borrow,
    is_alive,
    ranks_of,
)
from harness import (
    AGENT_GROUP,
    Cluster,
    below,
    read_text,
    run,
    stopped,
    thread_states,
    wait_until,
)

HOLDER = 9  # on n5: keeps a fence open until the test says go
SECCOMP_FILTER = 2
HOST_FD = 4  # of an agent: its connection with slurmstepd
EARLIER_S = 3  # that the ranks of a node end before the others
LIMIT_FILES = "memory.limit_in_bytes", "memory.max"  # of versions 1 and 2
LITTLE = 8 << 20  # bytes
USER = "daemon"  # of the fixture ordinary_user


def agents(cluster):
    """The agents of all nodes, once each node has one."""
    nodes = [f"n{number}" for number in range(1, 6)]
    return wait_until(lambda: all(pids := [*map(cluster.agent, nodes)]) and pids)


# ---- its end ----


MOMENTS = {
    "idle": ["init", "touch=at", "gate=go", "fence"],
    "linked": ["init", "fence", "touch=at", "gate=go", "fence"],
    "fence": ["init", "fence", "touch=at", f"{HOLDER}:gate=go", "fence"],
}


@pytest.mark.parametrize("where", NODES)
@pytest.mark.parametrize("words", MOMENTS.values(), ids=MOMENTS)
def test_killed(cluster, faulty, words, where):
    """The step ends, by its name, and slurmstepd removes what it has left."""
    node = NODES[where]
    step = faulty(*words)
    step.wait_for("at", RANKS)
    pid = wait_until(lambda: cluster.agent(node))
    os.kill(pid, signal.SIGKILL)
    result = step.fails(rf"ending step \S+: the agent of node {node} has died: it was ")
    assert not step.seen("done"), result


def test_crashes(cluster, faulty):
    """By a signal of a fault, as of a page of the slots that is not there again."""
    step = faulty(*MOMENTS["fence"])
    step.wait_for("at", RANKS)
    pid = wait_until(lambda: cluster.agent("n3"))
    os.kill(pid, signal.SIGBUS)
    crashed = f"the agent of node n3 crashed: signal {int(signal.SIGBUS)};"
    step.fails(rf"ending step \S+: {crashed}")


def is_told(pid):
    """Whether something has come for an agent that is stopped."""
    with socket.socket(fileno=borrow(pid, HOST_FD)) as end:
        with contextlib.suppress(BlockingIOError):
            return end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    return b""


@pytest.mark.parametrize("where", NODES)
def test_killed_while_it_leaves(cluster, faulty, where):
    """The agent's ranks have ended, and it knows: its neighbours, to which it has not
    said goodbye, or srun, notice its loss."""
    node = NODES[where]
    leave = "{}-{}".format(*sorted(ranks_of(node)))
    step = faulty(
        "init", "fence", f"{leave}:finalize", "touch=at", "gate=go",
        f"{leave}:die=0", "gate=never", "finalize",
    )
    step.wait_for("at", RANKS)
    pid = cluster.agent(node)
    with stopped(pid):
        step.make("go")
        wait_until(lambda: is_told(pid))
        os.kill(pid, signal.SIGKILL)
    step.fails(rf"ending step \S+: lost the connection to node {node}")


def test_stopped_when_the_step_ends(cluster, faulty):
    """slurmstepd kills it, in the end, and says so: it is not waited for."""
    step = faulty(
        "init", "fence", "touch=at", "gate=go", "finalize",
        env={"PMI2X_DRAIN_TIMEOUT": "1"},
    )
    step.wait_for("at", RANKS)
    pid, before = cluster.agent("n3"), len(cluster.log_of("n3"))
    with stopped(pid):
        step.make("go")
        wait_until(lambda: not is_alive(pid))
    step.end()
    assert step.seen("done") == RANKS
    said = cluster.log_of("n3")[before:]
    assert "killed the agent of node n3: the agent did not end in time" in said, said


def agent_groups(cluster, node):
    """The control groups that are made for the agent of a node."""
    pid = str(cluster.agent(node))
    return [
        path
        for path in cluster.groups()
        if path.name.startswith(AGENT_GROUP)
        and pid in read_text(path / "cgroup.procs").split()
    ]


def test_memory_of_its_group_is_used_up(cluster, faulty, site):
    """The kernel kills it, and nothing else, and the step ends by its name."""
    if not site:
        pytest.skip("it has a control group with --site")
    much = [f"{rank}:put=2000" for rank in ranks_of("n2")]
    step = faulty("init", "fence", "touch=at", "gate=go", *much, "fence", "finalize")
    step.wait_for("at", RANKS)
    places = [path / name for path in agent_groups(cluster, "n2") for name in LIMIT_FILES]
    (limit,) = filter(pathlib.Path.exists, places)
    limit.write_text(str(LITTLE))
    step.make("go")
    result = step.fails("the agent of node n2 has died: .*lack of memory")
    assert not step.seen("done"), result


# ---- what Slurm does to the step's processes, and not to it ----


@pytest.fixture(scope="module")
def pgid_cluster(prefix, scratch, kind, only_pmi2x):
    options = ["--slurm-conf-line", "ProctrackType=proctrack/pgid"]
    one = Cluster(prefix, scratch / "pgid", kind, 5, options)
    yield from one.while_up()


@pytest.fixture(params=["of the session", "pgid"])
def tracking(request):
    """A cluster for each way in which Slurm knows a step's processes: linuxproc, or
    with --site cgroup, and pgid."""
    own = request.param == "pgid"
    one = request.getfixturevalue("pgid_cluster" if own else "cluster")
    yield one
    left = one.wait_until_clean()
    assert not left, f"left behind: {left}"


def test_ranks_of_the_root_end_first(tracking, start_faulty):
    """Slurm kills and waits for what is left of a step on a node: the agent, through
    which the others find srun, is no part of that."""
    step = start_faulty(
        tracking, "init", "fence", "touch=at", "0-1:finalize", "0-1:die=0", "gate=go",
        "5:publish=name", "5:lookup=name", "finalize",
    )
    step.wait_for("at", RANKS)
    for rank in ranks_of("n1"):
        step.wait_until_gone("at", rank)
    time.sleep(EARLIER_S)
    step.make("go")
    step.end().ok()
    assert step.seen("done") == RANKS - ranks_of("n1")


HEARS = """
trap "touch '{dir}/usr1.$PMI_RANK'" USR1; trap "touch '{dir}/term.$PMI_RANK'" TERM
(trap '' USR1 TERM; exec "$@") &
while :; do wait $!; code=$?; [ $code -gt 128 ] || exit $code; done
"""


def test_signals_of_the_step(tracking, start_faulty, tmp_path):
    """Signals go to the step's tasks, or to all of its processes; they must not end the
    agent."""
    hears = ["sh", "-c", HEARS.format(dir=tmp_path), "sh"]
    step = start_faulty(
        tracking, "init", "fence", "touch=at", "gate=go", "fence", "finalize",
        options=[*TREE, *hears],
    )
    step.wait_for("at", RANKS)
    before = agents(tracking)
    for name in "usr1", "term":
        signal_step = ["scancel", f"--signal={name.upper()}", f"{step.job()}.0"]
        tracking.run(*signal_step).ok()
        heard = {f"{name}.{rank}" for rank in RANKS}
        wait_until(lambda: heard <= set(os.listdir(tmp_path)), HANGS_S)
    assert agents(tracking) == before
    step.make("go")
    step.end().ok()
    assert step.seen("done") == RANKS


def stands_still(pid):
    """By a signal, or in a control group of version 2, which shows as nothing else."""
    group = read_text(pathlib.Path(f"/proc/{pid}/cgroup")).rpartition("0::/")[2]
    events = pathlib.Path("/sys/fs/cgroup") / group / "cgroup.events"
    return thread_states(pid) <= {"T", "D"} or "frozen 1" in read_text(events)


def test_suspended_step(tracking, start_faulty, tool):
    """The agents go on, and answer."""
    step = start_faulty(
        tracking, "init", "fence", "touch=at", f"{HOLDER}:gate=go", "fence", "finalize"
    )
    step.wait_until_in("at", RANKS - {HOLDER})
    step.wait_for("at", RANKS)
    job, before = step.job(), agents(tracking)
    tracking.run("scontrol", "suspend", job).ok()
    ranks = [step.pid("at", rank) for rank in RANKS]
    wait_until(lambda: all(map(stands_still, ranks)))
    assert not any(map(stands_still, before))
    shown = tracking.run(tool, "--live", f"{job}.0").ok().stdout
    assert "1 of 10 ranks: 9 (" in shown and "no answer" not in shown, shown
    tracking.run("scontrol", "resume", job).ok()
    step.make("go")
    step.end().ok()
    assert step.seen("done") == RANKS


# ---- what it may do ----


@pytest.fixture
def users_step(cluster, only_pmi2x, fault_client, public, ordinary_user):
    """A step of an ordinary user whose agents have begun."""
    directory = public / f"users-{time.monotonic_ns()}"
    directory.mkdir()
    directory.chmod(0o777)
    words = ["init", "fence", "touch=at", "gate=go", "finalize"]
    step = Step(cluster, fault_client, directory, words, TREE, None, ordinary_user)
    step.wait_for("at", RANKS)
    yield step
    step.drop()


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, value in (l.split(":", 1) for l in lines)}


def test_no_privilege_is_left(cluster, users_step):
    user = pwd.getpwnam(USER)
    for pid in agents(cluster):
        status = status_of(pid)
        assert status["Name"] == ["pmi2x-agent"]
        assert status["Uid"] == [str(user.pw_uid)] * 4, status
        assert status["Gid"] == [str(user.pw_gid)] * 4, status
        assert status["Groups"] == [], status
        for name in "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
            assert int(status[name][0], 16) == 0, status
        assert status["NoNewPrivs"] == ["1"], status
        assert status["Seccomp"] == [str(SECCOMP_FILTER)], status
        place = pathlib.Path(f"/proc/{pid}")
        assert (place / "oom_score_adj").read_text().strip() == "0"
        assert os.readlink(place / "cwd") == "/"
        assert b"PMI2X_SECRET" not in (place / "environ").read_bytes()
    assert cluster.agent("n1") not in below(cluster.step_daemon("n1"))
    users_step.make("go")
    users_step.end().ok()


def test_its_groups_go(cluster, users_step, site):
    """The agents' control groups are not the step's, and none is left."""
    if not site:
        pytest.skip("it has control groups with --site")
    places = agent_groups(cluster, "n2")
    assert places
    pid = cluster.agent("n2")
    for line in read_text(pathlib.Path(f"/proc/{pid}/cgroup")).splitlines():
        assert not re.search(r"/step_\d+(/(slurm|user|task_\d+))?$", line), line
    users_step.make("go")
    users_step.end().ok()
    jobs = {up for path in places for up in path.parents if up.name.startswith("job_")}
    wait_until(lambda: not any(path.exists() for path in jobs))


TRACE = """
import ctypes, os, sys
SEIZE, LIBC = 0x4206, ctypes.CDLL(None, use_errno=True)  # which does not stop it

def looks(pid):
    try:
        return os.listdir(f"/proc/{pid}/fd") and "looks"
    except PermissionError:
        return "refused"

for pid in map(int, sys.argv[1:]):
    failed = LIBC.ptrace(SEIZE, pid, None, None)
    print(looks(pid), os.strerror(ctypes.get_errno()) if failed else "traces")
"""


def test_its_user_cannot_trace_it(cluster, users_step, ordinary_user):
    """As he can what is his: his rank."""
    rank, agent = users_step.pid("at", 2), cluster.agent("n2")
    program = [*ordinary_user, "/usr/bin/python3", "-SEc", TRACE]
    lines = run([*program, agent, rank], cwd="/").ok().lines
    assert lines[0] == "refused Operation not permitted", lines
    assert lines[1].startswith("looks "), lines
    users_step.make("go")
    users_step.end().ok()


# ---- its file ----


@pytest.fixture(scope="module")
def own(prefix, scratch, kind, only_pmi2x):
    """A cluster of which the agent's file can be replaced: the directory is another
    one there."""
    place, private = prefix / "libexec" / "pmi2x", scratch / "libexec"
    shutil.copytree(place, private)
    bind = f'mount --bind "{private}" "{place}" && exec "$@"'
    within = f"unshare --mount --propagation private sh -c '{bind}' sh"
    one = Cluster(prefix, scratch / "file", kind, 5)
    program = scratch / "pmi2x-cluster-with-another-agent"
    program.write_text(f'#!/bin/sh\nexec {within} {one.program} "$@"\n')
    program.chmod(0o755)
    if run([program, "--help"]).code:
        pytest.skip("needs a mount that nobody else sees")
    one.program, one.agents_file = program, private / "pmi2x-agent"
    one.topologys_file = private / "pmi2x-topology"
    yield from one.while_up()


@contextlib.contextmanager
def another_file(path, make):
    """Another file in place of a program, as packages do that, or none."""
    kept = path.with_suffix(".kept")
    os.link(path, kept)
    try:
        make(path)
        yield
    finally:
        os.rename(kept, path)


def replace(path, content):
    other = path.with_suffix(".new")
    other.write_bytes(content)
    other.chmod(0o755)
    os.rename(other, path)


def garbage(path):
    replace(path, b"garbage" * 1000)


def test_ranks_do_not_wait_for_a_topology_that_never_comes(own, raw, compile_program):
    """Both ask, and pmi2x-topology hangs: each reads the topology itself."""
    if not own.topologys_file.exists():
        pytest.skip("built without hwloc")
    hangs = compile_program("programs/hanging-library.c", "gcc")
    with another_file(own.topologys_file, lambda path: replace(path, hangs.read_bytes())):
        result = own.srun("-N1", "-n2", *raw("topology", "1")).ok()
    assert [line.split()[1] for line in result.lines] == ["unavailable"] * 2, result
    wait_until(lambda: "the topology file of node n1 is not ready after 2000 ms"
               in own.log_of("n1"))


CANNOT = {
    "missing": (os.unlink, r"pmi2x-agent: No such file or directory: install pmi2x"),
    "garbage": (garbage, r"cannot start the agent of node n\d: Exec format error"),
}


@pytest.mark.parametrize("make, text", CANNOT.values(), ids=CANNOT)
def test_file_of_another(own, start_faulty, make, text):
    """A step goes on with what was there when it began, and the next one fails by
    name."""
    step = start_faulty(own, "touch=at", "gate=go", "init", "fence", "finalize")
    step.wait_for("at", RANKS)
    with another_file(own.agents_file, make):
        step.make("go")
        step.end().ok()
        assert step.seen("done") == RANKS
        start_faulty(own, "init", "fence").fails(text)
    start_faulty(own, "init", "fence", "finalize").end().ok()
    left = own.wait_until_clean()
    assert not left, left
