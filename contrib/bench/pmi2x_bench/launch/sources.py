# SPDX-License-Identifier: BSD-3-Clause
"""Where a figure can come from: Slurm, or the agents without Slurm."""

import os
import shutil

from .. import limits, place
from ..errors import BenchError
from ..record import Sample
from ..run import busy_seconds, failure, run_program
from . import matrix, programs

# The meaning of the labels of a figure.
LABELS = {
    "real": "measured on the nodes of an allocation",
    "private": "measured on a test cluster on this machine",
    "emulated": "measured with the agents of pmi2x as processes of this "
    "machine, without Slurm",
    "simulated": "computed by pmi2x sim run",
}
# Memory of an emulated node's processes, with its share of the kernel's memory.
FAKE_NODES_MAX = 4096
FAKE_NODE_KB = 1024
FAKE_PORTS = 4000  # size of the range that it takes by default

class Late(BenchError):
    """The launch did not end within its limit."""

    def __init__(self, seconds, argv):
        super().__init__(f"not done after {seconds:.0f} s: {' '.join(argv)}")


class Launched:
    """Sources that start processes: the time is that of the launcher, from
    before its fork to its end, as time(1) has it."""

    one_machine = True

    def __init__(self, options, programs_):
        self.options, self.programs = options, programs_

    def command(self, test, config, method):
        """argv and environment of the launcher, with those of a rank."""
        argv, reason = self.programs.command(test, method)
        if reason:
            raise BenchError(reason)
        before, env = self.launcher(config, method)
        return before + argv, env

    def measure(self, test, config, method, timeout):
        argv, env = self.command(test, config, method)
        before = busy_seconds()
        code, out, err, wall = run_program(argv, timeout, env)
        if code is None:
            raise Late(wall, argv)
        if code != 0:
            raise failure(code, err)
        programs.check(test, config[0] * config[1], out)
        busy = busy_seconds() - before if self.one_machine else None
        return Sample([wall], busy=busy)


class Slurm(Launched):
    """Under an allocation, of a cluster or of a test cluster."""

    def __init__(self, options, programs_):
        super().__init__(options, programs_)
        self.label = "private" if options.private else "real"
        self.one_machine = bool(options.private)

    def room(self, test, config):
        """Why the allocation or the machine does not hold it; or ""."""
        point = matrix.point(test, config)
        if self.options.private:
            if config[0] > self.options.private:
                return f"--private {self.options.private} has fewer nodes"
            return limits.refusal(self.options.private, point)
        try:
            place.check_allocation([point], self.options)
        except BenchError as error:
            return str(error)
        return ""

    def cannot(self, test, method):
        reason = matrix.why_not(test, method)
        if reason:
            return reason
        program = matrix.LAUNCHERS.get(method.mpi, ("srun",))[0]
        if not shutil.which(program):
            return f"{program} is not in PATH"
        return self.programs.command(test, method)[1]

    def launcher(self, config, method):
        nodes, per_node = config
        if method.mpi == "hydra":
            argv = ["mpiexec.hydra", "-rmk", "slurm", "-launcher", "slurm"]
            extra = ["--overlap", "--mpi=none", *self.options.srun_option]
            env = {"HYDRA_LAUNCHER_EXTRA_ARGS": " ".join(extra)}
            # The launcher's proxies would look up the name of this host, which new
            # machines cannot: all of a test cluster is on the loopback device.
            if self.one_machine:
                argv += ["-localhost", "127.0.0.1"]
            return argv + ["-n", f"{nodes * per_node}", "-ppn", f"{per_node}"], env
        if method.mpi == "prrte":
            argv = ["prterun", "--map-by", f"ppr:{per_node}:node"]
            argv += ["--bind-to", "none", "-n", f"{nodes * per_node}"]
            env = {"PRTE_ALLOW_RUN_AS_ROOT": "1"}
            return argv, {**env, "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        argv = ["srun", "-Q", "-K", "--overlap", f"--mpi={method.mpi}"]
        argv += [f"-N{nodes}", f"-n{nodes * per_node}", "-m", "block"]
        argv += [f"--ntasks-per-node={per_node}", *self.options.srun_option]
        return argv, {}


class Emulated(Launched):
    """The fake server: a process and a thread for each node's agent, which
    forks the ranks. No slurmd, no srun, no step daemon."""

    label = "emulated"

    def __init__(self, options, programs_, server):
        super().__init__(options, programs_)
        self.server = server

    def room(self, test, config):
        nodes, per_node = config
        if nodes > FAKE_NODES_MAX:
            return f"fake-server has at most {FAKE_NODES_MAX} nodes"
        rank = limits.USUAL.rank if test != "mpi" else limits.MPI_RANK_KB
        need = nodes * FAKE_NODE_KB + nodes * per_node * rank
        free = limits.available_kb()
        if need > free:
            return (
                f"{matrix.named(config)} emulated needs about {need // 1024} "
                f"MB of memory, {free // 1024} MB are free; free -m shows "
                "what is taken"
            )
        try:
            limits.check_processes(
                f"{matrix.named(config)} emulated",
                2 * nodes + nodes * per_node + limits.BASE_THREADS,
            )
        except BenchError as error:
            return str(error)
        return ""

    def cannot(self, test, method):
        if method.mpi != "pmi2x":
            return f"the agents of pmi2x cannot stand for {method}"
        if not os.access(self.server, os.X_OK):
            return f"{self.server} is not there"
        return self.programs.command(test, method)[1]

    def launcher(self, config, method):
        nodes, per_node = config
        argv = [self.server, "-N", f"{nodes}", "-n", f"{nodes * per_node}"]
        if nodes > FAKE_PORTS * 3 // 4:
            argv += ["-p", f"{limits.PORTS_FIRST}-31999"]
        return argv + ["-m", "block"], {}
