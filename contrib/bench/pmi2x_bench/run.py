# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs, within a time, and waits for what daemons do."""

import os
import signal
import subprocess
import sys
import time

from .errors import BenchError

LINES_SHOWN = 8  # lines of a failed step's output
# slurmctld tells srun on its port that its job has ended. When srun has gone, the
# next one may have that port, and takes the message for its own as long as it has
# no job: it then gives its job back, with either of these, and has started nothing.
GIVEN_BACK = "are still not ready", "Unable to allocate resources: No error"
LEAVE_S = 20  # how long srun may take to end a step that it was told to end
ERROR_LINES = 3  # in one line
SETTLE_S = 120
POLL_S = 0.02


def own_lines_first(text):
    """Put lines of the benchmark and the plugin first: they explain more than Slurm's."""
    return sorted(text.strip().splitlines(), key=lambda l: "pmi2x" not in l)


def busy_seconds():
    """CPU time that this machine has spent, on anything."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq = map(
            int, file.readline().split()[1:8]
        )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def run_program(argv, timeout=None, env=None, text=None, cwd=None):
    """Exit code, both outputs and seconds; None as code: it took too long. env: beside
    this process's; text: its input."""
    begin = time.monotonic()
    child = subprocess.Popen(
        argv, stdin=subprocess.PIPE if text else subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        env={**os.environ, **(env or {})}, cwd=cwd)
    try:
        out, err = child.communicate(text, timeout=timeout)
        return child.returncode, out, err, time.monotonic() - begin
    except subprocess.TimeoutExpired:
        return None, "", "", time.monotonic() - begin
    finally:
        end_program(child)


def end_program(child):
    """srun ends its step on SIGTERM; it is killed only when it does not."""
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGTERM)
    try:
        child.communicate(timeout=LEAVE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()


def run_srun(argv, timeout, env=None):
    """As run_program; once more when srun has given its job back."""
    result = run_program(argv, timeout, env)
    if result[0] and any(words in result[2] for words in GIVEN_BACK):
        print(
            "srun took the end of another job for that of its own and has "
            "started nothing: once more",
            file=sys.stderr,
        )
        return run_program(argv, timeout, env)
    return result


def failure(code, err):
    """The reason of a failed step, for the user."""
    lines = own_lines_first(err)[:LINES_SHOWN] or ["no result line"]
    return BenchError("\n    ".join([f"exit code {code}"] + lines))


def output(argv, timeout=None, what=None, **options):
    """Standard output and seconds of a program that has to go well. what: names it
    in the error."""
    argv = list(map(str, argv))
    code, out, err, seconds = run_program(argv, timeout, **options)
    what = what or " ".join(argv)[:120]
    if code is None:
        raise BenchError(f"{what}: not done after {seconds:.0f} s")
    if code:
        lines = own_lines_first(err or out)[:ERROR_LINES]
        raise BenchError(f"{what}: exit status {code}: {' / '.join(lines)}")
    return out, seconds


def wait_for(what, condition):
    """The first true value of condition()."""
    end = time.monotonic() + SETTLE_S
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise BenchError(f"{what}: not within {SETTLE_S} s")
        time.sleep(POLL_S)
