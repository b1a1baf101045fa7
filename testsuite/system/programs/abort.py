# SPDX-License-Identifier: BSD-3-Clause
"""Ask for an abort while the others wait in a fence; say so when told to end.

Arguments: PMI version; the rank that asks, or "all".
"""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402


def told_to_end(*_):
    print("told to end", flush=True)
    os._exit(1)


signal.signal(signal.SIGTERM, told_to_end)
client = pmi.connect(sys.argv[1])
client.init()
client.fence()
if sys.argv[2] in ("all", str(pmi.RANK)):
    if sys.argv[1] == "1":
        client.send_raw(b"cmd=abort exitcode=7\n")
    else:
        client.send("abort", isworld="TRUE", msg="why not")
    time.sleep(60)
client.fence()
