# SPDX-License-Identifier: BSD-3-Clause
"""Several DVMs under one name."""

import contextlib

from ._encoding import seconds
from ._executor import Target
from ._results import Error


class Several(Target):
    """Several DVMs under one name: tasks are shared out by slots times `time`, or go to the
    DVM of the node that they name. A failure of one DVM concerns its tasks only."""

    def __init__(self, members, name):
        self.name = name
        self._members = dict(sorted(members.items()))

    def close(self):
        """End the connections; tasks go on."""
        for dvm in self._members.values():
            dvm.close()

    def shutdown(self, wait=True, *, cancel_futures=False):
        """As of Dvm."""
        for dvm in self._members.values():
            dvm.shutdown(False, cancel_futures=cancel_futures)
        if wait:
            for dvm in self._members.values():
                dvm.shutdown(True)

    def submit_many(self, tasks):
        """As of Dvm."""
        tasks = list(tasks)
        parts = {}
        for index, number in enumerate(_share_out(self._statuses(), tasks)):
            parts.setdefault(number, []).append(index)
        futures = [None] * len(tasks)
        # One call for each member: each request then says whether more follow for its head.
        for number, part in parts.items():
            found = self._members[number].submit_many([tasks[i] for i in part])
            for index, future in zip(part, found):
                futures[index] = future
        return futures

    def cancel(self, future):
        """End a task, or all: cancel("all")."""
        if future != "all":
            return future.dvm.cancel(future)
        return sum(self._members[n].cancel("all") for n in self._statuses())

    def status(self):
        """The output of `pmi2x-dvm status --json`, as a dict."""
        found = self._statuses()
        one = dict(next(iter(found.values())), dvm=self.name, nodes=[])
        for key in "expected", "queued", "running", "ended", "failed":
            one[key] = sum(status[key] for status in found.values())
        for number, status in found.items():
            of = f"{self.name}.{number}"
            one["nodes"] += [dict(node, dvm=of) for node in status["nodes"]]
        return one

    def _statuses(self):
        """{number: status} of those that are up."""
        found = {}
        for number, dvm in self._members.items():
            with contextlib.suppress(Error):
                found[number] = dvm.status()
        if not found:
            raise Error(f"all DVMs of {self.name} have ended")
        return found


class _Load:
    """The resources of one of several DVMs, and its work in slots times seconds."""

    def __init__(self, number, status, each):
        up = [node for node in status["nodes"] if node["state"] == "up"]
        self.number, self.nodes = number, len(up)
        self.names = {node["name"] for node in status["nodes"]}
        self.cores = sum(node["cores"] for node in up)
        self.work = each * (status["queued"] + sum(n["cores"] - n["free"] for n in up))


def _limit(task):
    """Seconds; 0 is none, or one that the head refuses."""
    time = seconds(task.get("time", 0))
    return time if isinstance(time, (int, float)) and time > 0 else 0


def _share_out(statuses, tasks):
    """The number of the member for each task: as src/dvm/core/share.c does it, the largest
    first. A task without a limit counts like the mean of the others."""
    limits = [_limit(task) for task in tasks]
    known = [limit for limit in limits if limit]
    mean = sum(known) / len(known) if known else 1
    loads = [_Load(number, status, mean) for number, status in statuses.items()]
    needs = [max(1, task.get("ranks", 1) * task.get("cores", 1)) for task in tasks]
    works = [need * (limit or mean) for need, limit in zip(needs, limits)]
    numbers = [None] * len(tasks)
    for index in sorted(range(len(tasks)), key=lambda index: -works[index]):
        load = _choose(loads, tasks[index], needs[index], works[index])
        load.work += works[index]
        numbers[index] = load.number
    return numbers


def _choose(loads, task, need, work):
    place = (task.get("place") or [{}])[0].get("node")
    named = (task.get("on") or [place])[0]
    able = (
        [load for load in loads if named in load.names]
        or [x for x in loads if x.cores >= need and x.nodes >= task.get("nodes", 1)]
        or [max(loads, key=lambda load: load.cores)]
    )
    return min(able, key=lambda each: (each.work + work) / (each.cores or 1))
