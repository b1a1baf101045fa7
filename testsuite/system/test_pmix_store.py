# SPDX-License-Identifier: BSD-3-Clause
"""Where PMIx clients of libpmix 4 find what the server knows: in files that they look for
before they connect, so that their tasks wait for the server, or in its answers."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from harness import Cluster, run, stopped, wait_until
from test_pmix import SMALL, is_said, servers

pytestmark = pytest.mark.usefixtures("needs_pmixd", "release_4")
EARLY = {"PMI2X_PMIX": "early"}
STORE = "PMIX_DSTORE_21_BASE_PATH"


@pytest.fixture(scope="session")
def release_4():
    if not run(["pkg-config", "--modversion", "pmix"]).stdout.startswith("4."):
        pytest.skip("the libpmix to compile with is not there, or not of release 4")


SAY = f'echo $PMIX_GDS_MODULE $PMIX_SERVER_TMPDIR "${STORE}"; ls -d ${STORE}/*lock*'


def test_tasks_wait_for_it(srun):
    """It is there when they begin."""
    result = srun("-N1", "-n1", "sh", "-c", SAY, env=EARLY).ok()
    (module, place, store), lock = result.lines[0].split(), result.lines[1]
    assert module == "ds21,hash" and store == f"{place}/ds21", result
    assert lock.startswith(store), result


@pytest.mark.parametrize(
    "env",
    [
        {},
        {**EARLY, "PMI2X_PMIX_GDS": "hash"},
        {**EARLY, "PMI2X_KILL_ON_FAILURE": "off"},
    ],
    ids=["when asked", "none wanted", "others go on when one dies"],
)
def test_there_is_none(srun, env):
    result = srun("-N1", "-n1", "sh", "-c", SAY, env={STORE: "/foreign", **env})
    module, _, *store = result.lines[0].split()
    assert module == "hash" and not store, result


@pytest.fixture
def fenced(cluster, exercise, tmp_path):
    """A step whose ranks have fenced, and the fifo that then holds the first of them."""
    fifo = tmp_path / "held"
    os.mkfifo(fifo)
    step = cluster.start("srun", "--mpi=pmi2x", *SMALL, exercise, "get-held", fifo)
    assert [step.stdout.readline() for _ in range(4)] == ["fenced\n"] * 4
    yield step, fifo
    cluster.cancel_all()
    step.communicate(timeout=60)


def test_gets_need_no_server(cluster, fenced):
    """What a fence has brought is got while the node's server stands still."""
    step, fifo = fenced
    said = []
    (server,) = servers(cluster, "n1")
    with stopped(server):
        os.close(os.open(fifo, os.O_WRONLY))
        os.set_blocking(step.stderr.fileno(), False)
        wait_until(lambda: is_said(step, said, "got"))
    assert step.wait(60) == 0


def resident(pid, name):
    """KiB that a process has of each file with this in its name."""
    sizes, path = {}, ""
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            path = line.split(maxsplit=5)[-1]
        elif name in path and line.startswith("Rss:"):
            sizes[path] = int(line.split()[1])
    return sizes


def can_zero(directory):
    """Does the file system take memory back, and keep the space?"""
    path = directory / "zeros"
    path.write_bytes(bytes(1 << 17))
    argv = ["fallocate", "--zero-range", "--keep-size", "-o65536", "-l65536", path]
    return subprocess.run(argv, stderr=subprocess.DEVNULL).returncode == 0


def test_memory_of_it(cluster, fenced, scratch):
    """libpmix fills 4 MiB each with zeros: of that little stays."""
    (server,) = servers(cluster, "n1")
    sizes = resident(server, "/smdataseg-") | resident(server, "/smseg-")
    assert len(sizes) == 2, sizes
    assert all(size <= 256 for size in sizes.values()) or not can_zero(scratch), sizes


def kill_server(cluster):
    os.kill(*servers(cluster, "n1"), signal.SIGKILL)


@pytest.mark.parametrize("end", [kill_server, Cluster.cancel_all])
def test_nothing_is_left(cluster, fenced, end):
    assert list(cluster.dir.glob("spool/n1/pmi2x.pmix.*/ds21/sm*"))
    end(cluster)
    assert fenced[0].wait(60)
    wait_until(lambda: not list(cluster.dir.glob("spool/*/pmi2x.pmix.*")))


def test_rank_that_cannot_see_the_store_asks_the_server(srun, exercise):
    """As in a container: the server is asked. Nobody complains."""
    script = f'{STORE}=/nowhere exec "$0" exchange'
    result = srun(*SMALL, "sh", "-c", script, exercise, env=EARLY).ok()
    assert not result.stderr, result


def test_second_program_of_a_rank_asks_the_server(srun, exercise):
    """There is a lock for each rank; who is one too many asks the server."""
    script = '"$0" exchange && exec "$0" exchange'
    result = srun(*SMALL, "sh", "-c", script, exercise, env=EARLY).ok()
    assert not result.stderr, result
