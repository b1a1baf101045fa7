# SPDX-License-Identifier: BSD-3-Clause
"""README, doc/ and the man pages: how sentences are written, and where links lead.

Run with `srcdir` set. With arguments: tells of these files only, and of each sentence."""

import csv
import os
import pathlib
import re
import statistics
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
WORDS_MAX = 25
README_LINES_MAX = 120
TEXTS = [SOURCE / "README.md", *sorted((SOURCE / "doc").glob("*.md"))]
LINKED = [*TEXTS, SOURCE / "CONTRIBUTING.md", SOURCE / "SECURITY.md"]
PROSE = [*LINKED, SOURCE / "NEWS"]
DRAWINGS = ("architecture.svg", "front.svg")
# What makes a new block: headings, entries of lists, definitions, quotations.
BLOCK = re.compile(r"\s*(?:[-*:>]|\d+\.|#+)\s+")
END = re.compile(r"(?<=[.!?])[\")*_]*\s+")
# A path of the tree, as texts name it.
PATH = re.compile(r"(?<![\w/.-])(?:doc|src|contrib|testsuite|debian)/[\w./-]*\w/?")
# A sentence whose first noun is not its subject; headings and questions may be so.
ANOTHER_SUBJECT = re.compile(r"(?:Who|Whom|Whose|Of|What|The same,"
                             r"|Those (?:who|that|which|of|to|in))\b[^?]*[.:!]\W*$")
# Words that had a meaning of their own here. The field has others, or a number.
HOMELY = re.compile(r"\b(?:so (?:many|long|often)|for ever|private Slurm|mend(?:s|ed)?|"
                    r"heed(?:s|ed)?|a word of|(?:fails?|refused|told|said) by name)\b", re.I)
MANUAL = re.compile(r"\b((?:pmi2x|mpi_pmi2x|PMIX_)[\w.-]*)\((\d)\)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)|\b(?:src|srcset|href)=\"([^\"]+)\"")


def prose_lines(text):
    """(number, line) of all that is read aloud: no code, no table, no HTML."""
    fenced = code = False
    blank = True
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        code = re.match(r" {4,}|\t", line) and (code or blank and not BLOCK.match(line))
        blank = not line.strip()
        shown = not (fenced or code or line.lstrip()[:1] in ("|", "<", "!"))
        yield number, line if shown else ""


def blocks(text):
    """(number of its first line, text) of each paragraph, heading, entry."""
    first, words = 0, []
    for number, line in [*prose_lines(text), (0, "")]:
        begin = BLOCK.match(line)
        if words and (begin or not line.strip()):
            yield first, " ".join(words)
            words = []
        if line.strip():
            first = first if words else number
            words.append(line[begin.end() if begin else 0:].strip())


def spoken(block):
    """A block with what is one word to the reader as one word."""
    block = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
    return re.sub(r"`[^`]*`", "`code`", block)


def sentences(text):
    """(number of the line where its block begins, words)"""
    for number, block in blocks(text):
        for sentence in END.split(spoken(block)):
            yield number, [word for word in sentence.split() if re.search(r"\w", word)]


def hard_sentences(path, text=None):
    """Those that begin with another word than their subject, or have homely words."""
    for number, words in sentences(text or path.read_text()):
        sentence = " ".join(words).lstrip("*(")
        if ANOTHER_SUBJECT.match(sentence) or HOMELY.search(sentence):
            yield f"{path.name}:{number}: {' '.join(words[:8])} ..."


def anchors(text):
    """The names by which GitHub's headings can be linked to."""
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            title = re.sub(r"`|\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("# ")).lower()
            yield re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title.strip()))


def dead_links(path):
    """What `path` links to in the tree and is not there."""
    text = path.read_text()
    for found in LINK.findall(text):
        target, _, anchor = (found[0] or found[1]).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = path.parent / target if target else path
        if not there.exists():
            yield target
        elif anchor and anchor not in anchors(there.read_text()):
            yield f"{target}#{anchor}"


def dead_paths(path):
    """Paths that `path` names and that the tree has not, nor the source of a program.

    Libraries that a build makes are in no source tree."""
    for name in PATH.findall(path.read_text()):
        if not ("/.libs/" in name or (SOURCE / name).exists()
                or (SOURCE / f"{name}.c").exists()):
            yield name


def man_pages():
    return [page for top in ("src", "contrib") for page in (SOURCE / top).glob("**/*.[1-8]")]


def long_sentences(path, text=None):
    return [f"{path.name}:{number}: {len(words)} words: {' '.join(words[:8])} ..."
            for number, words in sentences(text or path.read_text())
            if len(words) > WORDS_MAX]


