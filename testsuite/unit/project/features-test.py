# SPDX-License-Identifier: BSD-3-Clause
"""README, NEWS, doc/ and the man pages say of a feature what the tables of doc/support.md
and doc/extensions.md say; times in README are those of doc/speed.csv.

Run with `srcdir` set."""

import csv
import os
import pathlib
import re
import statistics
import unittest

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
SUPPORT = SOURCE / "doc/support.md"
EXTENSIONS = SOURCE / "doc/extensions.md"
MAN = SOURCE / "contrib/libpmi2x/man"
END = re.compile(r"(?<=[.!?:])[\")*_]*\s+")
WORD = re.compile(r"`([^`]+)`")
DENIED = re.compile(
    r"\bnot (?:yet )?(?:served|supported|implemented|offered)\b|\bunsupported\b")
CLAIMED = re.compile(r"\b(?:are|is) (?:served|supported)\b|\bworks?\b")
# All of them, without an exception.
ALL_FALL_BACK = re.compile(
    r"\b(?:each|every|all)\b[^.]*\b(?:extensions?|functions?)\b[^.]*"
    r"\b(?:falls? back|works? on plain)\b(?![^.]*\bbut\b)")
NOTHING = "nothing"  # what a function does without the extension, in its table
FACTOR = re.compile(
    r"\*\*(\d+) times\*\*[^,.]*?with (one rank|\d+ ranks) each and ([^,.]*)")
VARIANTS = {"`libpmi2x`": "own", "Slurm's own libpmi2": "stock"}


def pages():
    found = [SOURCE / "README.md", SOURCE / "NEWS", *(SOURCE / "doc").glob("*.md")]
    return [*found, *(page for top in ("src", "contrib")
                      for page in (SOURCE / top).glob("**/*.[1-8]"))]


def plain(path, text):
    """Without macros of mdoc; each entry of a list and row of a table ends a sentence."""
    if path.suffix[1:].isdigit():
        text = re.sub(r"^\.(?:It|Pp|Sh|Ss|Bl|El)\b", ".\n\n", text, flags=re.M)
        text = re.sub(r"^\.(?:[A-Z][a-z]\b ?)+", "", text, flags=re.M)
    return re.sub(r"^ *[*|]", ".\n\n", text, flags=re.M)


def sentences(path, text):
    for block in re.split(r"\n\s*\n", plain(path, text)):
        yield from END.split(" ".join(block.split()))


def table(path, heading):
    """The rows below a heading, as cells."""
    section = f"\n{path.read_text()}".split(f"\n{heading}\n", 1)[1]
    section = re.split(r"^#", section, maxsplit=1, flags=re.M)[0]
    rows = re.findall(r"^\|(.*)\|$", section, re.M)[2:]
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def names(word, sentence):
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", sentence, re.I)


class Feature:
    def __init__(self, row):
        self.part, self.served, self.without, self.tests = row
        self.words = WORD.findall(self.part)
        self.exceptions = WORD.findall(self.without)

    def is_in(self, sentence):
        return any(names(word, sentence) for word in self.words)

    def fault(self, sentence):
        """Whether the sentence says something else of it than its row."""
        if not self.is_in(sentence):
            return False
        if self.served == "no":
            return bool(CLAIMED.search(sentence)) and not DENIED.search(sentence)
        return bool(DENIED.search(sentence)) and not any(
            names(word, sentence) for word in self.exceptions)


FEATURES = [Feature(row) for row in table(SUPPORT, "## Parts of PMIx")]


def faults(path, text):
    for sentence in sentences(path, text):
        for feature in FEATURES:
            if feature.fault(sentence):
                yield f"{path.name}: {sentence} ({feature.part}: {feature.served})"
        if ALL_FALL_BACK.search(sentence) and not_replaced():
            yield f"{path.name}: {sentence} (nothing is done for {not_replaced()})"


def fall_backs():
    """{function: what is done where the server does not know it}"""
    return {name: done for functions, _, done in table(
        EXTENSIONS, "## Functions")
        for name in re.findall(r"PMIX_\w+", functions)}


