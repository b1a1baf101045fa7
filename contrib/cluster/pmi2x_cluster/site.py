# SPDX-License-Identifier: BSD-3-Clause
"""A cluster that resembles a site: what is in its files, and how its hosts are made.

The hosts: "ctl" with slurmctld, slurmdbd and MariaDB, "login" where commands run, and
the nodes. They meet on a bridge in a network namespace that holds nothing else; no
route leads out of it, so clusters can all have the same addresses.
"""

import os
import secrets
import shutil
import stat
import subprocess

from . import cgroups, namespaces
from .machine import ClusterError, memory_kb
from .state import write_file

CONTROLLER = "ctl"
LOGIN = "login"
NODES_MAX = 1000  # ports of a bridge: 1024
CTLD_PORT, SLURMD_PORT, DBD_PORT, DATABASE_PORT = 6817, 6818, 6819, 3306
CLAIMED_MEMORY_MB = 1 << 20  # memory that a node claims to have, by which jobs are admitted
JOB_MEMORY_MB = 1 << 14  # largest memory of a job on a node without a limit
GRES = "nic"  # a kind whose devices Slurm confines; one on each node
GRES_FILE, GRES_DEVICE = "device0", os.makedev(1, 7)  # the device /dev/full
PROGRAMS = ("ip", "slurmdbd", "mariadbd", "mariadb-install-db")

# Scripts of a site: each forks, and takes a moment of varying length.
SCRIPTS = {
    "prolog": 'echo "prolog $SLURM_JOB_ID $SLURMD_NODENAME" >>"{dir}/log/scripts"\n',
    "epilog": 'echo "epilog $SLURM_JOB_ID $SLURMD_NODENAME" >>"{dir}/log/scripts"\n',
    "task-prolog": "sleep 0.$((RANDOM % 3))$((RANDOM % 10))\n"
    "echo export SITE_TASK_PROLOG=$(id -un)\n",
    "task-epilog": "sleep 0.$((RANDOM % 3))$((RANDOM % 10))\n",
}


def check(nodes):
    if os.geteuid() != 0:
        raise ClusterError("--site needs root: it makes namespaces and control groups")
    if nodes > NODES_MAX:
        raise ClusterError(f"--site can have {NODES_MAX} nodes at most")
    if not os.path.exists("/etc/hosts"):
        raise ClusterError("--site needs a file /etc/hosts to cover: touch /etc/hosts")


def make_group_names():
    """Make names of groups. Last, check again that this machine allows a site."""
    tops = cgroups.top_directories(f"pmi2x-cluster-{secrets.token_hex(4)}")
    try:
        namespaces.check_allowed()
        cgroups.check_allowed(tops)
    except OSError as error:
        raise ClusterError(
            "--site needs to make namespaces, and control groups below "
            f"{cgroups.ROOT}: {error}"
        ) from None
    return tops


def hosts(state):
    return [CONTROLLER, LOGIN] + [f"n{i + 1}" for i in range(state["nodes"])]


def address(index):
    """IPv4 and IPv6 address of a host, by its place in hosts()."""
    return f"10.66.{index // 250}.{index % 250 + 1}", f"fd66::{index + 1:x}"


# ---- files ----


def slurm_options(options, state):
    """Lines of slurm.conf in place of a plain cluster's."""
    scripts = f"{state['dir']}/scripts"
    return {
        "SlurmctldHost": CONTROLLER,
        "SlurmctldPort": CTLD_PORT,
        "SlurmdPort": SLURMD_PORT,
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/cgroup,task/affinity",
        "JobAcctGatherType": "jobacct_gather/cgroup",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": CONTROLLER,
        "AccountingStoragePort": DBD_PORT,
        "AccountingStoragePass": f"{state['dir']}/run/munge.socket",
        **container_option(state["version"]),
        "PrologFlags": "Contain",
        "SelectTypeParameters": "CR_CPU_Memory",
        "Prolog": f"{scripts}/prolog",
        "Epilog": f"{scripts}/epilog",
        "TaskProlog": f"{scripts}/task-prolog",
        "TaskEpilog": f"{scripts}/task-epilog",
        "GresTypes": GRES,
        "DefMemPerNode": min(JOB_MEMORY_MB, memory_kb("MemTotal") // 1024),
    }


def container_option(version):
    """A /tmp for each job. In a chroot, which that plugin would leave, jobs share one."""
    kind = "none" if namespaces.in_chroot() else "tmpfs"
    if tuple(version) < (25, 11):
        return {"JobContainerType": f"job_container/{kind}"}
    return {"NamespaceType": f"namespace/{kind}"}


def node_line(options, state):
    """Slurm 22.05 wakes an srun that waits for others' steps only where its host is in
    slurm.conf: that is what the second line is for."""
    return (
        f"NodeName=n[1-{state['nodes']}] CPUs={options.cpus} "
        f"RealMemory={CLAIMED_MEMORY_MB} Gres={GRES}:1 State=UNKNOWN\n"
        f"NodeName={LOGIN} State=FUTURE"
    )


def cgroup_conf(options, state):
    """CPUs that a node only claims to have cannot be handed out."""
    real = options.cpus <= len(os.sched_getaffinity(0))
    lines = [f"CgroupPlugin=cgroup/v{2 if '' in state['cgroups'] else 1}"]
    if "" in state["cgroups"]:
        lines += ["IgnoreSystemd=yes", "CgroupAutomount=yes"]
    lines += [f"ConstrainCores={'yes' if real else 'no'}", "ConstrainRAMSpace=yes"]
    lines += ["ConstrainDevices=yes"]
    return "".join(f"{line}\n" for line in lines)


def dbd_conf(options, state):
    """slurmdbd reads no slurm.conf: what it says of protocols is said here, too."""
    shared = [
        line
        for line in options.slurm_conf_line
        if line.lower().startswith("communicationparameters=")
    ]
    lines = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={state['dir']}/run/munge.socket",
        "DbdHost": CONTROLLER,
        "DbdPort": DBD_PORT,
        "SlurmUser": "root",
        "LogFile": f"{state['dir']}/log/slurmdbd.log",
        "PidFile": f"{state['dir']}/run/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "127.0.0.1",
        "StoragePort": DATABASE_PORT,
        "StorageUser": "root",
        "StorageLoc": "slurm_acct_db",
    }
    lines = [f"{name}={value}" for name, value in lines.items()]
    return "\n".join(lines + shared) + "\n"


