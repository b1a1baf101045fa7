# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: many tasks inside one allocation, and on one machine."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from harness import run

HELLO = pathlib.Path(__file__).parents[2] / "contrib/cluster/mpi-hello.c"
LOCAL_NODES = 2
SLOTS = 4
PROCESSES = ("pmi2x-dvm-head", "pmi2x-dvmd", "pmi2x-dvm-zygot")


@pytest.fixture(scope="module", autouse=True)
def there(prefix):
    if not (prefix / "bin/pmi2x-dvm").exists():
        pytest.skip("pmi2x-dvm was not built: libjansson-dev is missing")


@pytest.fixture
def env(tmp_path):
    """A place for DVMs that is this test's alone."""
    base = tmp_path / "dvm"
    base.mkdir(mode=0o700)
    return {**os.environ, "PMI2X_DVM_DIR": str(base)}


@pytest.fixture
def dvm(prefix, env):
    def command(*arguments, **more):
        return run([prefix / "bin/pmi2x-dvm", *arguments], env=env, **more)

    return command


def living(base):
    """Processes of DVMs whose directory, or whose head's, is below this one."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = (path / "comm").read_text().strip()
            state = (path / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if name in PROCESSES and state != "Z":
                env = (path / "environ").read_bytes()
                if f"PMI2X_DVM_DIR={base}\0".encode() in env:
                    found[int(path.name)] = name
    return found


def up_here(dvm, env, nodes):
    dvm("up", "--local", str(nodes), "--slots", str(SLOTS)).ok()
    yield dvm
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


@pytest.fixture
def local(dvm, env):
    """A DVM of this machine's, which leaves nothing behind."""
    yield from up_here(dvm, env, LOCAL_NODES)


@pytest.fixture
def one(dvm, env):
    """The same of one node."""
    yield from up_here(dvm, env, 1)


def wait_until(true, seconds=30):
    limit = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < limit
        time.sleep(0.05)
    return value


def status(dvm):
    return json.loads(dvm("status", "--json").ok().stdout)


# ---- one task ----


