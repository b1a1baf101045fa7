# SPDX-License-Identifier: BSD-3-Clause
"""Print what the server says about the job, as name=value."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

client = pmi.Pmi2()
client.init()
for key in "PMI_process_mapping", "universeSize", "appnum", "hasNameServ":
    answer = client.ask("info-getjobattr", key=key)
    if answer.get("found") == "TRUE":
        print(f"{key}={answer['value']}")
print(f"kvsname={client.ask('job-getid')['jobid']}")
client.finalize()