def fences(path):
    """{(ranks a node, plugin, client): median seconds of the fences in a CSV of bench}"""
    samples = {}
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    for row in csv.DictReader(lines):
        if row["op"] == "fence":
            key = row["ranks_per_node"], row["mpi"], row["variant"]
            samples.setdefault(key, []).append(float(row["seconds"]))
    return {key: statistics.median(seconds) for key, seconds in samples.items()}


class Numbers(unittest.TestCase):
    """What measurements.md says of fences is what the CSV has; README: features-test.py."""

    def setUp(self):
        self.times = fences(SOURCE / "doc/speed.csv")

    def factor(self, per_node, variant):
        return self.times[per_node, "pmi2", "stock"] / self.times[per_node, "pmi2x", variant]

    def test_table_of_fences(self):
        text = (SOURCE / "doc/measurements.md").read_text()
        for per_node in "16", "1":
            cells = []
            for mpi, variant in (("pmi2", "stock"), ("pmi2x", "stock"), ("pmi2x", "pmi1"),
                                 ("pmi2x", "own"), ("floor", "socket"), ("floor", "shm")):
                seconds = self.times[per_node, mpi, variant]
                cells.append(f"{seconds:.2f} s" if seconds > 1 else f"{seconds * 1000:.0f} ms")
                if mpi == "pmi2x":
                    times = self.factor(per_node, variant)
                    cells[-1] += f" ({times:.{1 if times < 10 else 0}f}x)"
            self.assertIn(f"| 256 x {per_node}, fence | {' | '.join(cells)} |", text)


def simulated():
    """{(nodes, ranks a node, method): seconds, as pages print them} of doc/startup/simulated.csv"""
    lines = (SOURCE / "doc/startup/simulated.csv").read_text().splitlines()
    found = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        ms = float(row["seconds"]) * 1000
        text = f"{ms / 1000:.1f} s" if ms > 1000 else f"{ms:.{1 if ms < 10 else 0}f} ms"
        found[int(row["nodes"]), int(row["ranks_per_node"]), row["method"]] = text
    return found


class Simulated(unittest.TestCase):
    """What pages say of the simulated MPI_Init is what `bench launch` wrote."""

    def test_table_of_startup(self):
        text = (SOURCE / "doc/startup.md").read_text()
        times = simulated()
        for nodes, ranks in {key[:2] for key in times}:
            cells = [times[nodes, ranks, method] for method in ("pmi2", "pmi2x", "hydra")]
            self.assertIn(f"| {nodes:,} x {ranks} | {' | '.join(cells)} |", text)

    def test_comparison(self):
        text = (SOURCE / "doc/comparison.md").read_text()
        times = simulated()
        for nodes, method in (256, "pmi2"), (3000, "pmi2"), (3000, "hydra"):
            before, after = times[nodes, 16, method], times[nodes, 16, "pmi2x"]
            self.assertIn(f"({before.removesuffix(' ms')} to {after})", text)


def validated(name):
    """Rows of a CSV that `pmi2x sim validate` wrote."""
    lines = (SOURCE / "doc/simulator" / name).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def store_line(row):
    """The line of rendezvous.md for a row of doc/simulator/store.csv."""
    ms = float(row["time_s"]) * 1000
    size = int(row["bytes"]) / (1 << 20)
    return (f"| {row['keys']} | {ms:.{3 if ms < 1 else 0}f} ms | {int(row['messages']):,} | "
            f"{size:,.{1 if size < 100 else 0}f} MiB | {int(row['node_messages_max']):,} | "
            f"{int(row['node_values_max']):,} |")


class SimulatedStore(unittest.TestCase):
    """What rendezvous.md says of 100,000 ranks is what `pmi2x sim run --csv` wrote."""

    def test_shares(self):
        text = (SOURCE / "doc/rendezvous.md").read_text()
        rows = [row for row in validated("store.csv") if row["operation"] == "share"]
        self.assertGreaterEqual(len(rows), 2)
        for row in rows:
            self.assertEqual((row["nodes"], row["ranks"], row["failed"]), ("12500", "100000", "0"))
            self.assertIn(store_line(row), text)


def milliseconds(text):
    ms = float(text) * 1000
    return f"{ms:.{1 if ms < 100 else 0}f} ms"


