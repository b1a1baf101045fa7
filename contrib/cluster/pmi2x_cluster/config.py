# SPDX-License-Identifier: BSD-3-Clause
"""Writes slurm.conf and what belongs beside it."""

import os
import pwd
import random
import re
import shutil
import socket

from . import auth, site
from .machine import ClusterError
from .state import write_file

# Programs name shared memory after the job. Clusters on one machine share that
# memory, so their job numbers should differ.
JOBS_A_SLOT = 1000
JOB_ID_SLOTS = 60000


def plugin_path(added, stock):
    """The value of PluginDir; Slurm takes quotes, and so white space."""
    dirs = [os.path.abspath(name) for name in added]
    for name in dirs:
        if not os.path.isdir(name):
            raise ClusterError(f"--plugindir: {name} is not a directory")
        if re.search(r'[:"\n]', name):
            raise ClusterError(f"--plugindir: Slurm cannot have '{name}'")
    if not stock:
        raise ClusterError("srun does not say where Slurm's own plugins are")
    return '"%s"' % ":".join(dirs + [stock])


def check_paths(options):
    """Before any daemon starts: files of the command line that are not there."""
    prefix, conf = options.slurm_prefix, options.mpi_conf
    if prefix and not os.access(f"{prefix}/bin/srun", os.X_OK):
        raise ClusterError(f"--slurm-prefix {prefix}: there is no bin/srun")
    if conf and not os.access(conf, os.R_OK):
        raise ClusterError(f"--mpi-conf {conf}: there is no such file, or it cannot be read")


def loopback(options):
    """The address of everything: IPv6 where Slurm is to use nothing else."""
    lines = " ".join(options.slurm_conf_line).lower()
    return "::1" if "disableipv4" in lines else "127.0.0.1"


def global_options(options, state):
    path, first = state["dir"], state["first_port"]
    host = socket.gethostname().split(".")[0]
    user = pwd.getpwuid(os.getuid()).pw_name
    old = tuple(state["version"]) < (23, 11)
    conf = {
        "ClusterName": "pmi2x",
        "SlurmctldHost": f"{host}({loopback(options)})",
        "SlurmUser": user,
        "SlurmdUser": user,
        **auth.slurm_options(state["auth"], path, old),
        "SlurmctldPort": first,
        "SlurmctldPidFile": f"{path}/run/slurmctld.pid",
        "SlurmdPidFile": f"{path}/run/slurmd.%n.pid",
        "SlurmctldLogFile": f"{path}/log/slurmctld.log",
        "SlurmdLogFile": f"{path}/log/slurmd.%n.log",
        "StateSaveLocation": f"{path}/ctld",
        "SlurmdSpoolDir": f"{path}/spool/%n",
        "TmpFS": f"{path}/spool/%n",
        "SlurmdParameters": "config_overrides",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "SelectType": "select/cons_res" if old else "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "bf_interval=1",
        "MpiDefault": "none",
        "MailProg": "/bin/true",
        "FirstJobId": random.randrange(1, JOB_ID_SLOTS) * JOBS_A_SLOT,
        "ReturnToService": 2,
        "TreeWidth": 16,
        "KillWait": 5,
        # A machine with too much to do must not drain its nodes.
        "UnkillableStepTimeout": 600,
    }
    if options.plugindir:
        conf["PluginDir"] = plugin_path(options.plugindir, state["plugin_dir"])
    return conf


def node_line(options, state):
    nodes, first = state["nodes"], state["first_port"]
    host = socket.gethostname().split(".")[0]
    return (
        f"NodeName=n[1-{nodes}] NodeHostname={host} "
        f"NodeAddr={loopback(options)} Port=[{first + 1}-{first + nodes}] "
        f"CPUs={options.cpus} State=UNKNOWN"
    )


def cgroup_conf(state):
    """"disabled" is known from 24.05 on; before it an unused plugin does no harm."""
    old = tuple(state["version"]) < (24, 5)
    return "CgroupPlugin=%s\n" % ("cgroup/v1" if old else "disabled")


def slurm_conf(options, state):
    """The user's lines replace ours where they set the same option."""
    conf, extra = global_options(options, state), []
    if state["site"]:
        conf.update(site.slurm_options(options, state))
    names = {name.lower(): name for name in conf}
    for line in options.slurm_conf_line:
        key, equals, value = line.partition("=")
        if not equals:
            raise ClusterError(f"--slurm-conf-line: no '=' in '{line}'")
        if re.match(r"(node|partition|down)", key, re.I):
            extra.append(line)
        else:
            conf[names.get(key.strip().lower(), key.strip())] = value
    lines = [f"{name}={value}" for name, value in conf.items()]
    lines.append((site.node_line if state["site"] else node_line)(options, state))
    lines.append(
        f"PartitionName=all Nodes=n[1-{state['nodes']}] Default=YES "
        "OverSubscribe=FORCE:4 MaxTime=INFINITE State=UP"
    )
    return "\n".join(lines + extra) + "\n"


def write_config(options, state, text):
    path = state["dir"]
    write_file(f"{path}/slurm.conf", text)
    if state["site"]:
        write_file(f"{path}/cgroup.conf", site.cgroup_conf(options, state))
        site.write_files(options, state)
    else:
        write_file(f"{path}/cgroup.conf", cgroup_conf(state))
    if options.mpi_conf:
        shutil.copyfile(options.mpi_conf, f"{path}/mpi.conf")
    kind = state["auth"]
    key = os.urandom(auth.KEY_BYTES[kind])
    write_file(f"{path}/{kind}.key", key, 0o600)
