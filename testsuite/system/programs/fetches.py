# SPDX-License-Identifier: BSD-3-Clause
"""Requests of pmi2x-fetch that cannot be, then one that can."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

BAD = [
    {},
    {"rank": 0},
    {"key": "key"},
    {"rank": 0, "key": ""},
    {"rank": 0, "key": "k" * 1025},
    {"rank": -1, "key": "key"},
    {"rank": pmi.SIZE, "key": "key"},
    {"rank": 4294967296, "key": "key"},
    {"rank": "x", "key": "key"},
    {"rank": 0, "key": "key", "timeout": -2},
    {"rank": 0, "key": "key", "timeout": 4294967296},
    {"rank": 0, "key": "key", "timeout": "soon"},
]
FLOOD = 300  # over what a rank may have under way


def flood(client, peer):
    """Fetches over the limit are rejected, and the others are given up."""
    for i in range(FLOOD):
        client.send("pmi2x-fetch", rank=peer, key="never", timeout=-1, thrid=i)
    client.send("pmi2x-fetch-cancel", thrid="end")
    answers = [client.receive() for _ in range(FLOOD + 1)]
    assert sorted(a["thrid"] for a in answers) == sorted(
        [*map(str, range(FLOOD)), "end"]
    )
    assert all(a["rc"] == "14" for a in answers if a["thrid"] != "end")
    assert any("too many" in a["errmsg"] for a in answers[:-1]), answers


client = pmi.Pmi2()
client.greet()
client.ask("fullinit", pmijobid=pmi.JOB, pmirank=pmi.RANK, threaded="FALSE", pmi2x=1)
for fields in BAD:
    answer = client.ask("pmi2x-fetch", **fields)
    assert answer["rc"] not in ("0", "14") and answer["errmsg"], (fields, answer)
peer = (pmi.RANK + 1) % pmi.SIZE
client.put("key", f"of-{pmi.RANK}")
answer = client.ask("pmi2x-fetch", rank=peer, key="key", timeout=20000)
assert answer["rc"] == "0" and answer["value"] == f"of-{peer}", answer
flood(client, peer)
client.fence()
client.finalize()
print("refused and answered")
