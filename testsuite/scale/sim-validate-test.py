# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x sim validate without a cluster: what was simulated with known costs, or what
was measured once, is taken for what was measured. Argument: pmi2x sim run."""

import importlib.machinery
import importlib.util
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(TOP / "contrib" / "sim" / "pmi2x-sim-validate")
OF_PMI2 = str(TOP / "contrib" / "sim" / "pmi2x-sim-validate-pmi2")
RECORDED = TOP / "testsuite" / "scale" / "recorded"
SIM = sys.argv[1] if len(sys.argv) > 1 else "contrib/sim/pmi2x-sim-run"


def load():
    loader = importlib.machinery.SourceFileLoader("validate", PROGRAM)
    spec = importlib.util.spec_from_loader("validate", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


validate = load()
calibrate, fit, points, predict = (
    validate.calibrate, validate.fit, validate.points, validate.predict)
NODES = [16, 32]
OPTIONS = types.SimpleNamespace(
    sim=SIM, width=16, cores=2, rounds=16, bytes=64, ranks_per_node=[1, 16],
    calibrate=[4, 8], nodes=NODES, ops=points.OPS, runs=10)
COSTS = predict.Costs(1e-5, 5e-5, 1e-5, 1e-5, 0, 1e-9, 0)


def run_program(program, *argv):
    places = ["--sim", SIM, "--programs", "/none", "--libraries", "/none"]
    return subprocess.run([sys.executable, "-B", program, *places, *argv],
                          capture_output=True, text=True)


def run(*argv):
    return run_program(PROGRAM, "--cores", "2", "--runs", "10", *argv)


def errors_shown(text):
    """{(nodes, operation or None): errors} of a table that was printed."""
    found = {}
    for line in text.splitlines():
        match = re.match(r" *(\d+) +\d+ (\w+)? .* ([+-]\d+) %$", line)
        if match:
            key = int(match[1]), match[2]
            found.setdefault(key, []).append(int(match[3]))
    return found


def machine_of(costs, noise=predict.NO_NOISE):
    return predict.sections(costs, noise, OPTIONS.cores)


def known_points():
    return (calibrate.points_of(OPTIONS, OPTIONS.calibrate)
            + validate.compared_points(OPTIONS))


def simulated(point, costs, repeats=1, noise=predict.NO_NOISE):
    """What agents that follow the model show."""
    rows = [predict.rows_of(OPTIONS, point, machine_of(costs, noise), seed)
            for seed in range(1, repeats + 1)]
    return points.Result(int(rows[0][0]["messages"]), int(rows[0][0]["bytes"]),
                         [predict.rounds_of(r) for r in rows], 0.5, 0.2)


def write(path, costs, which, more_messages=0, **how):
    """As --csv of a run whose agents follow the model."""
    with open(path, "w", newline="") as file:
        out = points.FORM.writer(file, {})
        for point in which:
            r = simulated(point, costs, **how)
            r = r._replace(messages=r.messages + more_messages)
            out.rows([points.row("fit", point, r, r)])


def write_calibration(path, machine, report):
    with calibrate.file_of(path) as part:
        calibrate.write(part, machine, report)


class Measured(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.path, self.again = f"{place.name}/csv", f"{place.name}/again"

    def compared(self):
        with open(self.again, newline="") as file:
            return [row for row in validate.record.rows_of(file)
                    if row["use"] == "compare"]

    def test_known_costs_are_found(self):
        write(self.path, predict.Costs(1e-4, 5e-5, 4e-5, 2e-5, 1e-5, 2e-9, 1e-13),
              known_points())
        done = run("--measured", self.path, "--calibrate", "4,8", "--nodes", "16,32",
                   "--csv", self.again)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.compared()
        self.assertEqual(len(rows), 16)
        errors = [abs(float(row["error"])) for row in rows]
        self.assertLess(statistics.mean(errors), 0.05, done.stdout)
        self.assertLess(max(errors), 0.15, done.stdout)

    def test_counts_that_differ(self):
        write(self.path, COSTS, known_points(), more_messages=1)
        done = run("--measured", self.path, "--calibrate", "4,8", "--nodes", "16")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("messages and", done.stderr)

    def test_calibration_of_a_file(self):
        file = f"{self.path}.calibration"
        machine = machine_of(COSTS, predict.Noise(20, 10))
        write_calibration(file, machine, ["a line of the report"])
        self.assertIn("# a line of the report", pathlib.Path(file).read_text())
        write(self.path, COSTS, validate.compared_points(OPTIONS))
        done = run("--measured", self.path, "--calibration", file, "--nodes",
                   "16,32", "--csv", self.again)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("fitted at", done.stdout)
        for row in self.compared():
            low, high, time = (float(row[name]) for name in ("low_s", "high_s", "time_s"))
            self.assertLess(low * 1.1, high)
            self.assertLess(abs(float(row["error"])), 0.2)
        write(self.path, COSTS, validate.compared_points(OPTIONS), more_messages=1)
        done = run("--measured", self.path, "--calibration", file, "--nodes", "16")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout.count("DIFFER"), 8)

    def test_wrong_calibration_is_named(self):
        for text, why in ((b"", "no costs are in it"), (b"\xff\xfe", "decode"),
                          (b"[node]\nwake = soon\n", ":2: wake: allowed is a time"),
                          (b"[node]\nwake = 1us\n[step]\nnodes = 9\n", ":4: nodes: a calib")):
            file = pathlib.Path(f"{self.path}.calibration")
            file.write_bytes(text)
            write(self.path, COSTS, [points.Point(16, 1, "fence", 64)])
            done = run("--measured", self.path, "--calibration", str(file), "--nodes", "16")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, f"--calibration: .*calibration.*{why}")
            self.assertNotIn("Traceback", done.stderr)

    def test_old_calibration_stays_if_there_is_no_new_one(self):
        path = f"{self.path}.calibration"
        write_calibration(path, ["[node]"], ["old"])
        with self.assertRaisesRegex(predict.BenchError, "failed"):
            with calibrate.file_of(path):
                raise predict.BenchError("failed")
        self.assertIn("old", pathlib.Path(path).read_text())
        self.assertEqual(list(pathlib.Path(path).parent.glob("*.part")), [])
        for wrong in "/none/directory/file", pathlib.Path(path).parent:
            with self.assertRaisesRegex(predict.BenchError, str(wrong)):
                with calibrate.file_of(wrong):
                    self.fail("no file was opened")
        with self.assertRaisesRegex(predict.BenchError, "/dev/full: No space left"):
            write_calibration("/dev/full", ["[node]"], [])

    def test_missing_measurements_are_an_error(self):
        write(self.path, COSTS, [points.Point(16, 1, "fence", 64)])
        done = run("--measured", self.path, "--calibrate", "4,8")
        self.assertEqual(done.returncode, 2)
        self.assertIn("too little of the nodes of --calibrate", done.stderr)
        file = f"{self.path}.calibration"
        write_calibration(file, machine_of(COSTS), [])
        done = run("--measured", self.path, "--calibration", file, "--nodes", "16,32")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout.count("64 30 ") + done.stdout.count(" equal "), 1)
        self.assertEqual(done.stdout.count("has no 32 x "), 2)


class Deviations(unittest.TestCase):
    def result(self, repeats, service=0.2):
        return points.Result(1, 1, repeats, 0.5, service)

    def test_outliers_do_not_count(self):
        rounds = [0.9, 1.0, 1.1, 1.0, 0.95, 1.05, 1.0, 30.0]
        self.assertLess(points.deviation(rounds), 0.1)
        self.assertEqual(points.typical(rounds), 1.0)

    def test_steps_that_differ_are_drift(self):
        same = [self.result([[1.0, 1.1, 0.9]] * 3)] * 9
        self.assertLess(points.of_repeats(same), 0.01)
        other = [self.result([[f * t for t in (1.0, 1.1, 0.9)] for f in (0.8, 1.0, 1.25)])] * 9
        self.assertGreater(points.of_repeats(other), 0.2)

    def test_spread_is_that_of_leaves(self):
        results = [self.result([[1.0]], s) for s in (0.1, 0.3, 0.4, None)]
        self.assertEqual(fit.spread_of(results), 30)
        self.assertEqual(fit.spread_of([self.result([[1.0]], None)]), 0)

    def test_drift_has_steps_and_points_that_differ(self):
        for factors, off, low, high in (((1, 1, 1), 1.0, 0, 2), ((0.8, 1, 1.25), 1.0, 20, 45),
                                        ((1, 1, 1), 1.3, 0, 2)):
            measured = {}
            for number, point in enumerate(calibrate.points_of(OPTIONS, [4])):
                r = simulated(point, COSTS)
                scale = off if number % 2 else 1 / off
                measured[point] = r._replace(repeats=[
                    [t * f * scale for t in r.repeats[0]] for f in factors])
            with unittest.mock.patch.object(fit, "fit_costs", lambda *what: COSTS):
                found = fit.fit(OPTIONS, measured, lambda what: None)
            self.assertEqual(found.noise.spread, 20)
            more = 30 if off > 1 else 0
            self.assertGreaterEqual(found.noise.drift, low + more, factors)
            self.assertLessEqual(found.noise.drift, high + 2 * more, factors)
        self.assertIn("20 % (spread", fit.report(found, list(measured))[2])


class Simulated(unittest.TestCase):
    def test_groups_have_an_up_and_a_down_a_link(self):
        """Also where other ranks are in no group, however long they take."""
        for costs in ((0, 0, 0, 1e-5, 0, 0, 0), (1e-5, 1e-4, 0, 0, 0, 1e-9, 0)):
            for point in validate.compared_points(OPTIONS):
                if point.op == "group":
                    found = simulated(point, predict.Costs(*costs))
                    self.assertEqual(found.messages, 2 * (point.nodes - 1))


class Recorded(unittest.TestCase):
    """The errors that doc/simulator.md states, of real runs that it describes. Costs of
    agents were fitted at 16 and 64 nodes."""

    def assert_within(self, errors, most, mean):
        self.assertLessEqual(max(map(abs, errors)), most, errors)
        self.assertLessEqual(statistics.mean(map(abs, errors)), mean, errors)

    def test_agents(self):
        done = run("--measured", str(RECORDED / "agents.csv"),
                   "--calibration", str(RECORDED / "agents.calibration"),
                   "--nodes", "128,256")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = errors_shown(done.stdout)
        self.assertEqual(len(found), 6)
        rings = [e for (_, op), es in found.items() if op == "ring" for e in es]
        others = [e for (_, op), es in found.items() if op != "ring" for e in es]
        self.assertEqual((len(rings), len(others)), (4, 8))
        self.assert_within(rings, 45, 30)
        self.assert_within(others, 33, 20)

    def test_mpi_pmi2(self):
        done = run_program(OF_PMI2, "--measured",
                           str(RECORDED / "mpi-pmi2.csv"), "--fit", "8,32")
        self.assertEqual(done.returncode, 0, done.stderr)
        errors = [e for es in errors_shown(done.stdout).values() for e in es]
        self.assertEqual(len(errors), 12)
        self.assert_within(errors, 35, 15)


class Refused(unittest.TestCase):
    def test_words(self):
        for option, value in (
            ("--nodes", "0"), ("--nodes", "16,x"), ("--nodes", ""),
            ("--calibrate", "5000"), ("--calibration", "/none/file"), ("--rounds", "3"),
            ("--rounds", "65"), ("--bytes", "1024"), ("--repeats", "0"),
            ("--cores", "0"), ("--width", "1"), ("--ranks-per-node", "0"),
            ("--measured", "/none/csv"), ("--measured", PROGRAM),
            ("--csv", "/none/csv"),
        ):
            done = run(option, value)
            self.assertEqual(done.returncode, 2, option)
            self.assertIn(option, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
