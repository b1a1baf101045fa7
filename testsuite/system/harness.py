# SPDX-License-Identifier: BSD-3-Clause
"""A test cluster under test, and what a step may leave behind: nothing."""

import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

from processes import begun, below, command_line, opened_files, process_table, read_text, thread_states

DAEMONS = {
    "munged",
    "sackd",
    "slurmctld",
    "slurmd",
    "slurmscriptd",
    "slurmdbd",
    "mariadbd",
}
AGENT = "pmi2x-agent"
AGENT_GROUP = "pmi2x"  # how the names of its control groups begin
# The factor by which a sanitizer or an emulated processor slows all programs.
SLOWNESS = int(os.environ.get("PMI2X_TEST_SLOWNESS", "1"))
PATIENCE = ["--slurm-conf-line", "MessageTimeout=60"] if SLOWNESS > 1 else []
START_S = 120 * SLOWNESS
STEP_S = 60 * SLOWNESS  # how long a step may take unless its test says otherwise
# How long all may take to leave once srun has ended. A node that has not heard that
# its job is over is told again after 25 to 85 s (KillWait + 2 * MessageTimeout, seen
# once in PURGE_JOB_INTERVAL).
LEAVE_S = 120
# A node that has once not answered, which sinfo marks with *: slurmctld asks it again
# after SlurmdTimeout/3, and ends its jobs when it looks for old ones, each minute.
SILENT_S = 300


class Result:
    """The output of a command, and its exit status."""

    def __init__(self, argv, code, stdout, stderr, seconds):
        self.argv = argv
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.seconds = seconds

    def __str__(self):
        return (
            f"{' '.join(map(str, self.argv))}\nexit code {self.code} after "
            f"{self.seconds:.1f} s\n--- stdout\n{self.stdout}"
            f"--- stderr\n{self.stderr}"
        )

    __repr__ = __str__  # in assertions

    @property
    def lines(self):
        return self.stdout.splitlines()

    def ok(self):
        assert self.code == 0, str(self)
        return self

    def failed(self):
        assert self.code != 0, str(self)
        return self

    def says(self, text):
        """Whether stderr has the text; case does not matter."""
        assert text.lower() in self.stderr.lower(), f"no '{text}' in\n{self}"
        return self


# Lines of srun and salloc while the nodes still end the job of the test before.
QUEUED = re.compile(
    r"^\w+: (job \d+ (queued and waiting for resources|has been allocated resources)"
    r"|Pending job allocation \d+)\n",
    re.MULTILINE,
)


def run(argv, timeout=STEP_S, env=None, stdin=None, cwd=None):
    """Run a command; one that does not end is killed and fails the test."""
    begin = time.monotonic()
    child = subprocess.Popen(
        list(map(str, argv)),
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **(env or {})},
        cwd=cwd,
        start_new_session=True,
    )
    hung = False
    try:
        out, err = child.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        hung = True
        for pid in [child.pid, *below(child.pid)]:
            with contextlib.suppress(ProcessLookupError):  # it has just gone
                os.kill(pid, signal.SIGKILL)
        out, err = child.communicate()
    err = QUEUED.sub("", err)
    result = Result(argv, child.returncode, out, err, time.monotonic() - begin)
    if hung:
        pytest.fail(f"HUNG for {timeout} s: {result}")
    return result


def is_of_cluster(pid, directory):
    """By the environment, which the daemons of a cluster pass on. A slurmd that a test
    has started passes on none, and not everybody may read it."""
    named = re.findall(
        r"^SLURM_CONF=(.*)$",
        read_text(pathlib.Path(f"/proc/{pid}/environ")).replace("\0", "\n"),
        re.MULTILINE,
    )
    return not named or named == [f"{directory}/slurm.conf"]


def agents_of(directory, step, node=None):
    """Processes of the agents of a step, by what their command lines say: user, group,
    step, node, control groups. Other clusters on this machine have steps and nodes of
    the same names. A child of slurmstepd has yet to fork, and to become an agent."""
    table = process_table()
    words = {pid: command_line(pid).split() for pid in table}
    return [
        pid
        for pid, said in words.items()
        if said[:1] == [AGENT] and said[3:4] == [step] and node in (None, said[4])
        and table.get(table[pid][0], (0, ""))[1] != "slurmstepd"
        and is_of_cluster(pid, directory)
    ]


