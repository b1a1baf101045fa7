# SPDX-License-Identifier: BSD-3-Clause
"""Results of tasks, their futures, and errors."""

import concurrent.futures
import contextlib


TIME_LIMIT = "the time limit of the task was reached"  # as of src/dvm/core/node.c


class Error(Exception):
    """The DVM is not there, has ended, or has refused something; says why."""


class Refused(Error):
    """A task cannot be: `key` is what is wrong with it."""

    def __init__(self, key, why):
        super().__init__(f"{key}: {why}")
        self.key = key


class Failed(Error):
    """A task that was submitted with check=True has failed: `result` says how."""

    def __init__(self, result):
        lines = result.err.decode(errors="backslashreplace").strip().splitlines()
        reasons = filter(None, (f"exit status {result.code}", result.why, *lines[-1:]))
        super().__init__(f"task {result.id}: " + ": ".join(reasons))
        self.result = result


class Result:
    """How a task has ended.

    code: exit status, 128 + signal; out, err: the last 4 KiB of its output, bytes;
    files: names of files with complete output, of a task with outputs=DIRECTORY that
    printed more than out and err have; files_lost: why these are not complete, or "";
    nodes: names; setup_time: seconds from being placed to being started; seconds: how
    long it ran; times: when it was submitted, placed, started and ended, in seconds since
    1970; usage: (user, system) in seconds and the peak of a rank in KiB.
    """

    def __init__(self, task):
        self.id = task["id"]
        self.code = task["code"]
        self.signal = task.get("signal")
        self.why = task.get("why", "")
        self.out = task.get("out", "").encode("latin-1")
        self.err = task.get("err", "").encode("latin-1")
        self.files = task.get("files", [])
        self.files_lost = task.get("files_lost", "")
        self.nodes = task["nodes"]
        self.instance = task["instance"]
        self.cancelled = task["state"] == "cancelled"
        self.usage = task["usage"]
        self.times = tuple(task["t"])
        _, placed, started, ended = self.times
        self.setup_time = started - placed
        self.seconds = ended - started if started else 0.0

    def __repr__(self):
        return f"<task {self.id}: code {self.code}{self.why and ', ' + self.why}>"


class Task(concurrent.futures.Future):
    """A Future of a Result; `id` is the task's, `dvm` has it.

    cancel() ends the task, also one that runs. running() asks the head. result() of a
    task with check=True raises Failed. concurrent.futures.wait waits until the task has
    ended. asyncio.wrap_future makes one that can be awaited.
    """

    def __init__(self, id, dvm, check=False):
        super().__init__()
        self.id, self.dvm, self._check = id, dvm, check

    def cancel(self):
        if not super().cancel():
            return False
        with contextlib.suppress(Error):
            self.dvm._send(self.dvm._cancel(self))
        return True

    def running(self):
        return not self.done() and self.dvm._runs(self)

    def _end(self, result):
        if self._check and result.code:
            self.set_exception(Failed(result))
        else:
            self.set_result(result)
