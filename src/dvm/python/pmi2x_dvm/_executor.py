# SPDX-License-Identifier: BSD-3-Clause
"""The executor of a DVM."""

import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import os
import queue
import threading
import time
import weakref

from ._connection import VERSION
from ._encoding import command, directory, encode, own_limits, requests, seconds, texts, unfit
from ._results import Error, Failed, Refused, Result, Task

FULL_SECONDS = 0.2  # until tasks are sent again for which the queue had no room
FORKED = "this client belongs to the process before the fork: use connect() anew"
NO_MORE = "cannot schedule new futures after shutdown"
OF_REQUEST = "cwd", "env", "outputs", "tied", "check"  # keys that tasks of one request share

_living = weakref.WeakSet()


class Target(concurrent.futures.Executor):
    """An executor of commands. `with` waits for all tasks at its end."""

    def submit(self, argv, *more, **task):
        """Queue a task. Keys are those of doc/dvm.md: ranks, cores, gpus, nodes, ...

        argv: a list, the program first. cwd and env: the caller's unless given. time:
        seconds, or text as of submit --time. check=True: a failure is an exception,
        Failed. tied=True: the task ends with this process. outputs: a directory, in which
        tasks that print over 4 KiB get files with all of it: Result.files. Returns a
        Task. Raises Refused.
        """
        argv = command(argv)
        if more:
            raise TypeError("a command is one list: its arguments are not given apart")
        future = self.submit_many([dict(task, argv=argv)])[0]
        wrong = future.exception() if future.done() else None
        if wrong and not isinstance(wrong, Failed):
            raise wrong
        return future

    def map(self, commands, *more, timeout=None, chunksize=1, **task):
        """Submit many commands, each as of submit, at once. Returns an iterator over
        their results, in their order, as they come; it raises TimeoutError (of
        concurrent.futures) when one is not there `timeout` seconds after this call.
        The tasks go on then."""
        if isinstance(commands, (str, bytes)) or callable(commands):
            command(commands)
        if more:
            raise TypeError("map takes one iterable, of commands")
        end = None if timeout is None else time.monotonic() + timeout
        futures = self.submit_many([dict(task, argv=argv) for argv in commands])
        return self._results_of(futures, end)

    @staticmethod
    def _results_of(futures, end):
        for future in futures:
            yield future.result(None if end is None else max(0, end - time.monotonic()))


