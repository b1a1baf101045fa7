# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: many tasks inside one allocation, and on one machine."""

import contextlib
import fcntl
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

from dvms import dvm, env, living, local, one, status, there, wait_until
from harness import run

__all__ = ["dvm", "env", "local", "one", "there"]


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
    """Schedulers by session treat the ranks of a node, and their daemon, as one."""
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
    """A program that was executed before is started in another way than the first time."""
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
    """A process that executes the file waits, as when its file server does not answer."""
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
    result.says("can never fit on 2 nodes (8 cores): a node has at most 4 cores")


def test_gpus(dvm):
    dvm("up", "--local", "1", "--slots", "4", "--gpus", "4").ok()
    show = "echo $CUDA_VISIBLE_DEVICES"
    lines = dvm("run", "-n2", "-g2", "sh", "-c", show).ok().lines
    assert sorted(lines) == ["0,1", "2,3"]
    dvm("down").ok()


def test_gpus_of_amd(dvm, env, tmp_path):
    """A task has one variable: HIP applies its own within ROCR's."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    masks = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"]
    for name in [*masks, "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES"]:
        env[name] = "2,5,5,-1,7"
    env["PMI2X_DVM_DEV"] = str(tmp_path / "dev")
    dvm("up", "--local", "1", "--slots", "4").ok()
    show = "env | grep -E '_VISIBLE_DEVICES|_MASK|_ORDINAL'"
    lines = dvm("run", "-n2", "-g1", "sh", "-c", show).ok().lines
    assert sorted(lines) == ["ROCR_VISIBLE_DEVICES=2", "ROCR_VISIBLE_DEVICES=5"]
    assert dvm("run", "sh", "-c", show).ok().lines == ["ROCR_VISIBLE_DEVICES="]
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
    result.says("the time limit of the task was reached")


def test_task_that_ignores_sigterm_is_killed(dvm):
    dvm("up", "--local", "1", "--slots", "2", "--grace", "1").ok()
    deaf = "trap '' TERM; echo; while :; do sleep 0.1; done"
    result = dvm("run", "--time", "0:1", "sh", "-c", deaf)
    assert result.code == 128 + signal.SIGKILL
    dvm("down").ok()


def test_processes_left_behind_by_a_task_are_killed(local, tmp_path):
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


# ---- who may, and what ----


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
        (["up", "--local", "0"], "--local must be a number"),
        (["up", "--local", "1", "--slots", "0"], "--slots is"),
        (["up", "--local", "1", "--counter", "x"], "--counter is"),
        (["up", "--local", "1", "--name", "a/b"], "cannot be the name"),
        (["run"], "name a program"),
        (["run", "-n", "x", "true"], "ranks must be"),
        (["run", "--mem", "1X", "true"], "--mem"),
        (["run", "--time", "soon", "true"], "--time"),
        (["submit", "--array", "2-1", "true"], "--array is"),
        (["show", "x"], "not the number of a task"),
        (["signal", "99", "1"], "a signal comes first"),
    ],
)
def test_wrong_arguments(local, arguments, words):
    result = local(*arguments)
    assert result.code == 2, str(result)
    result.says(words)


def test_outside_an_allocation(dvm, env):
    env.pop("SLURM_JOB_ID", None)
    dvm("up").failed().says("inside salloc or sbatch, or give --local")
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
    """The head refuses a request that is longer than a socket holds, and has not read
    all of it."""
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
    """Cancelled and rejected futures, and those with callbacks, keep no thread waiting."""
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


def test_in_an_allocation(in_allocation, tmp_path, hello, base):
    script = ALLOCATION.format(base=base, ranks=8, program=hello)
    result = in_allocation(4, script, cwd=tmp_path).ok()
    assert result.lines[0].endswith("is up: 4 nodes")
    assert len({line for line in result.lines if line.startswith("at ")}) == 4
    assert "size 8 " in result.stdout
    assert "from another node" in result.lines
    result.says("200 tasks: 200 done, 0 failed")
    assert not living(base)
    assert not list(base.iterdir())


def test_a_batch_script(in_allocation, tmp_path, base):
    """pmi2x-dvm batch starts a DVM, and ends it."""
    tasks = tmp_path / "tasks"
    tasks.write_text("echo hello > hello\n" * 3)
    result = in_allocation(2, f"pmi2x-dvm batch {tasks}", f"--chdir={tmp_path}").ok()
    result.says("3 tasks: 3 done, 0 failed")
    assert not living(base)
    assert not list(base.iterdir())
