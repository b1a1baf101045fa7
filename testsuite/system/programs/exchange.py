# SPDX-License-Identifier: BSD-3-Clause
"""Put, fence and get the value of every rank, twice.

Argument: 1 or 2, the PMI version; "mixed": even ranks speak PMI-1, odd PMI-2.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

version = sys.argv[1]
if version == "mixed":
    version = str(1 + pmi.RANK % 2)
client = pmi.connect(version)
client.init()
for generation in range(2):
    client.put(f"key-{generation}-{pmi.RANK}", f"{generation}:{pmi.RANK}")
    client.fence()
    for rank in range(pmi.SIZE):
        got = client.get(f"key-{generation}-{rank}")
        assert got == f"{generation}:{rank}", (rank, got)
assert client.get("never-put") is None
client.finalize()
print(f"exchanged {pmi.SIZE}")
