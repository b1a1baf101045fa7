# SPDX-License-Identifier: BSD-3-Clause
"""A DVM for engines, in an allocation of a real Slurm: tasks on named nodes."""

import pytest

pytestmark = pytest.mark.usefixtures("only_pmi2x")


def test_tasks_and_daemons_are_on_named_nodes(in_allocation):
    """One DVM, then two that share the named nodes; n1 is in neither."""
    result = in_allocation(
        4,
        "pmi2x-dvm up --nodelist n[3-4],n2 --slots 2 && pmi2x-dvm status --json;"
        "pmi2x-dvm run -w n4 hostname; pmi2x-dvm run -w n1 true; echo rc $?; pmi2x-dvm down;"
        "pmi2x-dvm up --nodelist n[2-4] --dvms 2 --slots 2;"
        "pmi2x-dvm run -w n3 true; echo rc $?; pmi2x-dvm down",
    ).ok()
    assert [f'"name":"n{i}"' in result.stdout.replace(" ", "") for i in range(1, 5)] == [
        False, True, True, True]  # fmt: skip
    assert "there is no node n1 here" in result.stderr
    assert [line for line in result.lines if line.startswith("rc")] == ["rc 1", "rc 0"]


def test_wrong_lists_of_nodes_are_refused(in_allocation):
    result = in_allocation(
        1,
        "pmi2x-dvm up --nodelist n[ ; pmi2x-dvm up --nodelist n1,n2 -N1;"
        "pmi2x-dvm up --local --nodelist n1; pmi2x-dvm run -w , true",
    )
    assert result.stderr.count("--nodelist is a list of nodes") == 2
    assert "--nodelist names 2 nodes, and -N says 1" in result.stderr
    assert "--nodelist is for srun" in result.stderr