def not_replaced():
    return [name for name, done in fall_backs().items() if done.startswith(NOTHING)]


def times():
    """Seconds of each fence in doc/speed.csv: {(mpi, variant, ranks per node): [...]}"""
    found = {}
    lines = (SOURCE / "doc/speed.csv").read_text().splitlines()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        key = row["mpi"], row["variant"], int(row["ranks_per_node"])
        found.setdefault(key, []).append(float(row["seconds"]))
    return found


class Parts(unittest.TestCase):
    def test_table_is_whole(self):
        self.assertGreater(len(FEATURES), 8)
        for feature in FEATURES:
            with self.subTest(part=feature.part):
                self.assertTrue(feature.words, "no word to look for")
                self.assertIn(feature.served, ("yes", "no"))

    def test_each_row_names_a_test_that_exists(self):
        for feature in FEATURES:
            with self.subTest(part=feature.part):
                found = re.findall(r"`(test_\w+)\.(test_\w+)`", feature.tests)
                self.assertTrue(found)
                for module, function in found:
                    text = (SOURCE / f"testsuite/system/{module}.py").read_text()
                    self.assertIn(f"\ndef {function}(", text)

    def test_no_page_contradicts_it(self):
        for path in pages():
            with self.subTest(page=path.name):
                self.assertEqual(list(faults(path, path.read_text())), [])

    def test_contradictions_are_found(self):
        page = pathlib.Path("pmi2x.7")
        for wrong in ("Groups (MPI Sessions), publish and events of PMIx are not served yet.",
                      "PMIx_Query_info works.", "With mpi/pmi2 each extension falls back to "
                      "put.", "Without it every function works on plain PMI-2.",
                      ".It Fl x\nSpawn is\n.Em not supported ."):
            with self.subTest(text=wrong):
                self.assertTrue(list(faults(page, wrong)))
        for right in ("Groups by invitation are not served.", "Groups are served.",
                      "PMIx_Query_info is not served.",
                      "Each extension falls back to put, but PMIX_KVS_Fetch does not."):
            with self.subTest(text=right):
                self.assertFalse(list(faults(page, right)))

    def test_pmi2x_7_names_each_part_that_is_served(self):
        text = (MAN / "pmi2x.7").read_text()
        section = text.split("\n.Ss PMIx\n", 1)[1].split("\n.Ss ", 1)[0]
        for feature in FEATURES:
            if feature.served == "yes":
                with self.subTest(part=feature.part):
                    self.assertTrue(feature.is_in(section), feature.words)


class Extensions(unittest.TestCase):
    def test_each_function_says_what_it_does_without_the_extension(self):
        header = (SOURCE / "contrib/libpmi2x/include/pmi2x.h").read_text()
        for name, done in fall_backs().items():
            with self.subTest(function=name):
                self.assertIn(name, header)
                self.assertTrue(done)

    def test_man_pages_agree(self):
        for name, done in fall_backs().items():
            page = (MAN / f"{name}.3").read_text()
            if page.startswith(".so "):
                page = (MAN / page.split()[1].rpartition("/")[2]).read_text()
            with self.subTest(function=name):
                self.assertEqual("so nothing is done instead" in page,
                                 done.startswith(NOTHING))


class Times(unittest.TestCase):
    def test_factors_of_readme_are_those_of_the_measurement(self):
        text = " ".join((SOURCE / "README.md").read_text().split())
        found = FACTOR.findall(text)
        self.assertEqual(len(found), 3)
        for factor, ranks, library in found:
            each = 1 if ranks == "one rank" else int(ranks.split()[0])
            stock = statistics.median(times()["pmi2", "stock", each])
            ours = statistics.median(times()["pmi2x", VARIANTS[library.strip()], each])
            with self.subTest(ranks=ranks, library=library):
                self.assertEqual(int(factor), round(stock / ours))
        bounds = re.search(r"(\d+) to (\d+) times as fast", text)
        factors = [int(row[0]) for row in found]
        self.assertEqual([int(bounds[1]), int(bounds[2])], [min(factors), max(factors)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