def test_output_and_exit_status(local):
    result = local("run", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (result.code, result.stdout, result.stderr) == (7, "out\n", "err\n")


def test_a_task_killed_by_a_signal(local):
    assert local("run", "sh", "-c", "kill -9 $$").code == 128 + signal.SIGKILL


def test_bytes_that_are_no_text(local, prefix, env):
    out = subprocess.run(
        [prefix / "bin/pmi2x-dvm", "run", "printf", r"\200\377\000\001\n"],
        env=env,
        capture_output=True,
        check=True,
    ).stdout
    assert out == b"\200\377\000\001\n"


def test_ranks_and_their_environment(local):
    show = "echo $PMI2X_DVM_RANK/$PMI2X_DVM_RANKS $SLURM_PROCID/$SLURM_NTASKS"
    lines = local("run", "-n6", "sh", "-c", show).ok().lines
    assert sorted(lines) == [f"{i}/6 {i}/6" for i in range(6)]


def test_ranks_have_groups_and_share_a_session(local):
    """What is scheduled by sessions takes the ranks of a node, and their daemon, as one."""
    lines = local("run", "-n4", "sh", "-c", "cut -d' ' -f5,6 /proc/$$/stat").ok().lines
    groups, sessions = zip(*(line.split() for line in lines))
    assert len(set(groups)) == 4
    assert len(set(sessions)) == 1


def test_directory_and_environment_are_the_callers(local, env, tmp_path, dvm):
    env["OF_THE_CALLER"] = "a value"
    result = local("run", "sh", "-c", 'pwd; echo "$OF_THE_CALLER"', cwd=tmp_path)
    assert result.ok().lines == [str(tmp_path), "a value"]


def test_no_such_program(local):
    result = local("run", "no-such-program")
    assert result.code == 127
    result.says("cannot execute no-such-program: No such file")


def test_a_file_that_is_no_program(local, tmp_path):
    (tmp_path / "data").write_text("data")
    result = local("run", str(tmp_path / "data"))
    assert result.code == 126
    result.says("Permission denied")


def test_a_program_that_goes_and_comes_back(one, tmp_path):
    """One that has been executed before is started in another way than the first time."""
    program, away = tmp_path / "program", tmp_path / "away"
    program.write_text("#!/bin/sh\necho here\n")
    program.chmod(0o755)
    for _ in range(2):
        assert one("run", program).ok().lines == ["here"]
        program.rename(away)
        for _ in range(2):
            result = one("run", program)
            assert result.code == 127
            result.says(f"cannot execute {program}: No such file")
        away.rename(program)
    assert one("run", program).ok().lines == ["here"]


@contextlib.contextmanager
def held_back(path):
    """Who executes the file waits, as when its server does not answer."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with open(path) as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as e:
            pytest.skip(f"no lease of a file in {path.parent}: {e}")
        yield
    signal.signal(signal.SIGIO, before)


def check_that_others_go_on(one, *task):
    one("submit", *task).ok()
    one("run", "true").ok()
    assert status(one)["running"] == 1
    one("cancel", "--all").ok()
    wait_until(lambda: status(one)["running"] == 0)


def test_a_program_whose_file_does_not_come(one, tmp_path):
    program = pathlib.Path(shutil.copy(shutil.which("true"), tmp_path / "program"))
    for _ in range(2):
        with held_back(program):
            check_that_others_go_on(one, program)


def test_an_output_that_nobody_reads(one, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for _ in range(2):
        one("run", "true").ok()
    check_that_others_go_on(one, "--output", tmp_path / "fifo", "true")


def test_more_than_there_is(local):
    result = local("run", "-n9", "true").failed()
    result.says("fit on these 2 nodes (8 cores) under no circumstances: a node has 4 cores")


def test_gpus(dvm):
    dvm("up", "--local", "1", "--slots", "4", "--gpus", "4").ok()
    show = "echo $CUDA_VISIBLE_DEVICES"
    lines = dvm("run", "-n2", "-g2", "sh", "-c", show).ok().lines
    assert sorted(lines) == ["0,1", "2,3"]
    dvm("down").ok()


def test_cores(dvm):
    """Ranks are bound to the cores that they have."""
    dvm("up", "--local", "1", "--slots", "thread").ok()
    n = status(dvm)["nodes"][0]["cores"]
    show = "taskset -cp $$ | sed 's/.*: //'"
    lines = dvm("run", f"-n{n}", "sh", "-c", show).ok().lines
    assert len(set(lines)) == n
    dvm("down").ok()


def test_time_limit(local):
    begin = time.monotonic()
    result = local("run", "--time", "0:1", "sleep", "60")
    assert result.code == 128 + signal.SIGTERM
    assert time.monotonic() - begin < 30
    result.says("its time was over")


def test_who_does_not_hear_is_killed(dvm):
    dvm("up", "--local", "1", "--slots", "2", "--grace", "1").ok()
    deaf = "trap '' TERM; echo; while :; do sleep 0.1; done"
    result = dvm("run", "--time", "0:1", "sh", "-c", deaf)
    assert result.code == 128 + signal.SIGKILL
    dvm("down").ok()


def test_what_a_task_leaves_behind_is_killed(local, tmp_path):
    mark = tmp_path / "pid"
    local("run", "sh", "-c", f"sleep 600 & echo $! >{mark}").ok()
    pid = int(mark.read_text())
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists())


def test_run_that_is_killed_takes_its_task_with_it(local, prefix, env):
    child = subprocess.Popen([prefix / "bin/pmi2x-dvm", "run", "sleep", "600"], env=env)
    wait_until(lambda: status(local)["running"] == 1)
    child.kill()
    child.wait()
    wait_until(lambda: status(local)["running"] == 0)


# ---- PMI of a task ----


@pytest.fixture(params=[1, 2], ids=["node", "nodes"])
def four(local, request):
    """Run four ranks on one node, or on two."""
    return lambda *command: local("run", "-n4", f"-N{request.param}", *map(str, command))


def test_an_mpi_program(four, hello):
    assert four(hello).ok().stdout.startswith("size 4 ")


@pytest.mark.parametrize("version", ["1", "2"])
def test_values_go_around(four, raw, version):
    assert four(*raw("exchange", version)).ok().lines == ["exchanged 4"] * 4


def test_an_mpi_program_that_aborts(four, compile_program):
    program = compile_program("programs/mpi-abort.c", "mpicc.mpich")
    result = four(program, "2", "7")
    assert result.code == 7, str(result)
    result.says("rank 2 called abort")


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_rank_that_others_wait_for(four, raw, version):
    """It ends well while they are, or soon will be, in a fence."""
    result = four(*raw("leave", version, "exit", "0", "2"))
    assert result.code == 1, str(result)
    result.says("fence 1 failed: rank 2 (node local")
    result.says("exited with exit code 0 without finalizing PMI")


@pytest.mark.parametrize("leaver", [0, 1])
@pytest.mark.parametrize("waits", ["", "until [ -e gone ]; do sleep 0.02; done;"])
def test_a_node_whose_rank_never_uses_pmi(local, raw, tmp_path, leaver, waits):
    """It ends well, before or after the other node's rank waits for it in a fence."""
    use = " ".join(map(str, raw("exchange", "1")))
    script = f"[ $PMI_RANK = {leaver} ] && {{ touch gone; exit 0; }}; {waits} exec {use}"
    result = local("run", "-n2", "-N2", "sh", "-c", script, cwd=tmp_path)
    assert result.code == 1, str(result)
    result.says("fence 0 failed: ")


@pytest.mark.parametrize("how, code", [("exit", 3), ("kill", 128 + signal.SIGKILL)])
def test_a_rank_that_fails_between_fences(four, raw, how, code):
    """Others may be in one or not: how it ended counts, not what that does to them."""
    assert four(*raw("leave", "1", how, "3", "2")).code == code


def test_nothing_is_left_of_a_task_that_has_ended(local, env, raw):
    """Nor of one that is cancelled while it waits in a fence."""
    pids = [p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvmd"]

    def descriptors():
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)

    before = descriptors()
    for version in "1", "2", "1":
        local("run", "-n4", "-N1", *map(str, raw("exchange", version))).ok()
    waits = local("submit", "-n4", "-N1", *map(str, raw("late", "2", "600"))).ok().lines
    wait_until(lambda: status(local)["running"] == 1)
    local("cancel", *waits).ok()
    assert "fence" not in local("wait", *waits).failed().stderr
    wait_until(lambda: descriptors() == before)


def test_a_task_without_pmi_pays_for_none(local, env, raw, tmp_path):
    """Its daemons make no agent, and with that no shared memory, until a rank speaks."""
    pids = [p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvmd"]

    def daemons_with_memory():
        links = [[os.readlink(fd) for fd in pathlib.Path(f"/proc/{p}/fd").iterdir()] for p in pids]
        return sum(any("memfd:" in link for link in of_one) for of_one in links)

    late = " ".join(map(str, raw("late", "1", "600")))
    script = f"touch here.$PMI_RANK; until [ -e go ]; do sleep 0.02; done; exec {late}"
    local("submit", "-n4", "-N2", "sh", "-c", script, cwd=tmp_path).ok()
    wait_until(lambda: len(list(tmp_path.glob("here.*"))) == 4)
    assert daemons_with_memory() == 0
    (tmp_path / "go").touch()
    wait_until(lambda: daemons_with_memory() == 2)


# ---- PMIx of a task ----


def pmix_servers(local):
    """By node: one that serves the tasks of a DVM is told its name, and the node's."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().decode().split("\0")
            if words[0] == "pmi2x-pmixd" and words[3] == "pmi2x-dvm":
                found[words[4], words[5]] = int(path.name)
    return found


@pytest.fixture
def open_mpi_hello(prefix, open_mpi):
    if not (prefix / "libexec/pmi2x/pmi2x-pmixd").exists():
        pytest.skip("pmi2x-pmixd was not built: the headers of PMIx are missing")
    return open_mpi(HELLO, "5")


def test_an_open_mpi_program(four, open_mpi_hello):
    assert four(open_mpi_hello).ok().stdout.startswith("size 4 ")


def test_a_pmix_server_that_is_killed(local, open_mpi_hello, env, tmp_path):
    """The task that it serves fails by its name, and the next has another; one directory."""
    env["TMPDIR"] = str(tmp_path)
    local("down").ok()
    local("up", "--local", "1", "--slots", "4").ok()
    directory = f"{tmp_path}/pmi2x-dvm-pmix-"

    def own():
        return [pid for (_, path), pid in pmix_servers(local).items() if path.startswith(directory)]

    wait = f"{open_mpi_hello} && touch here.$PMIX_RANK && exec sleep 600"
    number = local("submit", "-n2", "sh", "-c", wait, cwd=tmp_path).ok().lines
    wait_until(lambda: len(list(tmp_path.glob("here.*"))) == 2)
    [pid] = own()
    os.kill(pid, signal.SIGKILL)
    local("wait", *number).failed().says("the PMIx server of node local0 has died")
    assert local("run", "-n2", open_mpi_hello).ok().stdout.startswith("size 2 ")
    assert own() != [pid]
    local("down").ok()
    wait_until(lambda: not own() and not list(tmp_path.glob("pmi2x-dvm-pmix-*")))


def test_an_open_mpi_program_where_nobody_serves_pmix(dvm, prefix, env, open_mpi, tmp_path):
    """Each rank is alone, and it is said why."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("pmi2x-dvm-head", "pmi2x-dvmd", "pmi2x-dvm-zygote"):
        shutil.copy2(prefix / "libexec/pmi2x" / name, programs)
    env["PMI2X_DVM_LIBEXEC"] = str(programs)
    dvm("up", "--local", "1", "--slots", "4").ok()
    result = dvm("run", "-n2", open_mpi(HELLO, "5"))
    words = "needs PMIx, which node local0 cannot serve: without libpmix"
    assert result.stderr.count(words) == 1, result
    assert words not in dvm("run", "-n2", "true").ok().stderr
    dvm("down").ok()


def test_a_daemon_that_is_killed_leaves_no_files(local, open_mpi_hello, env, tmp_path):
    """Those of its PMIx server, which ends with it."""
    env["TMPDIR"] = str(tmp_path)
    local("down").ok()
    local("up", "--local", "1", "--slots", "4").ok()
    local("run", "-n2", open_mpi_hello).ok()
    assert len(list(tmp_path.glob("pmi2x-dvm-pmix-*"))) == 1
    kill_one(env, "pmi2x-dvmd")
    wait_until(lambda: not list(tmp_path.glob("pmi2x-dvm-pmix-*")))
    assert not [path for _, path in pmix_servers(local) if path.startswith(str(tmp_path))]


# ---- many ----


def test_many_tasks(local, tmp_path):
    report = tmp_path / "report"
    result = local(
        "submit", "--wait", "--report", report, "--array", "1-500", "sh", "-c",
        "test {} -ne 250 || { echo unlucky >&2; exit 3; }",
    )  # fmt: skip
    assert result.code == 1
    result.says("500 tasks: 499 done, 1 failed")
    result.says("exit status 3: unlucky")
    tasks = [json.loads(line) for line in report.read_text().splitlines()]
    assert sorted(t["id"] for t in tasks) == list(range(1, 501))
    assert [t["err"] for t in tasks if t["code"]] == ["unlucky\n"]


def test_values_lines_and_files(local, tmp_path):
    out = tmp_path / "out.%t"
    local("submit", "--wait", "--output", out, "echo", ":::", "a", "b c").ok()
    assert (tmp_path / "out.1").read_text() == "a\n"
    assert (tmp_path / "out.2").read_text() == "b c\n"
    lines = tmp_path / "lines"
    lines.write_text("x\ny\n")
    local("submit", "--wait", "--output", out, "--each-line", lines, "echo", "-{}-").ok()
    assert (tmp_path / "out.4").read_text() == "-y-\n"


def test_json_lines_of_which_one_is_wrong(local):
    lines = [
        {"argv": ["true"]},
        {"argv": ["true"], "rnaks": 2},
        {"argv": ["true"], "ranks": 2},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + "\nno json\n"
    result = local("submit", "--wait", "--json", "-", stdin=text).failed()
    result.says("line 5 of - is refused: it is no JSON object")
    result.says("line 2 of - is refused: rnaks: there is no such key")
    result.says("2 tasks: 2 done, 0 failed, 2 refused")


def test_lines_that_are_no_text(local, tmp_path):
    """A command is run whole, or not at all; and the line of a long file is told."""
    lines = tmp_path / "lines"
    lines.write_bytes(b"true\n" * 1500 + b"touch here\0 not\ntouch \xff\ntrue\n")
    result = local("batch", lines, cwd=tmp_path).failed()
    result.says(f"line 1501 of {lines} is refused: it has a zero byte")
    result.says(f"line 1502 of {lines} is refused: an argument is no UTF-8 text")
    result.says("1501 tasks: 1501 done, 0 failed, 2 refused")
    assert not (tmp_path / "here").exists()
    no_text = os.fsdecode(b"\xff")
    result = local("submit", "--wait", "test", ":::", "x", no_text, "y").failed()
    result.says("task 2 is refused: an argument is no UTF-8 text")
    result.says("2 tasks: 2 done, 0 failed, 1 refused")


def test_a_batch_that_cannot_be_begun(dvm, env, tmp_path):
    """That is said before a DVM is started."""
    (tmp_path / "lines").write_text("true\n")
    batch = "batch", "--local", "1"
    dvm(*batch, tmp_path / "none").failed().says("cannot read")
    dvm(*batch, tmp_path).failed().says("Is a directory")
    report = tmp_path / "none" / "report"
    dvm(*batch, "--report", report, tmp_path / "lines").failed().says("cannot write")
    assert not living(env["PMI2X_DVM_DIR"])


def test_memory_of_large_nodes(local):
    """Bytes need no unit; what no node has is refused for that."""
    local("submit", "--wait", "--mem", "100000000", "true").ok()
    local("submit", "--mem", "8T", "true").failed().says("under no circumstances")
    local("submit", "--mem", "9999999T", "true").failed().says("is too much")


@pytest.mark.parametrize("words", ["submit true", "run echo x", "ps", "submit --wait --report /dev/full true"])
def test_output_that_cannot_be_written(local, prefix, env, words):
    """As on a full disk: whoever needs it is told."""
    command = f"{prefix}/bin/pmi2x-dvm {words} > /dev/full"
    result = run(["sh", "-c", command], env=env)
    assert result.code == 1
    result.says("cannot be written")


def test_never_more_than_fits(local, tmp_path):
    """Tasks count themselves while they run."""
    (tmp_path / "here").mkdir()
    count = f"cd {tmp_path}/here; touch $$; ls | wc -l; sleep 0.05; rm $$"
    out = tmp_path / "out.%t"
    local("submit", "--wait", "-c3", "--output", out, "--array", "1-20", "sh", "-c", count).ok()
    seen = [int(path.read_text()) for path in tmp_path.glob("out.*")]
    assert len(seen) == 20
    assert max(seen) <= LOCAL_NODES


def test_counters(dvm, tmp_path):
    dvm("up", "--local", "1", "--slots", "8", "--counter", "licence=1").ok()
    count = f"cd {tmp_path}/here; touch $$; ls | wc -l; sleep 0.05; rm $$"
    (tmp_path / "here").mkdir()
    out = tmp_path / "out.%t"
    dvm(
        "submit", "--wait", "--counter", "licence=1", "--output", out,
        "--array", "1-10", "sh", "-c", count,
    ).ok()  # fmt: skip
    assert {path.read_text() for path in tmp_path.glob("out.*")} == {"1\n"}
    dvm("down").ok()


def test_ps_show_wait_cancel(local):
    ids = local("submit", "--name", "mine", "--array", "1-9", "sleep", "600").ok().lines
    assert len(ids) == 9
    wait_until(lambda: status(local)["running"] == 8)
    result = local("ps").ok()
    assert result.lines[0] == "8 running, 1 queued, 0 ended"
    assert json.loads(local("show", ids[0]).ok().stdout)["name"] == "mine"
    local("cancel", ids[0]).ok()
    local("wait", ids[0]).failed().says("1 failed")
    local("down").failed().says("8 tasks have not ended")
    local("cancel", "--all").ok()
    wait_until(lambda: status(local)["running"] == 0)


def test_a_batch_file(dvm, env, tmp_path):
    """In an allocation it starts a DVM; here one is up already, and stays."""
    dvm("up", "--local", "2", "--slots", "2").ok()
    file = tmp_path / "tasks"
    file.write_text("# a comment\necho $((6*7)) > answer\n\nfalse\n")
    result = dvm("batch", file, cwd=tmp_path).failed()
    result.says("2 tasks: 1 done, 1 failed")
    assert (tmp_path / "answer").read_text() == "42\n"
    assert status(dvm)["ended"] == 2
    dvm("down").ok()


# ---- faults ----


def kill_one(env, name):
    pid = next(p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == name)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("name", ["pmi2x-dvmd", "pmi2x-dvm-zygot"])
def test_a_node_that_dies(local, env, prefix, tmp_path, name):
    """What ran there runs again elsewhere: each task ends once."""
    mark = tmp_path / "go"
    work = f"until [ -e {mark} ]; do sleep 0.05; done"
    report = tmp_path / "report"
    child = subprocess.Popen(
        [
            prefix / "bin/pmi2x-dvm", "submit", "--wait", "--report", report,
            "--array", "1-8", "sh", "-c", work,
        ],
        env=env,
    )  # fmt: skip
    wait_until(lambda: status(local)["running"] == 8)
    kill_one(env, name)
    wait_until(lambda: "lost" in [n["state"] for n in status(local)["nodes"]])
    wait_until(lambda: status(local)["queued"] == 4)
    mark.touch()
    assert child.wait(60) == 0
    tasks = [json.loads(line) for line in report.read_text().splitlines()]
    assert sorted(t["id"] for t in tasks) == list(range(1, 9))
    assert sorted(t["instance"] for t in tasks) == [0] * 4 + [1] * 4


@pytest.fixture
def stray(tmp_path):
    """A program that is this test's alone, and the number of its processes."""
    program = tmp_path / "stray"
    shutil.copy(shutil.which("sleep"), program)

    def count():
        running = 0
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                running += os.readlink(path / "exe") == str(program)
        return running

    return program, count


STRAYS = """
setsid {0} 600 &
setsid sh -c '({0} 600 &)'
setsid env -i {0} 600 > /dev/null 2>&1 &
"""


def test_what_leaves_its_group_ends_with_its_task(local, tmp_path, stray):
    """... and not before, whatever else ends."""
    program, count = stray
    go = tmp_path / "go"
    work = STRAYS.format(program) + f"until [ -e {go} ]; do sleep 0.05; done"
    local("submit", "sh", "-c", work).ok()
    wait_until(lambda: count() == 3)
    local("submit", "--wait", "--array", "1-20", "true").ok()
    assert count() == 3
    go.touch()
    local("wait").ok()
    wait_until(lambda: not count())


@pytest.mark.parametrize("name", ["pmi2x-dvmd", "pmi2x-dvm-zygot", "pmi2x-dvm-head"])
def test_what_is_left_when_a_daemon_dies(local, env, stray, name):
    program, count = stray
    local("submit", "sh", "-c", STRAYS.format(program) + f"exec {program} 600").ok()
    wait_until(lambda: count() == 4)
    for pid, each in living(env["PMI2X_DVM_DIR"]).items():
        if each == name:
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not count())


def test_a_node_that_dies_under_an_mpi_program(local, env, raw):
    """It waits in a fence; too few nodes are left to run it again."""
    waits = map(str, raw("late", "2", "600"))
    number = local("submit", "-n2", "-N2", *waits).ok().lines
    wait_until(lambda: status(local)["running"] == 1)
    kill_one(env, "pmi2x-dvmd")
    local("wait", *number).failed().says("the nodes on which it could run are lost")
    local("run", "-n2", "-N1", *map(str, raw("exchange", "1"))).ok()


def test_a_head_that_dies(local, env, prefix):
    """Nothing goes on without it, and who waits is told."""
    child = subprocess.Popen(
        [prefix / "bin/pmi2x-dvm", "submit", "--wait", "sleep", "600"],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: status(local)["running"] == 1)
    kill_one(env, "pmi2x-dvm-head")
    assert "the DVM has ended" in child.communicate(timeout=30)[1]
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))
    local("status").failed().says("no DVM is up")
    local("up", "--local", "1").ok()


