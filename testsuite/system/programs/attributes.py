# SPDX-License-Identifier: BSD-3-Clause
"""Node attributes: the highest rank of a node puts late, the others wait.

Every rank of the other node must not see it. Argument: a file that it waits for.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

node = os.environ["SLURMD_NODENAME"]
local = int(os.environ["SLURM_LOCALID"])
client = pmi.Pmi2()
client.init()
if local == 1:
    time.sleep(0.5)
    while sys.argv[1:] and not os.path.exists(sys.argv[1]):
        time.sleep(0.05)
    answer = client.ask("info-putnodeattr", key="where", value=node)
    assert answer["rc"] == "0", answer
answer = client.ask("info-getnodeattr", key="where", wait="TRUE")
assert answer.get("found") == "TRUE" and answer["value"] == node, answer
answer = client.ask("info-getnodeattr", key="nowhere", wait="FALSE")
assert answer.get("found") == "FALSE", answer
client.finalize()
print(f"attributes {pmi.SIZE}")
