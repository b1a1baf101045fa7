# SPDX-License-Identifier: BSD-3-Clause
"""The processes that hold a cluster: the guard and the supervisor.

The daemons are children of the supervisor, the supervisor of the guard. Each of
the two notices when the other dies; the daemons die with the supervisor.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import shutil
import socket
import subprocess
import sys
import time

from . import auth, cgroups, namespaces, site
from .processes import (
    become_subreaper,
    descendants,
    die_with_parent,
    kill_abandoned,
    kill_all,
    name_of,
    reap,
    send,
)
from .state import LOCK_FILE, STATE_FILE, write_file

START_S = 300  # how long a daemon may take that others wait for
CANCEL_S = 5
TERM_S = 3


def restart_mark(path, name):
    """A file that says what the end of a daemon means."""
    return f"{path}/run/restart.{name}"


def go_first():
    """munged and sackd serve thousands of processes that want the processor as well;
    when they wait their turn among them, their socket overflows. Needs root."""
    os.setsid()  # where the kernel groups processes by session
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        with open("/proc/self/autogroup", "w", encoding="ascii") as group:
            group.write("-20")


class Supervisor:
    """Starts the daemons, buries them, and takes them down on a signal."""

    SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}

    def __init__(self, state):
        self.dir = state["dir"]
        self.state = state
        self.daemons = {}
        self.again = {}  # how to start each once more
        self.hosts = {}  # {host: namespaces} of a site

    def spawn(self, name, argv, host=None, prepare=lambda: None, env=None):
        self.again[name] = lambda: self.spawn(name, argv, host, prepare, env)
        log = os.open(
            f"{self.dir}/log/{name}.out",
            os.O_WRONLY | os.O_CREAT | os.O_APPEND,
            0o644,
        )
        null = os.open(os.devnull, os.O_RDONLY)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                die_with_parent(parent, signal.SIGKILL)
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
                for source, target in ((null, 0), (log, 1), (log, 2)):
                    os.dup2(source, target)
                prepare()
                if self.hosts and host:
                    self.move_to(host)
                os.execve(argv[0], argv, {**self.environment(), **(env or {})})
            except BaseException as error:
                print(f"{name}: {error!r}", file=sys.stderr, flush=True)
            finally:
                os._exit(127)
        os.close(log)
        os.close(null)
        self.daemons[pid] = name
        return pid

    def move_to(self, host):
        cgroups.join(self.state["cgroups"], host)
        namespaces.enter(self.hosts[host])

    def environment(self):
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "PMI"))
        }
        env["SLURM_CONF"] = f"{self.dir}/slurm.conf"
        return {**env, **auth.environment(self.state)}

    def start(self):
        if self.state["site"]:
            self.hosts = site.make_hosts(self.state)
        if not self.start_auth():
            return
        if self.state["site"] and not self.start_accounting():
            return
        programs = self.state["programs"]
        self.spawn("slurmctld", [programs["slurmctld"], "-D"], site.CONTROLLER)
        for node in (f"n{i + 1}" for i in range(self.state["nodes"])):
            slurmd = [programs["slurmd"], "-D", "-N", node]
            self.spawn(f"slurmd.{node}", slurmd, node)

    def start_auth(self):
        argv, env = auth.command(self.state)
        self.spawn(
            os.path.basename(argv[0]), argv, prepare=go_first, env=env
        )
        socket = auth.socket_path(self.state)
        return self.wait_for(lambda: os.path.exists(socket))

    def start_accounting(self):
        site.install_database(self.state)
        slurmdbd = [self.state["programs"]["slurmdbd"], "-D"]
        for name, argv, port in (
            ("mariadbd", site.database_command(self.state), site.DATABASE_PORT),
            ("slurmdbd", slurmdbd, site.DBD_PORT),
        ):
            pid = self.spawn(name, argv, site.CONTROLLER)
            if not self.wait_for(lambda: site.listens(pid, port)):
                return False
        return True

    def wait_for(self, condition):
        """False when a signal or the end of a daemon came first."""
        deadline, daemons = time.monotonic() + START_S, len(self.daemons)
        while not condition():
            info = signal.sigtimedwait(self.SIGNALS, 0.05)
            if info and info.si_signo != signal.SIGCHLD:
                os.kill(os.getpid(), info.si_signo)
                return False
            self.bury()
            if len(self.daemons) < daemons or time.monotonic() > deadline:
                return False
        return True

    def note(self, name, status, usage):
        """Record the end of a step daemon: no other process waits for it."""
        if name == "slurmstepd" and os.WIFSIGNALED(status):
            with open(f"{self.dir}/log/killed", "a") as file:
                file.write(f"{name} {signal.strsignal(os.WTERMSIG(status))}\n")
        if not self.state["usage"]:
            return
        with open(self.state["usage"], "a") as file:
            file.write(
                f"{name} {usage.ru_utime + usage.ru_stime:.6f} "
                f"{usage.ru_nvcsw + usage.ru_nivcsw} "
                f"{usage.ru_minflt + usage.ru_majflt}\n"
            )

    def restarts(self, name):
        """Whether it was ended to be started again."""
        try:
            os.unlink(restart_mark(self.dir, name))
        except FileNotFoundError:
            return False
        self.again[name]()
        return True

    def bury(self):
        for pid, status in reap(self.note).items():
            name = self.daemons.pop(pid, None)
            if not name or self.restarts(name):
                continue
            code = os.waitstatus_to_exitcode(status)
            with open(f"{self.dir}/log/ended", "a") as file:
                file.write(f"{name} {code}\n")

    def run(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, self.SIGNALS)
        self.start()
        while signal.sigwait(self.SIGNALS) == signal.SIGCHLD:
            self.bury()
        self.stop()

    def stop(self):
        """The slurmds first: they report the end of steps to slurmctld."""
        self.cancel_jobs()
        for prefix in (
            "slurmd.",
            "slurmctld",
            "slurmdbd",
            "mariadbd",
            "munged",
            "sackd",
        ):
            self.end_daemons(prefix)
        kill_all(lambda: descendants(os.getpid()))
        cgroups.remove(self.state["cgroups"])
        shutil.rmtree(f"{self.dir}/run", ignore_errors=True)

    def end_daemons(self, prefix):
        deadline = time.monotonic() + TERM_S
        sent = set()
        while time.monotonic() < deadline:
            pids = {p for p, n in self.daemons.items() if n.startswith(prefix)}
            if not pids:
                break
            send(pids - sent, signal.SIGTERM)
            sent |= pids
            signal.sigtimedwait(self.SIGNALS, 0.2)
            self.bury()

    def cancel_jobs(self):
        """Cancel the jobs, so that a waiting srun ends with a reason."""
        if "slurmctld" not in self.daemons.values() or not self.steps():
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [self.state["programs"]["scancel"], "--partition=all"],
                timeout=CANCEL_S,
                env=self.environment(),
                preexec_fn=self.enter_login,
            )
        deadline = time.monotonic() + CANCEL_S
        while self.steps() and time.monotonic() < deadline:
            signal.sigtimedwait(self.SIGNALS, 0.1)
            self.bury()

    def enter_login(self):
        if self.hosts:
            namespaces.enter(self.hosts[site.LOGIN])

    @staticmethod
    def steps():
        return [
            pid
            for pid in descendants(os.getpid())
            if name_of(pid) == "slurmstepd"
        ]


class Guard:
    """Outlives the supervisor, and ends it when there is a reason to."""

    def __init__(self, state, owner, until):
        self.state = state
        self.owner = owner  # closed by "up" once all is well
        self.until = until  # a process whose end ends the cluster

    def run(self):
        wake, wake_in = socket.socketpair()
        wake.setblocking(False)
        wake_in.setblocking(False)
        signal.set_wakeup_fd(wake_in.fileno())
        for signum in Supervisor.SIGNALS:
            signal.signal(signum, lambda *_: None)
        supervisor = self.fork_supervisor()
        poll = select.poll()
        for fd in filter(None, (wake.fileno(), self.owner, self.until)):
            poll.register(fd, select.POLLIN)
        while not self.has_ended(supervisor):
            for fd, _ in poll.poll():
                if self.is_reason(fd, wake):
                    send([supervisor], signal.SIGTERM)
                if fd != wake.fileno():
                    poll.unregister(fd)
        self.clean()

    def fork_supervisor(self):
        become_subreaper()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                for signum in Supervisor.SIGNALS:
                    signal.signal(signum, signal.SIG_DFL)
                die_with_parent(parent, signal.SIGTERM)
                become_subreaper()
                Supervisor(self.state).run()
            except BaseException as error:
                print(f"supervisor: {error!r}", file=sys.stderr)
            finally:
                os._exit(0)
        return pid

    @staticmethod
    def has_ended(supervisor):
        return supervisor in reap()

    def is_reason(self, fd, wake):
        if fd == wake.fileno():
            return set(wake.recv(64)) - {signal.SIGCHLD}
        if fd == self.owner:
            return os.read(fd, 1) == b""
        return True

    def clean(self):
        kill_all(lambda: descendants(os.getpid()))
        kill_abandoned(self.state["dir"])
        cgroups.remove(self.state["cgroups"])
        shutil.rmtree(f"{self.state['dir']}/run", ignore_errors=True)
        auth.clean(self.state)


def start_guard(state, until):
    """Returns a descriptor: a cluster is kept once a byte was written to it.

    Locks that the caller holds on ports are inherited by the guard.
    """
    reader, writer = os.pipe()
    lock = os.open(f"{state['dir']}/{LOCK_FILE}", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX)
    until_fd = os.pidfd_open(until) if until else None
    if os.fork():
        for fd in filter(None, (reader, lock, until_fd)):
            os.close(fd)
        return writer
    try:
        os.close(writer)
        os.setsid()
        log = os.open(
            f"{state['dir']}/log/supervisor.out",
            os.O_WRONLY | os.O_CREAT,
            0o644,
        )
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.chdir("/")
        state["guard"] = os.getpid()
        write_file(f"{state['dir']}/{STATE_FILE}", json.dumps(state))
        Guard(state, reader, until_fd).run()
    except BaseException as error:
        print(f"guard: {error!r}", file=sys.stderr)
    finally:
        os._exit(0)
