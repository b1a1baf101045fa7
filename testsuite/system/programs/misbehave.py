# SPDX-License-Identifier: BSD-3-Clause
"""Rank 1 uses PMI-2 as nobody should, beside ranks that use it well.

Arguments: how; a directory. "deaf": it asks without reading, until its
connection takes no more; "slow": it writes byte by byte; "hasty": it sends all
its requests at once.
"""

import os
import pathlib
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

ODD = 1
VALUE = "v" * 1000
GETS = 50
BYTE_S = 0.02
FULL_S = 1.0  # after this time without a byte taken, the connection is full

how, directory = sys.argv[1], pathlib.Path(sys.argv[2])
client = pmi.Pmi2()


def wait_for(name):
    while not (directory / name).exists():
        time.sleep(0.02)


def frame(text):
    return b"%-6d" % len(text) + text.encode()


def be_deaf():
    """Read the answers only when another rank has found all well."""
    get = frame(f"cmd=kvs-get;jobid={pmi.JOB};srcid=-1;key=big;")
    sent = 0
    client.socket.settimeout(FULL_S)
    try:
        while True:
            sent += client.socket.send(get * 100)
    except TimeoutError:
        client.socket.settimeout(None)
    (directory / "full").touch()
    wait_for("well")
    for _ in range(sent // len(get)):
        assert client.receive()["value"] == VALUE
    rest = sent % len(get)
    if rest:
        client.send_raw(get[rest:])
        assert client.receive()["value"] == VALUE


def be_slow():
    for byte in frame("cmd=kvs-put;key=slow;value=1;"):
        client.send_raw(bytes([byte]))
        time.sleep(BYTE_S)
    assert client.receive()["rc"] == "0"


def be_hasty():
    texts = ["cmd=kvs-put;key=hasty;value=1;", "cmd=kvs-fence;",
             f"cmd=kvs-get;jobid={pmi.JOB};srcid=-1;key=hasty;"]
    client.send_raw(b"".join(map(frame, texts)))
    got = [client.receive()["cmd"] for _ in texts]
    assert got[0] == "kvs-put-response"
    assert sorted(got[1:]) == ["kvs-fence-response", "kvs-get-response"]
    assert client.get("hasty") == "1"


def be_good():
    if how == "deaf":
        wait_for("full")
    for _ in range(GETS):
        assert client.get("big") == VALUE
    if how == "deaf" and pmi.RANK == 0:
        wait_for("measured")
        (directory / "well").touch()
    if how == "hasty":
        client.fence()


client.init()
if pmi.RANK == 0:
    client.put("big", VALUE)
client.fence()
if pmi.RANK == ODD:
    {"deaf": be_deaf, "slow": be_slow, "hasty": be_hasty}[how]()
else:
    be_good()
client.fence()
client.finalize()
print(f"behaved {pmi.SIZE}")
