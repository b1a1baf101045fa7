# SPDX-License-Identifier: BSD-3-Clause
"""Several DVMs under one name."""

import contextlib

from ._executor import Target
from ._results import Error


class Several(Target):
    """Several DVMs under one name: tasks go to the least loaded one, or to that of the
    node that they name. A failure of one DVM concerns its tasks only."""

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
        loads = [_Load(number, found) for number, found in self._statuses().items()]
        parts = {}
        for index, task in enumerate(tasks):
            parts.setdefault(_choose(loads, task), []).append(index)
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
    """The resources and the load of one of several DVMs."""

    def __init__(self, number, status):
        up = [node for node in status["nodes"] if node["state"] == "up"]
        self.number, self.nodes = number, len(up)
        self.names = {node["name"] for node in status["nodes"]}
        self.cores = sum(node["cores"] for node in up)
        self.waiting = status["queued"] + sum(n["cores"] - n["free"] for n in up)


def _choose(loads, task):
    """The number of the member that gets a task: as src/dvm/cli/group.c does it."""
    need = max(1, task.get("ranks", 1) * task.get("cores", 1))
    place = task.get("place") or [{}]
    able = (
        [load for load in loads if place[0].get("node") in load.names]
        or [x for x in loads if x.cores >= need and x.nodes >= task.get("nodes", 1)]
        or [max(loads, key=lambda load: load.cores)]
    )
    load = min(able, key=lambda each: (each.waiting + need) / (each.cores or 1))
    load.waiting += need
    return load.number
