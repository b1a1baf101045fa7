# SPDX-License-Identifier: BSD-3-Clause
"""What a hostile or broken client writes to PMI_FD harms nobody else."""

import pytest

# name: bytes that rank 1 writes instead of an init, or after it
BEFORE_INIT = {
    "zeros": "00" * 4096,
    "no newline": "41" * 100000,
    "empty line": "0a",
    "no version": b"cmd=init\n".hex(),
    "version 99": b"cmd=init pmi_version=99 pmi_subversion=0\n".hex(),
    "huge version": b"cmd=init pmi_version=99999999999999999999\n".hex(),
    "negative version": b"cmd=init pmi_version=-1 pmi_subversion=-1\n".hex(),
    "not init": b"cmd=get_maxes\n".hex(),
    "high bytes": "ff" * 512,
}
AFTER_INIT_1 = {
    "unknown": b"cmd=make_coffee\n".hex(),
    "no command": b"hello\n".hex(),
    "key too long": (
        b"cmd=put kvsname=x key=" + b"k" * 5000 + b" value=v\n"
    ).hex(),
    "value too long": (
        b"cmd=put kvsname=x key=k value=" + b"v" * 90000 + b"\n"
    ).hex(),
    "no value": b"cmd=put\n".hex(),
    "nuls": b"cmd=put\0\0\0 key=\0 value=\0\n".hex(),
    "endless line": "78" * 2000000,
    "spawn without end": b"mcmd=spawn\nnprocs=-5\n".hex(),
    "spawn of too many": b"mcmd=spawn\nnprocs=99999999\nexecname=x\n"
    b"totspawns=1000000\nspawnssofar=1\nendcmd\n".hex(),
    "second init": b"cmd=init pmi_version=2 pmi_subversion=0\n".hex(),
}
AFTER_INIT_2 = {
    "length is text": b"abcdefcmd=finalize;".hex(),
    "negative length": b"-1    cmd=finalize;".hex(),
    "length 999999": (b"999999" + b"x" * 1000).hex(),
    "length 0": b"0     ".hex(),
    "unknown": b"16    cmd=make-coffee;".hex(),
    "no semicolon": b"9     cmd=abcde".hex(),
    "lone semicolons": b"8     ;;;;;;;;".hex(),
    "unended value": b"20    cmd=kvs-put;key=k;;;".hex(),
    "bad ring": b"28    cmd=ring;ring-count=9999999;".hex(),
    "bad extension": b"30    cmd=pmi2x-fence;records=\xff\xff\xff;".hex(),
    "bad region": b"45    cmd=pmi2x-read;offset=-1;length=99999999999;;".hex(),
}


def cases():
    for moment, table in (
        ("0", BEFORE_INIT),
        ("1", AFTER_INIT_1),
        ("2", AFTER_INIT_2),
    ):
        for name, data in table.items():
            yield pytest.param(moment, data, id=f"{moment}-{name}")


@pytest.mark.parametrize("moment, data", cases())
def test_malformed_input(cluster, raw, scratch, moment, data):
    """The step ends within its time, and the next one finds all well."""
    path = scratch / "garbage"
    path.write_text(data)
    result = cluster.srun(
        "-N2", "-n4", *raw("garbage", moment, path), timeout=45
    )
    assert "Traceback" not in result.stderr, result
    assert "Segmentation" not in result.stderr, result
    assert "signal 6" not in result.stderr, result
    ended = [l for l in result.lines if l.startswith("garbage ")]
    assert len(ended) == 4 or result.code != 0, result


def test_step_beside_a_broken_one(cluster, raw, scratch):
    """Garbage in one step does not reach another on the same nodes."""
    path = scratch / "garbage"
    path.write_text(AFTER_INIT_2["length 999999"])
    garbage = " ".join(map(str, raw("garbage", "2", path)))
    exchange = " ".join(map(str, raw("exchange", "1")))
    srun = f"srun --mpi={cluster.kind} --overlap -N2 -n4"
    script = f"{srun} {garbage} & {srun} {exchange}; wait"
    result = cluster.run(
        "salloc", "-N2", "--ntasks-per-node=16", "sh", "-c", script
    )
    assert result.lines.count("exchanged 4") == 4, result
