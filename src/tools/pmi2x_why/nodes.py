# SPDX-License-Identifier: BSD-3-Clause
"""Send the reader of /proc to the nodes of a step, and take its answers."""

import base64
import json
import os
import pathlib
import re
import subprocess
import zlib

from pmi2x_check.look import NO_PROOF, unproven

READER = pathlib.Path(__file__).with_name("reader.py")
STEP_S = 60  # for Slurm to start the reader and for all nodes to answer
LIMIT = 64 << 20  # bytes of a node's answer, unpacked
NO_SLURM = "is this a host from which jobs are started?"
OF_SLURM = ("SLURM_CONF", "SLURM_SACK_SOCKET")  # where Slurm is, of no job


class WhyError(Exception):
    """Something to say to the user and nothing else."""


def ranges(ranks):
    """Ranks as the reader takes them: "5,7-9"."""
    runs = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def environment():
    """Without what belongs to another job or step, in which this command may run."""
    return {name: value for name, value in os.environ.items()
            if name in OF_SLURM or not re.match("SLURM|PMI", name)}


def run(argv):
    """The output and the errors of a command of Slurm."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=STEP_S,
                              env=environment())
    except FileNotFoundError:
        raise WhyError(f"{argv[0]} is not installed: {NO_SLURM}") from None
    except subprocess.TimeoutExpired as error:
        # srun ends its step when it is killed.
        output, errors = ((text or b"").decode(errors="replace")
                          for text in (error.stdout, error.stderr))
        return output, (
            f"{errors}{argv[0]} did not end within {STEP_S} s: is the job suspended?")
    return done.stdout, done.stderr


def reject_silence(errors):
    """Stop where Slurm itself did not answer: then nothing is known of the step."""
    if unproven(errors):
        raise WhyError("Slurm cannot authenticate on this host: "
                       f"{unproven(errors)}: {NO_PROOF}")
    if re.search("configuration source|configuration file|cannot stat file|Unable to contact|"
                 "timed out", errors):
        raise WhyError(f"slurmctld does not answer: {errors.strip().splitlines()[-1]}; "
                       "\"scontrol ping\" says more; is SLURM_CONF right?")


def only_step(job):
    """The running step of a job that srun started, if there is exactly one."""
    shown, errors = run(["squeue", "--steps", "--noheader", "--jobs", job, "--format=%i"])
    reject_silence(errors)
    steps = [line.strip() for line in shown.splitlines()
             if re.fullmatch(r"\d+\.\d+", line.strip())]
    if len(steps) == 1:
        return steps[0]
    if steps:
        raise WhyError(f"job {job} has several steps: name one of {', '.join(steps)}")
    raise WhyError(f"job {job} has no step that srun has started: \"squeue -s\" lists those that run")


def of_step(step):
    """Names of the nodes of a running step."""
    shown, errors = run(["scontrol", "show", "step", step])
    found = re.search(r"NodeList=(\S+)", shown)
    reject_silence(errors)
    if not found:
        said = (errors or shown).strip().splitlines() or ["scontrol shows no nodes"]
        raise WhyError(f"no step {step} (squeue -s lists running steps): {said[-1]}")
    return run(["scontrol", "show", "hostnames", found[1]])[0].split()


def unpack(pieces):
    """The ranks of a node, or None where its answer is not whole."""
    try:
        packed = zlib.decompressobj()
        data = packed.decompress(base64.b64decode("".join(pieces)), LIMIT)
        return json.loads(data) if packed.eof else None
    except (ValueError, zlib.error):
        return None


def gather(output):
    pieces = {}
    for line in output.splitlines():
        node, _, piece = line.partition(" ")
        pieces.setdefault(node, []).append(piece.strip())
    found = {node: unpack(words) for node, words in pieces.items()}
    return {node: ranks for node, ranks in found.items() if ranks is not None}


def start(step, nodes, *argv):
    """Run a command once on each of these nodes, in the job of the step."""
    job = step.partition(".")[0]
    count = str(len(nodes))
    options = [f"--jobid={job}", "--overlap", "--mpi=none", "--quiet", "--input=none",
               "--cpu-bind=none", "--unbuffered", "--ntasks-per-node=1",
               f"--nodelist={','.join(nodes)}", "-N", count, "-n", count]
    return run(["srun", *options, *argv])


def ask(step, nodes, ranks):
    """{node: [{"rank", "processes"}]} and what srun had to say. ranks: the wanted
    ones; none: all."""
    if not nodes:
        return {}, ""
    argv = ["python3", "-c", READER.read_text(), step, ranges(ranks)]
    output, errors = start(step, nodes, *argv)
    return gather(output), errors.strip()
