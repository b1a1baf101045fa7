# SPDX-License-Identifier: BSD-3-Clause
"""Modules of pmi2x bench launch: matrix, plan, fit, tables, files."""

import contextlib
import io
import math
import os
import pathlib
import random
import shutil
import sys
import tempfile
import types
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[3] / "contrib" / "bench"
sys.path.insert(0, str(BENCH))

from pmi2x_bench import limits, place, run  # noqa: E402
from pmi2x_bench.errors import BenchError  # noqa: E402
from pmi2x_bench.launch import capacity, counters, fit, matrix  # noqa: E402
from pmi2x_bench.launch import plots, programs, record, report  # noqa: E402
from pmi2x_bench.launch import simulated, sources, strace  # noqa: E402
from pmi2x_bench.launch.measure import Measuring  # noqa: E402
from pmi2x_bench.launch.plan import Plan  # noqa: E402
from pmi2x_bench.record import Sample  # noqa: E402

NONE, PMI2, PMI2X = matrix.methods("none,pmi2,pmi2x")


class Matrix(unittest.TestCase):
    def test_default_configurations(self):
        found = matrix.configs(matrix.CONFIGS)
        self.assertEqual(len(found), 12)
        self.assertEqual(found[0], (256, 1))
        self.assertEqual(found[-1], (3000, 2))
        ranks = [nodes * per_node for nodes, per_node in found]
        self.assertEqual(ranks, sorted(ranks))

    def test_repeated_words_count_once(self):
        self.assertEqual(matrix.configs("4x2,4x2,2x1"), [(2, 1), (4, 2)])
        self.assertEqual(matrix.tests("pmi,true,pmi"), ["pmi", "true"])

    def test_clients(self):
        names = "none,pmi2,pmi2x,pmi2x:pmi1,pmix,hydra,prrte"
        clients = [matrix.client(m) for m in matrix.methods(names)]
        wanted = ["none", "stock", "own", "pmi1", "pmix", "pmi1", "pmix"]
        self.assertEqual(clients, wanted)

    def test_no_pmi_without_pmi(self):
        self.assertIn("no PMI", matrix.why_not("mpi", NONE))
        self.assertEqual(matrix.why_not("hostname", NONE), "")
        self.assertEqual(matrix.why_not("pmi", PMI2), "")


class Launches(unittest.TestCase):
    """An srun that is told the end of another job, or anything else."""

    def launch(self, words, times):
        """Fails `times` times with these words, then succeeds; (code, launches)."""
        script = f'echo . >>"$0"; [ $(wc -l <"$0") -gt {times} ] && exit 0; '
        script += f"echo 'srun: error: {words}' >&2; exit 1"
        with tempfile.NamedTemporaryFile("r") as file:
            with contextlib.redirect_stderr(io.StringIO()):
                argv = ["sh", "-c", script, file.name]
                code = run.run_srun(argv, timeout=60)[0]
            return code, len(file.readlines())

    def test_a_job_that_was_given_back(self):
        for words in (
            "Nodes n[1-16] are still not ready",
            "Unable to allocate resources: No error",
        ):
            self.assertEqual(self.launch(words, 1), (0, 2))
            self.assertEqual(self.launch(words, 9), (1, 2))

    def test_other_failures_stay(self):
        self.assertEqual(self.launch("task 3: exited", 1), (1, 1))


class Late(unittest.TestCase):
    """What was not done in time is not tried again, nor is what is larger."""

    def test_hopeless(self):
        calls = []

        def measure(test, config, method, timeout):
            calls.append((test, config, timeout))
            if test == "pmi" and config == (4, 1) and timeout > 120:
                raise sources.Late(600, ["srun"])
            return Sample([1.0])

        slurm = Source("private", 99)
        slurm.measure = measure
        planned = Plan(slurm, [])
        planned.add(["true", "pmi"], [(2, 1), (4, 1), (8, 1)], [PMI2X])
        options = types.SimpleNamespace(
            quiet=True, repeats=3, timeout=600, trial_timeout=100
        )
        measuring = Measuring(options, planned, record.FORM.writer(None, {}))
        self.assertEqual(measuring.run(), 1)
        late = [config for test, config, limit in calls[2:] if test == "pmi"]
        self.assertEqual(late, [(2, 1), (4, 1), (2, 1), (2, 1)])
        self.assertEqual(len([c for c in calls[2:] if c[0] == "true"]), 9)
        self.assertEqual({limit for *_, limit in calls[:2]}, {100})
        (reason,) = measuring.results.skips.values()
        self.assertIn("4x1 was not done in time", reason)
        self.assertIn(
            "not done after 600 s", "".join(report.failed(measuring.results))
        )


