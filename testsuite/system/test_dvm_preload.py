# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm up --preload and submit --preloaded: tasks of an interpreter that has imported modules."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

from dvms import dvm, env, kill_one, living, there, wait_until
from harness import run

__all__ = ["dvm", "env", "there"]

STATE = """
import json, os, resource, sys
import loaded_first
print(json.dumps({
    "argv": sys.argv, "cwd": os.getcwd(), "A": os.environ.get("A"), "umask": os.umask(0),
    "cpus": sorted(os.sched_getaffinity(0)), "path": sys.path[0], "name": __name__,
    "stack": resource.getrlimit(resource.RLIMIT_STACK)[0], "in": sys.stdin.read(),
    "loaded": loaded_first.process != os.getpid(), "group": os.getpgrp() == os.getpid(),
    "parent": open(f"/proc/{os.getppid()}/comm").read().strip(),
    "task": os.environ["PMI2X_DVM_TASK"], "fds": sorted(os.listdir("/proc/self/fd")),
}))
"""


@pytest.fixture
def up(dvm, env, tmp_path):
    """Start a DVM of a node with this code; it ends with the test."""
    (tmp_path / "loaded_first.py").write_text("import os\nprocess = os.getpid()\n")
    env["PYTHONPATH"] = str(tmp_path)
    env["PATH"] = "/usr/bin:" + env["PATH"]  # with numpy, where the distribution has it

    def start(code="import loaded_first", *more):
        return dvm("up", "--local", "1", "--slots", "4", "--preload", code, *more)

    yield start
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


@pytest.fixture
def script(tmp_path):
    def write(text):
        (tmp_path / "script.py").write_text(text)
        return "script.py"

    return write


def submit(dvm, *arguments, **more):
    return dvm("submit", "--wait", "--preloaded", *arguments, **more)


def result(tmp_path):
    """Of the last submit."""
    paths = sorted(tmp_path.glob("pmi2x-dvm.local.*.results"), key=lambda p: int(p.name.split(".")[2]))
    return json.loads(paths[-1].read_text().splitlines()[-1])


def test_script_takes_over_the_state_of_its_submitter(up, dvm, env, prefix, tmp_path, script):
    up().ok()
    script(STATE)
    (tmp_path / "below").mkdir()
    command = f"umask 077; ulimit -Ss 1024; exec {prefix}/bin/pmi2x-dvm run --stdin --preloaded -D below ../script.py a 'b c'"
    said = run(["sh", "-c", command], env={**env, "A": "\u00e9"}, cwd=tmp_path, stdin="text").ok()
    state = json.loads(said.stdout)
    assert state == {
        "argv": ["../script.py", "a", "b c"], "cwd": str(tmp_path / "below"), "A": "\u00e9",
        "umask": 0o077, "cpus": state["cpus"], "path": str(tmp_path), "name": "__main__",
        "stack": 1 << 20, "in": "text", "loaded": True, "group": True,
        "parent": "pmi2x-dvm-warm", "task": "1", "fds": state["fds"],
    }  # fmt: skip
    assert len(state["fds"]) <= 4  # with that of listdir


def test_task_is_bound_to_its_cores(dvm, env, up, script):
    dvm("up", "--local", "1", "--preload", "import os").ok()
    name = script("import os; print(len(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])")
    assert dvm("run", "--preloaded", "-c1", name).ok().lines == ["1 1"]


def test_ends_of_scripts_are_those_of_an_interpreter(up, dvm, tmp_path, script):
    up().ok()
    for text, code, error in (
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('why')", 1, "why\n"),
        ("raise SystemExit", 0, ""),
        ("import atexit; atexit.register(print, 'end'); print('x', end='')", 0, ""),
        ("def f():\n    raise KeyError('k')\nf()", 1, "KeyError: 'k'\n"),
        ("x = ", 1, "SyntaxError: invalid syntax\n"),
        ("import os; os.kill(os.getpid(), 11)", 139, ""),
        ("import threading\nt = threading.Timer(0.1, print, 'y')\nt.start()", 0, ""),
    ):
        said = dvm("run", "--preloaded", script(text))
        plain = run(["/usr/bin/python3", tmp_path / "script.py"], cwd=tmp_path)
        assert (said.code, said.stdout) == (code, plain.stdout), text
        assert said.stderr.endswith(error), text
        if code == 1 and "Error" in error:
            assert "pmi2x-dvm-warm" not in said.stderr
            assert said.stderr.splitlines()[0] in plain.stderr + said.stderr


