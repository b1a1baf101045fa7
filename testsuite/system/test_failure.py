# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that misbehave: the step ends, soon, and says why."""

import re

import pytest

SOON_S = 30
GO_ON = {"PMI2X_KILL_ON_FAILURE": "off"}


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    "how, end",
    [("exit", "exited with exit code 3"), ("kill", "exited by signal 9 (Killed)")],
)
def test_rank_leaves_without_finalize(srun, raw, version, how, end):
    """The others get an error in their fence; srun names the rank, and its end."""
    leave = raw("leave", version, how, "3", "5")
    result = srun("-N4", "-n8", *leave, env=GO_ON).failed()
    assert result.seconds < SOON_S, result
    assert "fence came back" not in result.stdout, result
    assert result.stdout.count("fence failed") == 7, result
    result.says("fence 1 failed: rank 5 (node n")
    result.says(f") {end} without finalizing PMI")


@pytest.mark.parametrize("version", ["1", "2"])
def test_rank_killed_in_the_middle_of_init(srun, raw, version):
    """The rank has sent its PMI version and nothing more."""
    result = srun("-N4", "-n8", *raw("leave", version, "half", "0", "5"))
    result.failed()
    assert result.seconds < SOON_S, result
    assert "fence came back" not in result.stdout, result
    result.says("fence 0 failed: rank 5 (node n")


def test_rank_leaves_a_grandchild_behind(srun, raw):
    """The rank's end is noticed although PMI_FD stays open."""
    result = srun("-N2", "-n4", *raw("leave", "2", "orphan", "3", "3"))
    result.failed()
    assert result.seconds < SOON_S, result
    assert "fence came back" not in result.stdout, result


def test_rank_leaves_with_exit_code_0(srun, raw):
    """A rank that exits well must not be waited for either."""
    result = srun("-N2", "-n4", *raw("leave", "1", "exit", "0", "2"))
    assert result.seconds < SOON_S, result
    assert "fence came back" not in result.stdout, result


def test_rank_never_inits(srun, raw):
    """Some ranks use PMI, one ends without it."""
    exchange = " ".join(map(str, raw("exchange", "1")))
    script = f'[ "$PMI_RANK" = 2 ] && exit 0; exec {exchange}'
    result = srun("-N2", "-n4", "sh", "-c", script).failed()
    assert result.seconds < SOON_S, result


def test_no_rank_inits(srun):
    assert srun("-N4", "-n8", "sleep", "1").ok().seconds < SOON_S


def test_mpi_abort(srun, compile_program):
    program = compile_program("programs/mpi-abort.c", "mpicc.mpich")
    result = srun("-N4", "-n8", program, "3", "7").failed()
    assert result.seconds < SOON_S, result
    assert result.code == 7, result
    assert re.search(r"failed: rank 3 on node n\d+ called abort", last(result))


@pytest.mark.parametrize("version", ["1", "2"])
def test_abort_request(cluster, srun, raw, version):
    """From Slurm 26.05 on ranks may clean up: they get SIGTERM before SIGKILL."""
    result = srun(
        "-N4", "-n8", *raw("abort", version, "5"), timeout=60
    ).failed()
    assert result.seconds < SOON_S, result
    result.says("abort")
    warned = cluster.state["version"] >= [26, 5]
    assert ("told to end" in result.lines) == warned, result


def test_all_ranks_abort(srun, raw):
    """Aborts are merged: srun does not print one line for each."""
    result = srun("-N8", "-n64", *raw("abort", "2", "all")).failed()
    assert result.seconds < SOON_S, result
    named = [l for l in result.stderr.splitlines() if "why not" in l]
    assert len(named) <= 8, result


def test_cancelled_step(cluster, raw):
    """scancel during a fence leaves nothing behind; the fixture looks."""
    late = " ".join(map(str, raw("late", "2", "100")))
    script = (
        f"srun --mpi={cluster.kind} -N4 -n8 {late} & sleep 2; "
        "scancel -s KILL $SLURM_JOB_ID.0; wait"
    )
    result = cluster.run(
        "salloc", "-N4", "--ntasks-per-node=8", "sh", "-c", script
    )
    assert "late" not in result.lines


# ---- the cause, among what all ranks say, and the end before they say it ----

ENDS = {
    "exit 5": (5, "exited with exit code 5"),
    "kill -9 $$": (137, "exited by signal 9 (Killed)"),
}


def without_rank_3(program, how="exit 5"):
    """Rank 3 exits before it starts PMI."""
    return ["sh", "-c", f'[ "$PMI_RANK" = 3 ] && {how}; exec {program}']


def last(result):
    return result.stderr.splitlines()[-1]


def names_the_cause(result, how="exit 5"):
    """srun's last line, and only one line before it."""
    cause = rf"fence 0 failed: rank 3 \(node n\d+\) {re.escape(ENDS[how][1])}"
    assert re.match(rf"srun: error: pmi2x: step \S+ failed: {cause}", last(result)), result
    assert len(re.findall(cause, result.stderr)) == 2, result


