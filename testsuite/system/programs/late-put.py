# SPDX-License-Identifier: BSD-3-Clause
"""A rank that puts a value, in PMI-1 or PMI-2 without a library, and meets the others."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

client = pmi.connect(sys.argv[1])
client.init()
client.put("key", f"value-of-{pmi.RANK}")
client.fence()
client.finalize()
