# SPDX-License-Identifier: BSD-3-Clause
"""Values that a rank has put, fetched from other nodes without a fence."""

import os
import re
import signal
import socket

import pytest

from faulty import HANGS_S, RANKS, TREE, links, ranks_of
from harness import wait_until

FOR_EVER, NOW = -1, 0
ABSENT, OTHER = 4, 14  # PMI2_ERR_INVALID_KEY, PMI2_ERR_OTHER


@pytest.fixture(scope="session")
def exercise(compile_program, prefix):
    return compile_program(
        "../fake/exercise.c",
        "gcc",
        f"-I{prefix}/include/pmi2x",
        f"-L{prefix}/lib",
        f"-Wl,-rpath,{prefix}/lib",
        "-lpmi2x",
    )


@pytest.mark.parametrize(
    "layout", [["-N1", "-n4"], ["-N4", "-n10"], ["-N16", "-n256", "--overcommit"]]
)
def test_every_collective_and_fetch(srun, exercise, layout):
    srun(*layout, exercise, timeout=120).ok()


@pytest.mark.parametrize("env", ["PMI2X_NOSLOTS", "PMI2X_NOSHM"])
def test_a_library_without_shared_memory(srun, exercise, env):
    srun("-N4", "-n10", exercise, env={env: "1"}).ok()


def outcomes(result):
    """(rank, what) -> (code, text)."""
    found = re.findall(r"^(\d+) fetches (\S+): (-?\d+) (.*)$", result.stdout, re.M)
    return {(int(r), what): (int(rc), text) for r, what, rc, text in found}


def fetch(owner, limit, key="key"):
    return f"fetch={owner},{limit},{key}"


def lines_of(step):
    return (step.dir / "stdout").read_text().count("\n")


def waiting(faulty, owner, *words, key="key", **options):
    """A step in which all but the owner wait for what it does not put."""
    others = RANKS - {owner}
    alone = [f"{owner}:{word}" for word in words]
    all_but = [
        f"{first}-{last}:{word}"
        for first, last in ((0, owner - 1), (owner + 1, max(RANKS)))
        for word in ("touch=at", fetch(owner, FOR_EVER, key))
    ]
    step = faulty("init", "show=other", *all_but, *alone, **options)
    step.wait_until_in("at", others)
    return step


def test_unmodified_clients_are_owners_too(srun, raw, fault_client, tmp_path):
    """What one puts over its socket, in PMI-1 or PMI-2, is there as well."""
    script = tmp_path / "each"
    late = [str(word) for word in raw("late-put")]
    script.write_text(
        "#!/bin/sh\n"
        'case $PMI_RANK in 0) exec "$@" ;;\n'
        f"1) exec {' '.join(late)} 1 ;; *) exec {' '.join(late)} 2 ;; esac\n"
    )
    script.chmod(0o755)
    words = ["init", fetch(1, 20000), fetch(2, 20000), "fence", "finalize"]
    result = srun("-N3", "-n3", script, fault_client, tmp_path, *words).ok()
    assert outcomes(result) == {
        (0, "1,20000,key"): (0, "value-of-1"),
        (0, "2,20000,key"): (0, "value-of-2"),
    }, result


def test_an_owner_that_is_killed(faulty):
    """By name, for who waits, and for who asks later."""
    step = waiting(faulty, 5, "show=key-", "touch=at", "gate=die", "die=kill")
    step.make("die")
    result = step.end()
    found = outcomes(result)
    assert {rank for rank, _ in found} == RANKS - {5}, result
    for code, text in found.values():
        assert code == OTHER and re.match(r"rank 5 \(node n3\) exited by signal 9", text), result


def test_an_owner_that_finalizes(faulty):
    step = waiting(faulty, 3, "touch=at", "gate=end", "finalize")
    step.make("end")
    found = outcomes(step.end())
    assert {rank for rank, _ in found} == RANKS - {3}
    for code, text in found.values():
        assert (code, text) == (
            OTHER,
            "rank 3 (node n2) has finalized without putting key",
        )


def test_limits_of_time(faulty):
    """The owner is in no call of PMI, and stopped."""
    step = faulty(
        "init",
        "show=key",
        "touch=at",
        "9:stop",
        "gate=go",
        fetch(9, NOW),
        fetch(9, NOW, "not"),
        fetch(9, 200, "not"),
        fetch(9, 2147483647),
        "touch=asked",
    )
    step.wait_for("at", RANKS)
    step.make("go")
    step.wait_for("asked", RANKS - {9})
    os.kill(step.pid("at", 9), signal.SIGKILL)
    found = outcomes(step.end())
    for rank in RANKS - {9}:
        assert found[rank, "9,0,key"] == (0, "key of 9"), found
        assert found[rank, "9,0,not"] == (ABSENT, "rank 9 (node n5) has not put not")
        assert found[rank, "9,200,not"] == (
            ABSENT,
            "rank 9 (node n5) has not put not in time",
        )
        assert found[rank, "9,2147483647,key"] == (0, "key of 9"), found


@pytest.mark.parametrize("below", ["n2", "n3"])
def test_a_link_that_is_cut(cluster, faulty, below):
    """The owner's own, on n3, and one on the way to it."""
    above = {"n2": "n1", "n3": "n2"}[below]
    cut_off = {
        "n2": RANKS - ranks_of("n2") - ranks_of("n3"),
        "n3": RANKS - ranks_of("n3"),
    }[below]
    options = [*TREE, "--no-kill"]
    step = waiting(faulty, 5, "touch=at", "gate=end", "finalize", options=options)
    for link in links(cluster.agent(above), cluster.agent(below)):
        link.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: lines_of(step) >= len(cut_off), HANGS_S)
    step.make("end")
    found = outcomes(step.end())
    for rank in RANKS - {5}:
        code, text = found[rank, "5,-1,key"]
        assert code == OTHER, found
        if rank in cut_off:
            assert re.match("lost the connection to node n[123]", text), found
        else:
            assert text == "rank 5 (node n3) has finalized without putting key"


def test_an_agent_that_does_not_answer(cluster, faulty):
    """Whose limit is over hears so from its own agent."""
    step = faulty(
        "init", "touch=at", "0:gate=go", f"0:{fetch(9, 500)}", "0:touch=asked",
        "1-9:gate=end",
    )
    step.wait_for("at", RANKS)
    agent = cluster.agent("n5")
    os.kill(agent, signal.SIGSTOP)
    try:
        step.make("go")
        step.wait_for("asked", {0})
    finally:
        os.kill(agent, signal.SIGCONT)
    step.make("end")
    code, text = outcomes(step.end())[0, "9,500,key"]
    assert code == OTHER, text
    assert text == "node n5 has not answered for rank 9 in time"


def test_invalid_fetches_are_rejected(srun, raw):
    """Each is refused, and the rank goes on."""
    result = srun("-N2", "-n2", *raw("fetches")).ok()
    assert result.lines.count("refused and answered") == 2, result
