# SPDX-License-Identifier: BSD-3-Clause
"""Strangers at the doors of a step, and ranks that attack their own agent."""

import os
import pathlib
import re
import socket
import struct
import subprocess
import threading
import time

import pytest

from faulty import is_alive
from harness import (
    Cluster,
    free_ports,
    opened_files,
    read_text,
    run,
    wait_until,
)
from processes import stat_of

NODES = 4
PORTS = 16
STEPS_TO_MEET = 20
STRANGERS = 10000
GROWTH_KB = 4096  # of an agent that strangers have knocked at, the first time
SETTLED_KB = 128  # what as many more may add in the end: some bytes for each
FLOODS = 8
STRANGER_S = 0.0005  # of processor time that one of them may cost
NOBODY = 65534
MAGIC = b"pmi2x\r\n\0"
PROOF_MESSAGE_BYTES = 8 + 2 + 2 + 32  # magic, version, length, HMAC
SO_RCVBUFFORCE = 33
PROVED_BYTES = 64  # an answer that has a nonce and a proof is longer
PROGRAMS = pathlib.Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def ports():
    """The first of PORTS."""
    with free_ports(PORTS) as (first, _):
        yield first


@pytest.fixture(scope="module")
def hostile_cluster(prefix, scratch, kind, only_pmi2x, ports):
    """Few ports, little patience, and slurmd's logs say the secret."""
    if os.getuid():
        pytest.skip("needs root, to be another user")
    conf = scratch / "hostile-mpi.conf"
    conf.write_text(
        f"Pmi2xPorts={ports}-{ports + PORTS - 1}\nPmi2xHandshakeTimeout=2\n"
    )
    cluster = Cluster(prefix, scratch / "hostile", kind, NODES)
    cluster.options += ["--mpi-conf", conf]
    for line in "DebugFlags=MPI", "SlurmdDebug=verbose":
        cluster.options += ["--slurm-conf-line", line]
    yield from cluster.while_up()


@pytest.fixture
def cluster(hostile_cluster):
    yield from hostile_cluster.left_clean()


# ---- what can be seen of a step ----


def listening_port(cluster, node):
    """The TCP port on which a node awaits its neighbours, or None: its slurmstepd has it,
    or the agent, which the first node starts after a second. What slurmstepd has on the
    loopback address is for clients of PMIx."""
    daemon = cluster.step_daemon(node)
    pids = [daemon, cluster.agent(node)] if daemon else []
    files = [f for pid in filter(None, pids) for f in opened_files(pid)]
    held = {f[8:-1] for f in files if f.startswith("socket:")}
    for table in "tcp", "tcp6":
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines():
            words = line.split()
            on_loopback = words[1].startswith("0100007F:")
            if words[3] == "0A" and words[9] in held and not on_loopback:
                return int(words[1].rpartition(":")[2], 16)
    return None


