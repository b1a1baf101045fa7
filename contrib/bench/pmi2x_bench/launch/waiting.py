# SPDX-License-Identifier: BSD-3-Clause
"""Waits for what the daemons of a test cluster do."""

import time

from ..errors import BenchError

SETTLE_S = 120
POLL_S = 0.02


def wait_for(what, condition):
    """The first true value of condition()."""
    end = time.monotonic() + SETTLE_S
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise BenchError(f"{what}: not within {SETTLE_S} s")
        time.sleep(POLL_S)
