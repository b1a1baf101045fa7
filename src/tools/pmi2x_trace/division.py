# SPDX-License-Identifier: BSD-3-Clause
"""The time of one step, divided into named parts; the parts of each rank add up to the
whole."""

import collections
import statistics

from .records import counted

SLOWEST = 3  # named in the table
SAMPLE = 256  # ranks at most, of which a late one is compared with the median
NS_PER_MS = 1_000_000
LATE = NS_PER_MS  # less is not worth a reason

LAUNCH, LOADING, TOPOLOGY = "launch", "loading", "topology"
EXCHANGE, WAITING = "exchange", "waiting"
RANK, END, OTHER = "rank", "end", "other"
NAMES = (
    LAUNCH, LOADING, TOPOLOGY, EXCHANGE, WAITING, RANK, END, OTHER,
)
BEFORE = LAUNCH, "srun, until it launches the step"  # the wait for an allocation
SERVED = (EXCHANGE, "requests, until the agent has answered")
UNKNOWN = "launch and loading: its exec is not known"
TREE = ": up and down the tree"  # how the part of a collective ends
BY_NAME = 16  # collectives of a kind, the first; the others are "later"

Piece = collections.namedtuple("Piece", "begin end name part")


def launch_marks(trace, rank):
    """(when a part of the launch ended, its text), in order."""
    at = rank.node.at
    yield 0, BEFORE[1]
    yield at["launch"], "srun to slurmstepd's beginning"
    yield at["prefork"], "slurmstepd, until it calls the plugin"
    yield at["ready"], "the plugin prepares (prefork)"
    yield rank.rest["forked"], "slurmstepd, until it makes the task"
    yield rank.rest["left"], "the task, until its exec"


def spoke(rank):
    """When the rank made its first request, and how well that is known."""
    own = rank.own["begin"]
    return own if own is not None else rank.seen["init"]


def loading(rank, begin):
    """From exec to the first request; who asks first waits for the agent."""
    end = spoke(rank)
    if end is None:
        return
    began = end
    if rank.own["begin"] is None and rank.rest["early"]:
        began = min(max(rank.node.wanted or end, begin), end)
    if rank.rest["left"] is None:
        yield Piece(begin, began, OTHER, UNKNOWN)
    else:
        text = "exec, libraries, the program until its first request"
        yield Piece(begin, began, LOADING, text)
    yield Piece(began, end, EXCHANGE, "the agent starts")


def title_of(collective):
    if collective.seq < BY_NAME:
        return f"{collective.kind} {collective.seq}"
    return f"later {collective.kind}s"


def entry(collective, rank, place):
    """When a rank entered; the end of its waiting is the collective's."""
    first = collective.kind == "fence" and collective.seq == 0
    if first and rank.own["fence_in"] is not None:
        return rank.own["fence_in"], rank.own["fence_out"]
    done = collective.at["done"]
    if collective.entered:
        return collective.entered[place], done
    return collective.at["last_in"], done


def last_entries(trace):
    """For each collective, the time at which the last rank of the step entered it."""
    last = {}
    for node in trace.nodes:
        for collective in node.collectives:
            key = (collective.kind, collective.seq)
            stamps = [
                entry(collective, rank, place)[0]
                for place, rank in enumerate(node.ranks)
            ]
            stamps += [last.get(key)]
            stamps = [stamp for stamp in stamps if stamp is not None]
            if stamps:
                last[key] = max(stamps)
    return last


def collective_pieces(rank, place, last, whole):
    for collective in rank.node.collectives:
        begin, end = entry(collective, rank, place)
        if begin is None:
            continue
        end = whole if end is None else end
        title = title_of(collective)
        among = min(max(last[collective.kind, collective.seq], begin), end)
        yield Piece(begin, among, WAITING, f"{title}: for its last rank")
        yield Piece(among, end, EXCHANGE, title + TREE)


def rest_pieces(rank, whole):
    own, rest = rank.own, rank.rest
    yield Piece(own["begin"], own["end"], EXCHANGE, "init, in the rank")
    yield Piece(
        rest["topology"], rest["path"], TOPOLOGY, "asked for, until answered"
    )
    yield Piece(
        rest["path"], rest["loaded"], TOPOLOGY,
        "answered, until the rank's next request",
    )
    final = own["finalize"]
    final = rank.seen["finalize"] if final is None else final
    yield Piece(final, whole, END, "finalize, until srun had heard of all")


