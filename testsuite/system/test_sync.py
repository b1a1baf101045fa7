# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-sync: tasks of a step meet from a shell, beside MPI or without it."""

import os
import re

import pytest

STEP = ["-N2", "-n4", "--ntasks-per-node=2"]


PYTHON = """
import pmi2x_sync

with pmi2x_sync.connect() as step:
    assert step.size == 4
    assert step.get("none") is None
    step.put(f"key {step.rank}", bytes(range(256)) * 1024)
    value = step.get(f"key {(step.rank + 1) % 4}", wait=True, timeout=60)
    assert value == bytes(range(256)) * 1024
    assert step.allgather(str(step.rank)) == [b"0", b"1", b"2", b"3"]
    assert len(step.allgather("", node=True)) == 2
    step.add("sum", step.rank)
    step.barrier()
    assert step.get("sum") == b"6"
    votes = step.allgather(str(step.elect("one")))
    assert votes.count(b"True") == 1
    if step.rank == 0:
        for ask in step.barrier, step.wait:
            try:
                ask("lonely", timeout=0.1)
            except pmi2x_sync.Timeout as late:
                print(late, file=__import__("sys").stderr)
            else:
                raise SystemExit("no timeout")
        try:
            step.put("long", b"x" * (pmi2x_sync.VALUE_MAX + 1))
        except pmi2x_sync.Error:
            step.delete("sum")
    step.barrier()
    assert step.get("sum") is None
    if step.rank != 3:
        try:
            step.barrier("never")
        except pmi2x_sync.Error as error:
            assert "rank 3 (node" in str(error), error
    print("done")
"""


HOSTILE = r"""
import os, socket, struct, sys
name = b"\0" + os.environ["PMI2X_SYNC"].split(":")[0].encode()
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(name)
    s.settimeout(60)
    return s
def message(*parts):
    body = b"".join(parts)
    return struct.pack("<I", len(body)) + body
hello = message(struct.pack("<BII", 6, 1, int(os.environ["SLURM_PROCID"])))
for bad in (b"\0\0\0\0", b"\xff" * 64, message(b"\1" * 40), hello + message(b"\7"),
            hello + hello, message(struct.pack("<BII", 6, 1, 99)),
            message(struct.pack("<BII", 6, 77, 0)), os.urandom(4096)):
    s = connect()
    try:
        s.sendall(bad)
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536):
            pass
    except (ConnectionResetError, BrokenPipeError):
        pass
quiet = [connect() for _ in range(100)]
import pmi2x_sync
step = pmi2x_sync.connect()
step.put("big", b"x" * (8 << 20))
ask = struct.pack("<BQBBBIqI", 1, 5, 0, 1, 0, 0, 0, 1) + struct.pack("<I3s", 3, b"big")
deaf = connect()
deaf.sendall(hello)
deaf.setblocking(False)  # with a time limit, Python waits for room
try:
    for number in range(1000):
        deaf.send(message(ask, bytes(8)))
except OSError:
    pass
full = 0
for number in range(1000):
    try:
        step.put(f"full {number}", b"x" * (8 << 20))
    except pmi2x_sync.Error as error:
        assert "MiB" in str(error), error
        full += 1
        break
assert full
step.delete("full 0")
step.put("last", "1")
print("survived")
"""


STRANGER = """
import os, socket
child = os.fork()
if not child:
    os.setgid(1)
    os.setuid(1)
    s = socket.socket(socket.AF_UNIX)
    s.connect(b"\\0" + os.environ["PMI2X_SYNC"].split(":")[0].encode())
    s.settimeout(60)
    try:
        left = s.recv(1)
    except ConnectionResetError:
        left = b""
    os._exit(len(left))
raise SystemExit(os.waitpid(child, 0)[1])
"""


@pytest.fixture
def sync(srun, prefix, only_pmi2x):
    """Run a shell script in each task; pmi2x-sync is in its PATH."""

    def start(script, *options, **more):
        whole = f"PATH={prefix}/bin:$PATH\n{script}"
        return srun(*(options or STEP), "sh", "-c", whole, **more)

    return start


def test_keys_of_all_nodes(sync):
    result = sync(
        """r=$SLURM_PROCID
        pmi2x-sync put a$r=value-$r
        pmi2x-sync wait a0 a1 a2 a3
        pmi2x-sync get a$(( (r + 1) % 4 ))
        pmi2x-sync get never || echo $?"""
    ).ok()
    assert sorted(result.lines) == ["1"] * 4 + [f"value-{rank}" for rank in range(4)]


