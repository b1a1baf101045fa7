# SPDX-License-Identifier: BSD-3-Clause
"""Submit tasks to a DVM of pmi2x-dvm, and wait for them as futures.

    import pmi2x_dvm

    with pmi2x_dvm.connect() as dvm:
        future = dvm.submit(["./sim", "7"], ranks=8, cores=2, time=600)
        print(future.result().code)
        for result in dvm.map([["./sim", str(i)] for i in range(1000)]):
            if result.code:
                print(result.id, result.why, result.err)

A Dvm is a concurrent.futures.Executor whose tasks are commands, not functions. Its end
waits for all tasks; after close() they go on.

Needs the standard library of Python 3.6 or later. A client is used by one thread or by
many. Callbacks of futures are called in a thread of its own, and may use the client.
"""

import os

from ._connection import base, find, names, open_dvm, shared_base
from ._executor import Dvm
from ._results import Error, Failed, Refused, Result, Task
from ._several import Several

__all__ = [
    "Dvm",
    "Error",
    "Failed",
    "Refused",
    "Result",
    "Several",
    "Task",
    "base",
    "connect",
    "names",
    "shared_base",
]


def connect(name=None):
    """The DVM of this name, that of PMI2X_DVM, this job's, or the only one that is up.
    Waits for this job's while it is starting.

    A name with a / is a file of shared_base(). Several DVMs of one name are a Several.
    """
    name = name or os.environ.get("PMI2X_DVM")
    name, found = (name, open_dvm(name)) if name else find()
    if not found:
        raise Error(f"no DVM {name} is up on this machine, or known of another")
    if 0 in found:
        return Dvm(found[0], name)
    return Several({n: Dvm(c, f"{name}.{n}") for n, c in found.items()}, name)
