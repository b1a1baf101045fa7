# SPDX-License-Identifier: BSD-3-Clause
"""One rank goes without finalize while the others wait for it in a fence.

Arguments: PMI version; "exit", "kill", "orphan", "greedy": takes memory until it is
killed, or "half": killed in the middle of its init; an exit code; the rank (1).
"""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

version, how, code = sys.argv[1], sys.argv[2], int(sys.argv[3])
leaver = int(sys.argv[4]) if len(sys.argv) > 4 else 1
client = pmi.connect(version)
if how == "half" and pmi.RANK == leaver:
    client.greet()
    os.kill(os.getpid(), signal.SIGKILL)
client.init()
if how != "half":
    client.fence()
if pmi.RANK == leaver:
    if how == "exit":
        os._exit(code)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "greedy":
        taken = []
        while True:
            taken.append(bytearray(1 << 20))
    if how == "orphan":
        # A grandchild keeps PMI_FD open after the rank has died.
        if os.fork() == 0:
            os.setsid()
            for fd in range(3):
                os.close(fd)
            time.sleep(12)
            os._exit(0)
        os._exit(code)
try:
    client.fence()
    print("fence came back", flush=True)
except (AssertionError, pmi.Closed, OSError) as error:
    print(f"fence failed: {error!r}", flush=True)
    sys.exit(1)