def test_barrier_orders_what_tasks_do(sync, tmp_path):
    """No task passes a barrier before all have entered it, again and again."""
    sync(
        f"""for i in 1 2 3 4 5; do
            touch {tmp_path}/$i.$SLURM_PROCID
            pmi2x-sync barrier
            test $(ls {tmp_path} | grep -c "^$i[.]") = 4 || exit 9
            pmi2x-sync barrier second
        done"""
    ).ok()


def test_one_task_is_elected(sync):
    result = sync(
        """pmi2x-sync elect me && echo all
        pmi2x-sync --node elect me && echo node
        pmi2x-sync barrier --node
        pmi2x-sync add sum 5 >/dev/null; pmi2x-sync barrier; pmi2x-sync get sum"""
    ).ok()
    assert sorted(result.lines) == ["20"] * 4 + ["all", "node", "node"]


def test_allgather_in_rank_order(sync):
    result = sync(
        """pmi2x-sync allgather v$SLURM_PROCID | tr '\\n' ' '; echo
        pmi2x-sync allgather --node n$SLURM_PROCID | tr '\\n' ' '; echo"""
    ).ok()
    nodes = ["n0 n1 "] * 2 + ["n2 n3 "] * 2
    assert sorted(result.stdout.splitlines()) == sorted(["v0 v1 v2 v3 "] * 4 + nodes)


def test_file_of_8_mib_comes_as_it_is(sync, tmp_path):
    value = bytes(range(256)) * (8 << 12)
    (tmp_path / "in").write_bytes(value)
    (tmp_path / "more").write_bytes(value + b"x")
    result = sync(
        f"""if [ $SLURM_PROCID = 3 ]; then
            pmi2x-sync put file <{tmp_path}/in
            pmi2x-sync put file <{tmp_path}/more || echo status $?
        fi
        pmi2x-sync get --wait file >{tmp_path}/out.$SLURM_PROCID"""
    )
    result.ok()
    assert result.lines == ["status 3"]
    assert "8 MiB" in result.stderr
    for rank in range(4):
        assert (tmp_path / f"out.{rank}").read_bytes() == value


LARGE = r"""
import sys
import pmi2x_sync

step, refused = pmi2x_sync.connect(), 0
for i in range(int(sys.argv[1])):
    try:
        step.put(f"{step.rank} {i}", bytes([step.rank]) * (8 << 20))
    except pmi2x_sync.Error as error:
        assert "Pmi2xBufferLimit" in str(error) or "delete keys" in str(error), error
        refused += 1
step.barrier()
for rank in range(step.size):
    value = step.get(f"{rank} 0")
    assert value in (None, bytes([rank]) * (8 << 20))
step.barrier()
print("refused" if refused else "done")
"""


def large_puts(srun, prefix, tasks, each, **more):
    """The first node has the children 1 and 3, and node 1 has the child 2."""
    return srun(
        "-N4", f"-n{tasks}", "python3", "-c", LARGE, str(each),
        env={"PYTHONPATH": f"{prefix}/share/pmi2x/python", "PMI2X_TREE_WIDTH": "2"} | more,
    )


def test_large_puts_of_all_nodes_break_no_link(sync, srun, prefix):
    """What comes from two nodes at once does not fit into 20 MiB; one value would."""
    assert large_puts(srun, prefix, 16, 1).ok().lines == ["done"] * 16
    lines = large_puts(srun, prefix, 4, 10, PMI2X_BUFFER_LIMIT="20").ok().lines
    assert lines == ["refused"] * 4


def test_timeout_names_the_missing_ranks(sync):
    """The tasks that wait longer go on when the late ones come."""
    result = sync(
        """if [ $SLURM_PROCID = 0 ]; then
            pmi2x-sync --timeout 0.2 barrier b; echo status $?
            pmi2x-sync --timeout=0.1 wait k SLURM; echo status $?
            pmi2x-sync put go=
        fi
        pmi2x-sync wait go
        pmi2x-sync barrier b"""
    ).ok()
    assert result.lines == ["status 124"] * 2
    assert "barrier b: timed out after 0.2 s: missing: rank" in result.stderr
    assert "missing: key k, SLURM" in result.stderr


