# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x sim validate without a cluster: what was simulated with known costs, or what
was measured once, is taken for what was measured. Argument: pmi2x sim run."""

import csv
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
OPTIONS = types.SimpleNamespace(
    sim=SIM, width=16, cores=2, rounds=16, bytes=64, ranks_per_node=[1, 16],
    calibrate=[4, 8, 12], ops=validate.OPS)
NODES = [16, 64]


def run_program(program, *argv):
    places = ["--sim", SIM, "--programs", "/none", "--libraries", "/none"]
    return subprocess.run([sys.executable, "-B", program, *places, *argv],
                          capture_output=True, text=True)


def run(*argv):
    return run_program(PROGRAM, "--cores", "2", *argv)


def errors_shown(text):
    """{(nodes, operation or None): errors} of a table that was printed."""
    found = {}
    for line in text.splitlines():
        match = re.match(r" *(\d+) +\d+ (\w+)? .* ([+-]\d+) %$", line)
        if match:
            key = int(match[1]), match[2]
            found.setdefault(key, []).append(int(match[3]))
    return found


def known_points():
    return (validate.fit_points(OPTIONS) + validate.points(OPTIONS, NODES))


def write(path, costs, points, more_messages=0):
    """As --csv of a run whose agents follow the model."""
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(validate.FORM.columns)
        for point in points:
            r = validate.simulate(OPTIONS, point, costs)
            messages = r.messages + more_messages
            out.writerow(["fit", *point, messages, messages, r.bytes, r.bytes,
                          f"{r.time:.9f}", "", ""])


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
        for costs in ((1e-5, 2e-4, 6e-5, 0), (3e-4, 5e-5, 2e-5, 2e-9)):
            write(self.path, validate.Costs(*costs), known_points())
            done = run("--measured", self.path, "--csv", self.again)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = self.compared()
            self.assertEqual(len(rows), 16)
            for row in rows:
                self.assertLess(abs(float(row["error"])), 0.05, (costs, row))

    def test_counts_that_differ(self):
        costs = validate.Costs(0, 1e-4, 1e-5, 1e-9)
        write(self.path, costs, known_points(), more_messages=1)
        done = run("--measured", self.path, "--nodes", "16")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout.count("DIFFER"), 8)

    def test_missing_measurements_are_an_error(self):
        costs = validate.Costs(0, 1e-4, 1e-5, 1e-9)
        write(self.path, costs, validate.points(OPTIONS, [16]))
        done = run("--measured", self.path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("too little of the nodes of --calibrate", done.stderr)
        done = run("--measured", self.path, "--costs", "0,1e-4,1e-5,1e-9")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout.count("equal"), 8)
        self.assertEqual(done.stdout.count("has no 64 x "), 8)


class Simulated(unittest.TestCase):
    def test_groups_have_an_up_and_a_down_a_link(self):
        """Also where other ranks are in no group, however long they take."""
        for costs in ((0, 0, 1e-5, 0), (1e-5, 1e-4, 0, 1e-9)):
            for point in validate.points(OPTIONS, NODES):
                if point.op == "group":
                    found = validate.simulate(OPTIONS, point,
                                              validate.Costs(*costs))
                    self.assertEqual(found.messages, 2 * (point.nodes - 1))


class Recorded(unittest.TestCase):
    """The errors that doc/simulator.md states, of real runs that it describes."""

    def assert_within(self, errors, most, mean):
        self.assertLessEqual(max(map(abs, errors)), most, errors)
        self.assertLessEqual(statistics.mean(map(abs, errors)), mean, errors)

    def test_agents(self):
        done = run("--measured", str(RECORDED / "agents.csv"),
                   "--calibrate", "16,64", "--nodes", "128,256")
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
            ("--calibrate", "5000"), ("--costs", "1,2,3"), ("--rounds", "2"),
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
