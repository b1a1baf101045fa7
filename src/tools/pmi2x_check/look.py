# SPDX-License-Identifier: BSD-3-Clause
"""Requests of pmi2x check to Slurm and to the nodes."""

import os
import pathlib
import re
import subprocess
import time

TRIAL = pathlib.Path(__file__).with_name("trial.py")
FREE_S = 60  # for nodes to become free
ANSWER_S = 60  # for a question to slurmctld; munge is tried for up to 50 s
STEP_S = FREE_S + 120
END_S = 10  # from SIGTERM to SIGKILL
STUCK_S = 60  # KillWait, and time for epilogs
NO_PROOF = ("start munge here, with the key that the controller has (systemctl start "
            "munge); with auth/slurm, sackd or slurmd")
NO_REASON = "pmi2x: cannot prepare the step"  # a line before it may say why
USABLE = ("idle", "mixed", "allocated", "completing")
FREE = ("idle", "mixed")
ROW = re.compile(r"(\S+|\(this host\)) +(mpi_pmi2x\.so|pmi2x-agent) +"
                 r"(-|\S+ protocol \d+) +(.*)")
# A task's parent has the limits of slurmd, which the agent gets, too.
NODE_SCRIPT = (
    "say() { echo \"$SLURMD_NODENAME $*\"; }; while read -r a b c d e; do "
    "case \"$a $b $c\" in "
    "'Max open files') say descriptors $e;; 'Max locked memory') say locked $e;; "
    "esac; done </proc/$PPID/limits; "
    "say cpus $(getconf _NPROCESSORS_ONLN); "
    "say ephemeral $(cat /proc/sys/net/ipv4/ip_local_port_range); "
    # mpi.conf is beside slurm.conf: the one that Slurm's commands use here, or the
    # controller's path, or where slurmd keeps what the controller has sent.
    "for d in \"${SLURM_CONF%/*}\" \"$1\" /run/slurm/conf /etc/slurm; do "
    "[ -e \"$d/slurm.conf\" ] || continue; say options; "
    "[ ! -r \"$d/mpi.conf\" ] || while read -r line || [ \"$line\" ]; do "
    "line=${line%%#*}; case $line in [Pp][Mm][Ii]2[Xx]*) say options \"$line\";; esac; "
    "done <\"$d/mpi.conf\"; break; done; "
    "[ -z \"$(ls /sys/class/infiniband 2>/dev/null)\" ] || say infiniband yes"
)


class CheckError(Exception):
    """Why nothing can be said: a line, and what to do."""

    def __init__(self, text, remedy):
        super().__init__(text)
        self.remedy = remedy


def run(argv, seconds=ANSWER_S):
    """Exit status, output and errors of a command. SIGTERM lets srun give its job back."""
    try:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, errors="replace")
    except FileNotFoundError:
        raise CheckError(f"there is no {argv[0]} here",
                         "run this on a host from which jobs are started") from None
    except OSError as error:
        return 126, "", str(error)
    try:
        shown, errors = child.communicate(timeout=seconds)
        return child.returncode, shown, errors
    except subprocess.TimeoutExpired:
        child.terminate()
    try:
        shown, errors = child.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        shown, errors = child.communicate()
    late = f"{os.path.basename(argv[0])} has not ended within {seconds} s"
    return 124, shown, f"{errors}\n{late}\n"


def last_line(*texts):
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it says nothing"


def unproven(errors):
    """How a command of Slurm failed to prove who its user is; "": it did not."""
    if "authentication error" not in errors:
        return ""
    return re.search(r".*(?:[Ff]ail|connect|authentication error).*", errors)[0].strip()


def no_answer(errors):
    reason = unproven(errors)
    if reason:
        return CheckError(f"Slurm cannot authenticate on this host: {reason}", NO_PROOF)
    return CheckError(f"slurmctld does not answer: {last_line(errors)}",
                      "\"scontrol ping\" says more; is SLURM_CONF right?")


def configuration():
    """The output of "scontrol show config", plugins' options included."""
    code, shown, errors = run(["scontrol", "show", "config"])
    pairs = re.findall(r"^(\w+) *= *(.*?) *$", shown, re.M)
    if code or "PluginDir" not in dict(pairs):
        raise no_answer(errors)
    return dict(pairs)


