# SPDX-License-Identifier: BSD-3-Clause
"""Ask PMI 1 or 2 for the node's topology, or, with version "env", the environment; print
what a rank needs to know: "NODE PATH MODE OBJECTS", or "NODE unavailable". A file PATH
as second argument is waited for before the end."""

import os
import stat
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402


def ask(client, version):
    if version == "env":
        here = os.environ.get("HWLOC_THISSYSTEM")
        assert ("HWLOC_XMLFILE" in os.environ) == (here == "1")
        return os.environ.get("HWLOC_XMLFILE", "unavailable")
    if version == "1":
        return client.get("PMI_hwloc_xmlfile")
    answer = client.ask("info-getjobattr", key="PMI_hwloc_xmlfile")
    assert answer["found"] == "TRUE", answer
    return answer["value"]


def describe(path):
    if path == "unavailable":
        return path
    mode = stat.S_IMODE(os.stat(path).st_mode)
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag == "topology"
    objects = sum(1 for _ in root.iter("object"))
    return f"{path} {mode:o} {objects}"


version = sys.argv[1]
client = pmi.connect("1" if version == "env" else version)
client.init()
print(os.environ["SLURMD_NODENAME"], describe(ask(client, version)), flush=True)
client.fence()
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
client.finalize()
