# SPDX-License-Identifier: BSD-3-Clause
"""One rank goes without finalize; the others go on, whether they miss it or not.

Arguments: PMI version; the rank that goes; its exit code; a directory; "fence": the
others try one without it.
"""

import contextlib
import os
import pathlib
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

version, leaver, code, directory = sys.argv[1:5]
note = pathlib.Path(directory) / "pid"
client = pmi.connect(version)
client.init()
if pmi.RANK == int(leaver):
    new = note.with_suffix(".new")
    new.write_text(str(os.getpid()))
    new.rename(note)
    os._exit(int(code))
while not note.exists() or pathlib.Path("/proc", note.read_text()).exists():
    time.sleep(0.05)
if "fence" in sys.argv[5:]:
    with contextlib.suppress(AssertionError):
        client.fence()
        print("fence came back")
client.finalize()
print("went on", flush=True)