def covered(pieces, cursor, whole):
    """The pieces in order, none over another, and what the rank did between them."""
    pieces = [p for p in pieces if None not in (p.begin, p.end)]
    gap = RANK, "from init to its first collective"
    for piece in sorted(pieces, key=lambda p: (p.begin, p.end)):
        begin = min(max(piece.begin, cursor), whole)
        end = min(max(piece.end, begin), whole)
        if begin > cursor:
            yield Piece(cursor, begin, *gap)
        if end > begin:
            yield piece._replace(begin=begin, end=end)
        cursor = end
        if piece.part.endswith(TREE):
            gap = RANK, f"after {piece.part.removesuffix(TREE)}"
    if whole > cursor:
        yield Piece(cursor, whole, *gap)


def pieces_of(trace, rank, place, last, whole):
    """All of a rank's time from srun's start on, without a gap."""
    cursor, found = trace.start, []
    for stamp, part in launch_marks(trace, rank):
        if stamp is not None and stamp > cursor:
            end = min(stamp, whole)
            found.append(Piece(cursor, end, LAUNCH, part))
            cursor = end
    if spoke(rank) is None:
        found.append(Piece(cursor, whole, RANK, "without PMI"))
        return found
    rest = [
        *loading(rank, cursor),
        *collective_pieces(rank, place, last, whole),
        *rest_pieces(rank, whole),
    ]
    return found + list(covered(rest, cursor, whole))


def parts_of(rank, pieces):
    """{(name, part): ns}; what the agent took for requests is no piece."""
    parts = collections.Counter()
    for piece in pieces:
        parts[piece.name, piece.part] += piece.end - piece.begin
    between = {key: ns for key, ns in parts.items() if key[0] == RANK}
    served, total = rank.rest["served"] or 0, sum(between.values())
    if served and total:
        served = min(served, total)
        parts[SERVED] += served
        for key, ns in between.items():
            parts[key] -= served * ns / total
    return +parts


class Row:
    """A part: the mean over all ranks, and who had most of it."""

    def __init__(self, name, part, times, count):
        self.name, self.part = name, part
        self.ranks = len(times)
        self.mean = sum(ns for ns, _ in times) / count
        longest = sorted(times, key=lambda t: -t[0])[:SLOWEST]
        self.longest = [(rank, ns) for ns, rank in longest]


class Wait:
    """A collective: its last rank, and how long the others were there."""

    def __init__(self, kind, seq, entries, answered):
        self.kind, self.seq = kind, seq
        self.last, self.at = max(entries, key=lambda e: e[1])
        stamps = [stamp for _, stamp in entries]
        self.entered = [rank for rank, _ in entries]
        self.ranks = len(stamps)
        self.behind = self.at - statistics.median(stamps)
        self.mean = self.at - sum(stamps) / len(stamps)
        self.tree = max(answered - self.at, 0) if answered else None
        self.reason = None  # (name, part, ns more than the median rank)


def within(pieces, begin, end):
    parts = collections.Counter()
    for piece in pieces:
        ns = min(piece.end, end) - max(piece.begin, begin)
        if ns > 0:
            parts[piece.name, piece.part] += ns
    return parts