LONG_WAITS = {
    "barrier late": r"barrier late of pmi2x-sync: \d+ s, waiting for 1 of 4 ranks: 3 \(node n2\)",
    "wait k": r"key k: \d+ s, ranks 0-2 \(nodes n1, n2\) wait for it, and it has no value; "
              r"rank 3 \(node n2\) has not used pmi2x-sync",
}


@pytest.mark.parametrize("what", LONG_WAITS)
def test_long_wait_is_named(kind, cluster, prefix, tmp_path, what):
    """In the report of srun and by pmi2x why, which looks at the rank that is late."""
    if kind != "pmi2x":
        pytest.skip("pmi2x-sync is of pmi2x")
    script = f"""export PATH={prefix}/bin:$PATH
    if [ $SLURM_PROCID = 3 ]; then
        read gate <{tmp_path}/gate
        pmi2x-sync put k=
    fi
    pmi2x-sync {what}"""
    os.mkfifo(tmp_path / "gate")
    argv = ["srun", "--mpi=pmi2x", "-J", "sync-waits", *STEP, "sh", "-c", script]
    step = cluster.start(*argv, env={"PMI2X_STALL_REPORT": "1"})
    said = next((line for line in step.stderr if re.search(LONG_WAITS[what], line)), "")
    job = cluster.run("squeue", "-h", "-o", "%i", "-n", "sync-waits").lines[0]
    shown = cluster.run(prefix / "bin" / "pmi2x", "why", f"{job}.0").ok().stdout
    (tmp_path / "gate").write_text("go\n")
    rest = step.stderr.read()
    assert step.wait(60) == 0, rest
    assert re.search(f"pmi2x: {LONG_WAITS[what]}$", said.strip()), said
    assert re.search(f"^{LONG_WAITS[what]}$", shown, re.M), shown
    assert re.search(r"^rank 3 \(node n2\): sh is in openat of .*/gate", shown, re.M), shown
    if what.startswith("barrier"):
        assert len(re.findall("^rank", shown, re.M)) == 1, shown


def test_barrier_that_a_task_cannot_reach_any_more_ends(sync):
    """Whether the task ended before the barrier or while others wait in it."""
    result = sync(
        """if [ $SLURM_PROCID = 3 ]; then exit 0; fi
        pmi2x-sync barrier late; echo status $?
        pmi2x-sync barrier --node; echo node $?"""
    ).ok()
    nodes = ["node 0", "node 0", "node 3"]
    assert sorted(result.lines) == nodes + ["status 3"] * 3
    assert "rank 3 (node " in result.stderr
    assert "exited with exit code 0 and is not in it" in result.stderr


def test_killed_client_is_not_in_the_barrier(sync):
    """Once a timeout of another task shows that it was in."""
    result = sync(
        """case $SLURM_PROCID in
        0)  until pmi2x-sync --timeout 0.2 barrier b 2>&1 | grep -q "missing: ranks 2-3"
            do :; done
            pmi2x-sync put kill= ;;
        1)  pmi2x-sync barrier b &
            pmi2x-sync wait kill
            kill -9 $!; wait $!
            pmi2x-sync put killed=
            pmi2x-sync --timeout 0.2 wait never ;;
        esac
        pmi2x-sync wait killed; pmi2x-sync barrier b && echo done"""
    ).ok()
    assert result.lines == ["done"] * 4


def test_beside_mpi(sync, raw):
    """Before PMI's start, while it is used and after its end, in one step."""
    program = " ".join(str(word) for word in raw("exchange", "2"))
    result = sync(f"pmi2x-sync barrier; {program} && pmi2x-sync barrier && echo done").ok()
    assert result.lines.count("done") == 4


def test_from_python(srun, prefix, only_pmi2x, tmp_path):
    """Threads of waiting tasks, values of all bytes, and ends by name."""
    script = tmp_path / "task.py"
    script.write_text(PYTHON)
    path = f"PYTHONPATH={prefix}/share/pmi2x/python"
    result = srun(*STEP, "env", path, "/usr/bin/python3", "-B", script).ok()
    assert sorted(result.lines) == ["done"] * 4


