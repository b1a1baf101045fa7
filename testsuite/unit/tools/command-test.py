# SPDX-License-Identifier: BSD-3-Clause
"""The command pmi2x starts the program of a verb, and names the nearest of a wrong one."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
COMMAND = SOURCE / "src/tools/pmi2x"


def pmi2x(*argv, **env):
    return subprocess.run(
        [sys.executable, "-B", COMMAND, *argv], capture_output=True, text=True,
        timeout=60, env={**os.environ, **env}, check=False)


def verbs():
    return [line.split("\t")[0] for line in pmi2x("--list").stdout.splitlines()]


class Verbs(unittest.TestCase):
    def test_the_program_gets_the_arguments(self):
        with tempfile.TemporaryDirectory() as place:
            program = pathlib.Path(place) / "pmi2x-tell"
            program.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n")
            program.chmod(0o755)
            done = pmi2x("tell", "a b", "--help", "", PATH=f"{place}:{os.environ['PATH']}")
        self.assertEqual((done.stdout, done.returncode), ("<a b><--help><>", 7))

    def test_each_has_help_and_a_page(self):
        page = (SOURCE / "src/tools/pmi2x.1").read_text()
        self.assertGreater(len(verbs()), 12)
        for verb in verbs():
            with self.subTest(verb=verb):
                self.assertRegex(page, rf"(?m)^\.It Cm {verb}( |$)")
                self.assertIn(verb, pmi2x("--help").stdout)

    def test_verbs_of_the_source_tree_start(self):
        for verb in "check", "why", "trace", "cluster", "sim plot", "bench launch":
            with self.subTest(verb=verb):
                done = pmi2x(*verb.split(), "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_verbs_of_two_words_start(self):
        done = pmi2x("bench", "lookup", "--version")
        self.assertRegex(done.stdout, "^pmi2x bench lookup ")


class WrongOnes(unittest.TestCase):
    def refused(self, *argv):
        done = pmi2x(*argv)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        return done.stderr

    def test_the_nearest_is_named(self):
        for wrong, near in (("chekc", "check"), ("wy", "why"), ("bench rign", "bench ring"),
                            ("sim plt", "sim plot")):
            with self.subTest(verb=wrong):
                self.assertIn(f'did you mean "pmi2x {near}"?', self.refused(*wrong.split()))

    def test_nothing_is_near(self):
        for words in ["xxxxxxxx"], ["bench", "why"], ["help", "nothing"], [""]:
            self.assertIn("see pmi2x --help", self.refused(*words))

    def test_the_second_word_is_missing(self):
        for words in ["bench"], ["bench", "--nodes"]:
            self.assertIn("bench needs one of: bench collectives, bench launch",
                          self.refused(*words))

    def test_a_path_is_no_verb(self):
        self.assertIn("is not a verb", self.refused("../tools/pmi2x-why"))

    def test_an_option_is_not_called_a_verb(self):
        self.assertIn('\'--versoin\' is not an option: did you mean "pmi2x --version"?',
                      self.refused("--versoin"))

    def test_outside_of_a_step(self):
        done = pmi2x("bench", "ring", PATH=os.environ["PATH"])
        self.assertIn("runs in a step: srun --mpi=pmi2x", done.stderr)

    def test_without_verb(self):
        done = pmi2x()
        self.assertEqual((done.returncode, bool(re.search("why +", done.stdout))), (2, True))

    def test_a_program_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as place:
            copy = pathlib.Path(place) / "pmi2x"
            copy.write_text(COMMAND.read_text())
            for verb, remedy in (("why", "package pmi2x-tools of this release\n"),
                                 ("dvm", "or build pmi2x with libjansson")):
                done = subprocess.run([sys.executable, copy, verb], capture_output=True,
                                      text=True, env={"PATH": "/none"}, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(remedy, done.stderr)


class Help(unittest.TestCase):
    def shown(self, *words):
        """What man would be given."""
        with tempfile.TemporaryDirectory() as place:
            man = pathlib.Path(place) / "man"
            man.write_text("#!/bin/sh\necho man \"$@\"\n")
            man.chmod(0o755)
            return pmi2x("help", *words, PATH=f"{place}:{os.environ['PATH']}").stdout

    def test_help_opens_the_page(self):
        for words, page in ([], "pmi2x"), (["why"], "pmi2x-why"), (
                ["sim", "plot"], "pmi2x-sim-plot"):
            with self.subTest(words=words):
                path = self.shown(*words)[len("man "):].rstrip()
                self.assertEqual(path.rpartition("/")[2], f"{page}.1")
                self.assertTrue(os.path.exists(path))

    def test_help_of_a_group_lists_its_verbs(self):
        self.assertIn("sim validate", self.shown("sim"))

    def test_help_option_of_a_group_lists_its_verbs(self):
        for words, text in (["bench"], "bench launch "), (
                ["bench", "ring"], "usage: srun --mpi=pmi2x -N4 pmi2x bench ring"):
            done = pmi2x(*words, "--help", PATH=os.environ["PATH"])
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(text, done.stdout)

    def test_help_of_an_unknown_verb_fails(self):
        self.assertEqual(pmi2x("bench", "chekc", "--help").returncode, 2)
        self.assertEqual(pmi2x("help", "chekc").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