class Source:
    """A place with this number of nodes, which cannot do what is named."""

    def __init__(self, label, nodes, cannot=()):
        self.label, self.nodes, self.unable = label, nodes, cannot

    def room(self, test, config):
        return "" if config[0] <= self.nodes else f"only {self.nodes} nodes"

    def cannot(self, test, method):
        return "unable" if method in self.unable else ""


class Plans(unittest.TestCase):
    def plan(self, slurm, beyond, everywhere=False):
        planned = Plan(slurm, beyond, everywhere)
        planned.add(["true", "pmi"], [(4, 1), (8, 2)], [PMI2, PMI2X])
        return planned

    def labels(self, planned, config, method):
        return [
            cell.source.label
            for cell in planned.measured()
            if (cell.config, cell.method) == (config, method)
        ]

    def test_beyond_slurm(self):
        slurm, other = Source("private", 4), Source("emulated", 99, [PMI2])
        planned = self.plan(slurm, [other])
        self.assertEqual(self.labels(planned, (4, 1), PMI2), ["private"] * 2)
        self.assertEqual(self.labels(planned, (8, 2), PMI2X), ["emulated"] * 2)
        self.assertEqual(self.labels(planned, (8, 2), PMI2), [])
        (reason,) = {cell.reason for cell in planned.skipped()}
        self.assertEqual(reason, "private: only 4 nodes; emulated: unable")

    def test_everywhere(self):
        slurm, other = Source("private", 4), Source("emulated", 99)
        planned = self.plan(slurm, [other], everywhere=True)
        found = self.labels(planned, (4, 1), PMI2X)
        self.assertEqual(sorted(set(found)), ["emulated", "private"])

    def test_asked_for_by_name(self):
        planned = self.plan(Source("private", 4), [])
        lists = {"configs": [(4, 1), (8, 2)], "tests": ["true", "pmi"]}
        planned.check(lists, {"tests"})
        with self.assertRaisesRegex(BenchError, "--configs: 8x2: .*only 4"):
            planned.check(lists, {"configs"})
        with self.assertRaisesRegex(BenchError, "only 2 nodes"):
            self.plan(Source("private", 2), []).check(lists, set())

    def test_trials_are_small(self):
        slurm = Source("private", 99)
        trials = self.plan(slurm, []).trials()
        self.assertEqual(trials[slurm, "pmi", PMI2], (2, 1))
        self.assertEqual(len(trials), 4)

    def test_failed_trial_stops_its_rows(self):
        slurm = Source("private", 99)
        planned = self.plan(slurm, [])
        planned.drop_trial((slurm, "pmi", PMI2), "alone")
        self.assertEqual(len(planned.measured()), 6)
        self.assertEqual(
            {(c.test, c.method, c.reason) for c in planned.skipped()},
            {("pmi", PMI2, "private: alone")},
        )


class Output(unittest.TestCase):
    def test_right(self):
        programs.check("true", 4, "")
        programs.check("hostname", 3, "n1\nn2\nn2\n")
        programs.check("mpi", 4, "some warning\nnoop ranks=4\n")

    def test_wrong(self):
        for test, text in (
            ("hostname", "n1\nn2\n"),
            ("pmi", ""),
            ("pmi", "noop ranks=2\n"),
            ("mpi", "noop ranks=3\nnoop ranks=3\n"),
        ):
            with self.assertRaises(BenchError):
                programs.check(test, 3, text)

    def test_alone(self):
        with self.assertRaisesRegex(programs.Alone, "3 programs of one rank"):
            programs.check("mpi", 3, "noop ranks=1\n" * 3)


