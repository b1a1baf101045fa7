# SPDX-License-Identifier: BSD-3-Clause
"""The cost of launches of /bin/true to the processes of Slurm: processor time, system
calls, descriptors and memory, on a test cluster. Other work on the machine changes
these figures little."""

import collections
import contextlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from .. import place
from ..command import Progress, open_csv
from ..errors import BenchError
from ..record import Writer
from ..report import block
from ..run import wait_for

from . import capacity, fit, matrix, strace

CONFIGS, METHODS = "4x16", "none,pmi2,pmi2x"
KINDS = {"step": "as a step of an allocation", "job": "as a job of its own"}
SIZES_LEAST = 3  # sizes that fit a + c*N: one more than there are coefficients
COLUMNS = "launch nodes ranks_per_node method client subject figure value".split()
CPU, SWITCHES, FAULTS = "CPU time, ms", "context switches", "page faults"
CALLS = {"daemon": "system calls", "children": "of its children before exec"}


# ---- processor time ----


def usage_of(seconds, switches, faults):
    return {CPU: float(seconds) * 1e3, SWITCHES: int(switches), FAULTS: int(faults)}


def usage_of_child(pid):
    """Waits for the process: its status, and its usage."""
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage_of(
        usage.ru_utime + usage.ru_stime,
        usage.ru_nvcsw + usage.ru_nivcsw,
        usage.ru_minflt + usage.ru_majflt,
    )


def spent_by(pid):
    """Processor time of a process, with its threads that have ended: clock_gettime
    of what clock_getcpuclockid(3) makes of its number."""
    return time.clock_gettime(~pid << 3 | 2)


class Usages:
    """Reads what pmi2x cluster writes of step daemons that have ended."""

    def __init__(self, path):
        self.path, self.position = path, 0

    def collect(self, count):
        """The usages of the next `count` step daemons, None until these have ended."""
        with contextlib.suppress(FileNotFoundError), open(self.path) as file:
            file.seek(self.position)
            lines = [line.split() for line in file.read().splitlines()]
            found = [usage_of(*words[1:]) for words in lines if words[0] == "slurmstepd"]
            if len(found) >= count:
                self.position = file.tell()
                return found
        return None


# ---- memory and descriptors ----


def state_of(pid):
    rollup = capacity.read(f"/proc/{pid}/smaps_rollup")
    return {
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "mappings": len(capacity.read(f"/proc/{pid}/maps").splitlines()),
        "resident memory, KiB": int(re.search(r"^Rss:\s+(\d+)", rollup, re.M)[1]),
        "of it not shared, KiB": capacity.total(capacity.PRIVATE, rollup),
    }


# ---- launches ----


class Launches:
    """Starts /bin/true with srun on a test cluster, and takes the figures."""

    def __init__(self, directory, options):
        self.directory, self.options = directory, options
        self.cluster = f"{directory}/cluster"
        self.usages = Usages(f"{directory}/usages")
        (self.slurmctld,) = self.processes("slurmctld")
        self.no_calls = "" if shutil.which("strace") else strace.MISSING
        self.figures = {}  # {(kind, config, method): {(subject, figure): values}}

    def processes(self, name):
        return capacity.of_cluster(self.cluster).get(name, [])

    def argv(self, kind, config, method, program=("/bin/true",)):
        nodes, per_node = config
        argv = ["srun", "-Q", f"--mpi={method.mpi}", f"-N{nodes}", f"-n{nodes * per_node}"]
        argv += [f"--ntasks-per-node={per_node}", *self.options.srun_option]
        return argv + ["--overlap"] * (kind == "step") + list(program)

    def add(self, row, subject, figures):
        mine = self.figures.setdefault(row, collections.defaultdict(list))
        for figure, value in figures.items():
            mine[subject, figure].append(value)

    @staticmethod
    def start(argv, errors=None):
        quiet = subprocess.DEVNULL
        return subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=errors)

    def finish(self, srun, argv):
        code, usage = usage_of_child(srun.pid)
        srun.returncode = code
        if code:
            raise BenchError(f"{' '.join(argv)}: exit code {code}")
        return usage

    def daemons(self, config):
        """Usages of the step daemons of a step that has ended."""
        return wait_for("the end of a step", lambda: self.usages.collect(config[0]))

    def take_step(self, row):
        argv, before = self.argv(*row), spent_by(self.slurmctld)
        self.add(row, "srun", self.finish(self.start(argv), argv))
        for usage in self.daemons(row[1]):
            self.add(row, "slurmstepd", usage)
        spent = spent_by(self.slurmctld) - before
        self.add(row, "slurmctld", {CPU: spent * 1e3})

    def take_job(self, row):
        """slurmctld's work for a job goes on after the end of srun."""
        argv, before = self.argv(*row), spent_by(self.slurmctld)
        self.add(row, "srun", self.finish(self.start(argv), argv))
        wait_for("the end of a job", lambda: not subprocess.run(
            ["squeue", "-h"], capture_output=True).stdout)
        spent = spent_by(self.slurmctld) - before
        self.add(row, "slurmctld", {CPU: spent * 1e3})

    def take_state(self, row):
        """Read the state of processes while the ranks wait."""
        nodes, per_node = row[1]
        argv = self.argv(*row, ("sleep", "1000"))
        srun = self.start(argv, subprocess.DEVNULL)
        try:
            wait_for("the ranks", lambda: len(self.processes("sleep")) >= nodes * per_node)
            self.add(row, "srun", state_of(srun.pid))
            for pid in self.processes("slurmstepd"):
                self.add(row, "slurmstepd", state_of(pid))
        finally:
            srun.send_signal(signal.SIGTERM)
            srun.wait()
            self.daemons(row[1])

    def take_calls(self, row):
        try:
            if not self.no_calls:
                self.trace(row)
        except strace.Unable as error:
            self.no_calls = f"{error}"

    def trace(self, row):
        with tempfile.TemporaryDirectory(dir=self.directory) as place_:
            of_srun, of_slurmd = f"{place_}/srun", f"{place_}/slurmd"
            argv = ["strace", "-f", "-o", of_srun, *self.argv(*row)]
            with strace.traced(self.processes("slurmd"), of_slurmd):
                self.finish(self.start(argv), argv)
                self.daemons(row[1])
            for path, name in (of_srun, "srun"), (of_slurmd, "slurmstepd"):
                calls = strace.count(path, name).per_daemon()
                self.add(row, name, {CALLS[role]: n for role, n in calls.items()})


