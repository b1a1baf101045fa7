# SPDX-License-Identifier: BSD-3-Clause
"""A head of a DVM in memory, as the connection of a client, and stubs of engines."""

import itertools
import json
import os
import queue
import sys
import types

from pmi2x_dvm import _executor

WAITING = "until it is cancelled"


class Head:
    """For one client. Each task ends at once: `exit N` with that status, `limit` at its time limit, `no` is
    refused. One with WAITING runs until it is cancelled."""

    def __init__(self):
        self.requests = []  # of all kinds
        self.tasks = {}  # by id
        self.ended = set()
        self.full = 0  # tasks that find no room in the queue before there is some
        self._lines = queue.Queue()
        self._ids = itertools.count(1)

    def client(self):
        return _executor.Dvm(self, "stub")

    def asked(self, op):
        return [request for request in self.requests if request["op"] == op]

    # ---- as the connection of _connection.py ----

    def send(self, line):
        request = json.loads(line.decode())
        self.requests.append(request)
        answer = getattr(self, "_" + request["op"])(request)
        self._say(dict({"ev": "answer", "tag": request["tag"]}, **answer))
        if request["op"] == "submit":
            self._end_all(id for id in answer["ids"] if id in self.tasks)

    def lines(self):
        return iter(self._lines.get, None)

    def shutdown(self):
        self._lines.put(None)

    def close(self):
        pass

    def forget(self):
        pass

    # ---- answers ----

    def _say(self, event):
        self._lines.put(json.dumps(event).encode())

    def _hello(self, request):
        return {"journal": False}

    def _status(self, request):
        return {"ready": True, "ended": len(self.ended)}

    def _waited(self, request):
        return {}

    def _show(self, request):
        return {"task": {"state": "ended" if request["id"] in self.ended else "running"}}

    def _submit(self, request):
        ids, refused = [], []
        for index, task in enumerate(request["tasks"]):
            ids.append(next(self._ids))
            if task.get("argv", ["no"]) == ["no"]:
                refused.append({"index": index, "key": "argv", "why": "is never started"})
            elif self.full:
                self.full -= 1
                refused.append({"index": index, "key": "", "why": "", "full": True})
            else:
                self.tasks[ids[-1]] = dict(task, profile=request["profile"], tied=request.get("tied"))
        return {"ids": ids, "refused": refused}

    def _cancel(self, request):
        ids = self.tasks if request.get("all") else request["ids"]
        ids = [id for id in ids if id in self.tasks and id not in self.ended]
        self._end_all(ids, "cancelled")
        return {"tasks": len(ids)}

    # ---- ends ----

    def _end_all(self, ids, state="ended"):
        results = [self._result(id, self.tasks[id]["argv"], state) for id in ids
                   if state == "cancelled" or WAITING not in self.tasks[id]["argv"]]
        self.ended.update(result["id"] for result in results)
        if results:
            self._say({"ev": "ended", "tasks": results})

    @staticmethod
    def _result(id, argv, state):
        limit, exits = argv[:1] == ["limit"], argv[:1] == ["exit"]
        code = 137 if limit or state == "cancelled" else int(argv[1]) if exits else 0
        why = "the time limit of the task was reached" if limit else ""
        return {"id": id, "code": code, "state": state, "why": why, "out": "said\n", "err": "wrong\n",
                "nodes": ["n1"], "instance": 0, "usage": [0.1, 0.1, 1], "t": [1.0, 2.0, 2.5, 4.5]}


# ---- stubs of engines: what the modules of the client import ----


def module(name, **contents):
    """Make a module, and those above it."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if path not in sys.modules:
            sys.modules[path] = types.ModuleType(path)
            if end > 1:
                setattr(sys.modules[".".join(parts[:end - 1])], parts[end - 1], sys.modules[path])
    vars(sys.modules[name]).update(contents)


def errors(*names):
    return {name: type(name, (Exception,), {}) for name in names}


class Base:
    """Of all executors and backends."""

    def __init__(self, name=None):
        self.name = name

    def nothing(self, *arguments, **more):
        pass

    start = shutdown = initialize = handle_timeout = nothing
    register_backend_states_with_defaults = register_backend_tasks_states_with_defaults = nothing


def parsl():
    module("parsl.app.errors", **errors(
        "AppException", "AppTimeout", "BadStdStreamFile", "BashAppNoReturn", "BashExitFailure",
        "MissingOutputs", "RemoteExceptionWrapper"))  # fmt: skip
    module("parsl.app.bash", remote_side_bash_executor=lambda body: body)
    module("parsl.data_provider.files", File=type("File", (str,), {}))
    module("parsl.executors.base", ParslExecutor=type("ParslExecutor", (Base,), {}))
    module("parsl.executors.errors", **errors("InvalidResourceSpecification"))
    module("parsl.serialize", deserialize=json.loads, pack_apply_message=lambda f, *rest, **more: b"a call")
    module("parsl.serialize.errors", **errors("SerializationError"))
    module("parsl.utils", RepresentationMixin=type("RepresentationMixin", (), {}),
           get_std_fname_mode=lambda stream, given: given if isinstance(given, tuple) else (given, "a+"))


def rhapsody():
    states = types.SimpleNamespace(**{name: types.SimpleNamespace(value=name) for name in (
        "INITIALIZED", "RUNNING", "SHUTDOWN")})
    module("rhapsody.backends.base", BaseBackend=type("BaseBackend", (Base,), {"_work_dir": "/sandbox"}))
    module("rhapsody.backends.constants", BackendMainStates=states, StateMapper=Base())


def radical():
    module("radical.utils", rec_makedir=os.makedirs, env_eval=lambda file: {"HOME": "/home"},
           sh_callout=lambda command, **more: ("", "not there", 127 if command == "missing" else 0))
    module("radical.pilot.constants", AGENT_UNSCHEDULE_PUBSUB="unschedule", OpenMP="OpenMP")
    module("radical.pilot.states", **{name: name for name in (
        "AGENT_EXECUTING", "AGENT_STAGING_OUTPUT_PENDING", "CANCELED", "DONE", "FAILED")})
    module("radical.pilot.agent.executing.base", AgentExecutingComponent=Base)
    module("radical.pilot.agent.launch_method.base", LaunchMethod=Base)
