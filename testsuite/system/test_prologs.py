# SPDX-License-Identifier: BSD-3-Clause
"""Prologs and SPANK plugins, which fork before a task is what the user has asked for."""

import pytest

NODES = 4  # of spank_cluster
RANKS = 4  # a node
PROLOG = """#!/bin/bash
touch {marks}/$SLURM_NODEID.$SLURM_LOCALID
for i in $(seq 600); do
	[ $(ls {marks} | grep -c "^$SLURM_NODEID\\.") -lt {ranks} ] || exit 0
	sleep 0.05
done
"""


@pytest.fixture
def cluster(spank_cluster):
    return spank_cluster


@pytest.fixture
def marks(tmp_path):
    """A directory in which the tasks of a node say that they have come so far."""
    path = tmp_path / "marks"
    path.mkdir()
    return path


@pytest.fixture
def forker(compile_spank):
    return compile_spank("programs/spank-forker.c")


def exchange(cluster, raw, *options):
    result = cluster.srun(
        f"-N{NODES}",
        f"--ntasks-per-node={RANKS}",
        *options,
        *raw("exchange", "2"),
        timeout=120,
    ).ok()
    assert result.lines.count(f"exchanged {NODES * RANKS}") == NODES * RANKS


def test_task_prolog(cluster, raw, marks):
    """It forks in the task, while other tasks of the node register."""
    prolog = marks.parent / "prolog"
    prolog.write_text(PROLOG.format(marks=marks, ranks=RANKS))
    prolog.chmod(0o755)
    exchange(cluster, raw, f"--task-prolog={prolog}")
    assert len(list(marks.iterdir())) == NODES * RANKS


@pytest.mark.parametrize(
    "hook", ["user_init", "task_init_privileged", "task_init", "task_post_fork"]
)
def test_spank_plugin_that_forks(cluster, raw, marks, forker, plugstack, hook):
    plugstack.write_text(f"required {forker} {hook} {marks}\n")
    exchange(cluster, raw)
    assert len(list(marks.iterdir())) == NODES * RANKS