def test_two_of_one_name(local):
    local("up", "--local", "1").failed().says("is up already")


def test_several(dvm):
    for name in "a", "b":
        dvm("up", "--local", "1", "--slots", "1", "--name", name).ok()
    dvm("run", "true").failed().says("several DVMs are up")
    dvm("run", "--dvm", "b", "true").ok()
    for name in "a", "b":
        dvm("down", "--dvm", name).ok()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["fly"], "there is no command"),
        (["up", "--local", "0"], "number of nodes"),
        (["up", "--local", "1", "--slots", "0"], "--slots is"),
        (["up", "--local", "1", "--counter", "x"], "--counter is"),
        (["up", "--local", "1", "--name", "a/b"], "cannot be the name"),
        (["run"], "which program"),
        (["run", "-n", "x", "true"], "ranks must be"),
        (["run", "--mem", "1X", "true"], "--mem"),
        (["run", "--time", "soon", "true"], "--time"),
        (["submit", "--array", "2-1", "true"], "--array is"),
        (["show", "x"], "not the number of a task"),
        (["signal", "99", "1"], "number of a signal"),
    ],
)
def test_wrong_arguments(local, arguments, words):
    result = local(*arguments)
    assert result.code == 2, str(result)
    result.says(words)


def test_outside_an_allocation(dvm, env):
    env.pop("SLURM_JOB_ID", None)
    dvm("up").failed().says("inside salloc or sbatch, or give --local N")
    dvm("run", "true").failed().says("no DVM is up on this machine")


