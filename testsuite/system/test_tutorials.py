# SPDX-License-Identifier: BSD-3-Clause
"""The tutorials of doc/ print what their pages say.

A page has a shell session in indented blocks: commands behind `$`, their further lines behind
`>`, and then their output. Numbers and directories may differ from the page's; lines may come in
another order; `...` stands for any lines. What only looks is repeated until it shows the
page's: a hang takes time."""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time

import pytest

from harness import LEAVE_S

pytestmark = pytest.mark.wide
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((SOURCE / "doc").glob("tutorial-*.md"))
LOOKS = re.compile(r"pmi2x why|.*squeue|sinfo")
END = "== end of output"


def session(text):
    """(command, lines of its output) of each command of a page."""
    commands = []
    for line in re.findall(r"^    (.*)$", text, re.M):
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif line.startswith("> "):
            command, output = commands.pop()
            commands.append((f"{command}\n{line[2:]}", output))
        else:
            commands[-1][1].append(line)
    return commands


def common(lines):
    """Lines without what differs from run to run, sorted."""
    return sorted(re.sub(r"/\S+/|[\d.]*\d", "#", line) for line in lines if line.strip())


def alike(output, page):
    output, page = common(output), common(page)
    return set(page) - {"..."} <= set(output) if "..." in page else output == page


class Shell:
    """A shell that is given one command after the other."""

    def __init__(self, directory, env):
        read, write = os.pipe()
        # Not on standard input, which srun would read.
        self.process = subprocess.Popen(
            ["bash", f"/dev/fd/{read}"], cwd=directory, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, pass_fds=[read],
        )  # fmt: skip
        os.close(read)
        self.commands = open(write, "w")

    def run(self, command):
        self.commands.write(f"{command}\necho {shlex.quote(END)}\n")
        self.commands.flush()
        output = []
        while not (line := self.process.stdout.readline()).startswith(END):
            assert line, f"the shell has ended: {output}"
            output.append(line.rstrip("\n"))
        return output

    def end(self):
        self.commands.close()
        self.process.stdout.close()
        self.process.wait(LEAVE_S)


@pytest.fixture
def shell(cluster, prefix, scratch):
    """A shell in the cluster. Its pmi2x starts clusters with the plugin of the installation,
    as one with packages would."""
    home = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    home.chmod(0o755)
    (home / "pmi2x").symlink_to(SOURCE)
    (home / "bin").mkdir()
    plugins = prefix / "lib/slurm"
    command = home / "bin/pmi2x"
    command.write_text(f'''#!/bin/sh
[ "$1 $2" != "cluster up" ] || set -- "$@" {f"--plugindir {plugins}" if plugins.is_dir() else ""} --until-exit {os.getpid()}
exec {prefix}/bin/pmi2x "$@"
''')
    command.chmod(0o755)
    env = {**os.environ, **cluster.variables}
    env["PATH"] = f"{home}/bin:{prefix}/bin:{env['PATH']}"
    shell = Shell(home, env)
    yield shell
    shell.end()


def test_a_page_is_read():
    page = "text\n\n    $ a <<E\n    > b\n    > E\n    out 12\n\n    $ c\n"
    assert session(page) == [("a <<E\nb\nE", ["out 12"]), ("c", [])]
    assert alike(["in /x/y: 7 s", "b"], ["b", "in /home/me/y: 0.5 s"])
    assert alike(["a", "b"], ["b", "..."]) and not alike(["a", "b"], ["b"])
    assert not alike([], ["b", "..."])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial(shell, page):
    for command, expected in session(page.read_text()):
        limit = time.monotonic() + LEAVE_S
        output = shell.run(command)
        while LOOKS.match(command) and not alike(output, expected) and time.monotonic() < limit:
            output = shell.run(command)
        assert alike(output, expected), "\n".join([f"$ {command}", *output])
