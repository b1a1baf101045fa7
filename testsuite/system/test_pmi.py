# SPDX-License-Identifier: BSD-3-Clause
"""What the server promises to clients that speak for themselves."""

import pytest


@pytest.mark.parametrize("version", ["1", "2"])
def test_exchange(srun, raw, version):
    result = srun("-N4", "-n10", *raw("exchange", version)).ok()
    assert result.lines.count("exchanged 10") == 10


def test_both_versions_in_one_step(srun, raw):
    result = srun("-N4", "-n10", *raw("exchange", "mixed")).ok()
    assert result.lines.count("exchanged 10") == 10


@pytest.mark.parametrize("version", ["1", "2"])
def test_values_of_every_length(srun, raw, version):
    """Up to the limits that the server names, and with every odd character."""
    result = srun("-N3", "-n3", *raw("values", version)).ok()
    assert result.lines.count("values 3") == 3


def test_every_command_is_answered(srun, raw):
    result = srun("-N2", "-n2", *raw("commands")).ok()
    assert result.lines.count("all answered") == 2


def test_node_attribute_waits_for_its_node(srun, raw):
    """A get with wait=TRUE ends when another rank of the node has put it."""
    result = srun("-N2", "--ntasks-per-node=2", *raw("attributes")).ok()
    assert result.lines.count("attributes 4") == 4


def test_job_attributes(srun, raw):
    result = srun("-N3", "--ntasks-per-node=2", *raw("job")).ok()
    words = dict(line.split("=", 1) for line in result.lines if "=" in line)
    assert words["PMI_process_mapping"].startswith("(vector,(0,3,2)")
    assert int(words["universeSize"]) >= 6


def test_names(srun, raw):
    result = srun("-N2", "-n4", *raw("names")).ok()
    assert result.lines.count("names 4") == 4


@pytest.mark.parametrize("version", ["1", "2"])
def test_second_program_on_one_connection(srun, raw, version):
    """It starts a new session, or is told why not; it does not hang."""
    one = " ".join(map(str, raw("exchange", version)))
    result = srun(
        "-N2", "-n4", "sh", "-c", f"{one}; {one} 2>&1 || echo refused"
    )
    lines = result.lines
    first_or_both = lines.count("exchanged 4")
    assert first_or_both == 8 or (
        first_or_both == 4 and lines.count("refused") == 4
    ), result


def test_long_name_of_the_step(srun, raw):
    """The name of the KVS is the same everywhere and names the step."""
    result = srun("-N2", "-n4", *raw("job")).ok()
    names = {l for l in result.lines if l.startswith("kvsname=")}
    assert len(names) == 1
