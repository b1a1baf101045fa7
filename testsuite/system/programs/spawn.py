# SPDX-License-Identifier: BSD-3-Clause
"""Ask for the spawn of one process and print how that was answered.

Argument: the program to spawn.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

client = pmi.Pmi1()
client.init()
client.send_raw(
    b"mcmd=spawn\nnprocs=1\nexecname=%s\ntotspawns=1\nspawnssofar=1\n"
    b"preput_num=0\ninfo_num=0\nendcmd\n" % sys.argv[1].encode()
)
answer = client.line()
print("spawn answered", answer.get("cmd"), "rc", answer.get("rc"))
client.finalize()
