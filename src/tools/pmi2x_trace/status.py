# SPDX-License-Identifier: BSD-3-Clause
"""Ask a running step who waits for whom: find its srun, and show the answer."""

import os
import pathlib
import re
import socket
import struct
import subprocess

from .records import TraceError, counted, ranks_text

# As in libpmi/status.h.
NAME = "pmi2x-status"
FORM = f"{NAME} 3"
KINDS = ("fence", "allgather", "ring", "PMIx fence")
COUNTS = f"{len(KINDS)}I"
PHASES = (
    "not started", "before init", "in init", "active", "finalized", "ended",
    "active", "active",  # in PMI only, in PMIx only
)
LINKS = ("not connected", "up", "has left", "lost")
RANKS_MAX = 1 << 24
ANSWER_S = 10  # srun gives the nodes half of it
LIMIT = 256 << 20  # bytes of an answer
SUMMED_UP = 3  # nodes that look alike are one line from here on


# ---- the numbers ----


class Cursor:
    """Little-endian fields, as libutil/pack.h writes them. Nothing is trusted."""

    def __init__(self, data):
        self.data, self.at = memoryview(data), 0

    def __bool__(self):
        return self.at < len(self.data)

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def piece(self):
        size = self.take("I")
        self.at += size
        if self.at > len(self.data):
            raise ValueError("a length beyond the end")
        return self.data[self.at - size : self.at]

    def text(self):
        return re.sub("[^ -~]", "?", bytes(self.piece()).decode("latin-1"))


def rank_run(cursor):
    first, last, phase, stopped, *entered = cursor.take("IIBB" + COUNTS)
    if not first <= last < RANKS_MAX:
        raise ValueError("no ranks")
    return {
        "first": first,
        "last": last,
        "phase": PHASES[phase],
        "stopped": bool(stopped),
        "entered": entered,
    }


def link(cursor, names):
    position, parent, state, queued = cursor.take("IBBQ")
    return {
        "to": names[position] if position < len(names) else "?",
        "parent": bool(parent),
        "state": LINKS[state],
        "queued": queued,
    }


def keys(cursor):
    """The key that is waited for longest, if its clients are of PyTorch; who waits, and who has come."""
    key, age_s, torch = cursor.text(), *cursor.take("IB")
    waiters = [cursor.take("IIB") for _ in range(cursor.take("I"))]
    comers = [cursor.take("IH") for _ in range(cursor.take("I"))]
    return {
        "key": key,
        "age_s": age_s,
        "torch": bool(torch),
        "waiters": [{"from": at, "id": number, "other": bool(other)} for at, number, other in waiters],
        "comers": [{"rank": rank, "port": port} for rank, port in comers],
    }


def read_node(node, cursor, names):
    age, requests, *ended = cursor.take("2I" + COUNTS)
    node.update(answered=True, age_ms=age, requests=requests, ended=ended)
    node["ranks"] = [rank_run(cursor) for _ in range(cursor.take("I"))]
    node["links"] = [link(cursor, names) for _ in range(cursor.take("I"))]
    if cursor:
        node["wait"] = cursor.text()
        node["keys"] = keys(cursor)
    if cursor:
        raise ValueError("bytes after the end")


def silent_node(name):
    return {
        "node": name,
        "answered": False,
        "age_ms": 0,
        "requests": 0,
        "ended": [0] * len(KINDS),
        "ranks": [],
        "links": [],
        "wait": "",
        "keys": None,
    }


def decode(data):
    """The status that srun sends (step_status_pack), in the form of --json."""
    cursor = Cursor(data)
    form = cursor.text()
    if form != FORM:
        raise TraceError(f"srun's answer is {form}, this command reads {FORM}")
    step = cursor.text()
    names = [cursor.text() for _ in range(cursor.take("I"))]
    waiting = [cursor.text() for _ in range(cursor.take("I"))]
    nodes = [silent_node(name) for name in names]
    while cursor:
        position = cursor.take("I")
        read_node(nodes[position], Cursor(cursor.piece()), names)
    return {"step": step, "waiting": waiting, "nodes": nodes}


# ---- srun ----


def sockets(step):
    """Names of the sockets of that step's srun on this host."""
    want = f"@{NAME}/{step}/"
    found = set()
    for line in pathlib.Path("/proc/net/unix").read_text().splitlines():
        name = line.split()[-1]
        if name.startswith(want):
            found.add(name[1:])
    return sorted(found)


def peer_uid(connection):
    form = "3i"  # pid, uid, gid
    data = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(form)
    )
    return struct.unpack(form, data)[1]


