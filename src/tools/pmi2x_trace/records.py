# SPDX-License-Identifier: BSD-3-Clause
"""Read trace files: what they hold, on one time line, and what is missing."""

import json
import pathlib
import re

FORMAT = 1  # version of the file; see pmi2x-trace(1)
NAME = "pmi2x-trace.*.jsonl"
AGENT = "launch prefork ready wired first_init all_init end".split()
RANK = "rank init put enter finalize".split()
OWN = "begin end put fence_in fence_out gather_in gather_out finalize".split()
COLLECTIVE = "kind seq first_in last_in up down done".split()
SENT = "messages bytes".split()  # by the node; not in older files
GROUP = "group barrier"  # the kind of one of some ranks
REST = "forked left early topology path loaded requests served".split()
NUMBERS = ("early", "requests", "served")  # numbers; the other fields are stamps


class TraceError(Exception):
    """Something to say to the user and nothing else."""


class Clock:
    """Times of one host as nanoseconds after srun launched; None: it was not."""

    def __init__(self, record, origin):
        self.offset = record["realtime"] - record["monotonic"] - origin

    def __call__(self, stamp):
        return stamp + self.offset if stamp else None


class Rank:
    """A rank: what its agent saw of it, and what its library recorded."""

    def __init__(self, node, clock, numbers):
        if len(numbers) != len(RANK) + len(OWN):
            raise ValueError("the record of a rank has another length")
        self.node, self.rank = node, numbers[0]
        seen = [clock(n) for n in numbers[1 : len(RANK)]]
        self.seen = dict(zip(RANK[1:], seen))
        own = [clock(n) for n in numbers[len(RANK) :]]
        self.own = dict(zip(OWN, own))
        self.rest = dict.fromkeys(REST)

    def add_rest(self, clock, numbers):
        values = dict(zip(REST, numbers, strict=True))
        for name, value in values.items():
            counts = name in NUMBERS
            self.rest[name] = value if counts else clock(value)

    @property
    def name(self):
        return f"rank {self.rank} ({self.node.name})"

    @property
    def recorded(self):
        return self.own["begin"] is not None


class Collective:
    """A collective at one node."""

    def __init__(self, clock, values):
        self.sent = dict.fromkeys(SENT)
        if len(values) > len(COLLECTIVE):
            counts = values[len(COLLECTIVE) :]
            self.sent = dict(zip(SENT, counts, strict=True))
            values = values[: len(COLLECTIVE)]
        fields = dict(zip(COLLECTIVE, values, strict=True))
        self.kind, self.seq = str(fields.pop("kind")), fields.pop("seq")
        self.at = {name: clock(n) for name, n in fields.items()}
        self.entered = []  # by the place of a rank at its node; None: not

    def add_entered(self, offsets):
        first = self.at["first_in"]
        self.entered = [None if n < 0 else first + n for n in offsets]


class Group(Collective):
    """A barrier of some ranks at one node; all of a name and number are one."""

    def __init__(self, clock, values):
        self.name, number, first, done, offsets = values
        if not first:
            raise ValueError("no rank has entered the barrier of a group")
        stamps = [first, first + max(offsets), 0, 0, done]
        super().__init__(clock, [GROUP, number, *stamps])
        self.number = number  # until it is known which of all it is
        self.add_entered(offsets)


class Node:
    """The record of one node."""

    def __init__(self, record, origin):
        clock = Clock(record, origin)
        self.name = str(record["node"])
        self.position = record["position"]
        stamps = [clock(n) for n in record["agent"]]
        self.at = dict(zip(AGENT, stamps, strict=True))
        self.ranks = [Rank(self, clock, r) for r in record["ranks"]]
        self.collectives = [
            Collective(clock, c) for c in record["collectives"]
        ]
        # Groups of some ranks; older files have none.
        self.groups = [Group(clock, g) for g in record.get("groups", [])]
        sent = record.get("group_sent", [None] * len(SENT))
        self.group_sent = dict(zip(SENT, sent, strict=True))
        self.dropped = record["dropped"]
        self.wanted, self.divided = None, "rests" in record
        if self.divided:  # not in older files
            self.add_rests(clock, record)

    def add_rests(self, clock, record):
        self.wanted = clock(record["wanted"])
        for rank, numbers in zip(self.ranks, record["rests"], strict=True):
            rank.add_rest(clock, numbers)
        entered = zip(self.collectives, record["entered"], strict=True)
        for collective, offsets in entered:
            if len(offsets) not in (0, len(self.ranks)):
                raise ValueError("a collective has another number of ranks")
            collective.add_entered(offsets)
        if any(len(g.entered) != len(self.ranks) for g in self.groups):
            raise ValueError("the barrier of a group has another number of ranks")
        self.collectives += self.groups