def test_a_directory_of_somebody_else(dvm, env, tmp_path):
    pathlib.Path(env["PMI2X_DVM_DIR"]).chmod(0o755)
    dvm("up", "--local", "1").failed().says("only you can enter")


def test_another_user_cannot_reach_it(local, env, ordinary_user):
    """Not even where the directory lets him in."""
    base = pathlib.Path(env["PMI2X_DVM_DIR"])
    for path in [base, *base.parents[:2], base / "local"]:
        path.chmod(0o755)
    (base / "local/head.sock").chmod(0o777)
    ask = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        "s.sendall(b'{\"op\":\"status\"}\\n'); print(len(s.recv(100)))"
    )
    result = run([*ordinary_user, sys.executable, "-c", ask, base / "local/head.sock"])
    assert result.code or result.stdout == "0\n"
    base.chmod(0o700)
    assert status(local)["ready"]


def test_the_last_words_of_a_head_are_heard(dvm, env):
    """It refuses a request that is longer than a socket holds, and has not read all of it."""
    place = pathlib.Path(env["PMI2X_DVM_DIR"]) / "local"
    place.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "head.sock"))
        listener.listen()

        def refuse():
            head, _ = listener.accept()
            with head:
                head.recv(1)
                head.sendall(b'{"ev":"error","why":"not today"}\n')

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        dvm("run", "--dvm", "local", "true", *["x" * 100000] * 10).failed().says("not today")
        thread.join()


