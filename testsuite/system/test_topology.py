# SPDX-License-Identifier: BSD-3-Clause
"""The topology of a node as a file for its ranks: who gets it, what it holds, when it is
gone, and what else is said."""

import glob
import os
import shutil
import signal
import subprocess

import pytest

from harness import run, wait_until

pytestmark = pytest.mark.usefixtures("needs_topology")
WHERE = "pmi2x.topology."
TWO_NODES = "-N2", "--ntasks-per-node=3"
VARIABLES = {"PMI2X_TOPOLOGY": "variables"}


def files(cluster):
    return glob.glob(f"{cluster.dir}/**/{WHERE}*", recursive=True)


def seen(result, nodes=2):
    """What ranks printed, by node: the same on all ranks of one."""
    lines = {line for line in result.lines if line.startswith("n")}
    by_node = dict(line.split(" ", 1) for line in lines)
    assert len(lines) == len(by_node) == nodes, result
    return by_node


def paths(result, nodes=2):
    found = [text.split() for text in seen(result, nodes).values()]
    assert all(len(words) == 3 for words in found), result
    assert all(mode == "444" and int(count) > 3 for _, mode, count in found)
    assert len({path for path, *_ in found}) == nodes, result
    return [path for path, *_ in found]


@pytest.mark.parametrize("version", ["1", "2"])
def test_rank_that_asks_gets_a_file(cluster, raw, version):
    result = cluster.srun(*TWO_NODES, *raw("topology", version)).ok()
    for path in paths(result):
        wait_until(lambda: not os.path.exists(path))


def test_nobody_asks(cluster, raw, scratch):
    result = cluster.srun(*TWO_NODES, *raw("topology", "env")).ok()
    assert set(seen(result).values()) == {"unavailable"}
    assert not files(cluster)


def test_alone_on_its_node(cluster, raw):
    result = cluster.srun("-N2", "-n2", *raw("topology", "1")).ok()
    assert set(seen(result).values()) == {"unavailable"}


@pytest.mark.parametrize(
    "env",
    [{"PMI2X_TOPOLOGY": "off"}, {"HWLOC_SYNTHETIC": "core:2"}],
    ids=["off", "chosen"],
)
def test_not_wanted(cluster, raw, env):
    result = cluster.srun(*TWO_NODES, *raw("topology", "2"), env=env).ok()
    assert set(seen(result).values()) == {"unavailable"}


def test_directory_that_anybody_may_write_is_not_used(cluster, raw):
    """Others could put something in the place of the file, or of the directory of
    pmi2x-pmixd; the log says so."""
    places = list((cluster.dir / "spool").iterdir())
    assert places
    try:
        for place in places:
            place.chmod(0o777)
        result = cluster.srun(*TWO_NODES, *raw("topology", "1")).ok()
        shown = cluster.srun("-N1", "-n1", "env").ok().lines
    finally:
        for place in places:
            place.chmod(0o755)
    assert set(seen(result).values()) == {"unavailable"}
    assert not [line for line in shown if line.startswith("PMIX_")], shown
    wait_until(lambda: "other users than root and SlurmUser can write to" in cluster.log_of("n1"))


def test_with_the_agent(cluster, raw):
    env = {"PMI2X_TOPOLOGY": "agent"}
    result = cluster.srun(*TWO_NODES, *raw("topology", "1"), env=env).ok()
    paths(result)


def test_variables(cluster, raw):
    result = cluster.srun(*TWO_NODES, *raw("topology", "env"), env=VARIABLES).ok()
    paths(result)


def test_variables_stay_in_their_step(cluster, raw):
    """A step inside has its own topology, or none."""
    inner = " ".join(map(str, raw("topology", "env")))
    outer = f'test -r "$HWLOC_XMLFILE" || exit 3; test $SLURM_PROCID != 0 || PMI2X_TOPOLOGY=off srun --mpi=pmi2x --overlap -N1 -n2 {inner}'
    result = cluster.srun("-N1", "-n2", "sh", "-c", outer, env=VARIABLES).ok()
    assert set(seen(result, 1).values()) == {"unavailable"}


