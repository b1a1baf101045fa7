# SPDX-License-Identifier: BSD-3-Clause
"""The man pages against what they describe: options, variables, functions. Commands
that documents show against the man pages.

Run in the build directory, with `srcdir` set."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
BUILD = pathlib.Path.cwd()
LIBRARIES = SOURCE / "contrib/libpmi2x", SOURCE / "contrib/allgather"
PLUGIN = SOURCE / "src/plugins/mpi/pmi2x"
# Options that stand after a word, each with a help of its own.
WORDS = {"pmi2x-cluster": ("up", "run", "status", "env", "down")}
SECTIONS = {
    "1": ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO"],
    "3": ["NAME", "LIBRARY", "SYNOPSIS", "DESCRIPTION", "RETURN VALUES", "EXAMPLES",
          "SEE ALSO"],
    "5": ["NAME", "DESCRIPTION", "EXAMPLES", "SEE ALSO"],
    "7": ["NAME", "DESCRIPTION", "SEE ALSO"],
}


def find_pages():
    """{name.section: text}, of those that "make install" installs."""
    found = {}
    for makefile in [SOURCE / "files.mk", *SOURCE.glob("*/**/local.mk")]:
        for path in re.findall(r"[\w/.-]+\.[1-8]\b", makefile.read_text()):
            if (SOURCE / path).is_file():
                found[path.rpartition("/")[2]] = (SOURCE / path).read_text()
    return found


PAGES = find_pages()
# Those that only name another one are not read again.
FULL = {name: text for name, text in PAGES.items() if not text.startswith(".so ")}


def commands():
    """The paths of what is installed to be run by users, or by pmi2x for them."""
    for makefile in sorted(SOURCE.glob("*/**/local.mk")):
        lists = re.findall(
            r"^(?:bin_PROGRAMS \+|python_(?:programs|verbs) )= ((?:.*\\\n)*.*)$",
            makefile.read_text(), re.M)
        yield from (path for found in lists for path in found.split() if path != "\\")


def program(path):
    return BUILD / path if os.access(BUILD / path, os.X_OK) else SOURCE / path


def help_options(path, *words):
    """The options at the beginning of the lines of --help."""
    shown = subprocess.run(
        [program(path), *words, "--help"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "COLUMNS": "200"}, check=True, timeout=60).stdout
    heads = re.findall(r"^ +(-\S.*?)(?:  |$)", shown, re.M)
    return {o for h in heads for o in re.findall(r"(?<![\w-])--?\w[\w-]*", h)}


def fl_arguments(line):
    """What the macro Fl of mdoc has, up to the next macro."""
    taking = False
    for word in line.split():
        if re.fullmatch(r"[A-Z][a-z]", word):
            taking = word == "Fl"
        elif taking and re.fullmatch(r"-?\w[\w-]*", word):
            yield f"-{word}"


def page_options(text):
    lines = re.findall(r"^\.It (Fl .*)$", text, re.M)
    return {option for line in lines for option in fl_arguments(line)}


# ---- commands that are shown ----

DOCUMENTS = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md",
             *sorted((SOURCE / "doc").glob("*.md"))]
CODE = re.compile(r"^ {4,}(\S.*)$|^\.Dl (.*)$|`([^`]+)`", re.M)
LITERAL = re.compile(r"^(?:\.Bd -literal|```).*?\n(.*?)^(?:\.Ed|```)", re.M | re.S)
SCRIPT = re.compile(r"(?:\./)?((?:contrib|testsuite)/[\w./-]+|quickstart)")
# A command begins with one of these, and so ends the one before it.
BEGIN = re.compile(rf"pmi2x(?:-[a-z-]+)?|{SCRIPT.pattern}|make|srun|salloc|[|&;(]+|\./.*")
AUTOMAKE = {"all", "check", "dist", "distcheck", "install", "uninstall"}


def code_lines(text):
    """What is set as code, with lines that go on as one."""
    joined = re.sub(r"\\e?\n\s*", " ", text)
    for found in CODE.findall(LITERAL.sub("", joined)):
        yield " ".join("".join(found).split())
    for block in LITERAL.findall(joined):
        yield from block.splitlines()


def shown_commands(text):
    """Each as its words. What has arrows is a picture."""
    for line in code_lines(text):
        if "-->" in line:
            continue
        words = []
        for word in re.sub(r"(^|\s)#.*", "", line).split():
            if words and BEGIN.fullmatch(word):
                yield words
                words = []
            words.append(word)
        yield words


def options_of(words):
    """Their names; those behind "--" are of another program."""
    for word in words[: words.index("--") if "--" in words else None]:
        option = re.match(r"--[a-z][\w-]*|-[a-zA-Z]", word)
        if option:
            yield option[0]


@functools.cache
def verb_table():
    shown = subprocess.run([program("src/tools/pmi2x"), "--help"], check=True,
                           stdout=subprocess.PIPE, text=True, timeout=60).stdout
    return set(re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", shown, re.M))


def page_of_verb(words, verbs):
    """The man page of "pmi2x WORDS", and the words behind the verb; none if there is no
    such verb."""
    for length in 2, 1:
        verb = " ".join(words[:length])
        if verb in verbs:
            entry = re.search(rf"^\.It Cm {verb}\b(?:.*\n)*?\.Xr (\S+) 1",
                              PAGES["pmi2x.1"], re.M)
            return FULL.get(f"{entry[1]}.1"), words[length:]
    return None, words


def page_faults(page, words):
    """Options, and the word in front of them, that the page does not have."""
    known = page_options(page)
    yield from (option for option in options_of(words) if option not in known)
    if words and re.fullmatch("[a-z]+", words[0]):
        if not re.search(rf"^\..*\bCm (?:\w+ [,|] )*{words[0]}\b", page, re.M):
            yield words[0]


def verb_faults(words, verbs):
    if words[:1] == ["help"]:
        words = words[1:]
    if not words or words[0].isupper():
        return
    if words[0].startswith("-"):
        yield from page_faults(PAGES["pmi2x.1"], words)
        return
    page, rest = page_of_verb(words, verbs)
    if page:
        yield from page_faults(page, rest)
    elif not any(verb.startswith(f"{words[0]} ") for verb in verbs) or rest[1:]:
        yield "no such verb"


def script_faults(path, words):
    if path.is_file():
        text = path.read_text()
        yield from (option for option in options_of(words)
                    if not re.search(rf"(?<![\w-]){option}(?![\w-])", text))


@functools.cache
def make_targets():
    rules = "".join(path.read_text() for path in [
        SOURCE / "Makefile.am", *SOURCE.glob("*/**/*.mk")])
    lines = re.findall(r"^([a-z][a-z0-9 -]*):", rules, re.M)
    return AUTOMAKE.union(*(line.split() for line in lines))


def make_faults(words):
    for word in words:
        if re.fullmatch("[a-z][a-z-]+", word) and word not in make_targets():
            yield f"no target {word}"


def faults_of_command(words, verbs):
    first, rest = words[0], words[1:]
    script = SCRIPT.fullmatch(first)
    if first == "pmi2x":
        return verb_faults(rest, verbs)
    if first == "make":
        return make_faults(rest)
    if f"{first}.1" in FULL:
        return page_faults(FULL[f"{first}.1"], rest)
    return script_faults(SOURCE / script[1], rest) if script else ()


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


class Commands(unittest.TestCase):
    def test_options(self):
        seen = list(commands())
        self.assertGreater(len(seen), 8)
        for path in seen:
            name = path.rpartition("/")[2]
            options = help_options(path)
            for word in WORDS.get(name, ()):
                options |= help_options(path, word)
            with self.subTest(command=name):
                self.assertIn("--help", options)
                self.assertIn(f"{name}.1", PAGES, "no man page")
                page = page_options(PAGES[f"{name}.1"])
                self.assertEqual(options - page, set(), "not in the man page")
                self.assertEqual(page - options, set(), "not in --help")


class Shown(unittest.TestCase):
    def faults(self, text):
        return [f"{' '.join(words)}: {fault}" for words in shown_commands(text) if words
                for fault in faults_of_command(words, verb_table())]

    def test_documents(self):
        texts = {path.name: path.read_text() for path in DOCUMENTS}
        for name, text in {**texts, **FULL}.items():
            with self.subTest(text=name):
                self.assertEqual(self.faults(text), [])

    def test_wrong_ones_are_found(self):
        for wrong in ("pmi2x chekc", "pmi2x check --nods n1", "pmi2x bench rings -n 1",
                      "srun -n4 pmi2x probe --wrong", "pmi2x cluster upp -N4",
                      "pmi2x cluster run srun -N4 pmi2x probe rng", "pmi2x help chekc",
                      "pmi2x trace --liv 1.0", "./testsuite/run --systm", "make chek",
                      "contrib/build/install-deps \\\n        --list --lst"):
            for text in f"text\n\n    {wrong}\n", f".Bd -literal\n{wrong}\n.Ed\n":
                with self.subTest(command=wrong):
                    self.assertEqual(len(self.faults(text)), 1)


class Configuration(unittest.TestCase):
    def test_options_of_mpi_conf(self):
        table = dict(re.findall(r'\{ "(Pmi2x\w+)", ("\w+"|NULL),',
                                (PLUGIN / "options.c").read_text()))
        page = (PLUGIN / "mpi_pmi2x.conf.5").read_text()
        items = re.split(r"^\.It Cm (?=Pmi2x)", page, flags=re.M)[1:]
        found = {}
        for item in items:
            variable = re.search(r"^Variable:\n\.Ev (\w+)", item, re.M)
            name = re.match(r"\w+", item)[0]
            found[name] = f'"{variable[1]}"' if variable else "NULL"
        self.assertGreater(len(table), 10)
        self.assertEqual(found, table)

    def test_variables_of_the_libraries(self):
        for directory in LIBRARIES:
            for path in directory.glob("*.c"):
                text = path.read_text()
                prefix = re.search(r'^#define PREFIX "(\w+)"', text, re.M)
                if prefix:
                    text = text.replace('PREFIX "', f'"{prefix[1]}')
                for name in re.findall(r'"(PMI2X_[A-Z0-9_]*[A-Z0-9])"', text):
                    with self.subTest(variable=name, read_by=path.name):
                        self.assertTrue(any(f".It Ev {name}\n" in page
                                            for page in FULL.values()))


class Functions(unittest.TestCase):
    def test_each_has_a_page(self):
        names = set()
        for directory in LIBRARIES:
            for header in (directory / "include").glob("pmi2x*.h"):
                text = without_comments(header.read_text())
                names |= set(re.findall(r"\b((?:PMIX|pmi2x)_\w+)\(", text))
        self.assertGreater(len(names), 20)
        for name in sorted(names):
            with self.subTest(function=name):
                self.assertIn(f"{name}.3", PAGES)
                self.assertTrue(any(re.search(rf"^\.F[no] {name}\b", page, re.M)
                                    for page in FULL.values()))

    def test_examples_compile(self):
        compiler = os.environ.get("CC", "cc").split()
        if not shutil.which(compiler[0]):
            self.skipTest(f"no {compiler[0]}")
        includes = [f"-I{d}/include" for d in LIBRARIES]
        blocks = [(name, block.replace("\\e", "\\"))
                  for name, text in FULL.items()
                  for block in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text,
                                          re.M | re.S)
                  if block.startswith("#include")]
        self.assertGreater(len(blocks), 3)
        for name, text in blocks:
            with self.subTest(page=name):
                subprocess.run(
                    [*compiler, "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra",
                     "-Werror", *includes, "-x", "c", "-"],
                    input=text, text=True, check=True)


class Pages(unittest.TestCase):
    def test_aliases(self):
        for name, text in PAGES.items():
            if name not in FULL:
                with self.subTest(page=name):
                    target = re.fullmatch(r"\.so man\d/(\S+)\n", text)[1]
                    names = re.findall(r"^\.Nm (\S+)", FULL[target], re.M)
                    self.assertIn(name[:-2], names)

    def test_sections(self):
        for name, text in FULL.items():
            found = re.findall(r"^\.Sh (.*)$", text, re.M)
            for section in SECTIONS[name[-1]]:
                with self.subTest(page=name, section=section):
                    self.assertIn(section, found)

    def test_references(self):
        for name, text in FULL.items():
            for other in re.findall(r"^\.Xr (\S+ \d)", text, re.M):
                other = other.replace(" ", ".")
                if re.match(r"pmi2x|mpi_pmi2x|PMIX_", other):
                    with self.subTest(page=name, refers_to=other):
                        self.assertIn(other, PAGES)

    def test_formatting(self):
        if shutil.which("mandoc"):
            tool = ["mandoc", "-T", "lint", "-W", "warning"]
        elif shutil.which("groff"):
            tool = ["groff", "-mandoc", "-ww", "-z"]
        else:
            self.skipTest("neither mandoc nor groff here")
        for name, text in FULL.items():
            with self.subTest(page=name), tempfile.TemporaryDirectory() as place:
                path = pathlib.Path(place) / name
                path.write_text(text)
                said = subprocess.run([*tool, path], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True).stdout
                self.assertEqual(said, "")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
