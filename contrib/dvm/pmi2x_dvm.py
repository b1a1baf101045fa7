# SPDX-License-Identifier: BSD-3-Clause
"""Submit tasks to a DVM of pmi2x-dvm, and wait for them as futures.

    import pmi2x_dvm

    with pmi2x_dvm.connect() as dvm:
        future = dvm.submit(["./sim", "7"], ranks=8, cores=2, time=600)
        print(future.result().code)
        for result in dvm.map([["./sim", str(i)] for i in range(1000)]):
            if result.code:
                print(result.id, result.why, result.err)

Needs the standard library of Python 3.6 or later. A client is used by one thread or by
many; results come in a thread of its own.
"""

import concurrent.futures
import hashlib
import itertools
import json
import os
import socket
import threading

VERSION = 1
BATCH = 1000


class Error(Exception):
    """The DVM is not there, has ended, or has refused something; says why."""


class Refused(Error):
    """A task cannot be: `key` is what is wrong with it."""

    def __init__(self, key, why):
        super().__init__(f"{key}: {why}")
        self.key = key


class Result:
    """How a task has ended.

    code: exit status, 128 + signal; out, err: the last 4 KiB of its output, bytes;
    nodes: names; setup_time: seconds from being placed to being started; seconds: how
    long it ran; usage: (user, system) in seconds and the peak of a rank in KiB.
    """

    def __init__(self, task):
        self.id = task["id"]
        self.code = task["code"]
        self.signal = task.get("signal")
        self.why = task.get("why", "")
        self.out = task.get("out", "").encode("latin-1")
        self.err = task.get("err", "").encode("latin-1")
        self.nodes = task["nodes"]
        self.instance = task["instance"]
        self.cancelled = task["state"] == "cancelled"
        self.usage = task["usage"]
        _, placed, started, ended = task["t"]
        self.setup_time = started - placed
        self.seconds = ended - started

    def __repr__(self):
        return f"<task {self.id}: code {self.code}{self.why and ', ' + self.why}>"


def base():
    """Where the directories of this user's DVMs are."""
    given = os.environ.get("PMI2X_DVM_DIR")
    return given or f"/tmp/pmi2x-dvm-{os.getuid()}"


def names():
    """The DVMs that are up on this machine."""
    try:
        found = sorted(os.listdir(base()))
    except FileNotFoundError:
        return []
    return [name for name in found if _is_up(name)]


def _open(name):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(os.path.join(base(), name, "head.sock"))
    except OSError:
        s.close()
        raise
    return s


def _is_up(name):
    try:
        _open(name).close()
    except OSError:
        return False
    return True


def connect(name=None):
    """The DVM of this name, that of PMI2X_DVM, or the only one that is up."""
    name = name or os.environ.get("PMI2X_DVM")
    if not name:
        found = names()
        if len(found) != 1:
            raise Error(
                f"several DVMs are up: {', '.join(found)}; say which"
                if found
                else "no DVM is up on this machine: start one with pmi2x-dvm up"
            )
        name = found[0]
    try:
        return Dvm(_open(name), name)
    except OSError as error:
        raise Error(f"no DVM {name} is up on this machine") from error