# ---- Python ----

CLIENT = """
import sys
import pmi2x_dvm

with pmi2x_dvm.connect() as dvm:
    assert dvm.submit(["sh", "-c", "exit 3"]).result().code == 3
    results = list(dvm.map([["echo", str(i)] for i in range(1500)]))
    assert [r.out for r in results] == [b"%d\\n" % i for i in range(1500)]
    assert results[0].setup_time >= 0 and results[0].nodes
    try:
        dvm.submit(["true"], ranks=99)
    except pmi2x_dvm.Refused as error:
        assert error.key == "ranks"
    else:
        raise AssertionError
    there = dvm.submit(["sh", "-c", "pwd; echo $A"], cwd="/", env={"A": "b", "PATH": "/bin"})
    assert there.result().out == b"/\\nb\\n"
    future = dvm.submit(["sleep", "600"])
    assert dvm.cancel(future) == 1
    assert future.result().cancelled
    print(dvm.status()["ended"])
"""


def test_python(local, prefix, env):
    env["PYTHONPATH"] = str(prefix / "share/pmi2x/python")
    result = run([sys.executable, "-B", "-c", CLIENT], env=env).ok()
    assert result.stdout == "1503\n"


FUTURES = """
import asyncio, concurrent.futures, os, pathlib
import pmi2x_dvm

os.environb[b"NO_TEXT"] = b"\\xff"
with pmi2x_dvm.connect() as dvm:
    ended = lambda *futures: not concurrent.futures.wait(futures, timeout=30).not_done

    sleeper, other = dvm.submit(["sleep", "600"]), dvm.submit(["true"])
    assert sleeper.cancel() and sleeper.cancelled() and ended(sleeper, other)
    assert dvm.status()["running"] == 0 and other.result().code == 0

    async def wait_for(future):
        await asyncio.wait_for(asyncio.wrap_future(future), 0.1)

    sleeper = dvm.submit(["sleep", "600"])
    try:
        asyncio.run(wait_for(sleeper))
    except asyncio.TimeoutError:
        assert ended(sleeper) and dvm.status()["running"] == 0
    else:
        raise AssertionError

    next_one = concurrent.futures.Future()
    first = dvm.submit(["true"])
    first.add_done_callback(lambda _: next_one.set_result(dvm.submit(["echo", "next"])))
    assert next_one.result(30).result(30).out == b"next\\n"

    futures = dvm.submit_many([
        {"argv": [pathlib.Path("/bin/true")]}, {"argv": ["x\\0"]}, {"argv": ["\\udcff"]},
        {"argv": ["true"], "ranks": 10**30}, {"argv": ["true"], "name": object()},
        {"argv": ["false"]},
    ])
    assert ended(*futures)
    refused = [f.exception() for f in futures[1:5]]
    assert [r.key for r in refused] == ["argv", "argv", "ranks", "name"]
    assert [futures[i].result().code for i in (0, 5)] == [0, 1]

    for wrong in {"env": {"A": 7}}, {"cwd": "\\udcff"}:
        try:
            dvm.submit(["true"], **wrong)
        except pmi2x_dvm.Error:
            pass
        else:
            raise AssertionError(wrong)
    first.add_done_callback(lambda _: dvm.close())
print("closed")
"""


