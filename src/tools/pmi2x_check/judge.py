# SPDX-License-Identifier: BSD-3-Clause
"""Findings of pmi2x check, with their remedies."""

import collections
import re

from pmi2x_trace.records import counted

OK, WARNING, CRITICAL, UNKNOWN = range(4)  # as Nagios counts
NAMES = "OK", "WARNING", "CRITICAL", "UNKNOWN"
WORST_FIRST = CRITICAL, WARNING, UNKNOWN, OK
DEFAULT_PORTS = 28672, 32767  # as in conf.c
PORTS_FEW = 64
OWN_OPTIONS = "pmi2xpmixlibrary", "pmi2xtrace"  # may be a node's own
SPOOL_MOST = 92  # bytes: SOCKET_DIRECTORY_MAX of socket_name.h
DESCRIPTORS_SPARE = 256  # beside two for each rank, one rank a processor
NODES_SHOWN = 8

Finding = collections.namedtuple("Finding", "level check text remedy nodes",
                                 defaults=("", ()))


def worst(findings):
    levels = {finding.level for finding in findings}
    return next((level for level in WORST_FIRST if level in levels), UNKNOWN)


def names(nodes):
    shown = ", ".join(list(nodes)[:NODES_SHOWN])
    rest = len(nodes) - NODES_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def on(nodes):
    return f"on {counted(len(nodes), 'node')} ({names(nodes)})"


# ---- the files ----


def judge_plugin_here(there, other, config):
    if there:
        return Finding(OK, "plugin", "srun on this host has the plugin")
    text = "srun on this host cannot load the plugin mpi/pmi2x"
    if other:
        text += f": the installed one is for Slurm {other}"
    version = config.get("SLURM_VERSION", "of this version")
    return Finding(
        CRITICAL, "plugin", text, f"install pmi2x-plugin, built for Slurm {version}, as "
        f"mpi_pmi2x.so in {config['PluginDir']}")


def judge_controller(config):
    """slurmctld and slurmd look for plugins when they start and at a reconfigure. A step
    of pmi2x on a node whose slurmd does not know the plugin leaves the node unusable."""
    if any(option.startswith("Pmi2x") for option in config):
        return Finding(OK, "controller", "slurmctld has loaded the plugin")
    return Finding(
        CRITICAL, "controller", "slurmctld has not loaded the plugin; slurmd of the "
        "nodes may lack it, too, so there is no trial",
        "install pmi2x-plugin on compute nodes and controller, then run \"scontrol "
        "reconfigure\"")


# Verdicts with texts of their own; for others Slurm's state is the reason.
VERDICTS = {
    "another build": (WARNING, "has another build",
                      "install the same release everywhere"),
    "another protocol": (CRITICAL, "has another protocol, and steps fail",
                         "install plugin and agent of the same release everywhere"),
    "missing": (CRITICAL, "is missing",
                "install package pmi2x-plugin or pmi2x-agent there, then run "
                "\"scontrol reconfigure\""),
    "unknown build": (CRITICAL, "has no build in its file",
                      "install it again"),
}


def other_verdict(verdict):
    if verdict.startswith("for Slurm "):
        return (CRITICAL, f"is {verdict},",
                "install pmi2x-plugin there, built for the Slurm of the node, then run "
                "\"scontrol reconfigure\"")
    return UNKNOWN, f"cannot be read: {verdict}", "try again when the nodes are free"


def judge_builds(rows):
    groups = collections.defaultdict(list)
    for node, file, _, verdict in rows:
        groups[file, verdict].append(node)
    for (file, verdict), nodes in groups.items():
        if verdict == "ok":
            continue
        level, what, remedy = VERDICTS.get(verdict) or other_verdict(verdict)
        yield Finding(level, "build", f"{file} {what} {on(nodes)}", remedy,
                      tuple(nodes))
    if all(verdict == "ok" for verdict in (row[3] for row in rows)):
        yield Finding(OK, "build", f"all have build {rows[0][2]}")


# ---- limits and ports ----


def number(words):
    return int(words[0]) if words and words[0].isdigit() else None


def few_descriptors(fact):
    limit, cpus = number(fact.get("descriptors")), number(fact.get("cpus"))
    return limit is not None and limit < 2 * (cpus or 1) + DESCRIPTORS_SPARE


def little_locked(fact):
    return "infiniband" in fact and fact.get("locked") != ["unlimited"]


LIMITS = (
    (few_descriptors, "LimitNOFILE of slurmd is low: its agent holds a socket for each "
     "rank"),
    (little_locked, "LimitMEMLOCK of slurmd is low: ranks lock memory for InfiniBand"),
)


def judge_limits(facts):
    sound = True
    for low, text in LIMITS:
        nodes = [node for node, fact in facts.items() if low(fact)]
        if nodes:
            sound = False
            yield Finding(
                WARNING, "limits", f"{text}, {on(nodes)}",
                "raise it in slurmd's unit (package pmi2x-agent has the lines), and "
                "restart slurmd", tuple(nodes))
    if facts and sound:
        yield Finding(OK, "limits", "descriptors and locked memory suffice")


def port_range(config):
    """First and last port, and the option that names them; "": none does."""
    for option in "Pmi2xPorts", "SrunPortRange":
        found = re.fullmatch(r"(\d+)-(\d+)", config.get(option, ""))
        if found and int(found[2]):
            return int(found[1]), int(found[2]), option
    return *DEFAULT_PORTS, ""


