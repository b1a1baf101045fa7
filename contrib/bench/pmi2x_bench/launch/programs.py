# SPDX-License-Identifier: BSD-3-Clause
"""The programs that are started, and whether what they print is right."""

import os
import shutil
import subprocess

from ..errors import BenchError

from . import matrix

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi-noop.c")
# Where there are several MPI libraries the compiler decides what ranks speak.
COMPILERS = {"pmix": ("mpicc.openmpi", "mpicc"), "": ("mpicc.mpich", "mpicc")}
COMPILE_S = 120
LINES_SHOWN = 4  # lines of a failed compiler's output


def parse_compilers(words):
    """{method or "": compiler} of --mpicc [METHOD=]COMPILER."""
    found = {}
    for word in words:
        method, equals, compiler = word.rpartition("=")
        compiler_path = shutil.which(compiler)
        if not compiler_path:
            raise BenchError(f"--mpicc: there is no '{compiler}'")
        if equals and not method:
            raise BenchError(f"--mpicc: no method before '=' in '{word}'")
        found[method] = compiler_path
    return found


class Alone(BenchError):
    """Each rank started as a singleton."""


class Programs:
    """`directory` holds what make has built, `libraries` libpmi2x; `into` is
    where the MPI no-op is compiled, which all nodes have to see."""

    def __init__(self, directory, libraries, compilers, into):
        self.directory, self.libraries = directory, libraries
        self.compilers, self.into = compilers, into
        self.compiled = {}  # {compiler: (program, reason)}

    def library(self, method):
        known = {"stock": "libpmi2.so.0", "pmi1": "pmi1"}
        if matrix.client(method) == "pmi1":
            return "pmi1"
        if method.variant in known:
            return known[method.variant]
        dropin = method.variant == "dropin"
        name = "pmi2x/libpmi2.so.0" if dropin else "libpmi2x.so.0"
        return f"{self.libraries}/{name}"

    def pmi(self, method):
        """Command of the PMI no-op, and why there is none."""
        client = matrix.client(method)
        name = "pmi2x-noop-pmix" if client == "pmix" else "pmi2x-noop"
        program = f"{self.directory}/{name}"
        if not os.access(program, os.X_OK):
            hint = ""
            if client == "pmix":
                hint = (
                    "; it is built where PMIx's development files are (on "
                    "Debian: apt-get install libpmix-dev)"
                )
            return [], f"{program} is not there{hint}"
        if client == "pmix":
            return [program], ""
        library = self.library(method)
        if "/" in library and not os.path.exists(library):
            return [], f"{library} is not there"
        return [program, f"--library={library}"], ""

    def compiler(self, method):
        for name in method.mpi, "":
            if name in self.compilers:
                return self.compilers[name]
        kind = "pmix" if matrix.client(method) == "pmix" else ""
        return next(filter(None, map(shutil.which, COMPILERS[kind])), None)

    def mpi(self, method):
        """Command of the MPI no-op, and why there is none."""
        compiler = self.compiler(method)
        if not compiler:
            return [], "no mpicc in PATH; see --mpicc"
        if compiler not in self.compiled:
            program = f"{self.into}/mpi-noop-{len(self.compiled)}"
            self.compiled[compiler] = program, self.compile(compiler, program)
        program, reason = self.compiled[compiler]
        return [program], reason

    @staticmethod
    def compile(compiler, program):
        """Why it cannot be compiled."""
        try:
            done = subprocess.run(
                [compiler, "-O1", "-o", program, SOURCE],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=COMPILE_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{compiler}: {error}"
        if done.returncode == 0:
            return ""
        lines = done.stdout.strip().splitlines()[:LINES_SHOWN]
        return " / ".join([f"{compiler} cannot compile an MPI program"] + lines)

    def command(self, test, method):
        """argv of a rank, and why it cannot be: one of the two is empty."""
        if test == "pmi":
            return self.pmi(method)
        if test == "mpi":
            return self.mpi(method)
        return [matrix.TESTS[test]], ""


def check(test, ranks, text):
    """Raises unless the ranks of a test have printed what they should."""
    lines = text.split("\n")[:-1]
    if test == "true":
        return
    if test == "hostname":
        if len(lines) != ranks:
            raise BenchError(f"{len(lines)} of {ranks} names came")
        return
    found = [line for line in lines if line.startswith("noop ranks=")]
    if found == [f"noop ranks={ranks}"]:
        return
    if len(found) == ranks and set(found) == {"noop ranks=1"}:
        raise Alone(
            f"came up as {ranks} programs of one rank each: what the program "
            "is linked with does not speak to this launcher"
        )
    raise BenchError(f"no line of rank 0 that says {ranks} ranks")
