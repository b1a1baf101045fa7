# SPDX-License-Identifier: BSD-3-Clause
"""A backend of RHAPSODY that runs commands as tasks of a DVM.

    backend = await DvmExecutionBackend()
    session = rhapsody.Session([backend])
"""

import asyncio
import concurrent.futures
import os

from rhapsody.backends.base import BaseBackend
from rhapsody.backends.constants import BackendMainStates, StateMapper

from . import connect
from ._results import Error

KEYS = {"ranks", "cores", "gpus", "memory", "nodes", "per_node", "exclusive", "counters", "time", "retries", "priority",
        "cwd", "env"}  # fmt: skip


class DvmExecutionBackend(BaseBackend):
    """Submits tasks in bulk to a DVM that is up: that of this name, or the one that
    connect() of pmi2x_dvm chooses. Tasks are commands. task_backend_specific_kwargs has
    `shell` and KEYS, with the meaning of doc/dvm.md."""

    def __init__(self, dvm=None, name="pmi2x"):
        super().__init__(name=name)
        self._dvm_name, self._dvm = dvm, None
        self._running = {}  # (task, future of the client), by uid
        self._callback_func = lambda task, state: None
        self._state = BackendMainStates.INITIALIZED

    def __await__(self):
        return self._connect().__await__()

    async def __aenter__(self):
        return await self._connect()

    async def __aexit__(self, *error):
        await self.shutdown()

    async def _connect(self):
        if self._dvm is None:
            StateMapper.register_backend_states_with_defaults(backend=self)
            StateMapper.register_backend_tasks_states_with_defaults(backend=self)
            self._dvm = await self._in_thread(connect, self._dvm_name)
        return self

    @staticmethod
    async def _in_thread(call, *arguments):
        """What waits for the head must not stop the loop."""
        return await asyncio.get_running_loop().run_in_executor(None, call, *arguments)

    async def submit_tasks(self, tasks):
        await self._connect()
        self._state = BackendMainStates.RUNNING
        ready = []
        for task in tasks:
            try:
                ready.append((task, self._request(task)))
            except (TypeError, ValueError) as error:
                self._fail(task, error)
        loop = asyncio.get_running_loop()
        futures = await self._in_thread(self._dvm.submit_many, [request for _, request in ready])
        for (task, _), future in zip(ready, futures):
            self._running[task["uid"]] = task, future
            self._callback_func(task, "RUNNING")
            future.add_done_callback(lambda future, task=task: loop.call_soon_threadsafe(self._end, task, future))

    def _request(self, task):
        """A task of pmi2x_dvm."""
        if task.get("function"):
            raise TypeError("tasks of pmi2x-dvm are commands, not functions")
        own = dict(task.get("task_backend_specific_kwargs") or {})
        argv = [task["executable"], *map(str, task.get("arguments") or [])]
        if own.pop("shell", False):
            argv = ["/bin/sh", "-c", " ".join(argv)]
        if set(own) - KEYS:
            raise ValueError(f"unknown keys: {', '.join(sorted(set(own) - KEYS))}")
        request = dict(own, argv=argv, name=task["uid"], tied=True)
        if task.get("capture_stdio"):
            for key, stream in ("path", "stdout"), ("error", "stderr"):
                request[key] = self._file(task, stream).replace("%", "%%")
        return request

    def _file(self, task, stream):
        return os.path.join(os.path.abspath(self._work_dir), f"{task['uid']}.{stream}")

    def _fail(self, task, error):
        task.update(stdout="", stderr=str(error), exit_code=1, exception=error, return_value=None)
        self._callback_func(task, "FAILED")

    def _end(self, task, future):
        """In the loop."""
        self._running.pop(task["uid"], None)
        try:
            result = future.result()
        except concurrent.futures.CancelledError:
            self._callback_func(task, "CANCELED")
            return
        except Error as error:
            self._fail(task, error)
            return
        if task.get("capture_stdio"):
            out, err = self._file(task, "stdout"), self._file(task, "stderr")
        else:
            out, err = (text.decode(errors="backslashreplace") for text in (result.out, result.err))
        task.update(stdout=out, stderr=err, exit_code=result.code, return_value=out)
        if result.why:
            task["exception"] = Error(result.why)
        self._callback_func(task, "CANCELED" if result.cancelled else "FAILED" if result.code else "DONE")

    async def cancel_task(self, uid):
        if uid not in self._running:
            return False
        return await self._in_thread(self._dvm.cancel, self._running[uid][1]) > 0

    async def cancel_all_tasks(self):
        return sum([await self.cancel_task(uid) for uid in list(self._running)])

    async def shutdown(self):
        """End tasks that have not ended, and the connection."""
        self._state = BackendMainStates.SHUTDOWN
        if self._dvm is not None:
            await self._in_thread(self._dvm.close)
            self._dvm = None

    async def state(self):
        return self._state.value

    def get_task_states_map(self):
        return StateMapper(backend=self)

    def task_state_cb(self, task, state):
        pass

    def build_task(self, task):
        pass