class Validated(unittest.TestCase):
    """What pages say of predictions is what `pmi2x sim validate` wrote."""

    def test_collectives(self):
        text = (SOURCE / "doc/simulator.md").read_text()
        rows = [row for row in validated("validate.csv") if row["use"] == "compare"]
        self.assertEqual(len(rows), 24)
        for row in rows:
            ranks = int(row["nodes"]) * int(row["ranks_per_node"])
            measured, simulated, low, high = (
                milliseconds(row[name]) for name in ("time_s", "simulated_s", "low_s", "high_s"))
            self.assertIn(f"| {row['nodes']} | {ranks:,} | {row['op']} | {int(row['messages']):,} "
                          f"| {measured} | {simulated} | {low} to {high} | "
                          f"{100 * float(row['error']):+.0f} % |", text)

    def test_how_predictions_did(self):
        text = " ".join((SOURCE / "doc/simulator.md").read_text().split())
        rows = [row for row in validated("validate.csv")
                if row["use"] == "compare" and row["op"] != "group"]
        errors = [100 * abs(float(row["error"])) for row in rows]
        inside = sum(float(row["low_s"]) <= float(row["time_s"]) <= float(row["high_s"])
                     for row in rows)
        self.assertIn(f"Of the {len(rows)} rows of fences, allgathers and rings, the mean error is "
                      f"{statistics.mean(errors):.0f} %, the largest one {max(errors):.0f} %. "
                      f"{inside} of {len(rows)} are in their interval.", text)
        for row in rows:
            self.assertLess((float(row["high_s"]) - float(row["low_s"])) /
                            float(row["simulated_s"]), 0.4)

    def test_dvms(self):
        text = (SOURCE / "doc/dvm-scale.md").read_text()
        for row in validated("validate-dvm.csv"):
            for name in "messages", "bytes":
                self.assertEqual(row[name], row[f"simulated_{name}"])
            start, of_start, ttx, of_ttx = (
                float(row[name]) for name in ("start_s", "simulated_start_s", "ttx_s",
                                              "simulated_ttx_s"))
            self.assertIn(
                f"| {row['nodes']} | {int(row['tasks']):,} | {int(row['messages']):,} | "
                f"{int(row['bytes']):,} | equal | {milliseconds(start)} | "
                f"{milliseconds(of_start)} | {100 * (of_start / start - 1):+.0f} % | {ttx:.2f} s | "
                f"{of_ttx:.2f} s | {100 * (of_ttx / ttx - 1):+.1f} % |", text)


class Documents(unittest.TestCase):
    def expect_none(self, faults):
        self.assertFalse(faults, "\n" + "\n".join(map(str, faults)))

    def test_long_sentences_are_found(self):
        long, short = "word " * 26 + "end.", "word " * 24 + "end."
        path = pathlib.Path("text")
        for text in (long, f"* {long}", f"{short}\n{long}", f"{short[:-1]}\n{long}"):
            self.assertEqual(len(long_sentences(path, text)), 1, text)
        for text in (short, f"{short} {short}", f"| {long} |", f"```\n{long}\n```",
                     f"    {long}", f"{short[:-10]} `{long}` end."):
            self.assertEqual(long_sentences(path, text), [], text)

    def test_sentences_are_short(self):
        self.expect_none([fault for path in TEXTS for fault in long_sentences(path)])

    def test_hard_sentences_are_found(self):
        path = pathlib.Path("text")
        for text in ("Who waits is told.", "Of two nodes one fails.", "* **What** it says.",
                     "It waits so long.", "It fails. The step fails by name."):
            self.assertEqual(len(list(hard_sentences(path, text))), 1, text)
        for text in ("What does it cost? Nothing.", "Often it waits.", "    Of code none."):
            self.assertEqual(list(hard_sentences(path, text)), [], text)

    def test_sentences_begin_with_their_subject(self):
        self.expect_none([fault for path in PROSE for fault in hard_sentences(path)])

    def test_readme_is_short(self):
        lines = len((SOURCE / "README.md").read_text().splitlines())
        self.assertLessEqual(lines, README_LINES_MAX)

    def test_links_lead_somewhere(self):
        self.expect_none([f"{path.name}: {name}" for path in LINKED
                          for name in dead_links(path)])

    def test_named_files_are_there(self):
        self.expect_none([f"{path.name}: {name}" for path in [*LINKED, *man_pages()]
                          for name in dead_paths(path)])

    def test_named_man_pages_are_there(self):
        there = {page.name for page in man_pages()}
        self.expect_none([f"{path.name}: {name}({section})" for path in PROSE
                          for name, section in MANUAL.findall(path.read_text())
                          if f"{name}.{section}" not in there])

    def test_plots_have_their_data_beside_them(self):
        plots = [path for path in (SOURCE / "doc").rglob("*.svg")
                 if path.name not in DRAWINGS]
        self.assertGreater(len(plots), 2)
        self.expect_none([path for path in plots if not path.with_suffix(".csv").exists()])

    def test_every_page_is_in_the_index(self):
        index = (SOURCE / "doc/README.md").read_text()
        self.expect_none([path.name for path in (SOURCE / "doc").glob("*.md")
                          if path.name != "README.md" and f"({path.name})" not in index])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for name in sys.argv[1:]:
            print("\n".join(long_sentences(pathlib.Path(name))))
    else:
        unittest.main(verbosity=2)
