# SPDX-License-Identifier: BSD-3-Clause
"""Workflow engines of PyPI, as they are, that run their tasks on pmi2x-dvm in bulk."""

import json
import os
import pathlib
import shutil
import textwrap

import pytest

from conftest import wheel
from dvms import dvm, env, living, local, there, wait_until
from harness import run

__all__ = ["dvm", "env", "local", "there"]

PARSL = """
import json
import os
import parsl
from parsl.app import errors
from pmi2x_dvm.parsl_executor import DvmExecutor


@parsl.bash_app
def command(text, stdout=None, stderr=None, walltime=None, outputs=(), parsl_resource_specification={}):
    body_ran_in.add(os.getpid())
    return text


@parsl.python_app
def double(number, parsl_resource_specification={}):
    import os
    return 2 * number, os.getpid()


@parsl.python_app
def wrong():
    raise KeyError("of the app")


def raised(kind, future):
    try:
        future.result()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind}")


body_ran_in = set()
with parsl.load(parsl.Config(executors=[DvmExecutor()], run_dir="runinfo")):
"""


@pytest.fixture(scope="session")
def engines(build):
    return wheel(build, "venv-engines") / "bin" / "python"


@pytest.fixture
def variables(env, prefix, engines):
    """Of an engine: those of the test, and the client."""
    path = f"{prefix}/bin:{engines.parent}:{os.environ['PATH']}"
    return {**env, "PYTHONPATH": str(prefix / "share/pmi2x/python"), "PATH": path}


@pytest.fixture
def engine(engines, variables, tmp_path):
    """Run a script of an engine."""

    def script(begin, body):
        text = begin + textwrap.indent(textwrap.dedent(body), "    ")
        return run([engines, "-B", "-c", text], env=variables, cwd=tmp_path, timeout=60).ok()

    return script


def test_parsl_bash_apps_are_tasks(local, engine, tmp_path):
    engine(PARSL, """
    futures = [command(f"echo {i} >> ran") for i in range(300)]
    assert all(future.result() == 0 for future in futures)
    assert body_ran_in == {os.getpid()}
    ranks = command("echo $PMI_RANK", stdout="ranks%i", parsl_resource_specification={
        "num_tasks": 4, "num_nodes": 2, "cores_per_task": 2})
    assert ranks.result() == 0
    assert sorted(open("ranks%i").read().split()) == ["0", "1", "2", "3"]
    """)  # fmt: skip
    ran = (tmp_path / "ran").read_text().split()
    assert sorted(map(int, ran)) == list(range(300))
    assert local("status", "--json").ok().stdout.count('"ended": 301') == 1


def test_parsl_opens_files_as_asked(local, engine, tmp_path):
    engine(PARSL, """
    for i in range(2):
        command(f"echo {i}; echo {i} >&2", stdout=("out", "a"), stderr=("err", "w")).result()
    """)  # fmt: skip
    assert (tmp_path / "out").read_text() == "0\n1\n"
    ends = "--> executable follows <--\necho 1; echo 1 >&2\n--> end executable <--\n1\n"
    assert (tmp_path / "err").read_text() == ends


def test_parsl_failures_have_the_exceptions_of_parsl(local, engine):
    engine(PARSL, """
    assert "exit code 93" in raised(errors.BashExitFailure, command("exit 93"))
    assert "1 seconds" in raised(errors.AppTimeout, command("sleep 600", walltime=1))
    raised(errors.BashAppNoReturn, command(None))
    raised(ValueError, command(7))
    raised(errors.MissingOutputs, command("true", outputs=[parsl.File("missing")]))
    raised(errors.BadStdStreamFile, command("true", stdout="/proc/no/such"))
    assert "of the app" in raised(KeyError, wrong())
    assert "never fit" in raised(Exception, command("true", parsl_resource_specification={"num_tasks": 99}))
    assert "num_tasks" in raised(Exception, command("true", parsl_resource_specification={"ranks": 2}))
    """)  # fmt: skip


def test_parsl_python_apps_have_an_interpreter_each(local, engine, tmp_path):
    engine(PARSL, """
    futures = [double(i) for i in range(2)]
    futures.append(double(2, parsl_resource_specification={"num_tasks": 2}))
    results = [future.result() for future in futures]
    assert [value for value, _ in results] == [0, 2, 4]
    assert len({os.getpid(), *(pid for _, pid in results)}) == 4
    """)  # fmt: skip
    assert not list((tmp_path / "runinfo").glob("*/pmi2x/*"))