@pytest.mark.parametrize("env", [{}, VARIABLES], ids=["own", "variables"])
def test_program_with_hwloc(cluster, env):
    """It finds the same either way."""
    if not shutil.which("lstopo-no-graphics"):
        pytest.skip("no lstopo")
    own = run(["lstopo-no-graphics", "--of", "console", "--no-io"]).ok()
    script = "hwloc-bind --get; hwloc-bind pu:0 -- hwloc-bind --get; exec lstopo-no-graphics --of console --no-io"
    result = cluster.srun("-N1", "-n2", "-l", "sh", "-c", script, env=env).ok()
    for rank in "01":
        lines = [l[3:] for l in result.lines if l.startswith(f"{rank}: ")]
        assert lines[1] == "0x00000001", result
        assert lines[2:] == own.lines, result


def test_program_without_its_file(cluster):
    """Where the file is not to be had hwloc finds out by itself."""
    if not shutil.which("lstopo-no-graphics"):
        pytest.skip("no lstopo")
    own = run(["lstopo-no-graphics", "--of", "console", "--no-io"]).ok()
    script = 'rm -f "$HWLOC_XMLFILE"; exec lstopo-no-graphics --of console --no-io'
    result = cluster.srun("-N1", "-n2", "-l", "sh", "-c", script, env=VARIABLES).ok()
    for rank in "01":
        assert [l[3:] for l in result.lines if l.startswith(f"{rank}: ")] == own.lines


@pytest.fixture
def kept(cluster, raw, scratch):
    """A step that has a topology, and goes on until the test says so."""
    go = scratch / "topology-go"
    go.unlink(missing_ok=True)
    argv = ["srun", "--mpi=pmi2x", *TWO_NODES, *raw("topology", "1", go)]
    step = cluster.start(*argv, stdout=subprocess.DEVNULL, stderr=None)
    wait_until(lambda: len(files(cluster)) == 2)
    yield step
    go.touch()
    step.wait()


def test_killed_agent(cluster, kept):
    """Nothing is left."""
    os.kill(cluster.agent("n1"), signal.SIGKILL)
    wait_until(lambda: not files(cluster))


def test_killed_step_daemon(cluster, kept, raw, scratch):
    """The next step of the node that has a topology removes what is left."""
    os.kill(cluster.step_daemon("n1"), signal.SIGKILL)
    kept.wait()
    (scratch / "topology-go").touch()  # a rank that nobody has killed ends, too
    wait_until(lambda: len(files(cluster)) == 1)
    cluster.srun("-w", "n[1-2]", *TWO_NODES, *raw("topology", "1")).ok()
    wait_until(lambda: not cluster.sockets())
    assert not files(cluster)


def test_killed_slurmd(cluster, kept, scratch):
    """The file is the step's: it stays, and goes with it."""
    before = set(files(cluster))
    cluster.restart("slurmd.n1")
    assert set(files(cluster)) == before
    (scratch / "topology-go").touch()
    assert kept.wait() == 0
    wait_until(lambda: not files(cluster))


def test_mpich(cluster, mpich_wheel, ofi, scratch):
    """It asks, so there is a file, and starts with that."""
    program = scratch / "topology-init.py"
    program.write_text(
        "from glob import glob\n"
        "from mpi4py import MPI\n"
        f"files = glob('{cluster.dir}/**/{WHERE}*.xml', recursive=True)\n"
        "print('init', MPI.COMM_WORLD.size, 'files', len(files))\n"
    )
    python = mpich_wheel / "bin" / "python"
    result = cluster.srun("-N1", "-n2", python, program, env=ofi, timeout=120)
    assert result.ok().lines.count("init 2 files 1") == 2
