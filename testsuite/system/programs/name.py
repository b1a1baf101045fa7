# SPDX-License-Identifier: BSD-3-Clause
"""Publish a name or look it up, and print how that was answered.

Arguments: publish or lookup, the name.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

client = pmi.Pmi1()
client.init()
fields = {"port": "a-port"} if sys.argv[1] == "publish" else {}
answer = client.ask(f"{sys.argv[1]}_name", service=sys.argv[2], **fields)
print(sys.argv[1], answer["info"], answer.get("port", ""))
client.finalize()
