# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-sync: tasks of a step meet from a shell, beside MPI or without it."""

import pytest

STEP = ["-N2", "-n4", "--ntasks-per-node=2"]


@pytest.fixture
def sync(srun, prefix, kind):
    """Run a shell script in each task; pmi2x-sync is in its PATH."""
    if kind != "pmi2x":
        pytest.skip("pmi2x-sync is of pmi2x")

    def start(script, *options, **more):
        whole = f"PATH={prefix}/bin:$PATH\n{script}"
        return srun(*(options or STEP), "sh", "-c", whole, **more)

    return start


def test_keys_of_all_nodes(sync):
    result = sync(
        """r=$SLURM_PROCID
        pmi2x-sync put a$r=value-$r
        pmi2x-sync wait a0 a1 a2 a3
        pmi2x-sync get a$(( (r + 1) % 4 ))
        pmi2x-sync get never || echo $?"""
    ).ok()
    assert sorted(result.lines) == ["1"] * 4 + [f"value-{rank}" for rank in range(4)]


def test_barrier_orders_what_tasks_do(sync, tmp_path):
    """No task passes a barrier before all have entered it, again and again."""
    sync(
        f"""for i in 1 2 3 4 5; do
            touch {tmp_path}/$i.$SLURM_PROCID
            pmi2x-sync barrier
            test $(ls {tmp_path} | grep -c "^$i[.]") = 4 || exit 9
            pmi2x-sync barrier second
        done"""
    ).ok()


def test_one_task_is_elected(sync):
    result = sync(
        """pmi2x-sync elect me && echo all
        pmi2x-sync --node elect me && echo node
        pmi2x-sync barrier --node
        pmi2x-sync add sum 5 >/dev/null; pmi2x-sync barrier; pmi2x-sync get sum"""
    ).ok()
    assert sorted(result.lines) == ["20"] * 4 + ["all", "node", "node"]


def test_allgather_in_rank_order(sync):
    result = sync(
        """pmi2x-sync allgather v$SLURM_PROCID | tr '\\n' ' '; echo
        pmi2x-sync allgather --node n$SLURM_PROCID | tr '\\n' ' '; echo"""
    ).ok()
    nodes = ["n0 n1 "] * 2 + ["n2 n3 "] * 2
    assert sorted(result.stdout.splitlines()) == sorted(["v0 v1 v2 v3 "] * 4 + nodes)


def test_file_of_8_mib_comes_as_it_is(sync, tmp_path):
    value = bytes(range(256)) * (8 << 12)
    (tmp_path / "in").write_bytes(value)
    (tmp_path / "more").write_bytes(value + b"x")
    result = sync(
        f"""if [ $SLURM_PROCID = 3 ]; then
            pmi2x-sync put file <{tmp_path}/in
            pmi2x-sync put file <{tmp_path}/more || echo status $?
        fi
        pmi2x-sync get --wait file >{tmp_path}/out.$SLURM_PROCID"""
    )
    result.ok()
    assert result.lines == ["status 3"]
    assert "8 MiB" in result.stderr
    for rank in range(4):
        assert (tmp_path / f"out.{rank}").read_bytes() == value


def test_timeout_names_the_missing_ranks(sync):
    """The tasks that wait longer go on when the late ones come."""
    result = sync(
        """if [ $SLURM_PROCID = 0 ]; then
            pmi2x-sync --timeout 0.2 barrier b; echo status $?
            pmi2x-sync --timeout=0.1 wait k SLURM; echo status $?
            pmi2x-sync put go=
        fi
        pmi2x-sync wait go
        pmi2x-sync barrier b"""
    ).ok()
    assert result.lines == ["status 124"] * 2
    assert "barrier b: timed out after 0.2 s: missing: rank" in result.stderr
    assert "missing: key k, SLURM" in result.stderr


def test_barrier_that_a_task_cannot_reach_any_more_ends(sync):
    """Whether the task ended before the barrier or while others wait in it."""
    result = sync(
        """if [ $SLURM_PROCID = 3 ]; then exit 0; fi
        pmi2x-sync barrier late; echo status $?
        pmi2x-sync barrier --node; echo node $?"""
    ).ok()
    nodes = ["node 0", "node 0", "node 3"]
    assert sorted(result.lines) == nodes + ["status 3"] * 3
    assert "rank 3 (node " in result.stderr
    assert "exited with exit code 0 and is not in it" in result.stderr


def test_killed_client_is_not_in_the_barrier(sync):
    """While it is in, another process of its task is refused by name."""
    result = sync(
        """if [ $SLURM_PROCID = 1 ]; then
            pmi2x-sync barrier b &
            until pmi2x-sync --timeout 0.1 barrier b 2>&1 | grep -q already; do :; done
            kill -9 $!; wait $!
            pmi2x-sync put killed=
            pmi2x-sync --timeout 0.2 wait never
        fi
        pmi2x-sync wait killed; pmi2x-sync barrier b && echo done"""
    ).ok()
    assert result.lines == ["done"] * 4


def test_beside_mpi(sync, raw):
    """Before PMI's start, while it is used and after its end, in one step."""
    program = " ".join(str(word) for word in raw("exchange", "2"))
    result = sync(f"pmi2x-sync barrier; {program} && pmi2x-sync barrier && echo done").ok()
    assert result.lines.count("done") == 4


def test_without_pmi2x_it_says_which_option_to_add(srun, prefix, kind):
    if kind != "pmi2x":
        pytest.skip("pmi2x-sync is of pmi2x")
    result = srun("-n1", f"{prefix}/bin/pmi2x-sync", "barrier", mpi="none")
    result.failed().says("start it with srun --mpi=pmi2x")