def plugin_here():
    """Whether srun here can load the plugin, and of which other Slurm one is there."""
    _, shown, errors = run(["srun", "--mpi=list"])
    other = re.search(r"Incompatible .*/mpi_pmi2x\.so version \((.*)\)", shown + errors)
    return "pmi2x" in (shown + errors).split(), other[1] if other else ""


def states(nodes):
    """{node: Slurm's state}, of a node list, or of all."""
    argv = ["sinfo", "-h", "-N", "-o", "%N %T"] + (["-n", nodes] if nodes else [])
    code, shown, errors = run(argv)
    if code:
        raise CheckError(f"sinfo: {last_line(errors)}", "is that a node list?")
    return dict(line.split(None, 1) for line in shown.splitlines())


def stuck(nodes):
    """{node: seconds} of those that Slurm waits for to end a job, for longer than that is
    usual."""
    argv = ["env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-a", "-t", "CG", "-o", "%e %N"]
    found = {}
    for line in run(argv)[1].splitlines():
        since, _, names = line.partition(" ")
        seconds = int(time.time()) - int(since) if since.isdigit() else 0
        if seconds > STUCK_S:
            found.update((node, max(seconds, found.get(node, 0)))
                         for node in hostnames(names) if node in nodes)
    return found


def hostnames(nodes):
    """The names in a node list."""
    return run(["scontrol", "show", "hostnames", nodes])[1].split()


def choose(nodes):
    """The nodes to look at, {node: state} of those left out, and what Slurm knows not."""
    named = nodes or os.environ.get("SLURM_JOB_NODELIST")
    all_states = states(named)
    if not all_states:
        raise CheckError(f"Slurm knows no node {named}" if named else
                         "Slurm has no nodes", "\"sinfo -N\" names the nodes")
    wanted = USABLE if "SLURM_JOB_ID" in os.environ else FREE
    chosen = [node for node, state in all_states.items() if state in wanted]
    left = {node: state for node, state in all_states.items() if node not in chosen}
    strange = [node for node in hostnames(nodes) if node not in all_states] if nodes else []
    return chosen, left, strange


def step(nodes, mpi, *argv):
    """Runs a command once on each of these nodes."""
    count = str(len(nodes))
    inside = ["--overlap"] if "SLURM_JOB_ID" in os.environ else []
    options = [f"--mpi={mpi}", *inside, "-w", ",".join(nodes), "-N", count, "-n", count,
               "--ntasks-per-node=1", f"--immediate={FREE_S}", "--input=none"]
    return run(["srun", *options, *argv], STEP_S)


def builds(probe, nodes):
    """Rows of pmi2x-probe --nodes: (node, file, build, verdict)."""
    _, shown, errors = run([probe, "--nodes", ",".join(nodes)], STEP_S)
    rows = [ROW.fullmatch(line.strip()) for line in shown.splitlines()]
    found = [row.groups() for row in rows if row]
    if not found:
        raise CheckError(f"the nodes cannot be read: {last_line(shown, errors)}",
                         f"\"{probe} --nodes {','.join(nodes)}\" says more")
    return found


def facts(nodes, config):
    """{node: {name: words}} of NODE_SCRIPT."""
    place = os.path.dirname(config.get("SLURM_CONF", ""))
    _, shown, _ = step(nodes, "none", "sh", "-c", NODE_SCRIPT, "sh", place)
    found = {}
    for line in shown.splitlines():
        node, *words = line.split()
        if node in nodes and words:
            found.setdefault(node, {}).setdefault(words[0], []).extend(words[1:])
    return found


def trial(nodes):
    """Why a step of these nodes fails ("": it works), and the nodes on which slurmd has not
    answered."""
    code, shown, errors = step(nodes, "pmi2x", "python3", "-c", TRIAL.read_text())
    if code == 0 and f"passed {len(nodes)}" in shown.splitlines():
        return "", []
    silent = re.findall(r"failed on node (\S+): Socket timed out", errors)
    return why_not(shown, errors), silent


def why_not(shown, errors):
    if "execve(): python3" in errors:
        return "it needs python3, which a node lacks"
    lines = [line for line in errors.splitlines() if "pmi2x" in line]
    reasons = [line for line in lines if NO_REASON not in line]
    return last_line(*(reasons or lines or [shown, errors]))
