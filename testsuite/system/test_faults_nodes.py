# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that lack something: memory, descriptors, ports, room for files, the
right plugin, power; and daemons that come back, or late."""

import contextlib
import os
import pathlib
import re
import resource
import signal
import socket

import pytest

from faulty import (
    HANGS_S,
    RANKS,
    daemon,
    give_up_node,
    links,
    listener,
    ranks_of,
    remove_stale_sockets,
    restarted,
    silence,
)
from harness import Cluster, free_ports, run, taken_ports, wait_until
from processes import opened_files, stat_of

PORTS = 40
MPI_CONF = "Pmi2xPorts={}-{}\nPmi2xDeadPeerTimeout=2\n"
PROLOG = """#!/bin/sh
[ "$SLURMD_NODENAME" = n1 ] && [ -e {late} ] && sleep 3
exit 0
"""
MUCH = "put=16"
SPINS_S = 2  # of processor time, while nothing can go on
SPOOL_FILES = 64  # that have room in a small spool directory, and
SPOOL_BYTES = 1 << 20
PAGE = os.sysconf("SC_PAGESIZE")


@pytest.fixture(scope="module")
def ports():
    """First and last of those of small_cluster."""
    with free_ports(PORTS) as both:
        yield both


@pytest.fixture(scope="module")
def small_cluster(prefix, scratch, kind, only_pmi2x, ports):
    """Five nodes with few ports, little patience, and a prolog."""
    conf, prolog = scratch / "faults-mpi.conf", scratch / "faults-prolog"
    conf.write_text(MPI_CONF.format(*ports))
    prolog.write_text(PROLOG.format(late=scratch / "late"))
    prolog.chmod(0o755)
    options = ["--mpi-conf", conf, "--slurm-conf-line", f"Prolog={prolog}"]
    cluster = Cluster(prefix, scratch / "faults", kind, 5, options)
    cluster.up()
    yield cluster
    run([cluster.program, "down", "--dir", cluster.dir])


@pytest.fixture
def small(small_cluster, start_faulty):
    small_cluster.wait_until_clean()

    def start_one(*words, **options):
        return start_faulty(small_cluster, *words, **options)

    yield start_one
    left = small_cluster.wait_until_clean()
    assert not left, f"left behind: {left}"


# ---- what a node may lack ----


@contextlib.contextmanager
def limited(cluster, step, what, value):
    """The agent of n2 has not yet begun; now slurmstepd has only so much."""
    step.wait_for("at", RANKS)
    pid = cluster.step_daemon("n2")
    old = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (value(pid), old[1]))
    step.make("go")
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, what, old)


def little_memory(pid):
    """Not for a region of 1 GiB; but for threads, without which slurmstepd of 26.05
    ends itself."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize() + (256 << 20)


LIMITS = {
    "address space": (resource.RLIMIT_AS, little_memory),
    "file size": (resource.RLIMIT_FSIZE, lambda pid: 1 << 20),
}


@pytest.mark.parametrize("what, value", LIMITS.values(), ids=LIMITS)
def test_limits_of_slurmd_are_not_the_agents(cluster, faulty, what, value):
    """They are meant for a daemon."""
    step = faulty("touch=at", "gate=go", "init", MUCH, "fence", "fence", "finalize")
    with limited(cluster, step, what, value):
        step.end().ok()
    assert step.seen("done") == RANKS


def descriptors(pid):
    return {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}


def sockets(pid):
    """Other files slurmstepd opens and closes at any time."""
    return {name for name in opened_files(pid) if name.startswith("socket:")}


@contextlib.contextmanager
def free_descriptors(cluster, step, count):
    """Lets slurmstepd of n2, whose agent has not begun, open `count` more descriptors."""

    def limit(pid):
        used = descriptors(pid)
        top = max(used) + 1
        return top + max(0, count - (top - len(used)))

    with contextlib.ExitStack() as stack:
        step.wait_for("at", RANKS)
        pid = cluster.step_daemon("n2")
        path = cluster.dir / "spool" / "n2" / f"n2_{step.job()}.0"
        while limit(pid) - len(descriptors(pid)) > count:
            before = sockets(pid)
            held = stack.enter_context(socket.socket(socket.AF_UNIX))
            held.connect(str(path))  # slurmstepd accepts, and waits
            wait_until(lambda: sockets(pid) - before)
        stack.enter_context(
            limited(cluster, step, resource.RLIMIT_NOFILE, limit)
        )
        yield


