# SPDX-License-Identifier: BSD-3-Clause
"""The state of a rank, in words."""

import re

from pmi2x_trace.records import ranks_text

STATES = {
    "R": "runs",
    "S": "sleeps",
    "D": "waits for a device or a file server (state D)",
    "T": "is stopped by a signal",
    "t": "is stopped by a debugger",
    "Z": "has ended, and is not taken note of",
    "X": "has ended",
    "I": "is idle",
}
STORE = {
    "away": "not connected to the TCPStore",
    "waits": "waits for the TCPStore",
    "idle": "connected to the TCPStore, and does not wait for it",
}
FILES_SHOWN = 4
# Files that have a number and no name.
NAMELESS = {"pipe": "a pipe", "socket": "a socket"}


def printable(text):
    """Names of files come from the job: none steers the terminal."""
    return re.sub("[^ -~]", "?", text)


def file_text(what):
    path = printable(what["file"])
    system = what["file_system"]
    if not system:
        return NAMELESS.get(path.partition(":")[0], path)
    source = printable(system["source"])
    where = "" if source in ("none", system["type"]) else f" of {source}"
    return f"{path} ({printable(system['type'])}{where})"


def call_text(what):
    """The system call, or what is known where that may not be read."""
    if what["call"]:
        name = printable(what["call"])
        return f"in {name} of {file_text(what)}" if what["file"] else f"in {name}"
    if what["call"] == "" and what["file"] and what["state"] == "D":
        return f"reading a page of {file_text(what)}"
    if what["wchan"]:
        return f"in the kernel's {printable(what['wchan'])}"
    return ""


def files_text(what):
    """The newest open files of a rank, if its call does not name one."""
    files = what["files"] or []
    if what["call"] is not None or what["state"] == "R" or not files:
        return ""
    return "open files: " + ", ".join(map(printable, files[:FILES_SHOWN]))


def doing(what):
    state = STATES.get(what["state"], f"is in state {what['state']}")
    call = call_text(what)
    if what["state"] == "S" and call:
        state = call
    elif what["state"] != "R" and call:
        state += f", {call}"
    return "; ".join(filter(None, [state, files_text(what)]))


def rank_line(rank):
    """What it does; where the agent serves a TCPStore, also whether the rank has come there."""
    store = STORE.get(rank.get("store"))
    return line(rank["processes"]) + (f" ({store})" if store else "")


def line(processes):
    """A rank's process and what it waits for."""
    if not processes:
        return "its process has ended"
    first, last = processes[0], processes[-1]
    if not first["executed"]:
        begun = f"has not executed its program, {first['seconds']:.0f} s after it began"
        if len(processes) == 1:
            return f"{begun}: {doing(first)}"
        return f"{begun}: waits for {printable(last['name'])}, which {be(doing(last))}"
    who = printable(last["name"])
    return f"{who} {be(doing(last))}"


def be(text):
    """A call without a verb gets one."""
    return text if text.split()[0] in ("runs", "sleeps", "waits", "is", "has") else (
        f"is {text}")


def like(text):
    """Equal for ranks of which the same can be said."""
    return re.sub(r"\d+ s after", "", text)


def lines(found):
    """found: {node: ranks}. Ranks that do the same are one line."""
    groups = {}
    for node, ranks in found.items():
        for rank in ranks:
            text = rank_line(rank)
            groups.setdefault(like(text), []).append((rank["rank"], node, text))
    for group in sorted(groups.values()):
        nodes = list(dict.fromkeys(node for _, node, _ in group))
        where = f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes"
        yield f"{ranks_text([r for r, _, _ in group])} ({where}): {group[0][2]}"
