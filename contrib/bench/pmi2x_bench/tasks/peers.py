# SPDX-License-Identifier: BSD-3-Clause
"""Other ways to start many tasks: how each runs /bin/true a number of times."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

from ..errors import BenchError
from ..run import output


TRUE = "/bin/true"
PRTE_S = 60  # until it is ready
PRUN_S = 10  # one takes a tenth of a second, and some never end
HYPERQUEUE = """
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
def seconds(tasks):
    job = Job()
    for _ in range(tasks):
        job.program(["/bin/true"])
    begin = time.monotonic()
    client.wait_for_jobs([client.submit(job)])
    return time.monotonic() - begin
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=int(sys.argv[2])))
    client = cluster.client()
    seconds(1)  # until the worker is there
    print("seconds", seconds(int(sys.argv[1])))
"""


class Missing(BenchError):
    """A program is missing; the text says in a line what to install."""


def need(program, package):
    found = shutil.which(program)
    if not found:
        raise Missing(f"not here: apt-get install {package}")
    return found


def floor(bench, tasks, at_once):
    """fork, exec and wait in C; tasks a second."""
    program = os.path.join(bench.options.programs, "dvm-floor")
    return tasks / output([program, tasks, at_once, TRUE])[1]


def parallel(tasks, at_once):
    lines = f"{TRUE}\n" * tasks
    argv = [need("parallel", "parallel"), f"-j{at_once}", "--will-cite"]
    return tasks / output(argv, text=lines)[1]


def hyperqueue(python, tasks, at_once, place):
    """From submit to the last result. It leaves the output of each task in the working
    directory."""
    python = python or sys.executable
    if subprocess.run([python, "-c", "import hyperqueue"], capture_output=True).returncode:
        raise Missing("not here: pip install hyperqueue==0.27.0, and --hyperqueue PYTHON")
    out, _ = output([python, "-c", HYPERQUEUE, tasks, at_once], cwd=place)
    found = re.search(r"^seconds (\S+)$", out, re.MULTILINE)
    if not found:
        raise BenchError("it does not say how long it took")
    return tasks / float(found[1])


def many(command, tasks, at_once):
    """A process for each task, a number of them at once: tasks a second."""
    script = f"seq {tasks} | xargs -P {at_once} -I@ {command}"
    return tasks / output(["sh", "-c", script])[1]


def srun(tasks, at_once):
    return many(f"srun -Q -n1 -N1 --overlap --mem=0 {TRUE}", tasks, at_once)


class Prrte:
    """A with block in which the DVM of PRRTE is up in the allocation."""

    def __init__(self, place):
        need("prun", "openmpi-bin (Debian 13 has it)")
        self.uri = os.path.join(place, "prte.uri")
        self.log = os.path.join(place, "prte.log")

    def __enter__(self):
        root = [] if os.getuid() else ["--allow-run-as-root"]
        argv = [need("prte", "openmpi-bin"), *root, "--report-uri", self.uri]
        with open(self.log, "w") as log:
            self.prte = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        end = time.monotonic() + PRTE_S
        while "DVM ready" not in open(self.log).read():
            if self.prte.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise BenchError(f"prte: {open(self.log).read()[-400:]}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.prte.terminate()
        self.prte.wait()

    def prun(self):
        """Seconds of one; None: it has not ended well in time."""
        root = [] if os.getuid() else ["--allow-run-as-root"]
        # prun queues nothing: a busy slot is an error, unless an option
        # says otherwise.
        more = "--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none", "-n", 1, TRUE
        argv = "timeout", PRUN_S, "prun", *root, "--dvm-uri", f"file:{self.uri}", *more
        try:
            return output(argv)[1]
        except BenchError:
            return None

    def pruns(self, count, at_once):
        """Seconds of the tasks that ended well, and the number of the others."""
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            found = list(pool.map(lambda _: self.prun(), range(count)))
        ended = [seconds for seconds in found if seconds is not None]
        if not ended:
            raise BenchError(f"no prun ends well: {open(self.log).read()[-400:]}")
        return ended, count - len(ended)