def processor_s(pid):
    """What a process has used; 0 when it is gone."""
    return sum(map(int, stat_of(pid)[11:13])) / os.sysconf("SC_CLK_TCK")


def run_with_free(cluster, faulty, count):
    """A step whose node n2 can open `count` more descriptors for its links."""
    step = faulty("touch=at", "gate=go", "init", "fence", "touch=out",
                  "gate=end", "finalize")
    step.wait_for("at", RANKS)
    pid = cluster.step_daemon("n2")
    used = [processor_s(pid)]

    def is_over():
        used.append(processor_s(pid))
        return step.seen("out") == RANKS or step.srun.poll() is not None

    with free_descriptors(cluster, step, count):
        wait_until(is_over, HANGS_S)
    step.make("end")  # Slurm needs descriptors, too, to end well
    assert max(used) - used[0] < SPINS_S, used
    return step.end()


def test_no_descriptors_left(cluster, faulty):
    """However few there are: the step runs, or ends and says what to raise."""
    failed = 0
    for count in range(40):
        result = run_with_free(cluster, faulty, count)
        if result.code == 0:
            break
        failed += 1
        named = r"node n2\b.*Too many open files.*raise LimitNOFILE"
        assert re.search(named, result.stderr), f"{count} free: {result}"
    assert failed and result.code == 0, result


def test_region_too_small_for_the_image(faulty):
    step = faulty("init", MUCH, "fence", env={"PMI2X_REGION_SIZE": "1"})
    result = step.fails(r"fence 0 failed: node n\d: .*raise Pmi2xRegionSize")
    assert step.seen("error") == RANKS, result


def test_no_ports_left(small, ports):
    first, last = ports
    with taken_ports(first, last):
        small("init", "fence").fails(
            rf"no free port from {first} to {last}: widen Pmi2xPorts"
        )
    small("init", "fence", "finalize").end().ok()


# ---- power, and time ----


def test_packets_dropped_silently(small, small_cluster):
    """As from a host without power: nobody says that n2 is gone."""
    step = small("init", "fence", "touch=out", "gate=go", "fence", "fence")
    step.wait_for("out", RANKS)
    inner = small_cluster.agent("n2")
    for neighbour in "n1", "n3":
        for link in links(inner, small_cluster.agent(neighbour)):
            silence(link)
    step.make("go")
    result = step.fails(r"ending step \S+: lost the connection to node n\d")
    assert not step.seen("done"), result


def test_parent_starts_seconds_after_its_children(small, scratch):
    late = scratch / "late"
    late.touch()
    try:
        step = small("init", "touch=in", "fence", "finalize")
        step.end().ok()
    finally:
        late.unlink()
    times = {
        rank: (step.dir / f"in.{rank}").stat().st_mtime for rank in RANKS
    }
    first = min(times[rank] for rank in ranks_of("n1"))
    assert first > max(times[rank] for rank in ranks_of("n3")) + 1


def test_slurmd_restarted(small, small_cluster):
    """A step does not notice; the next one finds it again."""
    step = small("init", "fence", "touch=out", "gate=go", "fence", "finalize")
    step.wait_for("out", RANKS)
    with restarted(small_cluster, "n2", small_cluster.dir / "slurm.conf"):
        step.make("go")
        step.end().ok()
        assert step.seen("done") == RANKS
        small("init", "fence", "finalize").end().ok()


def test_node_crashes(small, small_cluster):
    """All its processes die at once; nobody says so but its neighbours."""
    conf = small_cluster.dir / "slurm.conf"
    with restarted(small_cluster, "n2", conf) as slurmd:
        step = small("init", "fence", "touch=at", "touch=in", "3:gate=never",
                     "fence")
        step.wait_until_in("in", RANKS - {3})
        step.wait_for("at", RANKS)
        pids = [small_cluster.agent("n2"), small_cluster.step_daemon("n2")]
        pids.append(slurmd.pid)
        pids += [step.pid("at", rank) for rank in ranks_of("n2")]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # dies with another
                os.kill(pid, signal.SIGKILL)
        result = step.fails(
            r"ending step \S+: lost the connection to node n2"
        )
        assert not step.seen("done"), result
        give_up_node(small_cluster, "n2")
        with restarted(small_cluster, "n2", conf):
            wait_until(lambda: not small_cluster.busy_nodes())
            remove_stale_sockets(small_cluster)