def test_futures_of_python(local, prefix, env):
    """What is cancelled, asked for by callbacks or refused keeps nobody waiting."""
    env["PYTHONPATH"] = str(prefix / "share/pmi2x/python")
    result = run([sys.executable, "-B", "-c", FUTURES], env=env).ok()
    assert result.stdout == "closed\n"
    result.says("the variable 'NO_TEXT' is left out")


# ---- Slurm ----

ALLOCATION = """
export PMI2X_DVM_DIR={base}
pmi2x-dvm up || exit
pmi2x-dvm status
pmi2x-dvm run -n{ranks} -c1 sh -c 'echo "at $SLURMD_NODENAME"'
pmi2x-dvm run -n{ranks} -N4 {program}
srun -N1 -n1 --overlap --mpi=none env PMI2X_DVM=$PMI2X_DVM_DIR/job$SLURM_JOB_ID.address \
    pmi2x-dvm run echo from another node
pmi2x-dvm submit --wait --array 1-200 true
pmi2x-dvm down
"""


def test_in_an_allocation(cluster, prefix, tmp_path, hello):
    base = tmp_path / "dvm"
    base.mkdir(mode=0o700)
    script = ALLOCATION.format(base=base, ranks=8, program=hello)
    result = cluster.run(
        "env", f"PATH={prefix}/bin:{os.environ['PATH']}",
        "salloc", "-N4", "bash", "-c", script,
    ).ok()  # fmt: skip
    assert result.lines[0].endswith("is up: 4 nodes")
    assert len({line for line in result.lines if line.startswith("at ")}) == 4
    assert "size 8 " in result.stdout
    assert "from another node" in result.lines
    result.says("200 tasks: 200 done, 0 failed")
    assert not living(base)
    assert not list(base.iterdir())


