# SPDX-License-Identifier: BSD-3-Clause
"""The Python client of pmi2x-dvm as an executor."""

import shutil
import subprocess
import sys

import pytest

from dvms import dvm, env, local, one, there
from harness import run

__all__ = ["dvm", "env", "local", "one", "there"]

BEGIN = """
import concurrent.futures, os, pathlib, time
import pmi2x_dvm


def raised(kind, call, *arguments, **more):
    try:
        call(*arguments, **more)
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind}")


dvm = pmi2x_dvm.connect()
assert isinstance(dvm, concurrent.futures.Executor)
"""


@pytest.fixture
def python(prefix, env):
    """Run a client; what it leaves is an error."""

    def client(script):
        path = {**env, "PYTHONPATH": str(prefix / "share/pmi2x/python")}
        return run([sys.executable, "-B", "-c", BEGIN + script], env=path).ok()

    return client


def test_functions_and_strings_are_rejected(local, python):
    python("""
assert "not functions" in raised(TypeError, dvm.submit, print, 1)
assert "is a list" in raised(TypeError, dvm.submit, "true")
assert "is a list" in raised(TypeError, dvm.map, ["echo a"])
assert "is a list" in raised(TypeError, dvm.map, "true")
assert "not functions" in raised(TypeError, dvm.map, print, [1])
assert "one list" in raised(TypeError, dvm.submit, ["echo"], "a")
assert dvm.status()["ended"] == 0
dvm.close()
""")


def test_client_connects_once(local, python):
    python("""
import socket

class Counted(socket.socket):
    connected = 0

    def connect(self, address):
        super().connect(address)
        Counted.connected += 1

socket.socket = Counted
other = pmi2x_dvm.connect()
assert (other.name, Counted.connected) == ("local", 1)
other.close()
dvm.close()
""")


def test_map_submits_when_it_is_called(local, python):
    python("""
results = dvm.map(["sh", "-c", f"exit {i}"] for i in range(5))
now = dvm.status()
assert sum(now[key] for key in ("queued", "running", "ended")) == 5
assert [r.code for r in results] == [0, 1, 2, 3, 4]
late = dvm.map([["sleep", "600"]], timeout=0.1)
raised(concurrent.futures.TimeoutError, next, late)
assert dvm.cancel("all") == 1
dvm.close()
""")


def test_end_of_with_waits_for_tasks(local, python):
    python("""
with dvm:
    futures = dvm.submit_many({"argv": ["sh", "-c", "sleep 0.2"]} for i in range(3))
assert [f.result().code for f in futures] == [0, 0, 0]
assert "after shutdown" in raised(RuntimeError, dvm.submit, ["true"])
""")


def test_shutdown_cancels_tasks_that_wait(one, python):
    python("""
go = pathlib.Path(os.environ["PMI2X_DVM_DIR"]).parent / "ready"
script = f"while [ ! -e {go} ]; do sleep 0.05; done"
running = dvm.submit(["sh", "-c", script], cores=4)
waiting = dvm.submit(["true"], cores=4)
while not running.running():
    pass
assert not waiting.running()
dvm.shutdown(wait=False, cancel_futures=True)
concurrent.futures.wait([waiting])
assert waiting.cancelled() and not running.done()
go.touch()
assert running.result().code == 0 and not running.running()
""")


def test_failure_of_a_checked_task_is_an_exception(local, python):
    python("""
fails = ["sh", "-c", "echo bad >&2; exit 7"]
error = dvm.submit(fails, check=True).exception()
assert isinstance(error, pmi2x_dvm.Failed) and error.result.code == 7
assert str(error).endswith(": exit status 7: bad")
assert dvm.submit(["true"], check=True).result().code == 0
assert dvm.submit(fails).result().code == 7
raised(pmi2x_dvm.Failed, list, dvm.map([fails], check=True))
dvm.close()
""")


def test_times_paths_and_limits(local, python):
    python("""
import resource
resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
os.umask(0o027)
dvm.close()
with pmi2x_dvm.connect() as dvm:
    for time in "90s", "1h30m", "10", "1:00", "1-02:00:00", 5:
        assert dvm.submit(["true"], time=time).result().code == 0
    assert "time" in raised(pmi2x_dvm.Refused, dvm.submit, ["true"], time="soon")
    late = dvm.submit(["sleep", "600"], time="1s").result()
    assert late.code and "time limit" in late.why
    argv = [b"/bin/echo", pathlib.Path("x"), b"y"]
    assert dvm.submit(argv, cwd=b"/tmp", env={b"A": b"b"}).result().out == b"x y\\n"
    ask = ["sh", "-c", "umask; ulimit -Ss"]
    assert dvm.submit(ask).result().out == b"0027\\n1024\\n"
""")


def test_tied_task_ends_with_its_client(local, python):
    python("""
task = dvm.submit(["sleep", "600"], tied=True)
free = dvm.submit(["true"])
free.result()
dvm.close()
again = pmi2x_dvm.connect()
while again.status()["ended"] < 2:
    pass
again.close()
""")


def test_client_after_a_fork_fails_and_does_not_hang(local, python):
    python("""
task = dvm.submit(["sleep", "600"])
child = os.fork()
if not child:
    assert "before the fork" in str(task.exception())
    concurrent.futures.wait([task])
    assert "before the fork" in raised(pmi2x_dvm.Error, dvm.submit, ["true"])
    dvm.shutdown()
    with pmi2x_dvm.connect() as own:
        assert own.submit(["true"]).result().code == 0
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert task.cancel() and dvm.submit(["true"]).result().code == 0
dvm.close()
""")


@pytest.mark.wide
def test_package_is_installed_by_pip(tmp_path, request):
    """Without the network: with the setuptools that are here."""
    source = request.config.rootpath.parents[1] / "src/dvm/python"
    shutil.copytree(source, tmp_path / "source")
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pip is not installed")
    pytest.importorskip("setuptools")
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet"]
    to = tmp_path / "site"
    run([*pip, "install", *options, "--target", to, tmp_path / "source"]).ok()
    there = {"PYTHONPATH": str(to)}
    run([sys.executable, "-c", "import pmi2x_dvm as p; p.connect"], env=there, cwd=to).ok()


def test_complete_output_is_in_files(local, python):
    python("""
root = pathlib.Path(os.environ["PMI2X_DVM_DIR"]).parent
os.chdir(root)
much = ["sh", "-c", "seq 2000; echo end >&2"]
result = dvm.submit(much, outputs="new/dir").result()
assert [pathlib.Path(f).parent for f in result.files] == [root / "new/dir"]
whole = "".join(f"{i}\\n" for i in range(1, 2001)).encode()
assert pathlib.Path(result.files[0]).read_bytes() == whole
assert result.out == whole[-4096:] and result.err == b"end\\n" and not result.files_lost
results = list(dvm.map([much, ["echo", "x"]], outputs=root / "new"))
assert [len(r.files) for r in results] == [1, 0]
assert dvm.submit(much).result().files == []
(root / "new/lost").mkdir()
lost = dvm.submit(["sh", "-c", f"rmdir {root}/new/lost; touch {root}/new/lost; seq 2000"], outputs="new/lost").result()
assert lost.files == [] and "Not a directory" in lost.files_lost
assert "UTF-8" in raised(pmi2x_dvm.Error, dvm.submit, ["true"], outputs=b"\\xff")
dvm.close()
""")