class Dvm(Target):
    """A connection with the head of a DVM, as an executor."""

    def __init__(self, connection, name):
        self.name = name
        self._connection = connection
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._tags = itertools.count(1)
        self._sending = threading.Lock()  # apart, for what is sent may wait for the reader
        self._answers = {}  # by tag, in the order of the requests
        self._futures = {}  # by task
        self._early = {}  # results of tasks whose number is not known yet
        self._dropped = set()  # tasks that shutdown has cancelled, unless they ran
        self._profiles = set()
        self._limits = own_limits()
        self._shut = False
        self._ended = None
        self._closed = f"the DVM {name} has ended, or the connection was closed"
        self._no_more = False  # results
        self._results = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._finisher = threading.Thread(target=self._finish_all, daemon=True)
        _living.add(self)
        self._reader.start()
        self._finisher.start()
        self._hello = self._ask({"op": "hello", "version": VERSION})
        while not self.status()["ready"]:
            time.sleep(0.05)

    def close(self):
        """End the connection; tasks go on. `pmi2x-dvm wait` leaves out what had ended. A DVM
        that batch started ends with its last client, which waits here for that end."""
        if os.getpid() != self._pid:
            return
        with contextlib.suppress(Error):
            self._ask({"op": "waited"})
        if not self._ends_dvm():
            with contextlib.suppress(OSError):
                self._connection.shutdown()
        self._reader.join()
        if threading.current_thread() is not self._finisher:
            self._finisher.join()
        self._connection.close()

    def _ends_dvm(self):
        """Ask for the end, as each client of such a DVM. True: it comes."""
        if not self._hello.get("ends"):
            return False
        work = "stop" if self._hello["journal"] else "cancel"
        with contextlib.suppress(Error):
            return not self._ask({"op": "down", "work": work, "last": True}).get("others")
        return False

    def shutdown(self, wait=True, *, cancel_futures=False):
        """Take no more tasks, and end the connection when all have ended. With
        cancel_futures, tasks that have not been started are cancelled."""
        if os.getpid() != self._pid:
            return
        self._shut = True
        if cancel_futures:
            with contextlib.suppress(Error):
                self._drop_queued()
        if wait and threading.current_thread() is not self._finisher:
            self._close_when_idle()
        else:
            threading.Thread(target=self._close_when_idle, daemon=True).start()

    def submit_many(self, tasks):
        """Queue tasks, each a dict with argv and keys as of submit. A Task each; one that
        is refused has Refused as its exception."""
        if self._shut:
            raise RuntimeError(NO_MORE)
        futures = []
        parts = list(requests([self._task(task) for task in tasks]))
        for part in parts:
            futures += self._submit(part, more=part is not parts[-1])
        return futures

    def cancel(self, future):
        """End a task, or all: cancel("all"). They have a Result, unlike after
        cancel() of a Task. Returns how many there were to end."""
        return self._ask(self._cancel(future))["tasks"]

    def status(self):
        """The output of `pmi2x-dvm status --json`, as a dict."""
        return self._ask({"op": "status"})

    # ---- requests ----

    @staticmethod
    def _task(task):
        task = dict(task, argv=command(task["argv"]))
        if "time" in task:
            task["time"] = seconds(task["time"])
        return task

    def _submit(self, tasks, more):
        """With more, tasks of the same call follow."""
        profiles = {}  # most tasks say the same of theirs: nothing
        futures = []

        def kind(task):
            paths = (os.fspath(task.get(key) or "") for key in ("cwd", "outputs"))
            return (*paths, id(task.get("env")), bool(task.get("tied")))

        groups = [(key, list(group)) for key, group in itertools.groupby(tasks, kind)]
        for at, (key, group) in enumerate(groups, 1):
            if key[:-1] not in profiles:
                profiles[key[:-1]] = self._profile(group[0])
            follows = more or at < len(groups)
            futures += self._send_tasks(group, profiles[key[:-1]], key[-1], follows)
        return futures

    def _profile(self, task):
        """The profile's id, and the rest: directory, environment, limits."""
        cwd = directory(task.get("cwd") or os.getcwd())
        env = texts(os.environ if task.get("env") is None else task["env"])
        profile = dict(self._limits, cwd=cwd, env=env)
        if task.get("outputs"):
            profile["outputs"] = os.path.abspath(directory(task["outputs"]))
            os.makedirs(profile["outputs"], exist_ok=True)
        text = json.dumps(profile, sort_keys=True, default=os.fspath)
        return hashlib.sha256(text.encode()).hexdigest()[:32], profile

    def _send_tasks(self, tasks, profile, tied, more):
        """As long as the queue has no room for some of them, these are sent again."""
        futures = [None] * len(tasks)
        left = range(len(tasks))
        while left:
            sent = self._send_some([tasks[i] for i in left], profile, tied, more)
            for i, future in zip(left, sent):
                futures[i] = future
            left = [i for i in left if not futures[i]]
            if left:
                time.sleep(FULL_SECONDS)
        return futures

    def _send_some(self, tasks, profile, tied, more):
        """A Task each; None: the queue is full."""
        id, rest = profile
        request = {"op": "submit", "profile": {"id": id}}
        if tied:
            request["tied"] = True
        if more:
            request["more"] = True
        if id not in self._profiles:
            request["profile"].update(rest)
        checks = [bool(task.get("check")) for task in tasks]
        tasks = [{k: v for k, v in t.items() if k not in OF_REQUEST} for t in tasks]
        refused = {}
        if unfit({"tasks": tasks}):  # which of them?
            refused = {i: wrong for i, wrong in enumerate(map(unfit, tasks)) if wrong}
        request["tasks"] = [{} if i in refused else t for i, t in enumerate(tasks)]
        answer = self._ask(request)
        self._profiles.add(id)
        full = {each["index"] for each in answer["refused"] if each.get("full")}
        for each in answer["refused"]:
            wrong = Refused(each["key"], each["why"])
            refused.setdefault(each["index"], wrong)
        return [
            None if i in full else self._future(id, refused.get(i), checks[i])
            for i, id in enumerate(answer["ids"])
        ]

    def _future(self, id, refused, check):
        future = Task(id, self, check)
        if refused:
            future.set_exception(refused)
            return future
        with self._lock:
            early = self._early.pop(id, None)
            if not early and not self._no_more:
                self._futures[id] = future
        if early:
            future._end(early)
        elif self._no_more:
            future.set_exception(self._ended)
        return future

    def _runs(self, future):
        with contextlib.suppress(Error):
            return self._ask({"op": "show", "id": future.id})["task"]["state"] == "running"
        return False

    def _drop_queued(self):
        with self._lock:
            ids = list(self._futures)
            self._dropped.update(ids)
        if ids:
            self._ask({"op": "cancel", "ids": ids, "queued": True})

    def _close_when_idle(self):
        with self._lock:
            futures = list(self._futures.values())
        concurrent.futures.wait(futures)
        self.close()

    @staticmethod
    def _cancel(future):
        which = {"all": True} if future == "all" else {"ids": [future.id]}
        return dict(which, op="cancel")

    def _ask(self, request):
        event = self._send(request).result()
        if event["ev"] == "error":
            raise Error(event["why"])
        return event

    def _send(self, request):
        """A Future of the answer."""
        if os.getpid() != self._pid:  # Python 3.6 has no os.register_at_fork
            raise Error(FORKED)
        answer = concurrent.futures.Future()
        tag = next(self._tags)
        line = encode(dict(request, tag=tag)) + b"\n"
        with self._sending:
            with self._lock:
                if self._ended:
                    raise self._ended
                self._answers[tag] = answer
            try:
                self._connection.send(line)
            except OSError as error:
                raise Error(f"the DVM {self.name} has ended") from error
        return answer

    # ---- events, in a thread of its own ----

    def _read(self):
        try:
            for line in self._connection.lines():
                self._take(json.loads(line))
        except (OSError, ValueError):
            pass
        finally:
            self._end(Error(self._closed))

    def _take(self, event):
        if event["ev"] == "ended":
            self._results.put(event["tasks"])
        elif event["ev"] == "closed":
            self._closed = event["why"]
        elif "tag" in event or event["ev"] == "error":
            with self._lock:
                # A request that could not be read is answered without its tag, in turn.
                tag = event.get("tag", next(iter(self._answers), None))
                answer = self._answers.pop(tag, None)
            if answer:
                answer.set_result(event)

    def _end(self, error):
        with self._lock:
            self._ended = error
            answers, self._answers = self._answers, {}
        for answer in answers.values():
            answer.set_exception(error)
        self._results.put(None)

    # ---- results, in another one: callbacks may ask for something ----

    def _finish_all(self):
        try:
            for tasks in iter(self._results.get, None):
                for task in tasks:
                    self._finish(Result(task))
        finally:
            self._fail_the_rest()

    def _fail_the_rest(self):
        with self._lock:
            self._no_more = True
            futures, self._futures = self._futures, {}
        for future in futures.values():
            if future.set_running_or_notify_cancel():
                future.set_exception(self._ended)

    def _finish(self, result):
        with self._lock:
            future = self._futures.pop(result.id, None)
            if not future:
                self._early[result.id] = result
            dropped = result.cancelled and result.id in self._dropped
        if not future:
            return
        if dropped:
            super(Task, future).cancel()  # the head has done it
        if future.set_running_or_notify_cancel():
            future._end(result)

    # ---- fork ----

    def _forget(self):
        """In a child: its threads are missing, and locks may be held by them."""
        error = Error(FORKED)
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._ended, self._no_more = error, True
        self._connection.forget()
        for future in self._futures.values():
            future._condition = threading.Condition()
            future._done_callbacks = []
            if not future.done():
                future.set_exception(error)


def _after_fork():
    for dvm in list(_living):
        dvm._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
