# SPDX-License-Identifier: BSD-3-Clause
"""What /proc says of processes that may end, and of files that they may close, meanwhile:
no function here fails then."""

import contextlib
import os
import pathlib


def read_text(path):
    """Nothing when the file has gone meanwhile."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def of_process(pid, name):
    """The text of a file of a process; nothing when that has ended."""
    return read_text(pathlib.Path("/proc", str(pid), name))


def stat_of(pid):
    """The fields of its stat from the state on; none when it has ended."""
    return of_process(pid, "stat").rpartition(")")[2].split()


def state_of(pid):
    """A letter: Z has ended and was not waited for. Nothing: it is not there at all."""
    return (stat_of(pid) or [""])[0]


def process_table():
    """{pid: (parent, name)} of all that is alive."""
    table = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        text = of_process(entry.name, "stat")
        name = text[text.find("(") + 1 : text.rfind(")")]
        state, parent = (text.rpartition(")")[2].split() or "Z0")[:2]
        if state != "Z":
            table[int(entry.name)] = int(parent), name
    return table


def below(root):
    """All descendants of root."""
    table = process_table()
    found = {root}
    while more := {p for p, (up, _) in table.items() if up in found} - found:
        found |= more
    return found - {root}


def children(pid):
    """Those of its first thread."""
    return [int(word) for word in of_process(pid, f"task/{pid}/children").split()]


def command_line(pid):
    return of_process(pid, "cmdline").replace("\0", " ").strip()


def begun(pid):
    """When a process was started, in the clock's ticks; 0: it has gone."""
    return int((stat_of(pid) or [0] * 20)[19])


def links_in(directory):
    """The targets of the links in a directory of a process."""
    found = []
    with contextlib.suppress(OSError):  # the process has ended
        for name in os.listdir(directory):
            with contextlib.suppress(OSError):  # the file was closed
                found.append(os.readlink(f"{directory}/{name}"))
    return found


def opened_files(pid):
    return links_in(f"/proc/{pid}/fd")


def thread_states(pid):
    threads = pathlib.Path(f"/proc/{pid}/task")
    with contextlib.suppress(OSError):
        states = {state_of(f"{pid}/task/{name}") for name in os.listdir(threads)}
        return states - {""}  # of a thread that has gone
    return set()