class Fits(unittest.TestCase):
    SIZES = (16, 64, 256, 512, 1024, 3000)

    def curve(self, a, b, c):
        return [(n, a + b * math.log2(n) + c * n) for n in self.SIZES]

    def test_exact(self):
        for wanted in (0.2, 0.03, 0.001), (1.0, 0.0, 2e-4), (0.5, 0.25, 0.0):
            found = fit.fit(self.curve(*wanted))
            for mine, right in zip(found[:3], wanted):
                self.assertAlmostEqual(mine, right, places=9)
            self.assertLess(found.residual, 1e-9)

    def test_noise_is_in_the_residual(self):
        draw = random.Random(1)
        points = [
            (n, t + draw.gauss(0, 0.01))
            for n, t in self.curve(0.2, 0.03, 0.001) * 50
        ]
        found = fit.fit(points)
        self.assertAlmostEqual(found.c, 0.001, delta=5e-5)
        self.assertAlmostEqual(found.residual, 0.01, delta=0.002)

    def test_no_better_coefficients(self):
        points = [(n, math.sqrt(n)) for n in self.SIZES]
        best = fit.fit(points)

        def square(a, b, c):
            return sum(
                (t - a - b * math.log2(n) - c * n) ** 2 for n, t in points
            )

        least = square(*best[:3])
        for i, step in enumerate((0.1, 0.05, 0.001)):
            for sign in -1, 1:
                other = list(best[:3])
                other[i] += sign * step
                self.assertGreater(square(*other), least)

    def test_too_few_sizes(self):
        self.assertIsNone(fit.fit(self.curve(1, 1, 1)[:3]))
        self.assertIsNone(fit.fit([(4, 1.0), (4, 2.0), (8, 3.0), (8, 4.0)]))
        self.assertIsNotNone(fit.fit(self.curve(1, 1, 1)[:4]))

    def test_verdicts(self):
        def says(a, b, c):
            return fit.verdict(fit.fit(self.curve(a, b, c)))

        self.assertRegex(says(0.1, 0, 0.01), r"^c\*N: 100 %")
        self.assertRegex(says(0.1, 0.5, 1e-5), r"^b\*log2 N: 9\d %")
        self.assertEqual(says(10, 0.01, 0), "hardly grows")
        self.assertEqual(says(10, -1, 0), "shrinks")
        self.assertIn("flattened", says(0.1, 1.0, -1e-4))
        steep = fit.fit([(n, float(n) ** 3) for n in self.SIZES])
        self.assertTrue(fit.verdict(steep).endswith("but fits badly"))


def results_of(*triples):
    """Of (config, method, test, seconds of the repeats)."""
    found = report.Results()
    for config, method, test, times in triples:
        key = report.Key("private", test, config, method)
        for repeat, seconds in enumerate(times, 1):
            found.add(key, Sample([seconds], repeat))
    return found


class Tables(unittest.TestCase):
    def test_median_and_ratio(self):
        results = results_of(
            ((4, 2), PMI2, "pmi", [3.0, 1.0, 2.0]),
            ((4, 2), PMI2X, "pmi", [0.5, 0.5, 9.0]),
        )
        lines = list(report.table(results))
        self.assertEqual(lines[1], "pmi: PMI no-op, the whole launch")
        self.assertRegex(lines[3], r"^ *4 +2 +8  pmi2:stock +private +2 s ")
        self.assertRegex(lines[4], r"pmi2x:own +private +500 ms .* 4\.00x")

    def test_above_true_is_of_one_repeat(self):
        results = results_of(
            ((4, 1), PMI2X, "true", [1.0, 2.0, 5.0]),
            ((4, 1), PMI2X, "pmi", [1.25, 2.25]),
        )
        key = report.Key("private", "pmi", (4, 1), PMI2X)
        self.assertEqual(results.above_true(key), 0.25)
        self.assertIn("250 ms", "\n".join(report.table(results)))

    def test_sources_are_not_mixed(self):
        results = results_of(
            *(((n, 1), PMI2X, "true", [n * 1.0]) for n in (2, 4, 8, 16))
        )
        key = report.Key("emulated", "true", (32, 1), PMI2X)
        results.add(key, Sample([0.001]))
        found = [f for _, _, f in report.fits(results) if f]
        self.assertEqual({f.high for f in found}, {16})
        self.assertIn("no fit for 2 of 4", "\n".join(report.growth(results)))

    def test_failures_and_skips(self):
        results = report.Results()
        key = report.Key("real", "mpi", (2, 1), PMI2)
        results.fail(key, "exit code 1")
        results.skip(key._replace(method=NONE), "no PMI")
        self.assertIn("1 failed", "\n".join(report.table(results)))
        (line,) = report.skipped(results)
        self.assertEqual(line, "SKIP mpi with none at 2x1: no PMI")

    def test_markdown(self):
        results = results_of(((4, 1), PMI2X, "true", [1.0]))
        lines = list(report.table(results, markdown=True))
        self.assertTrue(lines[2].startswith("| nodes | ranks/node |"))

    def test_curves_by_node_and_by_process(self):
        results = results_of(
            ((2, 4), PMI2X, "true", [1.0, 3.0]),
            ((4, 4), PMI2X, "true", [2.0]),
        )
        (node,) = plots.curves(results, "true", "by-node")
        (rank,) = plots.curves(results, "true", "by-process")
        self.assertEqual(node.points, [(2, 2.0, 1.0, 3.0), (4, 2.0, 2.0, 2.0)])
        self.assertEqual([point[0] for point in rank.points], [8, 16])


