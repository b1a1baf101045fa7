# SPDX-License-Identifier: BSD-3-Clause
"""make dvm: a tree that a user without rights on the machine unpacks and runs."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import pytest

from dvms import env, there
from harness import SLOWNESS, run

__all__ = ["env", "there"]


@pytest.fixture(scope="module")
def archive(build):
    """What `make dvm` makes."""
    made = subprocess.run(
        ["make", "-C", build / "tree", "dvm"], capture_output=True, text=True, timeout=300
    )
    assert made.returncode == 0, made.stderr
    name = made.stdout.splitlines()[-2 if "Leaving" in made.stdout.splitlines()[-1] else -1]
    return build / "tree" / name.split(":")[0]


@pytest.fixture(scope="module")
def unpacked(archive, tmp_path_factory):
    """Its tree, in a directory with a space."""
    where = tmp_path_factory.mktemp("of a user")
    with tarfile.open(archive) as tar:
        tar.extractall(where)
    (root,) = where.iterdir()
    return root


@pytest.fixture
def command(unpacked, env, tmp_path):
    def call(*arguments):
        return run([unpacked / "bin/pmi2x-dvm", *arguments], env=env, cwd=tmp_path)

    return call


def test_programs_need_no_shared_library(unpacked):
    programs = [unpacked / "bin/pmi2x-dvm", *sorted((unpacked / "libexec/pmi2x").iterdir())]
    programs.remove(unpacked / "libexec/pmi2x/pmi2x-dvm-warm")  # of Python
    programs.remove(unpacked / "libexec/pmi2x/pmi2x-dvm-engines")  # a link
    assert len(programs) == 4
    for program in programs:
        headers = subprocess.run(
            ["readelf", "--program-headers", program], capture_output=True, text=True, check=True
        ).stdout
        assert "INTERP" not in headers and "DYNAMIC" not in headers, program


def test_python_client_is_in_it(unpacked):
    path = {"PYTHONPATH": str(unpacked / "share/pmi2x/python")}
    run([sys.executable, "-B", "-c", "import pmi2x_dvm; pmi2x_dvm.connect"], env=path).ok()


def test_tasks_with_mpi_run_from_another_directory(command, hello):
    up = command("up", "--local", "2").ok()
    assert "tasks of Open MPI and other PMIx programs run as singletons" in up.stderr
    lines = command("run", "-n", "2", "-N", "2", hello).ok().lines
    assert len([line for line in lines if line.startswith("size 2 ")]) == 1, lines
    command("down").ok()


def test_batch_runs_without_installation(command, tmp_path):
    (tmp_path / "lines").write_text("echo one\necho two\n")
    assert "2 done" in command("batch", "lines", "--local").ok().stderr
    results = (tmp_path / "lines.results").read_text()
    assert "one" in results and "two" in results


@pytest.mark.wide
def test_three_commands_of_a_user_run_1000_tasks(archive):
    """An ordinary user, from the archive to all results, as doc/dvm.md says."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        home = pathlib.Path(directory)
        shutil.copy(archive, home)
        home.chmod(0o777)
        script = f"""cd {home}
        tar -xf {archive.name}
        seq -f 'echo task %g' 1000 >tasks.txt
        {archive.name.removesuffix(".tar.xz")}/bin/pmi2x-dvm batch tasks.txt --local"""
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        plain = ["env", "-i", f"HOME={home}", "PATH=/usr/bin:/bin", "sh", "-euc", script]
        result = run([*(user if os.getuid() == 0 else []), *plain]).ok()
        assert "1000 tasks: 1000 done, 0 failed" in result.stderr, result
        lines = (home / "tasks.txt.results").read_text().splitlines()
        assert len(lines) == 1000 and any("task 1000" in line for line in lines)
        assert result.seconds < 30 * SLOWNESS, result
