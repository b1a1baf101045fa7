# SPDX-License-Identifier: BSD-3-Clause
"""An unmodified MPI program on every way to lay ranks out over nodes."""

import pytest

LAYOUTS = {
    "one rank": ["-n1"],
    "one node": ["-N1", "-n8"],
    "one rank a node": ["-N16", "-n16"],
    "four ranks a node": ["-N16", "--ntasks-per-node=4"],
    "block": ["-N4", "-n16", "--ntasks-per-node=4", "-m", "block"],
    "cyclic": ["-N4", "-n16", "--ntasks-per-node=4", "-m", "cyclic"],
    "plane": ["-N4", "-n16", "--ntasks-per-node=4", "-m", "plane=2"],
    "uneven": ["-N16", "-n37"],
    "odd": ["-N7", "-n23", "-m", "cyclic"],
    "prime cyclic": ["-N13", "-n41", "-m", "cyclic"],
    "nodes backwards": ["-N4", "-n8", "-w", "n9,n3,n12,n1", "-m", "cyclic"],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_layout(srun, hello, layout):
    result = srun(*layout, hello).ok()
    size = result.lines[0].split()[1]
    assert result.lines[0].startswith("size ")
    wanted = [word[2:] for word in layout if word.startswith("-n")]
    assert not wanted or size == wanted[-1]


def test_arbitrary(srun, hello, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("n3\nn1\nn3\nn2\nn1\nn5\nn3\n")
    result = srun(
        "-n7", "-m", "arbitrary", hello, env={"SLURM_HOSTFILE": str(hosts)}
    ).ok()
    assert result.lines[0].startswith("size 7 ")


@pytest.mark.plain("putting a task in its control groups takes 0.1 s here")
def test_300_ranks_on_one_node(srun, raw):
    result = srun("-N1", "-n300", "-O", *raw("exchange", "1"), timeout=180).ok()
    assert result.lines.count("exchanged 300") == 300


def test_more_nodes_than_tree_width(srun, raw):
    result = srun("-N16", "-n48", *raw("exchange", "2")).ok()
    assert result.lines.count("exchanged 48") == 48