def test_parsl_python_apps_use_the_preloaded_interpreter(dvm, env, variables, engine):
    env["PATH"] = variables["PATH"]
    dvm("up", "--local", "1", "--slots", "4", "--preload", "import parsl").ok()
    engine(PARSL.replace("DvmExecutor()", "DvmExecutor(preloaded=True)"), """
    assert [double(i).result()[0] for i in range(20)] == [2 * i for i in range(20)]
    """)  # fmt: skip
    dvm("down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_parsl_tasks_end_with_the_executor(local, engine):
    engine(PARSL, """
    command("sleep 600")
    assert command("true").result() == 0
    parsl.dfk().config.executors[0].shutdown()
    os._exit(0)
    """)  # fmt: skip
    wait_until(lambda: '"running": 0' in local("status", "--json").stdout)


def test_parsl_in_an_allocation(cluster, prefix, engines, variables, tmp_path):
    (tmp_path / "apps.py").write_text(PARSL + """
    two = {"num_nodes": 2, "num_tasks": 2}
    futures = [command("echo $PMI_RANK", stdout=f"out{i}", parsl_resource_specification=two) for i in range(20)]
    assert all(future.result() == 0 for future in futures)
    assert double(5).result()[0] == 10
""")  # fmt: skip
    up = f"{prefix}/bin/pmi2x-dvm up && {engines} -B apps.py"
    script = f"{up}; code=$?; {prefix}/bin/pmi2x-dvm down --cancel; exit $code"
    cluster.run("salloc", "-N2", "sh", "-c", script, env=variables, cwd=tmp_path).ok()
    for i in range(20):
        assert sorted((tmp_path / f"out{i}").read_text().split()) == ["0", "1"]


RHAPSODY = """
import asyncio
import rhapsody
from pmi2x_dvm.rhapsody_backend import DvmExecutionBackend

task = rhapsody.ComputeTask


async def main():
    session = rhapsody.Session([await DvmExecutionBackend()])
    many = [task(executable="/bin/echo", arguments=["number", str(i)]) for i in range(300)]
    own = {"ranks": 4, "nodes": 2, "shell": True}
    ranks = task(executable="echo $PMI_RANK", capture_stdio=True, task_backend_specific_kwargs=own)
    bad = [
        task(executable="/bin/sh", arguments=["-c", "echo why >&2; exit 3"]),
        task(function=print),
        task(executable="true", task_backend_specific_kwargs={"ranks": 99}),
        task(executable="true", task_backend_specific_kwargs={"ranksss": 1}),
    ]
    long = task(executable="sleep", arguments=["600"], backend="pmi2x")
    await session.submit_tasks([*many, ranks, *bad, long])
    await session.wait_tasks([*many, ranks, *bad])
    assert [t.stdout for t in many] == [f"number {i}\\n" for i in range(300)]
    assert {t.state for t in [*many, ranks]} == {"DONE"}
    assert sorted(open(ranks.stdout).read().split()) == ["0", "1", "2", "3"]
    assert [t.state for t in bad] == ["FAILED"] * 4
    assert (bad[0].exit_code, bad[0].stderr) == (3, "why\\n")
    for t, why in zip(bad[1:], ("not functions", "never fit", "ranksss")):
        assert why in t.stderr, t.stderr
    assert await next(iter(session.backends.values())).cancel_task(long.uid)
    await session.wait_tasks([long])
    assert long.state == "CANCELED"
    await session.close()


asyncio.run(main())
"""


def test_rhapsody_tasks_are_commands(local, engines, variables, tmp_path):
    run([engines, "-B", "-c", RHAPSODY], env=variables, cwd=tmp_path, timeout=60).ok()


RADICAL = """
import radical.pilot as rp

session = rp.Session()
try:
    pilots, tasks = rp.PilotManager(session), rp.TaskManager(session)
    wanted = {"resource": "local.pmi2x", "runtime": 15, "cores": 8, "exit_on_error": False, "sandbox": BOX}
    tasks.add_pilots(pilots.submit_pilots(rp.PilotDescription(wanted)))

    def task(line, **more):
        return rp.TaskDescription({"executable": "/bin/sh", "arguments": ["-c", line], **more})

    many = tasks.submit_tasks([task(f"echo {i} $OWN", environment={"OWN": "$RP_TASK_ID"}) for i in range(100)])
    ranks = tasks.submit_tasks(task("echo $RP_RANK $RP_RANKS", ranks=4, cores_per_rank=2))
    script = tasks.submit_tasks(task("echo $BEFORE", pre_exec=["export BEFORE=set"]))
    bad = tasks.submit_tasks(task("exit 3"))
    limited = tasks.submit_tasks(task("sleep 600", timeout=1))
    long = tasks.submit_tasks(task("sleep 600"))
    tasks.wait_tasks(uids=[t.uid for t in [*many, ranks, script, bad, limited]])
    tasks.cancel_tasks(uids=[long.uid])
    tasks.wait_tasks(uids=[long.uid])
    assert {t.state for t in [*many, ranks, script]} == {"DONE"}
    assert [t.stdout.split() for t in many] == [[str(i), t.uid] for i, t in enumerate(many)]
    assert sorted(ranks.stdout.split()) == ["0", "1", "2", "3", "4", "4", "4", "4"]
    assert script.stdout == "set\\n"
    assert (bad.state, bad.exit_code) == ("FAILED", 3)
    assert (limited.state, long.state) == ("CANCELED", "CANCELED")
finally:
    session.close(download=False)
"""
RESOURCE = {
    "default_schema": "local",
    "schemas": {"local": {"job_manager_endpoint": "fork://localhost", "filesystem_endpoint": "file://localhost"}},
    "resource_manager": "SLURM", "agent_config": "default", "agent_scheduler": "CONTINUOUS",
    "agent_spawner": "PMI2X", "launch_methods": {"order": ["SRUN"], "SRUN": {}}, "rp_version": "installed",
    "virtenv_mode": "use", "python_dist": "default", "cores_per_node": 4, "gpus_per_node": 0,
}  # fmt: skip


@pytest.fixture
def radical(engines, prefix, tmp_path):
    """An environment of Python with RADICAL-Pilot and the two lines of doc/engines.md."""
    venv, old = tmp_path / "venv", engines.parent.parent
    run(["cp", "-as", old.resolve(), venv]).ok()
    for program in filter(pathlib.Path.is_file, list((venv / "bin").iterdir())):
        text = program.read_bytes()
        program.unlink()
        if program.name.startswith("python"):
            program.symlink_to(old.resolve() / "bin" / program.name)
        else:
            program.write_bytes(text.replace(bytes(old.resolve()), bytes(venv)))
            program.chmod(0o755)
    packages = next((venv / "lib").glob("python*/site-packages"))
    (packages / "pmi2x_dvm").symlink_to(prefix / "share/pmi2x/python/pmi2x_dvm")
    base = packages / "radical/pilot/agent/executing/base.py"
    text = base.read_text().replace(
        "        impl = {\n",
        "        from pmi2x_dvm.radical_executor import Pmi2x\n        impl = {\n            'PMI2X': Pmi2x,\n", 1)  # fmt: skip
    base.unlink()
    base.write_text(text)
    return venv


@pytest.mark.wide
def test_radical_pilot_in_an_allocation(cluster, prefix, radical, variables, tmp_path):
    """The client and the agent of RADICAL-Pilot start some twenty interpreters."""
    configuration = tmp_path / ".radical/pilot/configs/resource_local.json"
    configuration.parent.mkdir(parents=True)
    resource = dict(RESOURCE, virtenv=str(radical), default_remote_workdir=str(tmp_path))
    configuration.write_text(json.dumps({"pmi2x": resource}))
    (tmp_path / "tasks.py").write_text(RADICAL.replace("BOX", repr(str(tmp_path))))
    env = {**variables, "HOME": str(tmp_path), "RADICAL_BASE": str(tmp_path), "PYTHONPATH": ""}
    path = f"export PATH={radical}/bin:$PATH"
    up = f"{path}; {prefix}/bin/pmi2x-dvm up --slots 4 && {radical}/bin/python -B tasks.py"
    script = f"{up}; code=$?; {prefix}/bin/pmi2x-dvm down --cancel; exit $code"
    cluster.run("salloc", "-N2", "sh", "-c", script, env=env, cwd=tmp_path, timeout=600).ok()


@pytest.mark.wide
def test_wheel_of_the_client_needs_no_tree(local, env, tmp_path):
    source, place = tmp_path / "source", tmp_path / "environment"
    shutil.copytree(pathlib.Path(__file__).parents[2] / "src/dvm/python", source)
    run(["/usr/bin/python3", "-m", "venv", place]).ok()
    pip = [place / "bin/pip", "-q", "--disable-pip-version-check"]
    made = run([*pip, "wheel", "--no-deps", "-w", tmp_path, source], timeout=120)
    if made.code and "setuptools" in made.stderr:
        pytest.skip("no setuptools: PyPI could not be reached")
    made.ok()
    (wheel_file,) = tmp_path.glob("pmi2x_dvm-*-py3-none-any.whl")
    run([*pip, "install", "--no-index", wheel_file], timeout=60).ok()
    shutil.rmtree(source)
    run([place / "bin/python", "-I", "-c", f"""
import importlib.metadata, os, pathlib
import pmi2x_dvm

path = pathlib.Path(pmi2x_dvm.__file__).parent
assert path.is_relative_to({str(place)!r}), path
assert (path / "_parsl_worker.py").exists() and (path / "radical_executor.py").exists()
assert not importlib.metadata.requires("pmi2x-dvm") or all(
    "extra ==" in each for each in importlib.metadata.requires("pmi2x-dvm"))
with pmi2x_dvm.connect() as dvm:
    results = list(dvm.map([["sh", "-c", f"exit {{i}}"] for i in range(20)]))
    assert [result.code for result in results] == list(range(20))
"""], env=env, cwd=tmp_path).ok()  # fmt: skip
