# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's TCPStore in a process of its own. Prints its port, and ends with its input."""

import datetime
import resource
import sys

import torch.distributed

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
store = torch.distributed.TCPStore(
    "127.0.0.1", 0, None, True, datetime.timedelta(hours=1), wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()
