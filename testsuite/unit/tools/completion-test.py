# SPDX-License-Identifier: BSD-3-Clause
"""Completion of pmi2x as bash and zsh do it when a person types."""

import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import unittest

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
TOOLS = SOURCE / "src/tools"
FILES = TOOLS / "completion"
PROMPT = "ready>"
PATIENCE_S = int(os.environ.get("PMI2X_TEST_PATIENCE", "60"))
SQUEUE = """#!/bin/sh
printf '4711.0\\n4711.batch\\n4712.3\\n'
"""


class Shell:
    """One in a terminal of its own; what is typed is what it gets."""

    def __init__(self, argv, place):
        env = {**os.environ, "TERM": "dumb", "HOME": place, "ZDOTDIR": place, "PS1": PROMPT,
               "PATH": f"{place}:{os.environ['PATH']}"}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)
        wide = struct.pack("4H", 50, 500, 0, 0)  # no line is broken
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, wide)
        self.seen = ""

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def type(self, text):
        os.write(self.fd, text.encode())

    def await_text(self, pattern):
        """What it has shown up to this."""
        while not (found := re.search(pattern, self.seen, re.S)):
            if not select.select([self.fd], [], [], PATIENCE_S)[0]:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 4096).decode(errors="replace")
        shown, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return shown

    def run(self, line):
        self.type(f"{line}; echo is-done=$?\n")
        self.await_text(rf"is-done=\d.*{PROMPT}")  # it reads the next line itself

    def complete(self, typed, completed):
        """The line after a tabulator; zsh completes nothing while more is typed."""
        self.type(typed)
        self.await_text(re.escape(typed))
        self.seen = typed
        self.type("\t")
        self.await_text(re.escape(completed) + "(?![a-z])")
        self.type("\x15")  # clears the line
        self.run("true")


class Completions:
    """What both shells do."""

    argv, setup = [], []

    @classmethod
    def setUpClass(cls):
        if not shutil.which(cls.argv[0]):
            raise unittest.SkipTest(f"no {cls.argv[0]} here")
        cls.place = tempfile.TemporaryDirectory()
        for name, text in ("squeue", SQUEUE), (
                "pmi2x", f'#!/bin/sh\nexec {sys.executable} -B "{TOOLS}/pmi2x" "$@"\n'):
            path = pathlib.Path(cls.place.name) / name
            path.write_text(text)
            path.chmod(0o755)
        cls.shell = Shell(cls.argv, cls.place.name)
        for line in cls.setup:
            cls.shell.run(line)

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()
        cls.place.cleanup()

    def check(self, typed, completed):
        self.shell.complete(typed, completed)

    def test_verb(self):
        self.check("pmi2x wh", "pmi2x why")

    def test_verb_of_two_words(self):
        self.check("pmi2x ben", "pmi2x bench")
        self.check("pmi2x bench lo", "pmi2x bench lookup")

    def test_help(self):
        self.check("pmi2x help tr", "pmi2x help trace")
        self.check("pmi2x help sim va", "pmi2x help sim validate")

    def test_options(self):
        self.check("pmi2x check --js", "pmi2x check --json")
        self.check("pmi2x bench lookup --vers", "pmi2x bench lookup --version")

    def test_commands(self):
        self.check("pmi2x cluster resta", "pmi2x cluster restart")
        self.check("pmi2x cluster up --plug", "pmi2x cluster up --plugindir")

    def test_steps(self):
        self.check("pmi2x why 4712", "pmi2x why 4712.3")
        self.check("pmi2x why 4711", "pmi2x why 4711.0")

    def test_files(self):
        name = pathlib.Path(self.place.name) / "a-program"
        name.touch()
        self.check(f"pmi2x check --mpi {name}"[:-3], f"pmi2x check --mpi {name}")


class Bash(Completions, unittest.TestCase):
    argv = ["bash", "--norc", "--noprofile", "-i"]
    setup = ["bind 'set enable-bracketed-paste off'", f'. "{FILES}/pmi2x"']


class Zsh(Completions, unittest.TestCase):
    argv = ["zsh", "-f", "-i"]
    setup = ["unsetopt zle_bracketed_paste 2>/dev/null", "bindkey -e",
             f'fpath=("{FILES}" $fpath); autoload -Uz compinit; compinit -u -D']


if __name__ == "__main__":
    unittest.main(verbosity=2)
