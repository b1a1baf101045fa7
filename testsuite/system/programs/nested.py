# SPDX-License-Identifier: BSD-3-Clause
"""nested COMMAND RANK: as mpi-nested.c, by PMI-2 without a library."""

import os
import sys

import pmi

client = pmi.connect("2")
client.init()
client.put(f"before-{pmi.RANK}", "x")
client.fence()
if sys.argv[2] in ("all", str(pmi.RANK)):
    print("inner", "refused" if os.system(sys.argv[1]) else "right", flush=True)
client.put(f"after-{pmi.RANK}", str(pmi.RANK))
client.fence()
assert all(client.get(f"after-{r}") == str(r) for r in range(pmi.SIZE))
client.finalize()
if pmi.RANK == 0:
    print("outer right")