class Files(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as place:
            path = f"{place}/file.csv"
            with open(path, "w") as file:
                file.write(text)
            return record.read([path])

    def test_there_and_back(self):
        file = io.StringIO()
        writer = record.FORM.writer(file, {"machine": "m"})

        def write(*row):
            writer.rows([record.row(*row)])

        key = report.Key("private", "pmi", (4, 2), PMI2X)
        write(key, 1, "ok", "", 0.5, 0.25)
        self.assertTrue(file.getvalue().endswith(",0.500000000,0.25,ok,\n"))
        write(key, 2, "failed", "exit code 1\n  x, y")
        other = key._replace(source="-", method=NONE)
        write(other, 0, "skipped", "no PMI")
        results, notes = self.read(file.getvalue())
        self.assertEqual(notes, {"pmi": {"machine": "m"}})
        self.assertEqual(results.values(key), [0.5])
        self.assertEqual(results.failures[key], ["exit code 1 / x, y"])
        self.assertEqual(results.skips[other], "no PMI")

    def test_not_ours(self):
        for text in "", "a,b\n1,2\n":
            with self.assertRaisesRegex(BenchError, "no CSV file"):
                self.read(text)
        head = ",".join(record.FORM.columns)
        good = "pmi,pmi2x,own,4,2,8,private,1,0.5,,ok,"
        self.read(f"{head}\n{good}\n")
        for old, new in (
            ("pmi,", "pm,"),
            (",4,", ",x,"),
            ("private", "heard"),
            (",ok,", ",fine,"),
            ("0.5", "half"),
            (",ok,", ""),
        ):
            with self.assertRaises(BenchError):
                self.read(f"{head}\n{good.replace(old, new, 1)}\n")


class Machine(unittest.TestCase):
    def setUp(self):
        self.kb, self.saved = 1 << 20, limits.available_kb
        limits.available_kb = lambda: self.kb

    def tearDown(self):
        limits.available_kb = self.saved

    def test_as_many_nodes_as_memory_holds(self):
        costs = limits.Costs(base=48 * 1024, node=8192, step=4096, rank=1024)
        point = matrix.point("pmi", (1, 4))
        nodes, reason = limits.most_nodes(point, costs)
        self.assertEqual(nodes, (self.kb - 48 * 1024) // (12288 + 4 * 1024))
        self.assertIn("MB of memory", reason)
        mpi, _ = limits.most_nodes(matrix.point("mpi", (1, 4)), costs)
        self.assertLess(mpi, nodes)

    def test_memory_that_grows_meanwhile(self):
        grown = iter(range(self.kb, 1 << 62, 1 << 14))
        limits.available_kb = lambda: next(grown)
        nodes, reason = limits.most_nodes(matrix.point("mpi", (1, 1)))
        self.assertGreater(nodes, 0)
        self.assertIn("MB of memory", reason)

    def test_nodes_by_memory_alone(self):
        costs = limits.Costs(base=1000, node=100, step=60, rank=10)
        point = matrix.point("pmi", (1, 4))
        self.assertEqual(capacity.by_memory(costs, point, 1000), 0)
        self.assertEqual(capacity.by_memory(costs, point, 1000 + 400), 2)

    def test_emulated_nodes_need_memory(self):
        source = sources.Emulated(types.SimpleNamespace(), None, "")
        self.assertEqual(source.room("pmi", (64, 2)), "")
        self.assertIn("free -m", source.room("pmi", (3000, 2)))
        self.assertIn("at most 4096", source.room("pmi", (5000, 1)))


# A daemon (10) with a thread (11), interrupted lines, and a rank (12).
TRACE = """\
9     read(3, "x", 1) = 1
10    execve("/usr/sbin/slurmstepd", ["slurmstepd"], 0x7 /* 2 vars */) = 0
10    close(3) = 0
10    clone3({flags=CLONE_VM|CLONE_THREAD, child_tid=0x7f} <unfinished ...>
11    poll([{fd=4, events=POLLIN}], 1, -1 <unfinished ...>
10    <... clone3 resumed> => {parent_tid=[11]}, 88) = 11
10    clone(child_stack=NULL, flags=SIGCHLD) = 12
12    socketpair(AF_UNIX, SOCK_STREAM, 0, [5, 6]) = 0
12    execve("/bin/true", ["true"], 0x7 /* 3 vars */) = 0
12    brk(NULL) = 0x55
11    <... poll resumed>) = 1 ([{fd=4, revents=POLLIN}])
11    exit(0) = ?
10    +++ exited with 0 +++
"""


class Counters(unittest.TestCase):
    def test_calls_of_a_daemon_and_of_its_children(self):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "trace"
            path.write_text(TRACE)
            calls = strace.count(path, "slurmstepd")
            with self.assertRaisesRegex(BenchError, "seen no srun"):
                strace.count(path, "srun")
        self.assertEqual(calls.daemons, 1)
        self.assertEqual(
            dict(calls.counts["daemon"]),
            {"close": 1, "clone3": 1, "clone": 1, "poll": 1, "exit": 1},
        )
        self.assertEqual(calls.per_daemon(), {"daemon": 5, "children": 2})

    def test_missing_process_is_not_traced(self):
        if not shutil.which("strace"):
            self.skipTest("no strace")
        with tempfile.TemporaryDirectory() as place:
            with self.assertRaisesRegex(strace.Unable, "attach"):
                with strace.traced([1 << 22], f"{place}/out"):
                    self.fail("it has attached to a process that cannot be")

    def test_usages_wait_for_all_daemons_of_a_step(self):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "usages"
            usages = counters.Usages(path)
            self.assertIsNone(usages.collect(1))
            path.write_text("slurmstepd 0.5 3 4\nsleep 1.0 1 1\n")
            self.assertIsNone(usages.collect(2))
            path.write_text(path.read_text() + "slurmstepd 0.25 1 2\n")
            first, last = usages.collect(2)
            self.assertEqual(first[counters.CPU], 500)
            self.assertEqual(last[counters.FAULTS], 2)
            self.assertIsNone(usages.collect(1))

    def test_growth_needs_three_sizes(self):
        found = {
            ("job", (nodes, 1), NONE): {
                ("srun", counters.CPU): 5 + 2.0 * nodes,
                ("slurmctld", counters.CPU): 1.0,
            }
            for nodes in (4, 8)
        }
        self.assertEqual(list(counters.growth(found)), [])
        found["job", (16, 1), NONE] = {
            ("srun", counters.CPU): 37.0,
            ("slurmctld", counters.CPU): 1.0,
        }
        (line,) = [r for r in counters.growth(found) if "srun" in r["what"]]
        self.assertEqual((line["once"], line["for each node"]), ("5.00 ms", "2.0000 ms"))


class Environments(unittest.TestCase):
    def read(self, data):
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            return place.read_environment(file)

    def test_environment_of_an_allocation_is_read(self):
        found = self.read(b"A=1\nB=2\0SLURM_JOB_ID=7\0NAME=\xff\0\0")
        self.assertEqual(found["SLURM_JOB_ID"], "7")
        self.assertEqual(found["A"], "1\nB=2")
        self.assertEqual(os.fsencode(found["NAME"]), b"\xff")

    def test_environment_without_an_end_is_empty(self):
        self.assertEqual(self.read(b"SLURM_JOB_ID=7\0"), {})


class Simulations(unittest.TestCase):
    def test_scenario_keeps_the_machine(self):
        theirs = "[step]\nnodes = 7\n[network]\nlatency = 3us # slow\n"
        kept = simulated.kept_sections(theirs)
        text = simulated.scenario((256, 16), PMI2, kept)
        self.assertIn("nodes = 256\nranks_per_node = 16\n", text)
        self.assertIn("protocol = mpi-pmi2\n", text)
        self.assertIn("[network]\nlatency = 3us", text)
        self.assertNotIn("nodes = 7", text)

    def test_time_of_all_operations(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "csv")
            rows = ["number,failed,first_entry_s,last_exit_s"]
            rows += ["1,0,0.5,0.75", "2,0,0.625,1.0", "0,0,0.0,9.0"]
            pathlib.Path(path).write_text("\n".join(rows) + "\n")
            self.assertEqual(simulated.seconds_of(path), 0.5)
            pathlib.Path(path).write_text("\n".join(rows[:1] + ["1,3,0,1"]))
            with self.assertRaisesRegex(BenchError, "has failed"):
                simulated.seconds_of(path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