# ---- no room in the spool directory ----


@contextlib.contextmanager
def small_spool(cluster):
    """n2 has a spool directory in which few files have room; its path."""
    spool = cluster.dir / "spool" / "n2"
    size = f"nr_inodes={SPOOL_FILES},size={SPOOL_BYTES}"
    mount = f'mount -t tmpfs -o {size} none "{spool}" && exec "$@"'
    within = ["unshare", "--mount", "--propagation", "private"]
    within += ["sh", "-c", mount, "sh"]
    if run([*within, "true"]).code:
        pytest.skip("needs a mount that nobody else sees")
    conf = cluster.dir / "slurm.conf"
    with restarted(cluster, "n2", conf, within) as slurmd:
        seen = pathlib.Path(f"/proc/{slurmd.pid}/root{spool}")
        # slurmd would take the room of its list of credentials from a step, and
        # drain the node when there is none.
        (seen / "cred_state.new").mkdir()
        yield seen
        wait_until(lambda: cluster.step_daemon("n2") is None)
        assert not [name for name in os.listdir(seen) if "pmi" in name]


def leave_room(spool, files):
    """Leaves room for `files` more files in the spool directory."""
    for filler in spool.glob("filler.*"):
        filler.unlink()
    for number in range(os.statvfs(spool).f_ffree - files):
        (spool / f"filler.{number}").touch()


def leave_bytes(spool, count):
    """And files have no more room than this."""
    padding = spool / "padding"
    padding.unlink(missing_ok=True)
    padding.write_bytes(bytes(os.statvfs(spool).f_bavail * PAGE - count))


def socket_complaints(cluster):
    log = cluster.log_of("n2")
    return len(re.findall(
        r"pmi2x: cannot create the socket \S+: No space left on device; other "
        r"nodes cannot ask this node to connect to them: make room in SlurmdSpoolDir", log
    ))


def test_no_room_in_the_spool_directory(small, small_cluster):
    """With room for Slurm and not for pmi2x the step runs, unless nobody can
    connect to the node; then it fails by name. With less, Slurm does not start
    it; one that runs needs no room."""
    with small_spool(small_cluster) as spool:
        leave_room(spool, 0)
        small("init", "fence").fails(r"launch .* failed on node n2")
        leave_room(spool, 1)
        small("init", "fence", "finalize").end().ok()
        assert socket_complaints(small_cluster) == 1
        step = small("touch=at", "gate=go", "init", "fence",
                     env={"PMI2X_CONNECT_TIMEOUT": "2"})
        step.wait_for("at", RANKS)
        for node in "n1", "n2", "n3":  # n2, and those that it connects to
            silence(listener(small_cluster.step_daemon(node)))
        step.make("go")
        step.fails(r"cannot reach node n\d \(port \d+\) within \d+ s: ")
        assert socket_complaints(small_cluster) == 2
        leave_room(spool, 2)
        step = small("touch=at", "gate=go", "init", "fence", "fence",
                     "finalize")
        step.wait_for("at", RANKS)
        leave_room(spool, 0)
        step.make("go")
        step.end().ok()
        assert socket_complaints(small_cluster) == 2


def other_build(cluster, prefix, scratch):
    """A slurm.conf in which the plugin says that it is another build."""
    plugins = scratch / "other-build"
    plugins.mkdir()
    plugin = prefix / "lib" / "slurm" / "mpi_pmi2x.so"
    code = plugin.read_bytes()
    (version,) = set(re.findall(rb"\0(\d+\.\d+\.\d+-[0-9a-f]{12})\0", code))
    other = version[:-1] + (b"8" if version.endswith(b"9") else b"9")
    (plugins / plugin.name).write_bytes(
        code.replace(b"\0" + version + b"\0", b"\0" + other + b"\0")
    )
    text = (cluster.dir / "slurm.conf").read_text()
    conf = scratch / "other-build.conf"
    conf.write_text(text.replace(str(plugin.parent), str(plugins)))
    for name in "cgroup.conf", "mpi.conf":
        with contextlib.suppress(OSError):
            (scratch / name).write_bytes((cluster.dir / name).read_bytes())
    return conf


