# SPDX-License-Identifier: BSD-3-Clause
"""An executor of Parsl that runs apps as tasks of a DVM.

    import parsl
    from pmi2x_dvm.parsl_executor import DvmExecutor

    parsl.load(parsl.Config(executors=[DvmExecutor()]))

The body of a bash app runs in the client, and the command that it returns is the task.
Each call of a python app is a task with an interpreter of its own.
"""

import concurrent.futures
import contextlib
import functools
import itertools
import logging
import os
import queue
import sys
import threading

from parsl.app import errors
from parsl.app.bash import remote_side_bash_executor
from parsl.data_provider.files import File
from parsl.executors.base import ParslExecutor
from parsl.executors.errors import InvalidResourceSpecification
from parsl.serialize import deserialize, pack_apply_message
from parsl.serialize.errors import SerializationError
from parsl.utils import RepresentationMixin, get_std_fname_mode

from . import connect
from ._results import TIME_LIMIT, Error

BATCH = 1000
KEYS = {"num_tasks": "ranks", "cores_per_task": "cores", "gpus_per_task": "gpus", "num_nodes": "nodes"}
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_parsl_worker.py")

logger = logging.getLogger(__name__)


class DvmExecutor(ParslExecutor, RepresentationMixin):
    """Runs apps as tasks of a DVM that is up.

    dvm: the name of the DVM; without it, the DVM that connect() of pmi2x_dvm chooses.
    preloaded: python apps of one rank use the interpreter of `pmi2x-dvm up --preload`.
    working_dir: where arguments and results of python apps are, on a file system of all
    nodes; a directory in Parsl's run directory unless given. Keys of
    parsl_resource_specification: num_tasks, cores_per_task, gpus_per_task, num_nodes.
    """

    def __init__(self, dvm=None, label="pmi2x", preloaded=False, working_dir=None, storage_access=None):
        super().__init__()
        self.dvm = dvm
        self.label = label
        self.preloaded = preloaded
        self.working_dir = working_dir
        self.storage_access = storage_access
        self._calls = queue.Queue()
        self._numbers = itertools.count()
        self._thread = None
        self._client = None

    def start(self):
        super().start()
        self._client = connect(self.dvm)
        if self.working_dir is None:
            self.working_dir = os.path.join(self.run_dir, self.label)
        self.working_dir = os.path.abspath(self.working_dir)
        os.makedirs(self.working_dir, exist_ok=True)
        self._thread = threading.Thread(target=self._submit_all, name="pmi2x-dvm-parsl", daemon=True)
        self._thread.start()

    def submit(self, func, resource_specification, *args, **kwargs):
        if self._thread is None:
            raise RuntimeError(f"the executor {self.label} was not started, or has been shut down")
        need = _need(resource_specification)
        body = _bash_body(func)
        if body:
            call = _BashCall(body, args, kwargs, need)
        else:
            stem = os.path.join(self.working_dir, str(next(self._numbers)))
            preloaded = self.preloaded and need.get("ranks", 1) == 1
            call = _PythonCall(func, args, kwargs, need, stem, preloaded)
        self._calls.put(call)
        return call.future

    def shutdown(self):
        """End the tasks that have not ended, and the connection."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
            self._thread = None
            self._client.close()
        super().shutdown()

    def monitor_resources(self):
        """Parsl's monitor watches processes of the client, and tasks are none."""
        return False

    # ---- in a thread of its own, for a body may take long ----

    def _submit_all(self):
        ends = False
        while not ends:
            calls = self._next_calls()
            ends = None in calls
            self._submit([call for call in calls if call])

    def _next_calls(self):
        """All calls that are there, at least one; None: no more follow."""
        calls = [self._calls.get()]
        while len(calls) < BATCH:
            try:
                calls.append(self._calls.get_nowait())
            except queue.Empty:
                break
        return calls

    def _submit(self, calls):
        ready = []
        for call in calls:
            if call.future.set_running_or_notify_cancel():
                try:
                    ready.append((call, dict(call.task(), tied=True)))
                except Exception as error:  # of the user's function
                    call.future.set_exception(error)
        try:
            tasks = self._client.submit_many([task for _, task in ready])
        except (Error, OSError, RuntimeError, TypeError) as error:
            for call, _ in ready:
                call.future.set_exception(error)
            return
        for (call, _), task in zip(ready, tasks):
            task.add_done_callback(call.end)