def memory_kb(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", text)[1])


def processor_s(pid):
    """What a process has used so far."""
    return sum(map(int, stat_of(pid)[11:13])) / os.sysconf("SC_CLK_TCK")


def stranger(*argv, timeout=60):
    program = PROGRAMS / "stranger.py"
    command = ["/usr/bin/python3", "-SE", program, *argv]
    return run(command, timeout=timeout).ok().stdout.strip()


class WaitingStep:
    """A step whose ranks start PMI, and end, when they are told to."""

    def __init__(self, cluster, raw, directory, ranks=8):
        self.cluster = cluster
        self.gates = [directory / "begin", directory / "end"]
        self.output = directory / "output"
        command = ["srun", f"--mpi={cluster.kind}", f"-N{NODES}", f"-n{ranks}"]
        command += ["--ntasks-per-node", ranks // NODES]
        command += raw("gates", "2", *self.gates)
        with open(self.output, "w") as output:
            self.srun = cluster.start(
                *command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.ranks = ranks
        self.daemon = wait_until(lambda: cluster.step_daemon("n1"))
        self.port = wait_until(lambda: listening_port(cluster, "n1"))
        self.job = wait_until(self.find_job)

    def find_job(self):
        shown = self.cluster.run("squeue", "-h", "-t", "R", "-o", "%A").lines
        return f"{shown[0]}.0" if shown else None

    def begin(self):
        self.gates[0].touch()

    def end(self):
        """Every rank has had the right values, and srun is content."""
        for gate in self.gates:
            gate.touch()
        try:
            code = self.srun.wait(60)
        finally:
            self.srun.kill()
        said = self.output.read_text()
        assert code == 0, said
        assert said.count(f"passed {self.job}") == self.ranks, said
        # srun does not wait for what the agent logs last.
        wait_until(lambda: not is_alive(self.daemon))
        return said

    def log(self, node="n1"):
        """What this step's slurmstepd has logged."""
        return [
            line
            for line in self.cluster.log_of(node).splitlines()
            if f"[{self.job}]" in line
        ]


@pytest.fixture
def step(cluster, raw, tmp_path_factory):
    step = WaitingStep(cluster, raw, tmp_path_factory.mktemp("step"))
    yield step
    step.srun.kill()
    step.srun.wait()


# ---- strangers ----


@pytest.mark.parametrize(
    "what", ["nothing", "garbage", "half", "long", "other", "bind"]
)
def test_stranger(step, what):
    """He is dropped, and the step does not notice."""
    more = [step.job] if what in ("half", "other") else []
    step.begin()
    assert stranger(what, step.port, *more) == "dropped"
    step.end()


def test_secrets(step):
    """A proof with another secret is refused; with the right one it is not."""
    logged = re.findall(
        r"PMI2X_SECRET=([0-9a-f]{64})", step.cluster.log_of("n1")
    )
    assert logged, "the log has no secret: is DebugFlags=MPI on?"
    step.begin()
    prove = ["prove", step.port, step.job, "9", "0"]
    assert stranger(*prove, "5e" * 32) == "dropped"
    # Position 9 is no neighbour, so that it is let in and shown the door.
    refusals = wait_until(lambda: [l for l in step.log() if "refused a connection" in l])
    assert len(refusals) == 1, refusals
    assert "does not belong to this step" in refusals[0]
    stranger(*prove, logged[-1])
    step.end()
    more = [l for l in step.log() if "more connections" in l]
    assert not more, more


def watch_loopback():
    """A socket that sees everything that is sent over the loopback interface."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    wire.bind(("lo", 0))
    wire.settimeout(1)
    return wire


def sent_to(wire, ports, until):
    """{(receiver's port, sender's): what has been sent there over TCP}, in pieces."""
    streams = {}
    while not until(streams):
        try:
            packet, source = wire.recvfrom(65536)
        except socket.timeout:
            continue
        if source[2] != socket.PACKET_OUTGOING or packet[0] >> 4 != 4:
            continue
        tcp = packet[4 * (packet[0] & 15) :]
        if packet[9] != socket.IPPROTO_TCP:
            continue
        sender, receiver = struct.unpack(">HH", tcp[:4])
        data = tcp[4 * (tcp[12] >> 4) :]
        if receiver in ports and data:
            streams.setdefault((receiver, sender), []).append(data)
    return streams


def test_replay(step):
    """What a node has said to prove itself proves nothing when it is said again."""
    deadline = time.monotonic() + 60
    ports = {}  # of two neighbours either may be the one to connect

    for node in (f"n{number}" for number in range(1, NODES + 1)):
        port = wait_until(lambda node=node: listening_port(step.cluster, node))
        ports[port] = node

    def heard(streams):
        assert time.monotonic() < deadline, "nobody has connected"
        return any(len(parts) > 1 for parts in streams.values())

    with watch_loopback() as wire:
        step.begin()
        streams = sent_to(wire, ports, heard)
    at, hello, proof = next((k[0], *p[:2]) for k, p in streams.items() if len(p) > 1)
    assert hello.startswith(MAGIC) and proof.startswith(MAGIC)
    proof = proof[:PROOF_MESSAGE_BYTES]  # what follows is no part of it
    assert stranger("replay", at, hello.hex(), proof.hex()) == "dropped"
    step.end()
    refusals = [l for l in step.log(ports[at]) if "refused a connection" in l]
    assert len(refusals) == 1, refusals
    assert "does not belong to this step" in refusals[0]


def test_refusals_are_logged_once(step):
    step.begin()
    for _ in range(5):
        assert stranger("garbage", step.port) == "dropped"
    step.end()
    # On a machine that is busy a neighbour may be late, and is counted, too.
    said = [l for l in step.log() if " refused " in l]
    assert len(said) == 2, said
    assert "refused a connection from 127.0.0.1: the peer " in said[0]
    more = re.search(r"refused (\d+) more connections from 127.0.0.1", said[1])
    assert more and int(more[1]) >= 4, said


def test_many_strangers_while_a_step_starts(step, public):
    """10,000 connections, again and again: memory settles, they cost little, and
    the step ends well."""
    stranger("flood", step.port, step.job, 1000, public / "warm", 0)
    agent = wait_until(lambda: step.cluster.agent("n1"))  # for the first of them
    before, used = memory_kb(agent), processor_s(agent)
    begin = threading.Thread(target=lambda: wait_for_mark(public, step))
    begin.start()
    stranger("flood", step.port, step.job, STRANGERS, public / "mark", 3000)
    begin.join()
    after = memory_kb(agent)
    sizes = [before, after]
    while sizes[-1] - sizes[-2] >= SETTLED_KB and len(sizes) < FLOODS:
        stranger("flood", step.port, step.job, STRANGERS, public / "again", 0)
        sizes.append(memory_kb(agent))
    used = processor_s(agent) - used
    descriptors = len(opened_files(agent))
    step.end()
    print(f"{sizes} KiB, {used} s, {descriptors} descriptors")
    assert after - before < GROWTH_KB, (before, after)
    assert sizes[-1] - sizes[-2] < SETTLED_KB, sizes
    assert used < len(sizes) * STRANGERS * STRANGER_S, used
    assert descriptors < 400, descriptors


def wait_for_mark(public, step):
    """The ranks start PMI in the midst of the flood."""
    wait_until((public / "mark").exists, 60)
    step.begin()


def test_socket_of_the_step(step):
    """Only the user and root may connect; a length is not believed."""
    paths = list(step.cluster.dir.glob("spool/n1/pmi2x-*"))
    assert len(paths) == 1 and paths[0].stat().st_mode & 0o777 == 0o600, paths
    step.begin()
    ignored = "ignored a message through slurmd that asks node n1 to connect"
    before = step.cluster.log_of("n1").count(ignored)
    for header in (
        struct.pack(">II", 0, 4) + b"wxyz",
        struct.pack(">II", 0, 0xFFFFFFFF),
        struct.pack(">II", NOBODY, 4) + b"abcd",
        struct.pack(">II", 0, 4) + b"abcd",
    ):
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(20)
            link.connect(str(paths[0]))
            link.sendall(header)
            assert link.recv(1) == b""
    script = "import os, socket, sys\nos.setuid(65534)\n"
    script += "socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    run(["/usr/bin/python3", "-c", script, paths[0]]).failed().says(
        "PermissionError"
    )
    step.end()
    assert step.cluster.log_of("n1").count(ignored) == before + 1


# ---- who has the port first ----


class Squatter:
    """Listens on ports, and does the same with whoever connects."""

    def __init__(self, ports, treat):
        self.treat = treat
        self.visits = 0
        self.sockets = []
        for port in ports:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("0.0.0.0", port))
            listener.listen(100)
            self.sockets.append(listener)
            threading.Thread(
                target=self.serve, args=[listener], daemon=True
            ).start()

    def serve(self, listener):
        while True:
            try:
                link = listener.accept()[0]
            except OSError:
                return
            self.visits += 1
            threading.Thread(
                target=self.treat, args=[link], daemon=True
            ).start()

    def close(self):
        for listener in self.sockets:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def say_nothing(link):
    while link.recv(65536):
        pass
    link.close()


def say_garbage(link):
    link.recv(65536)
    link.sendall(os.urandom(512))
    link.close()


class Relay:
    """Passes on what it hears to an agent that listens elsewhere."""

    def __init__(self, ports, squatted):
        self.targets = [port for port in ports if port not in squatted]
        self.recorded = []  # (what the connector sent, what was answered)

    def __call__(self, link):
        heard = [link.recv(65536), b""]
        for port in self.targets:
            try:
                with socket.create_connection(("127.0.0.1", port), 5) as agent:
                    agent.sendall(heard[0])
                    heard[1] = agent.recv(65536)
                    if len(heard[1]) < PROVED_BYTES:
                        continue  # another node
                    link.sendall(heard[1])
                    link.settimeout(5)
                    self.recorded.append((*heard, link.recv(65536), port))
                break
            except OSError:
                continue
        link.close()


@pytest.mark.parametrize("treat", ["nothing", "garbage", "relay"])
def test_port_is_taken(cluster, raw, ports, treat):
    """The step finds its nodes although strangers listen where they should."""
    every = range(ports, ports + PORTS)
    squatted = [port for port in every if port % (PORTS // NODES)]
    relay = Relay(every, squatted)
    squatter = Squatter(
        squatted,
        {"nothing": say_nothing, "garbage": say_garbage, "relay": relay}[treat],
    )
    exchange = ["-n8", "--ntasks-per-node=2", *raw("exchange", "2")]
    try:
        # Where the nodes ought to listen is chance: some steps meet nobody.
        for _ in range(STEPS_TO_MEET):
            result = cluster.srun(f"-N{NODES}", *exchange).ok()
            assert result.lines.count("exchanged 8") == 8
            if relay.recorded if treat == "relay" else squatter.visits:
                break
    finally:
        squatter.close()
    assert squatter.visits > 0
    if treat == "relay":
        assert relay.recorded
        # The connector has seen that the answer is not from where it called.
        assert not any(proof for _, _, proof, _ in relay.recorded)


# ---- ranks ----


def killed(cluster):
    """A line for each slurmstepd that a signal has ended."""
    return read_text(cluster.dir / "log" / "killed")


@pytest.mark.parametrize("who", ["root", "user"])
def test_results_are_the_agents(request, cluster, public, who):
    """No rank can write or resize what the ranks of a node read."""
    begin = []
    if who == "user":
        begin = request.getfixturevalue("ordinary_user")
    result = cluster.run(
        *(*begin, "srun", f"--mpi={cluster.kind}", "-N2", "-n4"),
        *("/usr/bin/python3", "-SE", public / "programs" / "attack.py"),
        *("region", "1"),
        cwd="/",
    ).ok()
    assert result.lines.count("attacked") == 4, result


def test_entry_that_is_hidden(cluster, raw, fault_client, tmp_path):
    """Whose slot has been written over enters again; its step goes on."""
    attack = " ".join(map(str, raw("attack", "ticket", 1)))
    friend = f"{fault_client} {tmp_path} init fence fence finalize"
    script = f"[ $PMI_RANK = 0 ] && exec {friend}; exec {attack}"
    cluster.srun("-N1", "-n2", "sh", "-c", script).ok()
    assert (tmp_path / "done.0").exists()


@pytest.mark.parametrize(
    "what, times",
    [
        ("slots", 20000),
        ("counters", 20000),
        ("entries", 20000),
        ("eventfd", 20000),
        ("descriptors", 300),
    ],
)
def test_attack_on_the_agent(cluster, raw, probe, what, times):
    """The attacker's step ends one way or the other; no other is harmed."""
    attack = " ".join(map(str, raw("attack", what, times)))
    victim = " ".join(map(str, raw("exchange", "2")))
    srun = f"srun --mpi={cluster.kind} --overlap -N{NODES} -n8"
    friend = f"{probe} kvs allgather kvs"
    script = (
        f"{srun} sh -c '[ $PMI_RANK = 1 ] || exec {friend} >/dev/null; "
        f"echo attacking; exec {attack} >/dev/null' 2>/dev/null & "
        f"for i in 1 2 3; do {srun} {victim}; done; "
        f"{srun} {friend} >/dev/null && echo fine; wait"
    )
    before = killed(cluster)
    result = cluster.run(
        "salloc", f"-N{NODES}", "--ntasks-per-node=16", "sh", "-c", script
    ).ok()
    assert result.lines.count("exchanged 8") == 3 * 8, result
    assert "fine" in result.lines, result
    assert "attacking" in result.lines, result
    left = cluster.wait_until_clean()
    assert not left, left
    assert killed(cluster) == before