def hosts_file(state):
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    for index, name in enumerate(hosts(state)):
        lines += [f"{ip} {name}" for ip in address(index)]
    return "\n".join(lines) + "\n"


def write_files(options, state):
    path = state["dir"]
    write_file(f"{path}/hosts", hosts_file(state))
    write_file(f"{path}/resolv.conf", "")
    write_file(f"{path}/slurmdbd.conf", dbd_conf(options, state), 0o600)
    os.mkdir(f"{path}/tmp")  # Slurm adds the name of the node
    write_file(
        f"{path}/job_container.conf", f"AutoBasePath=true\nBasePath={path}/tmp\n"
    )
    make_device(state)
    os.mkdir(f"{path}/scripts")
    for name, text in SCRIPTS.items():
        text = "#!/bin/bash\n" + text.replace("{dir}", path)
        write_file(f"{path}/scripts/{name}", text, 0o755)
    write_plugstack(state)


def make_device(state):
    """Only steps that ask for --gres=nic may open it; others hardly open /dev/full."""
    path = f"{state['dir']}/{GRES_FILE}"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, GRES_DEVICE)
    except OSError as error:
        raise ClusterError(f"--site needs to make a device file: {error}") from None
    os.chmod(path, 0o666)
    nodes = f"n[1-{state['nodes']}]"
    write_file(
        f"{state['dir']}/gres.conf", f"NodeName={nodes} Name={GRES} File={path}\n"
    )


def write_plugstack(state):
    """The SPANK plugin that forks, where there is a compiler."""
    compiler = shutil.which("cc")
    if not compiler:
        return
    source = f"{os.path.dirname(os.path.realpath(__file__))}/spank-fork.c"
    target = f"{state['dir']}/spank-fork.so"
    number = "0x%02x%02x%02x" % tuple(state["version"])
    subprocess.run(
        [compiler, "-shared", "-fPIC", f"-DSLURM_NUMBER={number}"]
        + ["-o", target, source],
        check=True,
    )
    write_file(f"{state['dir']}/plugstack.conf", f"required {target}\n")


# ---- hosts ----


def make_hosts(state):
    """Called by the supervisor, which holds them; returns namespaces by host."""
    tops = state["cgroups"]
    cgroups.make(tops)
    switch = namespaces.make(lambda: namespaces.unshare(["net"]), ["net"])
    numbers = namespaces.first_numbers()
    made = {name: make_host(state, name, numbers) for name in hosts(state)}
    connect(state, switch, made)
    namespaces.publish(state["dir"], made)
    return made


def make_host(state, name, numbers):
    tops = state["cgroups"]
    cgroups.make_host(tops, name)
    files = {f"/etc/{f}": f"{state['dir']}/{f}" for f in ("hosts", "resolv.conf")}

    def setup():
        cgroups.join_root(tops, name)
        namespaces.unshare(namespaces.FLAGS)
        namespaces.become_host(name, files)
        cgroups.mount_all(tops)

    made = namespaces.make_low(setup, numbers)
    cgroups.divide(tops, name)
    return made


def connect(state, switch, made):
    ip = [state["programs"]["ip"], "-batch", "-"]
    lines = ["link add br0 type bridge", "link set br0 up"]
    for index, name in enumerate(made):
        lines += [
            f"link add port{index} type veth peer name eth0 "
            f"netns {made[name]['net']}",
            f"link set port{index} master br0 up",
        ]
    namespaces.run_in(switch, ip, "\n".join(lines) + "\n")
    for index, name in enumerate(made):
        ip4, ip6 = address(index)
        lines = ["link set lo up", "link set eth0 up"]
        lines += [f"addr add {ip4}/16 dev eth0", f"addr add {ip6}/64 dev eth0 nodad"]
        namespaces.run_in({"net": made[name]["net"]}, ip, "\n".join(lines) + "\n")


# ---- accounting ----


def install_database(state):
    subprocess.run(
        [state["programs"]["mariadb-install-db"], "--no-defaults", "--user=root"]
        + ["--auth-root-authentication-method=normal", "--skip-test-db"]
        + [f"--datadir={state['dir']}/database"],
        stdin=subprocess.DEVNULL,
        check=True,
    )


def database_command(state):
    path = state["dir"]
    return [
        state["programs"]["mariadbd"],
        "--no-defaults",
        "--user=root",
        f"--datadir={path}/database",
        f"--socket={path}/database/socket",
        f"--pid-file={path}/run/mariadbd.pid",
        "--bind-address=127.0.0.1",
        f"--port={DATABASE_PORT}",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-lock-wait-timeout=900",
    ]


def listens(pid, port):
    """Whether a socket of the process's network listens on a port."""
    for table in "tcp", "tcp6":
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        if any(r[1].endswith(f":{port:04X}") and r[3] == "0A" for r in rows):
            return True
    return False
