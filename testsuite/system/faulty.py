# SPDX-License-Identifier: BSD-3-Clause
"""Steps in which something is made to go wrong, and what that takes.

The ranks run programs/fault-client.c and tell by files how far they are. The
descriptors of other processes are borrowed to cut and to silence connections.
"""

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import time

from harness import Result, below, process_table, wait_until
from processes import command_line, of_process

HANGS_S = 90  # a step that has not ended by then never will
WAITS = {7, 47, 202, 232, 271, 281}  # poll, recvmsg, futex, epoll_*, ppoll
PIDFD_GETFD = 438
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
LOAD_LENGTH, JUMP_OVER, RETURN = 0x80, 0x25, 0x06  # of classic BPF
EVERYTHING, NOTHING = 0xFFFFFFFF, 0
TCP_HEADER_MAX = 60
TCP_INFO_BYTES_RECEIVED = 128  # offset in struct tcp_info

# Five nodes of two ranks in a tree of width 2: n1 is the root, n2 and n4 are its
# children, n3 is below n2 and n5 below n4.
TREE = ["-w", "n[1-5]", "-n10", "--ntasks-per-node=2"]
WIDTH = {"PMI2X_TREE_WIDTH": "2"}
# A step that goes on after a failure shows what its ranks get and do then.
GO_ON = {"PMI2X_KILL_ON_FAILURE": "off"}
RANKS = set(range(10))
NODES = {"root": "n1", "inner": "n2", "leaf": "n3"}


def lost(node):
    """The messages of srun about a node whose slurmstepd was killed: its neighbours
    notice, or, if it has no parent, its own agent reports it."""
    return rf"lost the (connection to|slurmstepd of) node {node}"


def ranks_of(node):
    """The ranks of a node of TREE."""
    first = 2 * int(node[1:]) - 2
    return {first, first + 1}


class Step:
    """A step of fault-clients that runs in the background."""

    def __init__(self, cluster, program, directory, words, options, env, user=()):
        self.cluster, self.dir = cluster, pathlib.Path(directory)
        self.name = f"fault-{os.getpid()}-{time.monotonic_ns()}"
        self.argv = [*user, "srun", f"--mpi={cluster.kind}", "-J", self.name]
        self.argv += [*options, program, self.dir, *words]
        self.begin = time.monotonic()
        with open(self.dir / "stdout", "w", encoding="utf-8") as out:
            with open(self.dir / "stderr", "w", encoding="utf-8") as err:
                self.srun = cluster.start(
                    *self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env={**WIDTH, **GO_ON, **(env or {})},
                    cwd="/" if user else None,
                )

    # Files that the test and the ranks make for each other.

    def make(self, name):
        (self.dir / name).touch()

    def seen(self, name):
        """The ranks that have made a file of this name."""
        return {
            int(path.suffix[1:])
            for path in self.dir.glob(f"{name}.*")
            if path.suffix[1:].isdigit()
        }

    def wait_for(self, name, ranks):
        def all_there():
            assert self.srun.poll() is None, self.stderr
            return self.seen(name) >= set(ranks)

        wait_until(all_there, HANGS_S)

    def pid(self, name, rank):
        return int((self.dir / f"{name}.{rank}").read_text())

    def wait_until_in(self, name, ranks):
        """Until the ranks are in the operation after this touch."""
        self.wait_for(name, ranks)
        pids = [self.pid(name, rank) for rank in ranks]
        wait_until(lambda: all(map(waits, pids)), HANGS_S)

    def wait_until_gone(self, name, rank):
        """Until the process of a rank has ended."""
        pid = self.pid(name, rank)
        wait_until(lambda: not is_alive(pid), HANGS_S)

    def wait_until_says(self, text):
        """Until it is on stderr."""

        def is_said():
            ended = self.srun.poll() is not None
            found = re.search(text, self.stderr)
            assert found or not ended, "srun has ended"
            return found

        try:
            wait_until(is_said, HANGS_S)
        except AssertionError as error:
            raise AssertionError(
                f"{error}: no '{text}' in\n{self.stderr}"
            ) from error

    @property
    def stderr(self):
        return (self.dir / "stderr").read_text(errors="replace")

    # How it ends.

    def end(self, seconds=HANGS_S):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.srun.wait(timeout=seconds)
        code = self.srun.poll()
        result = Result(
            self.argv,
            code,
            (self.dir / "stdout").read_text(errors="replace"),
            self.stderr,
            time.monotonic() - self.begin,
        )
        assert code is not None, f"HUNG: {result}"
        return result

    def fails(self, *texts):
        """The step fails, and stderr has all these texts."""
        result = self.end().failed()
        for text in texts:
            assert re.search(text, result.stderr), f"no '{text}' in\n{result}"
        return result

    def job(self):
        argv = ["squeue", "-h", "-o", "%i", "-n", self.name, "-t", "R,S"]
        return wait_until(
            lambda: self.cluster.run(*argv).stdout.strip(), HANGS_S
        )

    def drop(self):
        """End what a test has left."""
        if self.srun.poll() is None:
            self.cluster.cancel_all()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.srun.wait(timeout=HANGS_S)
            self.srun.kill()
            self.srun.wait()


