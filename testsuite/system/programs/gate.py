# SPDX-License-Identifier: BSD-3-Clause
"""One rank enters the fence when a file is there.

Arguments: PMI version; the rank; the file.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

client = pmi.connect(sys.argv[1])
client.init()
while pmi.RANK == int(sys.argv[2]) and not os.path.exists(sys.argv[3]):
    time.sleep(0.05)
client.put(f"gate-{pmi.RANK}", str(pmi.RANK))
client.fence()
client.finalize()
