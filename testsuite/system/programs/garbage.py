# SPDX-License-Identifier: BSD-3-Clause
"""Rank 1 writes what no client should; the others go through a fence.

Arguments: 0 to write before init, else the PMI version spoken before; a file
with the bytes in hexadecimal.
"""

import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

moment = sys.argv[1]
client = pmi.connect(moment if moment != "0" else "1")
client.socket.settimeout(20)
end = "ended"
try:
    if pmi.RANK != 1 or moment != "0":
        client.init()
    if pmi.RANK == 1:
        with open(sys.argv[2]) as file:
            client.send_raw(bytes.fromhex(file.read()))
        client.socket.shutdown(socket.SHUT_WR)
        while client.socket.recv(65536):
            pass
    else:
        client.fence()
        client.finalize()
except pmi.Closed:
    end = "closed"
except socket.timeout:
    end = "timed out"
except (OSError, AssertionError) as error:
    end = f"failed {error!r}"
print(f"garbage {pmi.RANK} {end}")