class Dvm:
    """A connection with the head of a DVM; close it, or use it in `with`."""

    def __init__(self, connection, name):
        self.name = name
        self._socket = connection
        self._lock = threading.Lock()
        self._tags = itertools.count(1)
        self._answers = {}  # by tag
        self._futures = {}  # by task
        self._early = {}  # results of tasks whose number is not known yet
        self._profiles = set()
        self._ended = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._ask({"op": "hello", "version": VERSION})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End the connection; tasks go on."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._reader.join()
        self._socket.close()

    def submit(self, argv, **task):
        """Queue a task. Keys are those of doc/dvm.md: ranks, cores, gpus, nodes, ...

        cwd and env: the caller's unless given. Returns a Future of a Result, whose
        `id` is the task's. Raises Refused.
        """
        future = self.submit_many([dict(task, argv=list(argv))])[0]
        if future.done() and future.exception():
            raise future.exception()
        return future

    def submit_many(self, tasks):
        """Queue tasks, each a dict with argv. A Future each; one that is refused has
        Refused as its exception."""
        futures = []
        for at in range(0, len(tasks), BATCH):
            futures += self._submit([dict(t) for t in tasks[at : at + BATCH]])
        return futures

    def map(self, commands, **task):
        """Results of many commands, in their order, as they come."""
        tasks = [dict(task, argv=list(argv)) for argv in commands]
        for future in self.submit_many(tasks):
            yield future.result()

    def cancel(self, future):
        """End a task, or all: cancel("all")."""
        which = {"all": True} if future == "all" else {"ids": [future.id]}
        return self._ask(dict(which, op="cancel"))["tasks"]

    def status(self):
        """What `pmi2x-dvm status --json` prints, as a dict."""
        return self._ask({"op": "status"})

    # ---- requests ----

    def _submit(self, tasks):
        profiles = {self._profile(t) for t in tasks}
        if len(profiles) > 1:  # one to a request
            return [f for t in tasks for f in self._send_tasks([t])]
        return self._send_tasks(tasks)

    def _profile(self, task):
        cwd = task.get("cwd") or os.getcwd()
        env = task.get("env")
        env = dict(os.environ if env is None else env)
        text = json.dumps([cwd, env], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]

    def _send_tasks(self, tasks):
        request = {"op": "submit", "profile": {"id": self._profile(tasks[0])}}
        if request["profile"]["id"] not in self._profiles:
            env = tasks[0].get("env")
            request["profile"]["cwd"] = tasks[0].get("cwd") or os.getcwd()
            request["profile"]["env"] = dict(os.environ if env is None else env)
        request["tasks"] = [
            {k: v for k, v in t.items() if k not in ("cwd", "env")} for t in tasks
        ]
        answer = self._ask(request)
        self._profiles.add(request["profile"]["id"])
        refused = {r["index"]: r for r in answer["refused"]}
        return [
            self._future(id, refused.get(i)) for i, id in enumerate(answer["ids"])
        ]

    def _future(self, id, refused):
        future = concurrent.futures.Future()
        future.id = id
        if refused:
            future.set_exception(Refused(refused["key"], refused["why"]))
            return future
        with self._lock:
            early = self._early.pop(id, None)
            if not early and not self._ended:
                self._futures[id] = future
        if early:
            future.set_result(early)
        elif self._ended:
            future.set_exception(self._ended)
        return future

    def _ask(self, request):
        answer = concurrent.futures.Future()
        with self._lock:
            if self._ended:
                raise self._ended
            request["tag"] = next(self._tags)
            self._answers[request["tag"]] = answer
            try:
                self._socket.sendall(json.dumps(request).encode() + b"\n")
            except OSError as error:
                raise Error(f"the DVM {self.name} has ended") from error
        event = answer.result()
        if event["ev"] == "error":
            raise Error(event["why"])
        return event

    # ---- events, in a thread of its own ----

    def _read(self):
        try:
            with self._socket.makefile("r", encoding="utf-8") as lines:
                for line in lines:
                    self._take(json.loads(line))
        except (OSError, ValueError):
            pass
        self._end(Error(f"the DVM {self.name} has ended, or the connection was closed"))

    def _take(self, event):
        if "tag" in event:
            with self._lock:
                answer = self._answers.pop(event["tag"], None)
            if answer:
                answer.set_result(event)
        elif event["ev"] == "ended":
            for task in event["tasks"]:
                self._finish(Result(task))

    def _finish(self, result):
        with self._lock:
            future = self._futures.pop(result.id, None)
            if not future:
                self._early[result.id] = result
        if future:
            future.set_result(result)

    def _end(self, error):
        with self._lock:
            self._ended = error
            waiting = [*self._answers.values(), *self._futures.values()]
            self._answers = {}
            self._futures = {}
        for future in waiting:
            future.set_exception(error)
