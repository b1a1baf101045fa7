# SPDX-License-Identifier: BSD-3-Clause
"""A name that a rank publishes in one version is found in the other."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

one = pmi.RANK % 2 == 0
client = pmi.Pmi1() if one else pmi.Pmi2()
client.init()
name = f"name-{pmi.RANK}"
if one:
    answer = client.ask("publish_name", service=name, port=f"port-{pmi.RANK}")
    assert answer["info"] == "ok", answer
else:
    answer = client.ask("name-publish", name=name, port=f"port-{pmi.RANK}")
    assert answer["rc"] == "0", answer
client.fence()
for rank in range(pmi.SIZE):
    name = f"name-{rank}"
    if one:
        answer = client.ask("lookup_name", service=name)
    else:
        answer = client.ask("name-lookup", name=name)
    assert answer["port"] == f"port-{rank}", answer
client.fence()
name = f"name-{pmi.RANK}"
if one:
    assert client.ask("unpublish_name", service=name)["info"] == "ok"
else:
    assert client.ask("name-unpublish", name=name)["rc"] == "0"
client.fence()
if one:
    assert client.ask("lookup_name", service="name-1")["info"] != "ok"
else:
    assert client.ask("name-lookup", name="name-0")["rc"] != "0"
client.finalize()
print(f"names {pmi.SIZE}")
