# SPDX-License-Identifier: BSD-3-Clause
"""Programs that use PMI and PMIx one after the other in one task, started by wrappers."""

import os
import re
import shlex
import shutil
import sys

import pytest

pytestmark = pytest.mark.usefixtures("needs_pmixd")
HELLO = "../../contrib/cluster/mpi-hello.c"
STEP = ["-N2", "-n4", "--ntasks-per-node=2"]
TCP = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_mpi_yield_when_idle": "1"}
POPEN = (
    "import subprocess, sys\n"
    "sys.exit(max(subprocess.call(c, shell=True, close_fds=False) for c in sys.argv[1:]))"
)
# How the lines begin that each program prints.
SAYS = {
    "mpich": ["size 4 "],
    "ompi": ["size 4 "],
    "libpmi2x": ["pmi2 client of 4"] * 4,
    "raw": ["exchanged 4"] * 4,
}
# MPICH shuts PMI_FD down, which a second program of PMI needs; csh closes it.
PAIRS = [
    f"{first}-{second}"
    for first in SAYS
    for second in SAYS
    if first != "mpich" or second == "ompi"
]


@pytest.fixture
def programs(hello, compile_program):
    """By name: an MPI program that uses PMI, and one that uses PMIx."""
    return {"mpich": hello, "ompi": compile_program(HELLO, "mpicc.openmpi")}