class Trace:
    """A step: its nodes in the order of their ranks, and notes for people."""

    def __init__(self, path, lines):
        self.path, self.nodes, self.notes, end = path, [], [], None
        head = parse(path, 1, lines[0]) if lines else {}
        if head.get("pmi2x-trace") != FORMAT:
            raise TraceError(f"{path} is not a trace of this version")
        self.step = str(head["step"])
        self.origin = head["realtime"]
        self.clock = Clock(head, self.origin)
        # The start of srun's process, from the kernel, within 10 ms; older files have
        # none.
        self.start = min(self.clock(head.get("start", 0)) or 0, 0)
        for number, line in enumerate(lines[1:], 2):
            try:
                record = parse(path, number, line)
                if "end" in record:
                    end = record
                else:
                    self.nodes.append(Node(record, self.origin))
            except (TraceError, KeyError, TypeError, ValueError):
                self.notes.append(f"line {number} is damaged; left out")
        self.nodes.sort(key=lambda node: node.position)
        self.number_groups()
        self.end = self.clock(end["monotonic"]) if end else None
        self.look_for_gaps(end)

    def number_groups(self):
        """In the order in which they began, like the collectives of all ranks."""
        groups = [group for node in self.nodes for group in node.groups]
        groups.sort(key=lambda group: group.at["first_in"])
        numbers = {}
        for group in groups:
            key = group.name, group.number
            group.seq = numbers.setdefault(key, len(numbers))

    @property
    def ranks(self):
        return [rank for node in self.nodes for rank in node.ranks]

    def look_for_gaps(self, end):
        """Note facts that a reader must know before believing the numbers."""
        if not end:
            self.notes.append("srun did not write the end: it was killed")
        elif len(self.nodes) < end["nodes"]:
            self.notes.append(
                f"{end['nodes'] - len(self.nodes)} of {end['nodes']} nodes "
                "have sent no record: slurmstepd was killed, or left late"
            )
        idle = [r.rank for r in self.ranks if r.seen["init"] is None]
        if idle and len(idle) < len(self.ranks):
            self.notes.append(f"never started PMI: {ranks_text(idle)}")
        if idle and len(idle) == len(self.ranks):
            self.notes.append("no rank has started PMI")
        if any(r.recorded for r in self.ranks):
            silent = [
                r.rank
                for r in self.ranks
                if r.seen["init"] is not None and not r.recorded
            ]
            if silent:
                self.notes.append(
                    "no stamps of their own, as of ranks that did not "
                    "finalize or use another PMI library: "
                    + ranks_text(silent)
                )
        dropped = sum(node.dropped for node in self.nodes)
        if dropped:
            self.notes.append(
                "only the first collectives of the step were recorded"
            )


def parse(path, number, line):
    try:
        record = json.loads(line)
    except ValueError as error:
        raise TraceError(
            f"{path} is no trace of pmi2x: line {number} is not JSON") from error
    if not isinstance(record, dict):
        raise TraceError(f"{path}, line {number} is not a record")
    return record


def counted(count, word):
    """"1 node", "2 nodes". The plural of word takes an s, or es after another s."""
    ending = "es" if word.endswith("s") else "s"
    return f"{count} {word}{'' if count == 1 else ending}"


def ranks_text(ranks, limit=8):
    """Ranks as people read them: "rank 17", "ranks 1, 4-9 and 3 more"."""
    runs = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    shown = runs[:limit]
    texts = [f"{a}" if a == b else f"{a}-{b}" for a, b in shown]
    rest = len(ranks) - sum(b - a + 1 for a, b in shown)
    more = f" and {rest} more" if rest else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(texts)}{more}"


def load(path):
    try:
        lines = pathlib.Path(path).read_text(errors="replace").splitlines()
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    return Trace(path, lines)


def find(target):
    """The trace file: the one given, or the newest in a directory."""
    path = pathlib.Path(target)
    if not path.exists() and re.fullmatch(r"\d+\.\d+", target):
        raise TraceError(f"no file {target}: for a running step use --live {target}")
    if not path.is_dir():
        return path
    found = sorted(path.glob(NAME), key=lambda p: p.stat().st_mtime)
    if not found:
        raise TraceError(f"no {NAME} in {path}: was PMI2X_TRACE set to it?")
    return found[-1]