def ephemeral(fact):
    return tuple(int(word) for word in fact.get("ephemeral", ()))


def judge_ports(config, facts):
    first, last, option = port_range(config)
    ranges = {node: ephemeral(fact) for node, fact in facts.items() if ephemeral(fact)}
    said = f"{option}={first}-{last}" if option else f"the default, {first}-{last},"
    taken = [node for node, (low, high) in ranges.items() if low <= last and first <= high]
    if taken:
        yield Finding(
            WARNING, "ports", f"{said} lies in net.ipv4.ip_local_port_range {on(taken)}: "
            "other connections take its ports",
            "choose ports outside of it (Pmi2xPorts in mpi.conf)", tuple(taken))
    if last - first + 1 < PORTS_FEW:
        yield Finding(
            WARNING, "ports", f"{said} are few ports: each step of a node "
            "needs one", f"give {option} {PORTS_FEW} or more")
    if not taken and last - first + 1 >= PORTS_FEW:
        yield Finding(OK, "ports", f"{first}-{last}, {option or 'the default'}")


# ---- what all nodes must have alike ----


def options_of(fact):
    """{option: value} of a node's mpi.conf, as Slurm reads it."""
    pairs = re.findall(r"(\w+)\s*=\s*(\S+)", " ".join(fact["options"]))
    return {key.lower(): (key, value) for key, value in pairs}


def judge_options(facts):
    known = {node: options_of(fact) for node, fact in facts.items() if "options" in fact}
    differ = False
    for option in sorted({option for options in known.values() for option in options}):
        groups = collections.defaultdict(list)
        for node, options in known.items():
            groups[options.get(option, ("", "(default)"))[1]].append(node)
        if len(groups) > 1 and option not in OWN_OPTIONS:
            differ = True
            name = next(o[option][0] for o in known.values() if option in o)
            said = "; ".join(f"{value} {on(nodes)}" for value, nodes in groups.items())
            fewest = min(groups.values(), key=len)
            yield Finding(
                WARNING, "options", f"{name} of mpi.conf differs: {said}",
                "give all nodes the same mpi.conf, then run \"scontrol reconfigure\"",
                tuple(fewest))
    if known and not differ:
        yield Finding(OK, "options", f"mpi.conf has the same options {on(known)}")


def judge_spool(config, nodes):
    spool = config.get("SlurmdSpoolDir", "")
    long = [node for node in nodes
            if len(spool.replace("%n", node).replace("%h", node).encode()) > SPOOL_MOST]
    if long:
        yield Finding(
            WARNING, "spool", f"SlurmdSpoolDir={spool} is too long for a socket {on(long)}: "
            "messages through slurmd cannot ask these nodes to connect",
            f"shorten it to {SPOOL_MOST} bytes, %n and %h expanded", tuple(long))


def judge_answers(nodes, facts):
    silent = [node for node in nodes if node not in facts]
    if silent:
        yield Finding(UNKNOWN, "limits", f"limits and ports are not known {on(silent)}",
                      "try again when the nodes are free", tuple(silent))


# ---- the trial ----


RESTART = ("check that the plugin is installed there; from Slurm 23.11 on, run \"scontrol "
           "reconfigure\" and wait two minutes; before 23.11, run \"systemctl restart "
           "slurmd\" there: systemd kills that slurmd after 90 seconds, and running jobs go "
           "on")


def judge_stuck(nodes):
    """nodes: {node: seconds for which Slurm has waited for it to end a job}."""
    if nodes:
        verb = "has" if len(nodes) == 1 else "have"
        yield Finding(
            CRITICAL, "nodes", f"{counted(len(nodes), 'node')} ({names(nodes)}) {verb} been "
            f"completing a job for {counted(max(nodes.values()) // 60, 'minute')}: usually "
            "a step of pmi2x ran there before slurmd knew the plugin; other reasons are a long "
            "epilog, or a process that cannot be killed", RESTART, tuple(nodes))


def judge_silent_slurmd(nodes):
    """Nodes on which the trial was not launched."""
    if nodes:
        yield Finding(
            CRITICAL, "trial", f"slurmd does not answer {on(nodes)}, and may not know the "
            "plugin", RESTART, tuple(nodes))


def judge_trial(nodes, why_not):
    where = f"a step of {counted(len(nodes), 'node')} ({names(nodes)})"
    if not why_not:
        return Finding(OK, "trial", f"{where} has exchanged data")
    return Finding(
        CRITICAL, "trial", f"{where} has failed: {why_not}",
        "if nodes cannot connect, open the ports between them; see also slurmd's log "
        "on these nodes", tuple(nodes))


def judge_left(left, named):
    """Nodes that no step can start on now; named: they were asked for."""
    if left:
        shown = names([f"{node} {state}" for node, state in left.items()])
        yield Finding(UNKNOWN if named else OK, "nodes",
                      f"not checked, because they are busy or down: "
                      f"{shown}", "try again when the nodes are free", tuple(left))


def judge_strange(nodes):
    """Nodes that were asked for, and that slurm.conf does not have."""
    if nodes:
        yield Finding(UNKNOWN, "nodes", f"Slurm knows no node {names(nodes)}",
                      "\"sinfo -N\" names the nodes", tuple(nodes))