def waits(pid):
    """Whether a process is in a system call in which libpmi2x waits."""
    number = of_process(pid, "syscall").partition(" ")[0]
    return number.isdigit() and int(number) in WAITS


def is_alive(pid):
    return pid in process_table()


def daemon(cluster, name, node=None):
    """Process of a daemon; of slurmd, that of a node."""
    table = process_table()
    for pid in below(cluster.state["guard"]):
        if table.get(pid, (0, ""))[1] != name:
            continue
        if node is None or node in command_line(pid).split():
            return pid
    raise AssertionError(f"no {name} {node or ''}")


def answers(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


@contextlib.contextmanager
def restarted(cluster, node, conf, within=()):
    """A slurmd that was killed, started again, perhaps within another command, and
    listens; the step daemons go on."""
    with contextlib.suppress(AssertionError):  # not there: by a test before
        pid = daemon(cluster, "slurmd", node)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
    program = cluster.state["programs"]["slurmd"]
    slurmd = subprocess.Popen(
        [*within, program, "-D", "-N", node, "-f", conf],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: answers(cluster.state["first_port"] + int(node[1:])))
        yield slurmd
        left = cluster.wait_until_clean()
        assert not left, left
    finally:
        slurmd.kill()
        slurmd.wait()


def give_up_node(cluster, node):
    """As Slurm itself does after SlurmdTimeout: nothing of it is waited for."""
    update = ["scontrol", "update", f"nodename={node}"]
    cluster.run(*update, "state=down", "reason=crashed").ok()
    wait_until(lambda: not cluster.run("squeue", "-h").stdout)

    def is_idle():
        # slurmctld refuses it for a moment, and for a node that is back already
        cluster.run(*update, "state=resume")
        return cluster.run("sinfo", "-hn", node, "-o%T").stdout.startswith("idle")

    wait_until(is_idle)


def remove_stale_sockets(cluster, nodes=5):
    """The next step of a node removes what a killed slurmstepd has left."""
    assert cluster.sockets()
    cluster.srun("-w", f"n[1-{nodes}]", f"-n{nodes}", "true").ok()
    wait_until(lambda: not cluster.sockets())


# ---- sockets of other processes ----


def borrow(pid, fd):
    """A duplicate of a descriptor of another process."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    copy = libc.syscall(PIDFD_GETFD, pidfd, fd, 0)
    os.close(pidfd)
    if copy < 0:
        raise OSError(ctypes.get_errno(), f"descriptor {fd} of {pid}")
    return copy


def tcp_sockets(pid):
    """All TCP sockets of a process; closing them here does no harm."""
    for entry in list(pathlib.Path(f"/proc/{pid}/fd").iterdir()):
        with contextlib.suppress(OSError):
            if os.readlink(entry).startswith("socket:"):
                one = socket.socket(fileno=borrow(pid, int(entry.name)))
                if one.family in (socket.AF_INET, socket.AF_INET6):
                    yield one


def is_listening(one):
    return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def listens(pid):
    """Whether an agent can still be connected to."""
    try:
        return any(map(is_listening, tcp_sockets(pid)))
    except FileNotFoundError:  # the process has gone
        return False


def is_connected(one):
    try:
        one.getpeername()
    except OSError:
        return False
    return True


def port_of(address):
    return address[1]


def listener(pid):
    """The socket on which an agent awaits its neighbours; clients of PMIx are awaited
    on others, of the loopback address."""
    found = [s for s in tcp_sockets(pid) if is_listening(s)]
    if len(found) > 1:
        found = [s for s in found if s.getsockname()[0] != "127.0.0.1"]
    (one,) = found
    return one


def links(pid, other):
    """The ends that an agent has of its connections with another agent."""
    theirs = {
        (port_of(s.getsockname()), port_of(s.getpeername()))
        for s in tcp_sockets(other)
        if is_connected(s)
    }
    return [
        s
        for s in tcp_sockets(pid)
        if is_connected(s)
        and (port_of(s.getpeername()), port_of(s.getsockname())) in theirs
    ]


def received(one):
    """How many bytes have come over a connection."""
    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return struct.unpack_from("Q", info, TCP_INFO_BYTES_RECEIVED)[0]


def filter_input(one, *instructions):
    """Let the kernel drop, without a word, what a filter does not accept."""
    code = b"".join(struct.pack("HBBI", *i) for i in instructions)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HP", len(instructions), ctypes.addressof(buffer))
    one.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def silence(one):
    """Nothing comes through any more, not even an acknowledgement."""
    filter_input(one, (RETURN, 0, 0, NOTHING))


def drop_data(one):
    """Connections are made, but nothing that is said comes through."""
    filter_input(
        one,
        (LOAD_LENGTH, 0, 0, 0),
        (JUMP_OVER, 0, 1, TCP_HEADER_MAX),
        (RETURN, 0, 0, NOTHING),
        (RETURN, 0, 0, EVERYTHING),
    )