def test_starts_that_fail_say_why(up, dvm, tmp_path, script):
    up().ok()
    name = script("print('x')")
    submit(dvm, "none.py").failed().says("cannot execute none.py: No such file or directory")
    assert result(tmp_path)["code"] == 127
    dvm("run", "-D", "none", "--preloaded", name).failed().says("cannot enter the directory")
    (tmp_path / "file").touch()
    text = json.dumps({"argv": [f"{tmp_path}/{name}"], "path": f"{tmp_path}/file/%t", "preloaded": True})
    dvm("submit", "--wait", "--json", "-", stdin=text + "\n").failed().says("cannot write")
    submit(dvm, "-o", "new/%t/out", "-e", "%t.err", name).ok()
    assert [p.read_text() for p in tmp_path.glob("new/*/out")] == ["x\n"]


def test_tasks_that_cannot_be_preloaded_are_refused(up, dvm, script, tmp_path):
    up().ok()
    name = script("")
    for more in ("-n2",), ("--pmi",):
        submit(dvm, *more, name).failed().says("a preloaded task has one rank, without PMI")
    dvm("down").ok()
    dvm("up", "--local", "1").ok()
    submit(dvm, name).failed().says("start it with up --preload")


@pytest.mark.parametrize("code, why", [
    ("import none_such", "No module named 'none_such'"),
    ("x = ", "SyntaxError"),
    ("import threading, time; threading.Thread(target=time.sleep, args=[600], daemon=True).start()",
     "threads are left that would be missing in tasks"),
    ("import sys, types; sys.modules['mpi4py.MPI'] = types", "mpi4py.MPI initialises MPI"),
])  # fmt: skip
def test_code_that_cannot_be_preloaded_fails_up(up, code, why):
    up(code).failed().says(why)


def test_code_of_two_lines_is_wrong_usage(up):
    assert up("import os\nimport sys").says("--preload is one line").code == 2


def test_signals_and_limits_end_preloaded_tasks(up, dvm, tmp_path, script):
    up("import loaded_first", "--grace", "1").ok()
    name = script("import time; print('begun', flush=True); time.sleep(600)")
    dvm("run", "--preloaded", "--time", "1s", name).failed().says("time limit")
    task = dvm("submit", "--preloaded", name).ok().lines[0]
    wait_until(lambda: '"S"' in dvm("why", "--json", task).stdout)
    dvm("cancel", task).ok()
    dvm("wait", task).failed()


def test_processes_left_behind_are_killed(up, dvm, tmp_path, script):
    up().ok()
    name = script(
        "import os, subprocess\n"
        "p = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print(p.pid, flush=True); os._exit(0)\n")  # fmt: skip
    left = int(dvm("run", "--preloaded", name).ok().stdout)
    wait_until(lambda: not pathlib.Path(f"/proc/{left}").exists())


def test_interpreter_that_was_killed_is_started_again(up, dvm, env, script):
    up().ok()
    name = script("print('x')")
    for _ in range(2):
        assert dvm("run", "--preloaded", name).ok().stdout == "x\n"
        kill_one(env, "pmi2x-dvm-warm")
    assert dvm("run", "--preloaded", name).ok().stdout == "x\n"
    assert dvm("run", "echo", "y").ok().stdout == "y\n"