def ask(name):
    """The answer of one srun; None when it is not ours or does not answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_S)
        try:
            connection.connect(b"\0" + name.encode())
            if os.geteuid() not in (0, peer_uid(connection)):
                return None
            data = bytearray()
            while piece := connection.recv(1 << 16):
                data += piece
                if len(data) > LIMIT:
                    return None
            return decode(data)
        except (OSError, ValueError, LookupError, struct.error):
            return None


def srun_host(step):
    """Where Slurm says that the step's srun runs, or None."""
    try:
        shown = subprocess.run(
            ["scontrol", "show", "step", step],
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"SrunHost:Pid=([^:\s]+):(\d+)", shown)
    return found[1] if found else None


def query(step):
    if not re.fullmatch(r"\d+\.\d+", step):
        raise TraceError(f"{step} is not a step: use JOB.STEP, as shown by squeue -s")
    names = sockets(step)
    for name in names:
        answer = ask(name)
        if answer:
            return answer
    if names:
        raise TraceError(
            f"the srun of step {step} does not answer: is it another user's?"
        )
    host = srun_host(step)
    here = socket.gethostname().partition(".")[0]
    if host and host.partition(".")[0] != here:
        raise TraceError(
            f"the srun of step {step} runs on {host}: run this command there"
        )
    raise TraceError(
        f"no srun of step {step} on this host: has the step ended, or was it "
        "started without --mpi=pmi2x?"
    )


# ---- as text ----


def ranks_of(run):
    return range(run["first"], run["last"] + 1)


def missing(node, kind, seq):
    return [
        rank
        for run in node["ranks"]
        if run["phase"] != "ended" and run["entered"][kind] <= seq
        for rank in ranks_of(run)
    ]


def collectives(node):
    """Collectives in flight at a node: the oldest of each kind, and their number."""
    for kind, name in enumerate(KINDS):
        seq = node["ended"][kind]
        newest = max((r["entered"][kind] for r in node["ranks"]), default=0)
        if not node["age_ms"] or newest <= seq:
            continue
        absent = missing(node, kind, seq)
        text = f"{name} {seq} for {node['age_ms'] / 1000:.1f} s: "
        if absent:
            text += f"waits for {ranks_text(absent)}"
        else:
            text += "all ranks of the node are in"
        if newest > seq + 1:
            text += f" ({newest - seq - 1} more in flight)"
        yield text


def phases(node):
    """Ranks that are not simply at work."""
    groups = {}
    for run in node["ranks"]:
        states = [] if run["phase"] == "active" else [run["phase"]]
        states += ["stopped"] * run["stopped"]
        if states:
            groups.setdefault(" and ".join(states), []).extend(ranks_of(run))
    return [f"{ranks_text(r)} {state}" for state, r in groups.items()]


def links(node):
    """A word on links that are up, and by name those that are not."""
    up = [link for link in node["links"] if link["state"] == "up"]
    queued = sum(link["queued"] for link in node["links"])
    if node["links"]:
        text = f"{len(up)} of {len(node['links'])} links up"
        yield text + (f", {counted(queued, 'byte')} queued" if queued else "")
    for link in node["links"]:
        if link["state"] != "up":
            kind = "parent" if link["parent"] else "child"
            yield f"link to {kind} {link['to']}: {link['state']}"


def describe(node):
    if not node["answered"]:
        return "no answer"
    parts = [*collectives(node), *phases(node), *links(node)]
    if node["requests"]:
        parts.append(f"{counted(node['requests'], 'request')} without an answer")
    return "; ".join(parts) or "nothing in flight"


def like(text):
    """Equal for nodes of which the same can be said."""
    return re.sub(r"for [\d.]+ s|\d+ of \d+ links", "", text)


def lines(answer):
    nodes = answer["nodes"]
    silent = [node["node"] for node in nodes if not node["answered"]]
    count = sum(len(ranks_of(r)) for n in nodes for r in n["ranks"])
    yield f"step {answer['step']}: {counted(len(nodes), 'node')}, {counted(count, 'rank')}"
    for text in answer["waiting"]:
        yield text
    if not answer["waiting"]:
        yield "no collective is in flight"
    if silent:
        yield f"no answer from {counted(len(silent), 'node')}: {', '.join(silent)}"
    yield ""
    groups = {}
    for node in nodes:
        text = describe(node)
        groups.setdefault(like(text), []).append((node["node"], text))
    for group in groups.values():
        if len(group) > SUMMED_UP:
            (first, text), (last, _) = group[0], group[-1]
            yield f"{first} ... {last} ({len(group)} nodes alike): {text}"
        else:
            yield from (f"{name}: {text}" for name, text in group)