def test_open_mpi_programs_in_an_allocation(
    cluster, prefix, tmp_path, open_mpi_hello, open_mpi
):
    """Of Open MPI 5 and 4.1, which looks for a step of Slurm."""
    base = tmp_path / "dvm"
    base.mkdir(mode=0o700)
    older = open_mpi(HELLO, "Debian")
    runs = "".join(f" && pmi2x-dvm run -n4 -N2 {p}" for p in (open_mpi_hello, older))
    script = f"pmi2x-dvm up{runs}; code=$?; pmi2x-dvm down; exit $code"
    result = cluster.run(
        "env", f"PATH={prefix}/bin:{os.environ['PATH']}", f"PMI2X_DVM_DIR={base}",
        "salloc", "-N2", "bash", "-c", script,
    ).ok()  # fmt: skip
    assert result.stdout.count("size 4 ") == 2
    assert not living(base)


def test_a_batch_script(cluster, prefix, tmp_path):
    """pmi2x-dvm batch starts a DVM, and ends it."""
    base = tmp_path / "dvm"
    base.mkdir(mode=0o700)
    tasks = tmp_path / "tasks"
    tasks.write_text("echo hello > hello\n" * 3)
    result = cluster.run(
        "env", f"PATH={prefix}/bin:{os.environ['PATH']}", f"PMI2X_DVM_DIR={base}",
        "salloc", "-N2", f"--chdir={tmp_path}", "pmi2x-dvm", "batch", tasks,
    ).ok()  # fmt: skip
    result.says("3 tasks: 3 done, 0 failed")
    assert not living(base)
    assert not list(base.iterdir())


# ---- measuring it ----


def test_bench(prefix, tmp_path):
    """Values of each kind, in the table and the file; what is missing is named."""
    bench = [prefix / "bin/pmi2x", "bench", "dvm", "local", "queue", "--rounds", "1"]
    few = ["--tasks", "200", "--slow-tasks", "20", "--csv", tmp_path / "dvm.csv"]
    result = run([*bench, *few], env={**os.environ, "TMPDIR": str(tmp_path)})
    assert result.code in (0, 1)  # a bar may be missed on a busy machine
    lines = (tmp_path / "dvm.csv").read_text().splitlines()
    for what in "pmi2x-dvm", "pmi2x-dvm --journal", '"fork, exec, wait in C"':
        assert any(line.startswith(f"local,{what},1,,") for line in lines)
    assert any(line.startswith('queue,"head, a queued task",1,,') for line in lines)
    if "HyperQueue  not done" in result.stdout:
        result.says("HyperQueue: not here: pip install hyperqueue")
    assert list(tmp_path.iterdir()) == [tmp_path / "dvm.csv"]
