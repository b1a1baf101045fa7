# SPDX-License-Identifier: BSD-3-Clause
"""Executed by tasks of parsl_executor.py: call the function in a file, and write the result
of rank 0 to another one."""

import os
import sys

if __name__ == "__main__":
    sys.path[0] = ""  # as of python -c: the directory of the task, not that of this file

    from parsl.app.errors import RemoteExceptionWrapper
    from parsl.executors.execute_task import execute_task
    from parsl.serialize import serialize

    call, result = sys.argv[1:]
    try:
        with open(call, "rb") as file:
            value = serialize(execute_task(file.read()))
    except Exception:
        value = serialize(RemoteExceptionWrapper(*sys.exc_info()))
    if os.environ.get("SLURM_PROCID", "0") == "0":
        with open(result + ".part", "wb") as file:
            file.write(value)
        os.rename(result + ".part", result)