def test_tasks_outlive_their_interpreter(up, dvm, env, tmp_path, script):
    up("import loaded_first", "--grace", "1").ok()
    name = script("import os, sys, time\nwhile not os.path.exists('go'): time.sleep(0.05)\nsys.exit(3)")
    waits, cancelled = (dvm("submit", "--preloaded", name).ok().lines[0] for _ in range(2))
    wait_until(lambda: all('"state": "S"' in dvm("why", "--json", t).stdout for t in (waits, cancelled)))
    kill_one(env, "pmi2x-dvm-warm")
    dvm("cancel", cancelled).ok()
    dvm("wait", cancelled).failed()
    (tmp_path / "go").touch()
    dvm("wait", waits).failed()
    assert json.loads(dvm("show", waits).ok().stdout)["code"] == 3
    assert json.loads(dvm("show", cancelled).ok().stdout)["state"] == "cancelled"


def test_interpreter_that_stands_still_is_given_up(up, dvm, env, script):
    up().ok()
    stopped = next(p for p, name in living(env["PMI2X_DVM_DIR"]).items() if name == "pmi2x-dvm-warm")
    os.kill(stopped, signal.SIGSTOP)
    assert dvm("run", "--preloaded", script("print('x')")).ok().stdout == "x\n"
    assert not pathlib.Path(f"/proc/{stopped}").exists()


def test_many_tasks(up, dvm, script):
    up().ok()
    submit(dvm, "--array", "1-500", script("import sys; assert len(sys.argv) == 2")).ok().says("500 done, 0 failed")


def test_python_client(up, dvm, env, prefix, tmp_path, script):
    up().ok()
    name = script("import sys; print(sys.argv[1])")
    client = f"""
import pmi2x_dvm
with pmi2x_dvm.connect() as dvm:
    for i, r in enumerate(dvm.map(([{name!r}, str(i)] for i in range(5)), preloaded=True)):
        assert r.out == b"%d\\n" % i, r.out
"""
    path = {**env, "PYTHONPATH": f"{prefix}/share/pmi2x/python:{tmp_path}"}
    run(["/usr/bin/python3", "-B", "-c", client], env=path, cwd=tmp_path).ok()


# ---- numpy ----


@pytest.fixture
def numpy():
    if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], check=False).returncode:
        pytest.skip("python3 has no numpy")


def test_numpy_draws_other_numbers_in_each_task(numpy, up, dvm, script):
    up("import numpy").ok()
    name = script("import numpy, random; print(numpy.random.rand(), random.random())")
    drawn = [dvm("run", "--preloaded", name).ok().stdout.split() for _ in range(3)]
    assert len(set(sum(drawn, []))) == 6


def test_blas_has_the_cores_of_the_task(numpy, up, dvm, script):
    up("import numpy").ok()
    name = script(
        "import numpy, os\n"
        "a = numpy.random.rand(600, 600)\n"
        "assert abs((a @ a.T).trace() - (a * a).sum()) < 1e-6 * a.size\n"
        "maps = open('/proc/self/maps').read()\n"
        "print(len(os.listdir('/proc/self/task')) if 'openblas' in maps else 0)\n")  # fmt: skip
    for cores in 1, 2:
        said = dvm("run", "--preloaded", f"-c{cores}", name).ok().lines
        assert said in (["0"], [str(cores)])


# ---- Slurm ----

ALLOCATION = r"""
export PMI2X_DVM_DIR={base} PATH=/usr/bin:$PATH
pmi2x-dvm up --preload 'import none_such' && exit 1
pmi2x-dvm up --preload 'import decimal' >&2 || exit
echo 'import os, sys; os.write(1, b"%d\n" % ("decimal" in sys.modules))' >{base}/script.py
for task in 1 2 3 4; do pmi2x-dvm run --preloaded --exclusive {base}/script.py & done
wait
pmi2x-dvm down
"""


def test_interpreters_of_an_allocation(in_allocation, base):
    result = in_allocation(4, ALLOCATION.format(base=base)).ok()
    result.says("No module named 'none_such'")
    assert result.lines == ["1"] * 4
