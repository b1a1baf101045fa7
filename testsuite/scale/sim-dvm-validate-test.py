# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x sim validate --dvm without a DVM: what was simulated with known costs is taken
for what was measured. Arguments: pmi2x sim run, pmi2x-dvm."""

import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(TOP / "contrib" / "sim" / "pmi2x-sim-validate")
SIM, DVM = sys.argv[1:3]

sys.path.insert(0, str(TOP / "contrib" / "bench"))
from pmi2x_bench.tasks import validate  # noqa: E402

OPTIONS = types.SimpleNamespace(sim=SIM, dvm_program=DVM, cores=2)
KNOWN = validate.Costs(5e-5, 1.5e-5, 1e-5, 2e-5, 1e-4, 1.2e-3, 20)
SINGLE = validate.Single(KNOWN.latency + KNOWN.place + KNOWN.take, KNOWN.submit)


def measured(nodes, **changes):
    """A simulation, with the processor time that its costs stand for."""
    tasks, first = validate.all_tasks(nodes), validate.workload(nodes)[0]
    result = validate.simulate(OPTIONS, nodes, KNOWN)
    parts = validate.parts_of(tasks)
    return result._replace(
        early=KNOWN.submit * len(tasks) + KNOWN.place * validate.parts_of(first),
        head=KNOWN.submit * len(tasks) + (KNOWN.place + KNOWN.end) * parts,
        daemon=KNOWN.take * parts / validate.SHARE_TAKE,
        node=-KNOWN.take * parts + KNOWN.start * sum(task.ranks for task in tasks))._replace(**changes)


class Measured(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.path = f"{place.name}/csv"

    def write(self, **changes):
        with open(self.path, "w", newline="") as file:
            writer = validate.FORM.writer(file, {"machine": "none"})
            for use, nodes in ("fit", 2), ("fit", 4), ("compare", 16):
                real = measured(nodes, **(changes if use == "compare" else {}))
                writer.rows([validate.row(use, OPTIONS, nodes, real, real, SINGLE)])

    def run_program(self):
        return subprocess.run(
            [sys.executable, "-B", PROGRAM, "--sim", SIM, "--dvm-program", DVM, "--programs",
             "/none", "--libraries", "/none", "--dvm", "--measured", self.path],
            capture_output=True, text=True)

    def test_known_costs_are_found(self):
        self.write()
        done = self.run_program()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = [float(n) / 1e6 for n in re.findall(r"[\d.]+(?= us| and [\d.]+ us a part)", done.stdout)]
        for is_, should in zip(found, KNOWN):
            self.assertLess(abs(is_ / should - 1), 0.03, done.stdout)
        behind = int(re.search(r"waits for (\d+) % of the processes", done.stdout)[1])
        self.assertLessEqual(abs(behind - KNOWN.behind), 2, done.stdout)
        self.assertEqual(done.stdout.count(" equal "), 3)

    def test_messages_that_differ(self):
        self.write(messages=1)
        done = self.run_program()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("not within the limits: 16 nodes: messages differ", done.stdout)

    def test_nodes_with_other_tasks(self):
        self.write(per_node="1 2 3")
        self.assertIn("16 nodes: per_node differ", self.run_program().stdout)

    def test_times_that_are_too_far_off(self):
        self.write(start=1.0, ttx=1.0)
        done = self.run_program()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("16 nodes: setup is more than 33% off", done.stdout)
        self.assertIn("16 nodes: TTX is more than 3% off", done.stdout)

    def test_a_file_of_another_form_is_an_error(self):
        pathlib.Path(self.path).write_text("a,b\n1,2\n")
        done = self.run_program()
        self.assertEqual(done.returncode, 2)
        self.assertIn("--measured", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


class Workload(unittest.TestCase):
    def test_every_node_gets_a_task_that_needs_all_of_it(self):
        tasks = validate.all_tasks(16)
        self.assertEqual(sum(task.cores == validate.SLOTS for task in tasks), 16)
        self.assertTrue(any(task.nodes == 2 for task in tasks))
        self.assertLess(validate.SECONDS[1], 2 * validate.SECONDS[0])

    def test_tasks_of_a_simulation_are_those_that_a_client_submits(self):
        texts = [task["argv"][1] for task in validate.request(
            [validate.Task(1, 1, 0, 0, seconds) for seconds in (5.0, 5.25, 5.1)])["tasks"]]
        self.assertEqual(texts, ["5", "5.25", "5.1"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
