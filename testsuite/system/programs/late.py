# SPDX-License-Identifier: BSD-3-Clause
"""Rank 0 enters the fence some seconds after the others.

Arguments: PMI version; seconds.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

client = pmi.connect(sys.argv[1])
client.init()
if pmi.RANK == 0:
    time.sleep(float(sys.argv[2]))
client.put(f"late-{pmi.RANK}", str(pmi.RANK))
client.fence()
assert client.get("late-0") == "0"
client.finalize()
print("late")
