# SPDX-License-Identifier: BSD-3-Clause
"""Compares simulated DVMs with real ones: pmi2x sim validate --dvm.

A DVM of few nodes runs tasks, and the processor time of its processes gives the costs of
the model. Simulations with these costs then meet DVMs of more nodes. Real and simulated
heads write journals, which pmi2x-dvm report reads.

Tasks of all sizes fill all slots at once, some on several nodes. Behind them waits a task
for each node that needs all of it: so what a node gets does not depend on moments."""

import collections
import contextlib
import csv
import json
import math
import os
import random
import socket
import statistics
import tempfile
import time

from .. import command, record
from ..errors import BenchError
from ..run import output
from .dvm import Dvm, cpu_seconds

NAME = "pmi2x sim validate"
SLOTS = 8
FILLED = 0.8  # of the slots, with tasks of all sizes; the rest with tasks of one slot
SECONDS = (5, 8)  # that a task runs; twice the first is more than the second
SEVERAL = 16  # every so-manieth task has several ranks, on two nodes
SINGLE = 30  # tasks that run alone, for the latency
WAITING = 2000  # tasks that are only submitted
EARLY_S = SECONDS[0] / 2  # by then all first tasks have started, and none has ended
DETAIL = 1e-3  # seconds: resolution of a task's time
SHARE_TAKE = 0.5  # of a daemon's time for a part, before the start of its processes
SHARE_EXIT = 0.2  # of the time for a process
SETUP_LIMIT, TTX_LIMIT = 1 / 3, 0.03
FIELDS = ("ranks", "cores", "gpus", "nodes", "seconds")
FIT_STEPS = 7  # halvings of 100 percent

Task = collections.namedtuple("Task", FIELDS)
# Measured with one node: median seconds from placed to started of a task that runs alone,
# the head's processor seconds for a task that it only takes.
Single = collections.namedtuple("Single", "start submit")
# start: median seconds from placed to started; processor seconds: early, head: of the head
# until EARLY_S, and in all; daemon: of the daemons; node: of all other processes
Result = collections.namedtuple(
    "Result", "tasks messages bytes start ttx per_node early head daemon node")
# Seconds; behind: percent.
Costs = collections.namedtuple("Costs", "latency submit place end take start behind")
FORM = record.Form(
    f"{NAME} --dvm", None, use=str, nodes=int, tasks=int, messages=int,
    simulated_messages=int, bytes=int, simulated_bytes=int, start_s=float,
    simulated_start_s=record.number, ttx_s=float, simulated_ttx_s=record.number,
    early_s=float, head_s=float, daemon_s=float, node_s=float, single_start_s=float, single_submit_s=float,
    cores=int, per_node=str)


# ---- the workload ----


def workload(nodes):
    """The first tasks, and those that follow, for this number of nodes; the same ones each
    time."""
    draw, tasks, slots = random.Random(nodes), [], 0

    def seconds():
        return round(draw.uniform(*SECONDS) / DETAIL) * DETAIL

    while slots < FILLED * nodes * SLOTS:
        several = nodes > 1 and len(tasks) % SEVERAL == SEVERAL - 1
        task = (Task(4, 1, 0, 2, seconds()) if several else
                Task(1, draw.randint(1, 4), 0, 0, seconds()))
        tasks.append(task)
        slots += task.ranks * task.cores
    tasks += [Task(1, 1, 0, 0, seconds()) for _ in range(nodes * SLOTS - slots)]
    return tasks, [Task(1, SLOTS, 0, 0, seconds()) for _ in range(nodes)]


def all_tasks(nodes):
    return sum(workload(nodes), [])


def request(tasks):
    """As the simulator's client puts it."""
    return {"op": "submit", "profile": {"id": "p", "cwd": "/", "env": {}}, "tasks": [
        {"argv": ["/bin/sleep", f"{t.seconds:.3f}".rstrip("0").rstrip(".")],
         "ranks": t.ranks, "cores": t.cores, "gpus": t.gpus, "nodes": t.nodes,
         "time": math.ceil(t.seconds) + 60} for t in tasks]}


# ---- a real DVM ----