def stop(pid):
    """Returns when the process stands still: until the thread that has got the
    signal runs, which takes a while on a busy machine, the others go on."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: thread_states(pid) == {"T"})


@contextlib.contextmanager
def stopped(pid):
    """A process stands still, and goes on in the end."""
    stop(pid)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def free_ports(count):
    """First and last of `count` ports in a row, on which nobody listens, and which no
    other run of these tests on this machine gets meanwhile: an abstract socket is the
    lock, as that of pmi2x cluster's ports, which are above."""
    for first in range(12000, 20000, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    lock = stack.enter_context(socket.socket(socket.AF_UNIX))
                    lock.bind(f"\0pmi2x-test-port-{port}")
                with taken_ports(first, first + count - 1):
                    pass
            except OSError:
                continue
            yield first, first + count - 1
            return
    raise AssertionError(f"no {count} free ports")


@contextlib.contextmanager
def taken_ports(first, last):
    """Occupy every port of the range."""
    with contextlib.ExitStack() as stack:
        for port in range(first, last + 1):
            taken = stack.enter_context(socket.socket())
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("", port))
            taken.listen()
        yield


def allowed(seconds):
    """A time limit that a step is given, as long as slow programs need it."""
    return str(seconds * SLOWNESS)


def wait_until(condition, seconds=LEAVE_S):
    """Returns what the condition returns, once that is true."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return result


def groups_of_slurm(path):
    """The control groups of the step to which an agent's group belongs: in version 1
    those of a job are side by side."""
    step = path.name.partition("_")[2]
    names = [f"step_{step}"] if step else ["slurm", "user"]
    return [path.with_name(name) for name in names]


class Cluster:
    """A cluster of pmi2x cluster, with the plugin of one installation."""

    def __init__(self, prefix, directory, kind, nodes, options=()):
        self.prefix = prefix
        self.dir = pathlib.Path(directory)
        self.kind = kind
        self.nodes = nodes
        self.program = prefix / "libexec" / "pmi2x" / "pmi2x-cluster"
        self.options = list(options)
        plugins = prefix / "lib" / "slurm"
        if plugins.is_dir():
            self.options += ["--plugindir", plugins]

    def up(self):
        done = run(
            [self.program, "up", "--dir", self.dir, "-N", self.nodes]
            + ["--until-exit", os.getpid(), "--timeout", START_S]
            + self.options,
            timeout=2 * START_S,
        )
        if "--site needs" in done.stderr:
            pytest.skip(done.stderr.strip())
        done.ok()
        self.state = json.loads((self.dir / "cluster.json").read_text())

    def down(self):
        run([self.program, "down", "--dir", self.dir], timeout=START_S).ok()

    def restart(self, *daemons):
        """Restart daemons: slurmctld, slurmd.n1 and so on."""
        run([self.program, "restart", "--dir", self.dir, *daemons]).ok()

    @functools.cached_property
    def variables(self):
        """The variables that pmi2x-cluster run adds to a command's environment."""
        argv = [self.program, "run", "--dir", self.dir, "--", "env", "-0"]
        pairs = [line.split("=", 1) for line in run(argv).ok().stdout.split("\0") if line]
        return {name: value for name, value in pairs if name.startswith(("PATH", "SLURM_"))}

    def command(self, argv, env):
        """A command for this cluster, and its environment. On a site pmi2x-cluster
        moves to a host first. Elsewhere it only sets variables, and each start of
        Python would cost a tenth of a second of processor time."""
        env = {**os.environ, **(env or {})}
        if self.state["site"]:
            return [self.program, "run", "--dir", self.dir, "--", *argv], env
        return argv, {**env, **self.variables}

    def run(self, *argv, env=None, **options):
        argv, env = self.command(argv, env)
        return run(argv, env=env, **options)

    def start(self, *argv, env=None, **options):
        """A command that goes on while the test does; its output is in pipes, where
        the options of Popen do not say otherwise."""
        argv, env = self.command(argv, env)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(
            list(map(str, argv)),
            env=env,
            **{**pipes, **options},
        )

    def srun(self, *argv, mpi=None, **options):
        return self.run("srun", f"--mpi={mpi or self.kind}", *argv, **options)

    def strays(self):
        """Processes of steps: below the guard, and none of the daemons."""
        table = process_table()
        return [
            f"{pid} {command_line(pid) or table[pid][1]}"
            for pid in below(self.state["guard"]) & table.keys()
            if table[pid][1] not in DAEMONS
            and "pmi2x-cluster" not in command_line(pid)
        ]

    def log_of(self, node):
        """The log of the slurmd of a node and of its steps."""
        path = self.dir / "log" / f"slurmd.{node}.log"
        return path.read_text(errors="replace")

    def step_daemon(self, node):
        """Process of the slurmstepd of the step that has begun last on a node: that
        of the one before may still be there."""
        log = str(self.dir / "log" / f"slurmd.{node}.log")
        found = [
            pid
            for pid, (_, name) in process_table().items()
            if name == "slurmstepd"
            and re.match(r"slurmstepd: \[[\d.+]+\]", command_line(pid))
            and log in opened_files(pid)
        ]
        return max(found, key=begun, default=None)

    def agent(self, node):
        """Process of the agent of that step on that node; None before the step uses
        PMI, and when it has left. The command line says whose it is."""
        daemon = re.match(r"slurmstepd: \[(.+)\]", command_line(self.step_daemon(node)))
        found = agents_of(self.dir, daemon[1], node) if daemon else []
        return max(found, key=begun, default=None)

    def sockets(self):
        """Files that a plugin made in the spool directories of the nodes."""
        return [
            str(path)
            for path in self.dir.glob("spool/*/*")
            if "pmi" in path.name
        ]

    def held_memory(self):
        """Shared memory of steps that a daemon still holds."""
        table = process_table()
        held = []
        for pid, (_, name) in table.items():
            files = opened_files(pid) if name == "slurmd" else []
            if any(file.startswith(str(self.dir)) for file in files):
                held += [f"{pid} {file}" for file in files if "memfd" in file]
        return held

    def groups(self):
        """Control groups of jobs. Slurm leaves those of a slurmstepd that is killed."""
        return [
            pathlib.Path(path)
            for top in self.state["cgroups"].values()
            for path, _, _ in os.walk(top)  # which knows that groups go meanwhile
            if "/job_" in path
        ]

    def job_places(self):
        """Remains of jobs on the nodes of a site: control groups with processes, and
        directories with mounts."""
        files = [path / "cgroup.procs" for path in self.groups()]
        held = [f"{file}: {text}" for file in files if (text := read_text(file))]
        held += map(str, self.agent_groups())
        return held + [str(path) for path in self.dir.glob("tmp/*/*")]

    def agent_groups(self):
        """Control groups of agents where Slurm has removed the step's own. (It leaves
        those, and so does the agent, when slurmstepd is killed.)"""
        return [
            path
            for path in self.groups()
            if path.name.startswith(AGENT_GROUP)
            and not any(other.is_dir() for other in groups_of_slurm(path))
        ]

    def busy_nodes(self):
        result = self.run("sinfo", "-h", "-N", "-o", "%N %T")
        return [line for line in result.lines if not line.endswith(" idle")]

    def leftovers(self):
        return (
            self.strays()
            or self.sockets()
            or self.held_memory()
            or self.job_places()
            or self.busy_nodes()
        )

    def wait_until_clean(self):
        begun = time.monotonic()
        while left := self.leftovers():
            silent = all(line.endswith("*") for line in left)
            if time.monotonic() - begun > (SILENT_S if silent else LEAVE_S):
                return left
            time.sleep(0.1)
        return []

    def while_up(self):
        """For a fixture: the cluster is up while it is used."""
        self.up()
        yield self
        self.down()

    def left_clean(self):
        """For a fixture: fails a test that leaves something behind, and cancels that."""
        yield self
        left = self.wait_until_clean()
        if left:
            self.cancel_all()
            self.wait_until_clean()
        assert not left, f"left behind: {left}"

    def cancel_all(self):
        self.run("scancel", "--partition=all", "--signal=KILL")
        self.run("scancel", "--partition=all")
