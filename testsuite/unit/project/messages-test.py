# SPDX-License-Identifier: BSD-3-Clause
"""Every message of srun's part, plugin, agent and helpers has an entry in pmi2x-messages(7).

Run with `srcdir` set. With --list: prints the messages, each with its place."""

import os
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
PAGE = SOURCE / "contrib/libpmi2x/man/pmi2x-messages.7"
PROGRAMS = ("plugins", "srun", "supervisor", "agent", "helpers", "common/libcoll",
            "common/libconfine", "common/libengine", "common/libio", "common/libpmi",
            "common/libstore")
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
LITERALS = re.compile(rf"(?:{LITERAL}\s*)+")
COMMENTS = re.compile(r"/\*.*?\*/|^[ \t]*#[^\n]*", re.S | re.M)
# Calls whose texts nobody reads as a line: answers to a request of the program, which its
# library reports; parts of scripts and of the protocol; lines for debugging.
SILENT = re.compile(r"log_debug|_Static_assert|sscanf|pack_str|buf_puts|REFUSED|reply|done|"
                    r"(?:home_)?answer\w*")
# Files whose texts are descriptions, answers or usage.
ELSEWHERE = ("options.c", "main.c", "answer.c", "spawn_script.c", "port_names.c",
             "owner.c", "request.c", "attrs.c", "status.c", "protocol.c", "plugin.c")
# Parts of longer messages, and names of fields.
PARTS = ("rank\0 \0 of its own", "the next one could not use it", "not an mcmd",
         "a later one that needs PMI could not use it", "number of preput pairs",
         "rank \0 (node \0) has \0 \0\0", "rank \0 (node \0) of ",
         "\0 of some ranks, which ranks of nodes below have entered")
WORDS = 3
LETTERS = 8  # of a message, of which a part of an entry says enough
UNKNOWN = "\0"  # what stands for a value


def enclosing_call(text, at):
    """The function whose arguments contain the place, or nothing."""
    depth = 0
    for place in range(at - 1, 0, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if depth < 0:
            return re.search(r"\w*\s*$", text[:place])[0].strip()
        if text[place] in ";{}":
            return ""
    return ""


def messages():
    """(path, line, text) of each, with UNKNOWN for values."""
    for program in PROGRAMS:
        for path in sorted((SOURCE / "src" / program).rglob("*.c")):
            if path.name in ELSEWHERE:
                continue
            text = COMMENTS.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), path.read_text())
            text = re.sub(r'"\s*PRI\w+\s*"?', 'u"', text)
            text = re.sub(r'" ?[A-Z_]{4,} ?"', "%s", text)
            for found in LITERALS.finditer(text):
                said = "".join(part[1:-1] for part in re.findall(LITERAL, found[0]))
                if is_message(said) and not SILENT.fullmatch(
                        enclosing_call(text, found.start())):
                    yield (path.relative_to(SOURCE), text.count("\n", 0, found.start()) + 1,
                           re.sub(r"%[-+0-9.*]*(?:ll|z|h)?[a-zA-Z]|\\.", UNKNOWN, said))


def is_message(said):
    """A text that goes on behind another one, with a sign or a space, is its part."""
    words = [word for word in said.split() if re.search("[A-Za-z]{2}", word)]
    return re.match("[A-Za-z%]", said) and len(words) >= WORDS


def entries(page):
    """The texts of the page, as parts between values."""
    for head in re.findall(r'^\.It "?(.*?)"?$', page, re.M):
        head = re.sub(r"^pmi2x: |ending step \S+: ", "", head.replace("\\&", ""))
        yield [part for part in re.split(
            r"\.\.\.|\bn?\d[\d.-]*\b|\bA\b|\bB\b|\bcsh\b", head) if part.strip()]


def in_order(parts, text):
    at = 0
    for part in parts:
        at = text.find(part.strip(), at)
        if at < 0:
            return False
        at += len(part.strip())
    return bool(parts)


def is_explained(text, known):
    own = [part for part in text.split(UNKNOWN) if re.search(r"[A-Za-z]{2}", part)]
    if len(re.findall("[A-Za-z]", "".join(own))) < LETTERS:
        own = []
    return text in PARTS or any(
        in_order(parts, text) or in_order(own, " ".join(parts)) for parts in known)


class Messages(unittest.TestCase):
    def test_each_has_an_entry(self):
        known = list(entries(PAGE.read_text()))
        found = list(messages())
        self.assertGreater(len(found), 200)
        lacking = [f"{path}:{line}: {text.replace(UNKNOWN, '...')}"
                   for path, line, text in found if not is_explained(text, known)]
        self.assertEqual(lacking, [], "\nno entry in pmi2x-messages(7):\n" + "\n".join(lacking))

    def test_a_message_without_an_entry_is_found(self):
        known = list(entries('.It "lost the slurmstepd of node n3"\n.It "no memory ..."\n'))
        for text, there in (("lost the slurmstepd of node \0", True),
                            ("no memory for \0 bytes", True),
                            ("lost the slurmctld of node \0", False)):
            self.assertEqual(is_explained(text, known), there, text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        for path, line, text in messages():
            print(f"{path}:{line}: {text.replace(UNKNOWN, '...')}")
    else:
        unittest.main(verbosity=2)
