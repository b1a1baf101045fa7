# SPDX-License-Identifier: BSD-3-Clause
"""Values of many lengths, from empty to the limit, come back as they were.

Argument: the PMI version. PMI-2 values hold semicolons, too.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

LENGTHS = (1, 2, 63, 64, 511, 512, 1000, 1022, 1023)
KEY_LENGTHS = (1, 31, 63)
version = sys.argv[1]
alphabet = "aZ09-+/:,.()[]{}#%&*!?" + (";=~ " if version == "2" else "")


def value(rank, length):
    text = alphabet * (length // len(alphabet) + 2)
    return text[rank : rank + length].strip().ljust(length, "x")


def key(rank, length):
    return f"{rank}-".ljust(length, "k")[:length] if length > 1 else "abc"[rank]


client = pmi.connect(version)
client.init()
for length in LENGTHS:
    client.put(f"value-{pmi.RANK}-{length}", value(pmi.RANK, length))
for length in KEY_LENGTHS:
    client.put(key(pmi.RANK, length), f"key-{length}")
client.fence()
for rank in range(pmi.SIZE):
    for length in LENGTHS:
        got = client.get(f"value-{rank}-{length}")
        assert got == value(rank, length), (rank, length, got)
    for length in KEY_LENGTHS:
        got = client.get(key(rank, length))
        assert got == f"key-{length}", (rank, length, got)
client.finalize()
print(f"values {pmi.SIZE}")