def test_node_with_another_build(small, small_cluster, prefix, scratch):
    """It speaks the same protocol, which is what counts. From here on n2 is not the
    same again."""
    conf = other_build(small_cluster, prefix, scratch)
    with restarted(small_cluster, "n2", conf):
        small("init", "fence", "finalize").end().ok()


# ---- a resolver that does not answer ----


NAMESERVER = "127.83.77.1"
SILENT = """
mount --bind "$1/resolv.conf" /etc/resolv.conf &&
mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf && shift && exec "$@"
"""


@contextlib.contextmanager
def silent_resolver(directory):
    """It takes queries and answers none. A command, within which it is the only
    one, and its socket."""
    (directory / "resolv.conf").write_text(f"nameserver {NAMESERVER}\n")
    (directory / "nsswitch.conf").write_text("hosts: files dns\n")
    within = ["unshare", "--mount", "--propagation", "private"]
    within += ["sh", "-c", SILENT, "sh", directory]
    if run([*within, "true"]).code:
        pytest.skip("needs mounts that nobody else sees")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as queries:
        queries.bind((NAMESERVER, 53))
        queries.setblocking(False)
        yield within, queries


def named(cluster, name):
    """A slurm.conf in which the address of this node is a name."""
    text = (cluster.dir / "slurm.conf").read_text()
    (line,) = re.findall(r"^NodeName=.*$", text, re.M)
    first = cluster.state["first_port"]
    nodes = []
    for i in range(1, cluster.nodes + 1):
        address = f"{name}.example" if f"n{i}" == name else "127.0.0.1"
        node = re.sub(r"Port=\S+", f"Port={first + i}", line)
        node = node.replace("NodeAddr=127.0.0.1", f"NodeAddr={address}")
        nodes.append(re.sub(r"NodeName=\S+", f"NodeName=n{i}", node))
    conf = cluster.dir / f"named-{name}.conf"
    conf.write_text(text.replace(line, "\n".join(nodes)))
    return conf


def was_asked(queries):
    with contextlib.suppress(BlockingIOError):
        return b"example" in queries.recv(512)
    return False


def test_resolver_that_does_not_answer(small, small_cluster, tmp_path):
    """Last here: n1 is not the same again, either. One side that finds the other is
    enough; a step in which none does fails by name, one that need not look up
    anything runs."""
    conf = small_cluster.dir / "slurm.conf"

    def asks():
        """Unless n1 was the faster one, and has connected before."""
        small("init", "fence", "finalize").end().ok()
        return was_asked(queries)

    with silent_resolver(tmp_path) as (within, queries):
        with restarted(
            small_cluster, "n2", named(small_cluster, "n1"), within
        ):
            with restarted(small_cluster, "n1", conf):
                wait_until(asks)
            with restarted(
                small_cluster, "n1", named(small_cluster, "n2"), within
            ):
                patience = {"PMI2X_CONNECT_TIMEOUT": "2"}
                small("init", "fence", env=patience).fails(
                    r"node n[12] cannot look up the address of node n[12] "
                    r"\(no answer within 2 s\): .*NodeAddr"
                )
                others = ["-w", "n[3-5]", "-n6", "--ntasks-per-node=2"]
                small(
                    "init", "fence", "finalize", options=others
                ).end().ok()


def test_no_room_for_the_topology(small, small_cluster, raw):
    """Half a file is none: the ranks of that node are told so, and go on."""
    step = "-w", "n2,n3", "-n4", "--ntasks-per-node=2", *raw("topology", "1")
    with small_spool(small_cluster) as spool:
        for files, size in (1, SPOOL_BYTES // 2), (SPOOL_FILES // 2, PAGE):
            leave_bytes(spool, size)
            leave_room(spool, files)
            result = small_cluster.srun(*step).ok()
            assert result.lines.count("n2 unavailable") == 2, result
            assert len(re.findall(r"^n3 /\S+ 444 ", result.stdout, re.M)) == 2, result
    said = r"ranks of node n2 get no topology file: cannot write \S+: No space left"
    assert len(re.findall(said, small_cluster.log_of("n2"))) == 2