def measure(launches, configs, methods, options):
    """The methods take turns, so that a busy moment does not hit one alone."""
    rounds = [launches.take_state] + [launches.take_step] * options.repeats
    rounds.append(launches.take_calls)
    per_node = max(config[1] for config in configs)
    progress = Progress(
        len(configs) * len(methods) * (len(rounds) + options.repeats), options.quiet)

    def take(kind, rounds):
        for config in configs:
            for one in rounds:
                for method in methods:
                    progress.step(f"{kind} {matrix.named(config)}, {method}")
                    one((kind, config, method))

    with place.allocation(options.private, per_node):
        take("step", rounds)
    take("job", [launches.take_job] * options.repeats)
    progress.end()


# ---- what is shown ----


def medians(figures):
    return {
        row: {name: statistics.median(values) for name, values in found.items()}
        for row, found in figures.items()
    }


def lines_of_launches(found, kind, config, methods):
    """{title: text} for each figure."""
    first = methods[0]
    for subject, figure in found[kind, config, first]:
        values = {m: found[kind, config, m][subject, figure] for m in methods}
        cells = {"what": f"{subject}: {figure}"}
        cells.update({f"{m}": f"{value:.1f}" for m, value in values.items()})
        if values[first]:
            cells.update({f"{m}/{first}": f"{values[m] / values[first]:.3f}"
                          for m in methods[1:]})
        yield cells


def growth(found):
    """{title: text} of a + c*N of processor times, for each series that is long enough."""
    series = collections.defaultdict(list)
    for (kind, (nodes, per_node), method), figures in found.items():
        for subject in "slurmctld", "srun":
            label = f"{subject}, a {kind}, {method}, {per_node} ranks/node"
            series[label].append((nodes, figures[subject, CPU]))
    for label, points in series.items():
        if len(points) >= SIZES_LEAST:
            columns = [[1.0] * len(points), [float(n) for n, _ in points]]
            a, c = fit.least_squares(columns, [value for _, value in points])
            yield {"what": label, "once": f"{a:.2f} ms", "for each node": f"{c:.4f} ms"}


def table(found, methods, markdown):
    for kind, config in dict.fromkeys((kind, config) for kind, config, _ in found):
        lines = list(lines_of_launches(found, kind, config, methods))
        head = f"/bin/true on {matrix.named(config)}, {KINDS[kind]}, medians"
        yield from block(head, lines, markdown)
    grown = list(growth(found))
    if grown:
        yield from block("growth of the CPU time: a + c*N", grown, markdown)


def write(path, notes, found):
    with open_csv(path) as file:
        writer = Writer(file, notes, COLUMNS)
        for (kind, config, method), figures in found.items() if file else ():
            writer.rows([kind, *config, *method, *name, f"{value:.3f}"]
                        for name, value in figures.items())


def check(options, configs, methods):
    if max(nodes for nodes, _ in configs) > options.private:
        raise BenchError(f"--private {options.private} has fewer nodes than --configs")
    for method in methods:
        if method.mpi in matrix.LAUNCHERS:
            raise BenchError(f"--counters: {method} does not start ranks with srun")


def run(options, configs, methods, program, notes):
    """Lines of the tables. program: the path of this one."""
    per_node = max(config[1] for config in configs)
    with place.private_cluster(
        place.find_cluster(program), options, per_node, usages=True
    ) as directory:
        launches = Launches(directory, options)
        measure(launches, configs, methods, options)
    found = medians(launches.figures)
    write(options.csv, notes, found)
    yield from table(found, methods, options.markdown)
    if launches.no_calls:
        yield f"no system calls are counted: {launches.no_calls}"