def _need(specification):
    """The keys of a task, or InvalidResourceSpecification."""
    unknown = set(specification or {}) - set(KEYS)
    if unknown:
        raise InvalidResourceSpecification(unknown, f"the keys are {', '.join(KEYS)}")
    return {KEYS[key]: value for key, value in (specification or {}).items() if value is not None}


def _bash_body(func):
    """The function below @bash_app, or None. Other wrappers of Parsl have work to do on
    the node: the call is then that of a python app, which starts the command itself."""
    inner = getattr(func, "__wrapped__", None)
    if isinstance(inner, functools.partial) and inner.func is remote_side_bash_executor:
        return inner.args[0]
    return None


class _BashCall:
    """A call of a bash app: raises what remote_side_bash_executor of Parsl raises."""

    def __init__(self, body, args, kwargs, need):
        self.future = concurrent.futures.Future()
        self._body, self._args, self._kwargs, self._need = body, args, kwargs, need
        self._name = getattr(body, "__name__", "bash_app")

    def task(self):
        files = {"path": self._open("stdout"), "error": self._open("stderr", self._command())}
        files = {key: name for key, name in files.items() if name}
        task = dict(self._need, argv=["/bin/bash", "-c", self._line], **files)
        if files:
            task["append"] = True
        if self._kwargs.get("walltime"):
            task["time"] = self._kwargs["walltime"]
        return task

    def _command(self):
        line = self._body(*self._args, **self._kwargs)
        if line is None:
            raise errors.BashAppNoReturn(f"Bash app '{self._name}' did not return a value, or returned None")
        if not isinstance(line, str):
            raise ValueError(f"Expected a str for bash_app commandline, got {type(line)}")
        self._line = line
        return f"--> executable follows <--\n{line}\n--> end executable <--\n"

    def _open(self, stream, text=""):
        """Make this file as Parsl makes it; the task appends to it. Its name, or None."""
        given = self._kwargs.get(stream)
        if given is None:
            return None
        name, mode = (given, "w") if isinstance(given, File) else get_std_fname_mode(stream, given)
        name = os.path.abspath(name)
        try:
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, mode) as file:
                file.write(text)
        except OSError as error:
            raise errors.BadStdStreamFile(name) from error
        return name.replace("%", "%%")

    def end(self, task):
        try:
            self.future.set_result(self._result_of(task.result()))
        except Exception as error:
            self.future.set_exception(error)

    def _result_of(self, result):
        if result.why == TIME_LIMIT:
            raise errors.AppTimeout(f"App {self._name} exceeded walltime: {self._kwargs['walltime']} seconds")
        if result.code:
            logger.error("task %s of app %s: %s", result.id, self._name, _reason(result))
            raise errors.BashExitFailure(self._name, result.code)
        missing = [file for file in self._kwargs.get("outputs", []) if not os.path.exists(file.filepath)]
        if missing:
            raise errors.MissingOutputs(f"Missing outputs from app {self._name}", missing)
        return result.code


class _PythonCall:
    """A call of a python app. Function, arguments and result are in files."""

    def __init__(self, func, args, kwargs, need, stem, preloaded):
        self.future = concurrent.futures.Future()
        self._need, self._preloaded = need, preloaded
        self._name = getattr(func, "__name__", "python_app")
        self._input, self._output = stem + ".call", stem + ".result"
        try:
            call = pack_apply_message(func, args, kwargs, buffer_threshold=1 << 20)
        except TypeError as error:
            raise SerializationError(self._name) from error
        with open(self._input, "wb") as file:
            file.write(call)

    def task(self):
        argv = [WORKER, self._input, self._output]
        if self._preloaded:
            return dict(self._need, argv=argv, preloaded=True)
        return dict(self._need, argv=[sys.executable, *argv])

    def end(self, task):
        """The files are gone when the caller has the result."""
        result = wrong = None
        try:
            result = self._result_of(task.result())
        except Exception as error:
            wrong = error
        for name in self._input, self._output:
            with contextlib.suppress(OSError):
                os.unlink(name)
        if wrong:
            self.future.set_exception(wrong)
        else:
            self.future.set_result(result)

    def _result_of(self, result):
        if result.code:
            raise errors.AppException(f"the task of app {self._name} failed: {_reason(result)}")
        with open(self._output, "rb") as file:
            return deserialize(file.read())


def _reason(result):
    lines = result.err.decode(errors="backslashreplace").strip().splitlines()
    return ": ".join(filter(None, (f"exit status {result.code}", result.why, *lines[-1:])))