def test_hostile_clients_do_not_harm_the_step(sync, prefix, tmp_path, raw):
    """Garbage, silent clients, one that does not read, and more than fits: MPI beside it
    goes on, and so do other clients."""
    (tmp_path / "hostile.py").write_text(HOSTILE)
    program = " ".join(str(word) for word in raw("exchange", "2"))
    result = sync(
        f"""export PYTHONPATH={prefix}/share/pmi2x/python
        pmi2x-sync barrier
        if [ $SLURM_PROCID = 3 ]; then
            /usr/bin/python3 -B {tmp_path}/hostile.py || exit 9
        fi
        {program} && pmi2x-sync barrier && echo done""",
        env={"PMI2X_BUFFER_LIMIT": "128"},  # of which values may take 32
    ).ok()
    assert result.lines.count("survived") == 1
    assert result.lines.count("done") == 4


def test_other_users_get_nothing(sync, tmp_path):
    """Their connections are closed, before and after the agent has started."""
    if os.geteuid():
        pytest.skip("only root can be another user")
    (tmp_path / "stranger.py").write_text(STRANGER)
    stranger = f"/usr/bin/python3 -B {tmp_path}/stranger.py"
    sync(f"{stranger} && pmi2x-sync barrier && {stranger}").ok()


def test_beside_mpich(sync, hello):
    result = sync(f"pmi2x-sync barrier; {hello} && pmi2x-sync barrier && echo done").ok()
    assert result.lines.count("done") == 4


def test_beside_open_mpi(sync, debian_open_mpi):
    program = debian_open_mpi
    result = sync(f"pmi2x-sync barrier; {program} && pmi2x-sync barrier && echo done").ok()
    assert result.lines.count("done") == 4


def test_job_of_a_task_does_not_act_for_the_task(sync, prefix):
    """sbatch passes the variables of the task on, and a step of both jobs has the number 0."""
    python = f"PYTHONPATH={prefix}/share/pmi2x/python /usr/bin/python3 -B -c"
    result = sync(
        f"""export SLURM_JOB_ID=4000000000
        pmi2x-sync put key=; echo status $?
        {python} 'import pmi2x_sync; pmi2x_sync.connect()' || echo status $?""",
        "-n1",
    ).ok()
    assert result.lines == ["status 3", "status 1"]
    for client in "pmi2x-sync", "pmi2x_sync.Error":
        assert f"\n{client}: this process is not in a step of pmi2x" in "\n" + result.stderr, result


def test_without_pmi2x_it_says_which_option_to_add(srun, prefix, only_pmi2x):
    result = srun("-n1", f"{prefix}/bin/pmi2x-sync", "barrier", mpi="none")
    result.failed().says("start it with srun --mpi=pmi2x")


@pytest.fixture
def calls(compile_program, prefix, only_pmi2x):
    """programs/mpi-sync.c with libpmi2x, for an MPI or without one."""

    def build(compiler, *flags):
        library = prefix / "lib"
        return compile_program(
            "programs/mpi-sync.c", compiler, *flags, f"-I{prefix}/include/pmi2x",
            f"-L{library}", f"-Wl,-rpath,{library}", "-lpmi2x",
        )

    return build


PHASES = [f"{phase} elected one" for phase in ("after", "before", "beside")]


@pytest.mark.parametrize("compiler", ["gcc", "mpicc.mpich", "mpicc.openmpi"])
def test_calls_of_libpmi2x(srun, calls, compiler):
    """Before, beside and after MPI, in a child of fork, and with arguments that are wrong."""
    program = calls(compiler, *(["-DNO_MPI"] if compiler == "gcc" else []))
    assert sorted(srun(*STEP, program).ok().lines) == PHASES


def test_calls_of_libpmi2x_name_what_is_missing(srun, calls):
    program = calls("gcc", "-DNO_MPI")
    late = srun(*STEP, program, "late").ok().stdout
    assert "\ntimed out after 0.1 s: missing: rank" in late, late
    assert "\ntimed out after 0.1 s: missing: key never\n" in late, late
    gone = srun(*STEP, program, "gone").ok().stdout
    assert re.search(r"^.*rank 1 \(node n\d+\) .*exit code 0 and is not in it", gone, re.M), gone


def test_calls_of_libpmi2x_without_a_step(srun, calls):
    result = srun("-n1", calls("gcc", "-DNO_MPI"), mpi="none").failed()
    assert "error 1: this process is not in a step of pmi2x" in result.stdout, result