def is_ended(result, how="exit 5"):
    """The cause comes first, no rank complains, and srun has the code of the rank."""
    assert result.seconds < SOON_S, result
    assert result.code == ENDS[how][0], result
    lines = result.stderr.splitlines()
    (end,) = [i for i, l in enumerate(lines) if "pmi2x: ending step" in l]
    assert not any("Killed" in l and "task 3" not in l for l in lines[:end]), result
    assert not re.search(r"\[cli_|Abort\(|error stack|PMI_|pmi2x-probe", result.stderr), result
    names_the_cause(result, how)


def is_not_ended(result):
    """Each rank prints its line, and one of them exits with the code."""
    assert result.seconds < SOON_S, result
    assert result.code not in (0, 5, 137), result
    assert "ending step" not in result.stderr, result
    assert len(re.findall(r"^Abort\(", result.stderr, re.M)) == 7, result
    names_the_cause(result)


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
@pytest.mark.parametrize("how", list(ENDS))
def test_cause_is_the_last_line(srun, hello, how, quiet):
    is_ended(srun("-N4", "-n8", *quiet, *without_rank_3(hello, how)).failed(), how)


@pytest.mark.parametrize("variable", ["PMI2X_DEBUG", "PMI2X_NOSLOTS", "PMI2X_DISABLE"])
def test_cause_with_our_library(srun, probe, variable):
    """Answers are held back whatever way they would take."""
    program = without_rank_3(f"{probe} fence")
    is_ended(srun("-N4", "-n8", *program, env={variable: "1"}).failed())


def test_cause_with_many_ranks(srun, hello):
    """The output grows with the nodes, not with the ranks."""
    result = srun("-N8", "-n64", *without_rank_3(hello)).failed()
    is_ended(result)
    assert len(result.stderr.splitlines()) < 40, result


def test_cause_in_a_het_step(srun, hello):
    program = without_rank_3(hello)
    result = srun("-n2", *program, ":", "-n3", *program).failed()
    is_ended(result)


def test_step_that_is_not_to_be_ended(srun, hello):
    is_not_ended(srun("-N4", "-n8", *without_rank_3(hello), env=GO_ON))


def test_ranks_that_finalize_and_end_badly(srun, probe):
    """The other ranks go on, and the step has failed nevertheless."""
    program = without_rank_3(f"{probe} fence")
    result = srun("-N4", "-n8", *program, env=GO_ON).failed()
    assert result.stderr.count("pmi2x-probe: rank") >= 7, result
    names_the_cause(result)


@pytest.mark.parametrize(
    "words, env", [(["-K0"], {}), ([], {"SLURM_KILL_BAD_EXIT": "0"})]
)
def test_explicit_no_wins(srun, hello, words, env):
    env = {"PMI2X_KILL_ON_FAILURE": "on", **env}
    is_not_ended(srun("-N4", "-n8", *words, *without_rank_3(hello), env=env))


@pytest.mark.parametrize(
    "words, env", [(["-K"], {}), (["-K1"], {}), ([], {"SLURM_KILL_BAD_EXIT": "1"})]
)
def test_explicit_yes_wins(srun, hello, words, env):
    """Also for exit codes that Slurm does not take for failures."""
    program = without_rank_3(hello, "exit 0")
    result = srun("-N4", "-n8", *words, *program, env={**GO_ON, **env})
    assert result.seconds < SOON_S, result
    assert result.code == 1, result
    result.says("ending step")
    assert "Abort(" not in result.stderr, result


@pytest.mark.parametrize("version", ["1", "2"])
def test_program_that_goes_on_without_a_rank(srun, raw, version, tmp_path):
    """The end of a rank that nobody needs is no failure."""
    tmp_path.chmod(0o777)
    result = srun("-N4", "-n8", *raw("goes_on", version, "3", "5", tmp_path))
    assert result.lines.count("went on") == 7, result
    assert result.code == 5, result
    assert "pmi2x: " not in result.stderr, result


@pytest.mark.parametrize("version", ["1", "2"])
def test_failure_that_all_survive(srun, raw, version, tmp_path):
    """The failure is reported when it happens; the step has not failed."""
    tmp_path.chmod(0o777)
    words = raw("goes_on", version, "3", "0", tmp_path, "fence")
    result = srun("-N4", "-n8", *words, env=GO_ON).ok()
    assert result.lines == ["went on"] * 7, result
    (line,) = [l for l in result.stderr.splitlines() if "pmi2x: " in l]
    assert "pmi2x: fence 0 failed: rank 3" in line, result


def test_step_that_ends_well_says_nothing(srun, hello):
    assert "pmi2x: " not in srun("-N4", "-n8", hello).ok().stderr
