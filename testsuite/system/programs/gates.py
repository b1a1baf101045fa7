# SPDX-License-Identifier: BSD-3-Clause
"""Ranks start PMI when one file is there, and end when another one is.

Arguments: PMI version; the first file; the second.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.05)


wait_for(sys.argv[2])
client = pmi.connect(sys.argv[1])
client.init()
for generation in range(3):
    if generation == 2:
        wait_for(sys.argv[3])
    client.put(f"gates-{generation}-{pmi.RANK}", f"{generation}")
    client.fence()
    for rank in range(pmi.SIZE):
        assert client.get(f"gates-{generation}-{rank}") == f"{generation}"
client.finalize()
print(f"passed {pmi.JOB}")