@pytest.fixture
def flags(prefix):
    """Of a program of libpmi2x."""
    lib = prefix / "lib"
    return [f"-I{prefix}/include/pmi2x", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lpmi2x"]


@pytest.fixture
def all_programs(programs, compile_program, flags, raw):
    """Those, one of libpmi2x (PMI-2), and a client of PMI-2 without a library."""
    client = compile_program("programs/pmi2-client.c", "gcc", *flags)
    exchange = shlex.join(map(str, raw("exchange", "2")))
    return {**programs, "libpmi2x": client, "raw": exchange}


def wrapper(name, commands):
    """The command that runs these commands one after the other."""
    if not shutil.which("python3" if name == "popen" else name):
        pytest.skip(f"{name} is not there")
    if name == "popen":
        return [sys.executable, "-c", POPEN, *commands]
    if name == "csh":
        return ["csh", "-fc", "; ".join([*commands, "true"])]
    return [name, "-c", "; ".join([*commands, ":"])]


def assert_right(result, programs):
    """Each of the programs has come up with all ranks and says so."""
    said = sorted(text for program in programs for text in SAYS[program])
    assert len(said) == len(result.lines), result
    for line, text in zip(sorted(result.lines), said, strict=True):
        assert line.startswith(text), result
    assert not result.stderr, result


def run_pair(srun, programs, shell, pair, apart):
    """Both programs come up with all ranks, and nobody complains."""
    late = [f"sleep $(($SLURM_PROCID * {apart}))"] if apart else []
    if shell == "csh" and apart:
        late = [f"@ s = $SLURM_PROCID * {apart}; sleep $s"]
    commands = late + [str(programs[p]) for p in pair]
    result = srun(*STEP, *wrapper(shell, commands), env=TCP, timeout=120).ok()
    assert_right(result, pair)


@pytest.mark.parametrize("pair", ["mpich-ompi", "ompi-mpich", "ompi-ompi"])
def test_programs_of_a_task_use_both_interfaces(srun, programs, pair):
    run_pair(srun, programs, "sh", pair.split("-"), 0)


def test_pmix_starts_late_after_pmi(srun, programs):
    """MPICH shuts PMI_FD down, while other ranks have yet to come to PMIx."""
    run_pair(srun, programs, "sh", ["mpich", "ompi"], 1)


@pytest.fixture
def killed(pmix_program):
    """A command that ends a PMIx program without PMIx_Finalize: when, in which ranks, how."""
    program = pmix_program("programs/pmix-killed.c")
    return lambda *words: shlex.join([str(program), *words])


# What is killed, when, and how. A rank that is killed before the fence leaves others in it.
KILLED = [
    "before all kill",
    "before 0 kill",
    pytest.param("before 0 1", marks=pytest.mark.wide),
    pytest.param("before 3 kill", marks=pytest.mark.wide),
    "in all kill",
    "in 0 1",
    pytest.param("in 3 kill", marks=pytest.mark.wide),
    "after all 1",
    "after 0 kill",
    "after 3 kill",
]


@pytest.mark.parametrize("how", KILLED)
def test_pmix_program_after_a_killed_one_runs(srun, programs, killed, how):
    """The rank goes on: libpmix alone takes the end of the process for the rank's."""
    commands = [killed(*how.split()), str(programs["ompi"])]
    result = srun(*STEP, *wrapper("sh", commands), env=TCP, timeout=60).ok()
    assert [line[:7] for line in result.lines] == SAYS["ompi"], result


@pytest.mark.wide
def test_rank_without_another_pmix_program_leaves_nobody_waiting(cluster, killed, tmp_path):
    """Its program is killed before a fence, and all go on without PMIx."""
    gate = tmp_path / "gate"
    script = f"{killed('before', '0', 'kill')}; until [ -e {gate} ]; do sleep 0.1; done"
    step = cluster.start("srun", "--mpi=pmi2x", *STEP, "sh", "-c", script)
    said = "PMIx fence failed: the PMIx program of rank 0 (node n1) has ended without"
    assert any(said in line for line in step.stderr)
    gate.touch()
    step.wait(60)


# ---- killed programs, and what ranks do then ----

HOWS = [f"{when} {who} {how}" for when in ("before", "in", "after") for who in ("all", "0", "3")
        for how in ("kill", "1")]
NEXT = ["ompi", "again ompi", "mpich", "nothing"]


def next_commands(programs, killed, how, then):
    """What each rank runs after the program that is killed."""
    if then == "nothing":
        return []
    names = {**programs, "again": killed(*how.split())}
    return [str(names[name]) for name in then.split()]


@pytest.mark.wide
@pytest.mark.parametrize("nodes", ["-N2 -n4", "-N4 -n4", "-N1 -n4"])
@pytest.mark.parametrize("then", NEXT)
@pytest.mark.parametrize("how", HOWS)
def test_no_rank_waits_after_killed_programs(srun, programs, killed, nodes, how, then):
    """All that can come up does."""
    commands = [killed(*how.split()), *next_commands(programs, killed, how, then)]
    result = srun(*nodes.split(), *wrapper("sh", commands), env=TCP, timeout=60)
    assert result.seconds < 20, result
    if then != "nothing":
        assert result.code == 0, result
        assert [line[:7] for line in result.lines] == SAYS["ompi"], result


@pytest.mark.wide
@pytest.mark.parametrize("nodes", ["-N2 -n4", "-N4 -n4", "-N1 -n4"])
@pytest.mark.parametrize("how", [*HOWS, "none"])
def test_program_of_one_rank_after_killed_ones_is_told_whom_it_waits_for(
    cluster, programs, killed, nodes, how
):
    """The others end: their end fails a fence of rank 0's program, or is named as awaited."""
    first = programs["ompi"] if how == "none" else killed(*how.split())
    script = f"{first}; [ $SLURM_PROCID != 0 ] || exec {programs['ompi']}"
    argv = ["srun", "--mpi=pmi2x", "-J", "alone", *nodes.split(), "sh", "-c", script]
    step = cluster.start(*argv, env={**TCP, "PMI2X_STALL_REPORT": "2"})
    try:
        named = r"(failed|may wait in a fence of all ranks): .*rank \d \(node n\d\)"
        assert any(re.search(named, line) for line in step.stderr)
    finally:
        cluster.run("scancel", "-n", "alone")
        step.wait(60)


def test_wrapper_that_closes_pmi_fd_runs_pmix(srun, programs):
    """csh does so: the agent sees the end of the connections long before PMIx starts."""
    run_pair(srun, programs, "csh", ["ompi"], 1)


def test_closed_pmi_fd_ends_no_pmix(srun, programs):
    """Ranks come to PMIx seconds after one another, none of them with PMI_FD."""
    script = f"eval \"exec $PMI_FD<&-\"; sleep $SLURM_PROCID; {programs['ompi']}; :"
    result = srun(*STEP, "bash", "-c", script, env=TCP, timeout=120).ok()
    assert_right(result, ["ompi"])


def test_wrapper_that_closes_pmi_fd_is_named(cluster, prefix, programs, tmp_path):
    """All ranks run csh. Their program starts once the agent can speak to srun."""
    if not shutil.which("csh"):
        pytest.skip("csh is not there")
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"cat {gate} > /dev/null; {programs['mpich']}"
    argv = ["srun", "--mpi=pmi2x", "-J", "wrapped", "-N1", "-n2", "csh", "-fc", script]
    step = cluster.start(*argv, env=TCP)
    with open(gate, "w"):
        job = cluster.run("squeue", "-h", "-o", "%i", "-n", "wrapped").lines[0]
        cluster.run(prefix / "bin" / "pmi2x", "why", f"{job}.0").ok()
    assert step.wait(60) == 15
    said = r"rank \d \(node n1\) exited with exit code 15 without starting PMI: csh had closed"
    assert len(re.findall(said, step.stderr.read())) == 1


def test_python_that_passes_pmi_fd_on_runs_mpich(srun, programs):
    """As pmi2x(7) shows it: subprocess closes all other descriptors of the child."""
    code = (
        "import os, subprocess, sys\n"
        "passed = [int(os.environ['PMI_FD'])]\n"
        "sys.exit(subprocess.call(sys.argv[1:], pass_fds=passed))"
    )
    step = [sys.executable, "-c", code, programs["mpich"]]
    assert_right(srun(*STEP, *step).ok(), ["mpich"])


LACK = ": an MPICH program fails so if its parent has closed PMI_FD"
CLOSING = "import subprocess, sys, time\ntime.sleep({})\nsys.exit(subprocess.call(sys.argv[1:]))"


@pytest.mark.parametrize("after", [0, 2], ids=["at once", "below an agent"])
def test_python_that_closes_pmi_fd_is_explained(srun, programs, after):
    """Python keeps PMI_FD open itself. After a second srun knows an agent, which reports."""
    step = [sys.executable, "-c", CLOSING.format(after), programs["mpich"]]
    result = srun(*STEP, *step).failed()
    assert result.stderr.count(LACK) == 1, result


def test_failure_of_a_wrapper_of_mpich_is_explained(srun, programs):
    """It has another exit code than the program."""
    code = CLOSING.format(2).replace("call", "check_call")
    result = srun(*STEP, sys.executable, "-c", code, programs["mpich"]).failed()
    assert result.stderr.count(LACK) == 1, result


def test_python_that_closes_pmi_fd_after_open_mpi_is_explained(srun, programs):
    """The agent asks how a rank ends that has used PMIx."""
    code = (
        "import subprocess, sys\n"
        "sys.exit(max(subprocess.call(program) for program in sys.argv[1:]))"
    )
    commands = [sys.executable, "-c", code, programs["ompi"], programs["mpich"]]
    result = srun(*STEP, *commands, env=TCP, timeout=60).failed()
    assert "after finalizing PMIx" + LACK in result.stderr, result
    assert result.stderr.count(LACK) == 1, result


@pytest.mark.parametrize("script", ["exit 0", "exit 1"])
def test_program_without_mpi_is_not_explained(srun, script):
    assert LACK not in srun(*STEP, "sh", "-c", script).stderr


def test_wrapper_that_closes_pmi_fd_and_succeeds_is_not_named(srun):
    script = 'eval "exec $PMI_FD<&-"; /bin/true'
    result = srun(*STEP, "bash", "-c", script).ok()
    assert not result.stderr, result


# ---- a program inside another one ----


@pytest.fixture
def outer_programs(compile_program, flags, raw):
    """By name: the command of a program that runs another one, in a rank or in all."""
    return {
        "mpich": lambda: [compile_program("programs/mpi-nested.c", "mpicc.mpich")],
        "ompi": lambda: [compile_program("programs/mpi-nested.c", "mpicc.openmpi")],
        "libpmi2x": lambda: [compile_program("programs/pmi2-nested.c", "gcc", *flags)],
        "raw": lambda: raw("nested"),
    }


def run_nested(srun, outer, inner, rank):
    """Each inner program is refused within ten seconds, and the outer one goes on."""
    result = srun(*STEP, *outer, str(inner), rank, env=TCP, timeout=60).ok()
    inners = 4 if rank == "all" else 1
    assert result.lines.count("inner refused") == inners, result
    assert result.lines.count("outer right") == 1, result
    assert result.seconds < 15, result
    return result


def refusals(result, interface):
    return [
        line
        for line in result.stderr.splitlines()
        if f"a second process started {interface} while" in line
    ]


@pytest.mark.parametrize("rank", ["0", "all"])
def test_second_pmix_process_is_refused(srun, programs, outer_programs, rank):
    result = run_nested(srun, outer_programs["ompi"](), programs["ompi"], rank)
    assert len(refusals(result, "PMIx")) == (4 if rank == "all" else 1), result
    if rank == "0":
        assert "rank 0 (node n1)" in result.stderr


def test_refused_process_does_not_hide_a_later_failure(srun, programs, outer_programs):
    """A note of srun does not use up the report of a fence that fails."""
    nested = shlex.join(map(str, [*outer_programs["ompi"](), programs["ompi"], "0"]))
    end = f"{nested}; [ $SLURM_PROCID != 3 ] || exit 7; exec {programs['ompi']}"
    result = srun(*STEP, "sh", "-c", end, env=TCP, timeout=60).failed()
    assert len(refusals(result, "PMIx")) == 1, result
    assert re.search(r"step \S+ failed: .*rank 3 \(node n2\) exited", result.stderr), result


@pytest.mark.parametrize("rank", ["0", "all"])
def test_second_pmi_process_is_refused(srun, programs, outer_programs, rank):
    """MPICH also aborts then: that ends the inner program only."""
    result = run_nested(srun, outer_programs["mpich"](), programs["mpich"], rank)
    said = refusals(result, "PMI")
    assert said, result
    if rank == "0":
        pattern = r"rank 0 \(node n1\): .*\(mpi-hello\S*, process \d+; first mpi-nested"
        assert re.search(pattern, said[0]), result


@pytest.mark.parametrize("program", ["mpich", "raw"])
def test_two_programs_at_once_end_the_step(srun, all_programs, program):
    """Each reads answers to the other one, and without an end of the step both may wait."""
    command = all_programs[program]
    result = srun(*STEP, "sh", "-c", f"{command} & {command} & wait", timeout=60).failed()
    assert result.seconds < 15, result
    pattern = (
        r"ending step .*: rank \d \(node n\d\): two programs use PMI at the same time"
        r" \([^()]+, process \d+; first [^()]+, process \d+\)"
    )
    assert re.search(pattern, result.stderr), result


# Programs of the other interface: the first one uses what is named second.
CROSSED = [
    pytest.param("mpich", "ompi", "0"),
    pytest.param("mpich", "ompi", "all", marks=pytest.mark.wide),
    pytest.param("libpmi2x", "ompi", "0", marks=pytest.mark.wide),
    pytest.param("libpmi2x", "ompi", "all", marks=pytest.mark.wide),
    pytest.param("raw", "ompi", "0", marks=pytest.mark.wide),
    pytest.param("raw", "ompi", "all"),
    pytest.param("ompi", "mpich", "0", marks=pytest.mark.wide),
    pytest.param("ompi", "mpich", "all"),
    pytest.param("ompi", "libpmi2x", "0"),
    pytest.param("ompi", "libpmi2x", "all", marks=pytest.mark.wide),
    pytest.param("ompi", "raw", "0", marks=pytest.mark.wide),
    pytest.param("ompi", "raw", "all", marks=pytest.mark.wide),
]
# Programs of PMI inside another one; the pair of MPICH has a test of its own.
INSIDE = [
    pytest.param("libpmi2x", "libpmi2x", "0"),
    pytest.param("libpmi2x", "mpich", "all"),
    pytest.param("libpmi2x", "raw", "0", marks=pytest.mark.wide),
    pytest.param("libpmi2x", "libpmi2x", "all", marks=pytest.mark.wide),
    pytest.param("libpmi2x", "mpich", "0", marks=pytest.mark.wide),
    pytest.param("libpmi2x", "raw", "all", marks=pytest.mark.wide),
    pytest.param("raw", "libpmi2x", "0", marks=pytest.mark.wide),
    pytest.param("raw", "mpich", "all", marks=pytest.mark.wide),
    pytest.param("raw", "raw", "0", marks=pytest.mark.wide),
    pytest.param("mpich", "libpmi2x", "all", marks=pytest.mark.wide),
    pytest.param("mpich", "raw", "0", marks=pytest.mark.wide),
]


@pytest.mark.parametrize(("outer", "inner", "rank"), INSIDE)
def test_program_of_pmi_inside_another_is_refused(
    srun, all_programs, outer_programs, outer, inner, rank
):
    result = run_nested(srun, outer_programs[outer](), all_programs[inner], rank)
    said = refusals(result, "PMI")
    assert said, result
    pattern = r"rank \d \(node n\d\): .*\([^,()]+, process \d+; first [^,()]+, process \d+\)"
    assert all(re.search(pattern, line) for line in said), result


@pytest.mark.parametrize(("outer", "inner", "rank"), CROSSED)
def test_process_of_the_other_interface_is_refused(
    srun, all_programs, outer_programs, outer, inner, rank
):
    """Without that both would wait for ranks that never come."""
    result = run_nested(srun, outer_programs[outer](), all_programs[inner], rank)
    starts, uses = ("PMIx", "PMI") if inner == "ompi" else ("PMI", "PMIx")
    said = refusals(result, starts)
    assert said, result
    pattern = (
        rf"rank \d \(node n\d\): a second process started {starts} while the first one"
        rf" uses {uses}, .*\([^,()]+, process \d+; first [^,()]+, process \d+\)"
    )
    assert all(re.search(pattern, line) for line in said), result


@pytest.mark.parametrize("first", ["pmi", "pmix"])
def test_one_process_uses_both_interfaces(srun, compile_program, flags, first):
    program = compile_program("programs/mpi-both.c", "mpicc.openmpi", *flags)
    result = srun(*STEP, program, first, env=TCP, timeout=60).ok()
    assert result.lines == ["both right"], result
    assert not result.stderr, result


@pytest.mark.parametrize(
    ("shell", "second"),
    [
        ("sh", "mpich"),
        ("sh", "libpmi2x"),
        ("sh", "raw"),
        ("popen", "mpich"),
        pytest.param("popen", "libpmi2x", marks=pytest.mark.wide),
        pytest.param("popen", "raw", marks=pytest.mark.wide),
    ],
)
def test_pmi_program_after_mpich_is_told_of(srun, all_programs, shell, second):
    """MPICH shuts PMI_FD down for all programs of the task."""
    commands = wrapper(shell, [str(all_programs[p]) for p in ("mpich", second)])
    commands[-1] = commands[-1].removesuffix("; :")
    result = srun(*STEP, *commands, env=TCP, timeout=60).failed()
    assert result.seconds < 15, result
    result.says("could not use it: start each program by an srun of its own")


def test_libpmi2x_program_after_mpich_says_why_it_fails(srun, all_programs):
    """The task goes on, and succeeds."""
    commands = [str(all_programs[p]) for p in ("mpich", "libpmi2x")]
    result = srun(*STEP, *wrapper("sh", commands), env=TCP, timeout=60).ok()
    result.says("an earlier program of the task closed it for all, as MPICH does")


# ---- a rank that has not started PMIx ----


@pytest.fixture
def late(cluster, programs, prefix, tmp_path):
    """A step on one node, of which rank 1 waits before it starts; what srun says, and
    what pmi2x why does."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"[ $SLURM_PROCID != 1 ] || cat {gate}; exec {programs['ompi']}"
    argv = ["srun", "--mpi=pmi2x", "-J", "late", "-N1", "-n4", "sh", "-c", script]
    step = cluster.start(*argv, env={**TCP, "PMI2X_STALL_REPORT": "2"})

    def why():
        jobs = cluster.run("squeue", "-h", "-o", "%i", "-n", "late").lines
        return cluster.run(prefix / "bin" / "pmi2x", "why", f"{jobs[0]}.0").ok().stdout

    yield step, why
    with open(gate, "w"):
        pass
    assert step.wait(60) == 0


def test_rank_without_pmix_is_named(late):
    """libpmix does not say that the others are in a fence."""
    step, why = late
    said = r"PMIx on node n1: \d+ s, clients may wait: rank 1 has not started PMIx"
    line = step.stderr.readline()
    assert re.search(said, line), line
    shown = why()
    assert re.search(f"^{said}$", shown, re.M), shown


# ---- numbers of ranks ----


@pytest.fixture
def renumbered(cluster, public, ordinary_user):
    """A step of an ordinary user, whose agents see the environments of the user's ranks."""
    exchange = shlex.join(["/usr/bin/python3", "-SE", str(public / "programs/exchange.py"), "1"])

    def run(options, number):
        script = f"PMI_RANK={number} exec {exchange}"
        argv = [*ordinary_user, "srun", "--mpi=pmi2x", *options, "sh", "-c", script]
        return cluster.run(*argv, timeout=60)

    return run


def test_ranks_of_one_number_end_the_step(renumbered):
    result = renumbered(STEP, "0").failed()
    said = r"ending step .*: ranks (0 and 1 \(node n1\)|2 and 3 \(node n2\)): the programs of both have PMI_RANK=0"
    assert re.search(said, result.stderr), result


def test_rank_of_another_number_is_noted(renumbered):
    """Each is the only one of its node: the step can be right."""
    result = renumbered(["-N2", "-n2"], "$((1 - $PMI_RANK))").ok()
    for rank, node in (0, "n1"), (1, "n2"):
        result.says(f"rank {rank} (node {node}): its program has PMI_RANK={1 - rank} in the environment")


def test_numbers_that_are_exchanged_on_a_node_end_no_step(renumbered):
    result = renumbered(["-N1", "-n2"], "$((1 - $PMI_RANK))").ok()
    assert "the programs of both" not in result.stderr, result


# ---- programs of both interfaces in one step ----

ONE_INTERFACE = "all ranks of a step must use the same one"


def mixed(programs, test):
    """A rank runs Open MPI if the test of its number is true, and else MPICH."""
    script = f"if [ $SLURM_PROCID {test} ]; then {programs['ompi']}; else {programs['mpich']}; fi"
    return ["sh", "-c", script]


@pytest.mark.parametrize("test", ["-gt 1", "-gt 0"])
def test_ranks_that_wait_in_two_interfaces_end_the_step(srun, programs, test):
    env = {**TCP, "PMI2X_STALL_REPORT": "1"}
    result = srun(*STEP, *mixed(programs, test), env=env, timeout=60).failed()
    result.says("ranks in PMI and ranks in PMIx wait for each other")
    result.says(f"PMIx started, not PMI: {ONE_INTERFACE}")


def test_single_rank_of_the_other_interface_is_named(cluster, programs):
    """libpmix does not report its fence, for rank 0 of its node is missing there."""
    argv = ["srun", "--mpi=pmi2x", *STEP, *mixed(programs, "= 1")]
    step = cluster.start(*argv, env={**TCP, "PMI2X_STALL_REPORT": "1"})
    lines = sorted(step.stderr.readline() for _ in range(2))
    step.terminate()
    step.wait(60)
    said = rf"PMIx on node n1: \d+ s, clients may wait: rank 0 has started PMI, not PMIx: {ONE_INTERFACE}"
    assert re.search(said, lines[0]), lines
    said = rf"fence 0: \d+ s, waiting for 1 of 4 ranks: 1 \(node n1; PMIx started, not PMI: {ONE_INTERFACE}\)"
    assert re.search(said, lines[1]), lines


@pytest.mark.wide
@pytest.mark.parametrize("apart", [0, 3])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("shell", ["sh", "csh", "popen"])
def test_pairs(srun, all_programs, shell, pair, apart):
    if shell == "csh" and pair != "ompi-ompi":
        pytest.skip("csh closes PMI_FD, which all but Open MPI need")
    run_pair(srun, all_programs, shell, pair.split("-"), apart)