class Client:
    """A connection with the head of a DVM on this machine."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")

    def ask(self, what):
        """The answer. What has ended meanwhile is not looked at."""
        self.socket.sendall(json.dumps(what).encode() + b"\n")
        while True:
            event = json.loads(self.lines.readline() or b"{}")
            if event.get("ev") == "error" or not event:
                raise BenchError(f"the DVM: {event.get('why', 'it has ended')}")
            if event["ev"] != "ended":
                return event

    def submit(self, tasks):
        """The answer is for results() or ask()."""
        self.socket.sendall(json.dumps(request(tasks)).encode() + b"\n")

    def results(self, tasks):
        """Those of tasks that were submitted, when all have ended."""
        done = []
        while len(done) < len(tasks):
            event = json.loads(self.lines.readline() or b"{}")
            if event.get("ev") == "error" or not event or event.get("refused"):
                raise BenchError(f"the DVM: {json.dumps(event)[:200]}")
            done += event.get("tasks", []) if event["ev"] == "ended" else []
        if any(result["code"] for result in done):
            raise BenchError("a task has failed")
        return done

    def close(self):
        self.lines.close()
        self.socket.close()


@contextlib.contextmanager
def dvm_of(options, directory, nodes):
    """The DVM, and a client of it."""
    with Dvm(options.dvm_program, directory, "--local", nodes, "--slots", SLOTS, "--name",
             "v", "--journal", f"{directory}/journal", "--fast") as dvm:
        client = Client(os.path.join(dvm.base, "v", "head.sock"))
        try:
            yield dvm, client
        finally:
            client.close()


def run_alone(client):
    task = [Task(1, 1, 0, 0, 0.01)]
    client.submit(task)
    times = client.results(task)[0]["t"]
    return times[2] - times[1]


def submit_waiting(dvm, client):
    """The head's processor time for each of some tasks that wait for the node; the DVM is
    ended with them."""
    client.ask(request([Task(1, SLOTS, 0, 0, 60.0)]))
    before = dvm.sums(cpu_seconds)["head"]
    client.ask(request([Task(1, SLOTS, 0, 0, 1.0)] * WAITING))
    return (dvm.sums(cpu_seconds)["head"] - before) / WAITING


def measure_single(options):
    with tempfile.TemporaryDirectory(prefix="pmi2x-validate-") as directory, \
            dvm_of(options, directory, 1) as (dvm, client):
        starts = [run_alone(client) for _ in range(SINGLE)]
        return Single(statistics.median(starts), submit_waiting(dvm, client))


def used_of(results):
    """Processor seconds of the tasks themselves."""
    return sum(sum(result["usage"][:2]) for result in results)


def measure(options, nodes):
    """The counts of all repeats are equal; times are those of the median."""
    found = [measure_once(options, nodes) for _ in range(options.repeats)]
    counts = {(r.messages, r.bytes, r.per_node) for r in found}
    if len(counts) != 1:
        raise BenchError(f"{nodes} nodes: repeats differ: {sorted(counts)}")
    return found[0]._replace(**{field: statistics.median(getattr(r, field) for r in found)
                                for field in
                                ("start", "ttx", "early", "head", "daemon", "node")})


def measure_once(options, nodes):
    tasks = all_tasks(nodes)
    with tempfile.TemporaryDirectory(prefix="pmi2x-validate-") as directory:
        with dvm_of(options, directory, nodes) as (dvm, client):
            before, cpu = client.ask({"op": "status"})["traffic"], dvm.sums(cpu_seconds)
            client.submit(tasks)
            time.sleep(EARLY_S)
            early = dvm.sums(cpu_seconds)["head"] - cpu["head"]
            results = client.results(tasks)
            after, then = client.ask({"op": "status"})["traffic"], dvm.sums(cpu_seconds)
        found = read_journal(options, f"{directory}/journal")
    spent = {role: then[role] - cpu[role] for role in then}
    return Result(len(tasks), after[0] - before[0], after[1] - before[1], *found,
                  early, spent["head"], spent["daemon"], spent["zygote"] + used_of(results))


def read_journal(options, directory):
    """Median time from placed to started, TTX, and tasks by node."""
    report = json.loads(output([options.dvm_program, "report", "--json", directory])[0])
    text = output([options.dvm_program, "report", "--csv", directory])[0]
    nodes = collections.Counter(row["node"] for row in csv.DictReader(text.splitlines()))
    return (report["start"]["median"], report["last"] - report["first"],
            " ".join(f"{nodes[name]}" for name in sorted(nodes)))


# ---- a simulated one ----


def ps(seconds):
    return f"{max(seconds, 0) * 1e12:.0f}ps"


def scenario(options, nodes, costs):
    lines = ["[dvm]", f"nodes = {nodes}", f"slots = {SLOTS}", "names = local",
             f"cores = {options.cores}", f"behind = {costs.behind}", "batch = 1000000", "journal = yes",
             f"latency = {ps(costs.latency)}", f"take = {ps(costs.take)}", f"start = {ps(costs.start * (1 - SHARE_EXIT))}",
             f"exit = {ps(costs.start * SHARE_EXIT)}"]
    lines += [f"{name} = {ps(getattr(costs, name))}" for name in ("submit", "place", "end")]
    return "\n".join([*lines, "[workload]", "file = tasks.csv"]) + "\n"


def simulate(options, nodes, costs):
    tasks = all_tasks(nodes)
    with tempfile.TemporaryDirectory(prefix="pmi2x-validate-") as directory:
        with open(f"{directory}/tasks.csv", "w", newline="") as file:
            csv.writer(file).writerows([FIELDS, *tasks])
        with open(f"{directory}/scenario", "w") as file:
            file.write(scenario(options, nodes, costs))
        text, _ = output([options.sim, "--quiet", "--journal", f"{directory}/journal",
                          f"{directory}/scenario"])
        found = read_journal(options, f"{directory}/journal")
    messages, bytes_ = map(int, text.splitlines()[-1].split()[-2:])
    return Result(len(tasks), messages, bytes_, *found, None, None, None, None)


# ---- fitting the costs ----


def parts_of(tasks):
    return sum(max(task.nodes, 1) for task in tasks)


def costs_of(found, single):
    """Costs from processor times. found: {nodes: result}"""
    first = sum(parts_of(workload(nodes)[0]) for nodes in found)
    tasks = [task for nodes in found for task in all_tasks(nodes)]
    early = sum(result.early for result in found.values()) - single.submit * len(tasks)
    place = max(early, 0) / first
    rest = sum(result.head - result.early for result in found.values()) - place * sum(found)
    take = sum(result.daemon for result in found.values()) * SHARE_TAKE
    node = sum(result.daemon + result.node for result in found.values()) - take
    return Costs(max(single.start - place - take / parts_of(tasks), 0), single.submit, place,
                 max(rest, 0) / parts_of(tasks), take / parts_of(tasks),
                 node / sum(task.ranks for task in tasks), 0)


def fit(options, found, single):
    """The costs of processor times. How far daemons wait for processes is fitted to the time from
    placed to started of the largest DVM: in a small one all daemons have their messages
    before there are processes."""
    costs, nodes, low, high = costs_of(found, single), max(found), 0, 100
    for _ in range(FIT_STEPS):
        middle = (low + high) // 2
        if simulate(options, nodes, costs._replace(behind=middle)).start < found[nodes].start:
            low = middle
        else:
            high = middle
    return costs._replace(behind=(low + high + 1) // 2)


# ---- the whole ----


def row(use, options, nodes, real, model, single):
    return [use, nodes, real.tasks, real.messages, model.messages, real.bytes, model.bytes,
            f"{real.start:.9f}", f"{model.start:.9f}", f"{real.ttx:.6f}", f"{model.ttx:.6f}",
            f"{real.early:.6f}", f"{real.head:.6f}", f"{real.daemon:.6f}", f"{real.node:.6f}",
            f"{single.start:.9f}", f"{single.submit:.9f}", options.cores, real.per_node]


def verdict(real, model):
    """(texts of what differs, texts of what is too far off)"""
    counts = [what for what in ("messages", "bytes", "per_node")
              if getattr(real, what) != getattr(model, what)]
    times = [f"{what} is more than {limit:.0%} off" for what, limit, field in
             (("setup", SETUP_LIMIT, "start"), ("TTX", TTX_LIMIT, "ttx"))
             if abs(getattr(model, field) / getattr(real, field) - 1) > limit]
    return counts, times


HEADINGS = ("nodes", "tasks", "messages", "bytes", "counts", "setup: real", "simulated", "",
            "TTX: real", "simulated", "")
TABLE = "{:>5} {:>6} {:>8} {:>9} {:<7} {:>11} {:>9} {:>6} {:>9} {:>9} {:>7}"


def show(nodes, real, model):
    """A line of the table; what is wrong."""
    counts, times = verdict(real, model)
    print(TABLE.format(
        nodes, real.tasks, real.messages, real.bytes, "DIFFER" if counts else "equal",
        f"{real.start * 1e3:.3f} ms", f"{model.start * 1e3:.3f}",
        f"{100 * (model.start / real.start - 1):+.0f} %", f"{real.ttx:.3f} s",
        f"{model.ttx:.3f}", f"{100 * (model.ttx / real.ttx - 1):+.1f} %"), flush=True)
    for what in counts:
        print(f"      {what}: real {getattr(real, what)}, simulated {getattr(model, what)}")
    return [*(f"{nodes} nodes: {what} differ" for what in counts),
            *(f"{nodes} nodes: {what}" for what in times)]


def show_costs(costs):
    print(f"costs: {costs.latency * 1e6:.1f} us a message; of the head, {costs.submit * 1e6:.1f} "
          f"us a task, {costs.place * 1e6:.1f} and {costs.end * 1e6:.1f} us a part for its "
          f"start and end; of a daemon, {costs.take * 1e6:.1f} us a part, and {costs.start * 1e6:.1f} "
          f"us a process; a daemon that wakes up waits for {costs.behind} % of the processes' work")


def read_measured(options):
    """({nodes: result} to fit and to compare, Single) of an earlier --csv."""
    rows, _ = FORM.read([options.measured], "--measured ")
    found = {"fit": {}, "compare": {}}
    for _, r in rows:
        found[r["use"]][r["nodes"]] = Result(
            r["tasks"], r["messages"], r["bytes"], r["start_s"], r["ttx_s"], r["per_node"],
            r["early_s"], r["head_s"], r["daemon_s"], r["node_s"])
    if not found["fit"]:
        raise BenchError(f"--measured: {options.measured} has no rows of a fit")
    options.cores = rows[0][1]["cores"]
    first = rows[0][1]
    return found["fit"], found["compare"], Single(first["single_start_s"],
                                                  first["single_submit_s"])


def validate(options, writer):
    progress = command.Progress(1 + len(options.calibrate) + len(options.nodes), False)
    compare = None
    if options.measured:
        found, compare, single = read_measured(options)
    else:
        progress.step("one task at a time")
        single, found = measure_single(options), {}
        for nodes in options.calibrate:
            progress.step(f"fitting the costs: {nodes} nodes")
            found[nodes] = measure(options, nodes)
    progress.end()
    costs = fit(options, found, single)
    show_costs(costs)
    print(TABLE.format(*HEADINGS))
    wrong = []
    for use, points in ("fit", list(found)), ("compare", compare or options.nodes):
        for nodes in points:
            if use == "compare" and compare is None:
                progress.step(f"comparing: {nodes} nodes")
                real = measure(options, nodes)
                progress.end()
            else:
                real = (compare if use == "compare" else found)[nodes]
            model = simulate(options, nodes, costs)
            writer.rows([row(use, options, nodes, real, model, single)])
            wrong += show(nodes, real, model) if use == "compare" else \
                [text for text in show(nodes, real, model) if text.endswith("differ")]
    for text in wrong:
        print(f"not within the limits: {text}")
    return 1 if wrong else 0


def run(options):
    options.dvm_program = options.dvm_program or "pmi2x-dvm"
    notes = {"machine": record.machine(), "command": command.shown(NAME)}
    with command.open_csv(options.csv) as file:
        return validate(options, FORM.writer(file, notes))