class Division:
    """The divided time of a trace. Empty for files without the stamps."""

    def __init__(self, trace):
        self.trace, self.rows, self.waits = trace, [], []
        self.whole, self.count, self.pieces = 0, 0, {}
        nodes = [node for node in trace.nodes if node.divided]
        ends = [node.at["end"] for node in nodes]
        ends = [stamp for stamp in [trace.end, *ends] if stamp is not None]
        if not nodes or not ends or len(nodes) < len(trace.nodes):
            return
        end = trace.end if trace.end is not None else max(ends)
        self.whole = max(end - trace.start, 0)
        last = last_entries(trace)
        for node in nodes:
            for place, rank in enumerate(node.ranks):
                self.pieces[rank] = pieces_of(trace, rank, place, last, end)
        self.count = len(self.pieces)
        self.add_rows()
        self.add_waits()

    def add_rows(self):
        times = collections.defaultdict(list)
        first = {}
        for rank, pieces in self.pieces.items():
            for piece in pieces:
                key = piece.name, piece.part
                first[key] = min(first.get(key, piece.begin), piece.begin)
            for key, ns in parts_of(rank, pieces).items():
                times[key].append((ns, rank))
        order = sorted(
            times,
            key=lambda key: (NAMES.index(key[0]), first.get(key, 0), key[1]),
        )
        self.rows = [Row(*key, times[key], self.count) for key in order]

    def add_waits(self):
        entries = collections.defaultdict(list)
        answered = {}
        for node in self.trace.nodes:
            for c in node.collectives:
                if not c.entered or c.seq >= BY_NAME:
                    continue
                key = c.kind, c.seq
                for place, rank in enumerate(node.ranks):
                    stamp = entry(c, rank, place)[0]
                    if stamp is not None:
                        entries[key].append((rank, stamp))
                done = c.at["done"]
                if done is not None:
                    answered[key] = max(answered.get(key, done), done)
        self.waits = [
            Wait(*key, found, answered.get(key))
            for key, found in entries.items()
            if len(found) > 1  # otherwise no rank was waited for
        ]
        self.waits.sort(key=lambda wait: wait.at)
        begin = self.trace.start
        for wait in self.waits:
            wait.reason = self.why_late(wait, begin)
            begin = max(wait.at, begin)

    def why_late(self, wait, begin):
        """The parts in which the last rank took longer than the median rank."""
        if wait.behind < LATE:
            return None
        sample = wait.entered[:: max(wait.ranks // SAMPLE, 1)]
        others = [within(self.pieces[r], begin, wait.at) for r in sample]
        late = within(self.pieces[wait.last], begin, wait.at)
        more = {
            key: ns - statistics.median(parts[key] for parts in others)
            for key, ns in late.items()
            if key[0] != WAITING
        }
        key = max(more, key=more.get, default=None)
        return (*key, more[key]) if key and more[key] > 0 else None

    def launched_rows(self):
        """The rows without the time before srun launched the step."""
        return [row for row in self.rows if (row.name, row.part) != BEFORE]

    def launched(self):
        """Nanoseconds of the step after srun launched it, which shares refer to."""
        return sum(row.mean for row in self.launched_rows())


# ---- as text ----


def row_lines(division, time_text):
    width = max(len(row.part) for row in division.rows) + 2
    rows, total = division.launched_rows(), division.launched()
    for row in division.rows:
        if row not in rows:
            yield f"{'srun, until it launches the step':{width + 7}} {time_text(row.mean):>9}"
    for name in NAMES:
        parts = [row for row in rows if row.name == name]
        mean = sum(row.mean for row in parts)
        if parts:
            yield f"{name:{width}} {mean / total:>6.1%} {time_text(mean):>9}"
        for row in parts:
            who = [f"{rank.name} {time_text(ns)}" for rank, ns in row.longest]
            part = f"  {row.part}"
            yield (
                f"{part:{width}} {row.mean / total:>6.1%} "
                f"{time_text(row.mean):>9} {row.ranks:>6}  {', '.join(who)}"
            )
    yield f"{'after the launch':{width}} {1:>6.1%} {time_text(total):>9}"


def wait_lines(division, time_text):
    for wait in division.waits:
        text = (
            f"{wait.kind} {wait.seq}: {counted(wait.ranks, 'rank')} waited "
            f"{time_text(wait.mean)} on average, last was {wait.last.name}, "
            f"{time_text(wait.behind)} after the median"
        )
        if wait.reason:
            name, part, ns = wait.reason
            text += f"; longer there: {name} ({part}), {time_text(ns)}"
        yield text


def conclusion(division, time_text):
    """One sentence: how long it took, where most of that went, and who came last."""
    rows, total = division.launched_rows(), division.launched()
    text = f"step {division.trace.step} took {time_text(division.whole)}"
    if not total:
        return text
    before = division.whole - total
    if before >= LATE:
        text += (f", {time_text(before)} of it before srun launched it; of the other "
                 f"{time_text(total)}")
    most = max(rows, key=lambda row: row.mean)
    text += f", {most.mean / total:.0%} went to {most.name} ({most.part})"
    late = max(division.waits, key=lambda wait: wait.behind, default=None)
    if late and late.behind >= LATE:
        text += (f"; {late.last.name} was last in {late.kind} {late.seq}, "
                 f"{time_text(late.behind)} after the median")
    return text


def lines(division, time_text):
    if not division.launched():
        return
    width = max(len(row.part) for row in division.rows) + 2
    yield "where the time of a rank goes, from srun's start to its end"
    yield f"{'':{width}} {'share':>6} {'mean':>9} {'ranks':>6}  longest"
    yield from row_lines(division, time_text)
    if division.waits:
        yield ""
        yield "waiting for whom"
        yield from wait_lines(division, time_text)


# ---- as JSON ----


def as_json(division):
    return {
        "step": division.trace.step,
        "ranks": division.count,
        "whole": division.whole,
        "notes": division.trace.notes,
        "division": [
            {
                "name": row.name,
                "part": row.part,
                "ranks": row.ranks,
                "mean": row.mean,
                "longest": [[r.rank, r.node.name, ns] for r, ns in row.longest],
            }
            for row in division.rows
        ],
        "waits": [
            {
                "kind": wait.kind,
                "seq": wait.seq,
                "ranks": wait.ranks,
                "mean": wait.mean,
                "last": wait.last.rank,
                "node": wait.last.node.name,
                "behind_median": wait.behind,
                "tree": wait.tree,
                "reason": wait.reason,
            }
            for wait in division.waits
        ],
    }
