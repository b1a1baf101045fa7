# SPDX-License-Identifier: BSD-3-Clause
"""Facts about this machine: programs, limits, free ports."""

import os
import re
import resource
import shutil
import socket
import subprocess

PORT_BLOCK = 32  # ports are reserved in blocks of this size
FIRST_PORT = 20000
LAST_PORT = 32767  # where ip_local_port_range leaves nothing below itself
MEMORY_PER_NODE_KB = 5 * 1024
MEMORY_BASE_KB = 200 * 1024
THREADS_PER_NODE = 24
THREADS_BASE = 1024
FILES_PER_NODE = 4
FILES_BASE = 256
FILES_USUAL = 65536
PACKAGES = (
    "slurm-wlm munge; for --site also "
    "slurmdbd mariadb-server-core mariadb-client-core iproute2"
)


class ClusterError(Exception):
    """Something the user can act upon; its text is all they see."""


def find_program(name, prefix):
    dirs = [f"{prefix}/bin", f"{prefix}/sbin"] if prefix else []
    dirs += os.environ.get("PATH", "").split(":") + ["/usr/sbin", "/sbin"]
    path = shutil.which(name, path=":".join(dirs))
    if not path:
        raise ClusterError(
            f"{name} not found; on Debian: apt-get install {PACKAGES}"
        )
    return path


def slurm_version(slurmd):
    text = subprocess.run(
        [slurmd, "-V"], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    if not match:
        raise ClusterError(f"cannot read a version from '{text.strip()}'")
    return tuple(map(int, match.groups()))


def stock_plugin_dir(srun):
    """Slurm keeps libslurmfull.so in the directory of its plugins."""
    text = subprocess.run(
        ["ldd", srun], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    match = re.search(r"libslurmfull\.so => (\S+)/libslurmfull\.so", text)
    return match[1] if match else None


def read_number(path):
    with open(path) as file:
        return int(file.read().split()[0])


def memory_kb(key):
    with open("/proc/meminfo") as file:
        return int(re.search(rf"{key}:\s+(\d+)", file.read())[1])


def check_limits(nodes):
    """Refuse what would fail half way up, with the command that helps."""
    threads = nodes * THREADS_PER_NODE + THREADS_BASE
    for name in "pid_max", "threads-max":
        if read_number(f"/proc/sys/kernel/{name}") < threads:
            raise ClusterError(
                f"kernel.{name} is too low for {nodes} nodes; "
                f"as root: sysctl -w kernel.{name}={threads * 4}"
            )
    files = nodes * FILES_PER_NODE + FILES_BASE
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < files:
        raise ClusterError(
            f"{nodes} nodes need {files} open files, the "
            f"limit is {hard}; as root: ulimit -n {files}"
        )
    need = nodes * MEMORY_PER_NODE_KB + MEMORY_BASE_KB
    available = memory_kb("MemAvailable")
    if available < need:
        raise ClusterError(
            f"{nodes} nodes need about {need // 1024} MB of "
            f"memory, {available // 1024} are free"
        )


def set_file_limit(nodes):
    """For the daemons. Not higher than they need: where containers have a limit
    of 2^30, programs that close every descriptor take minutes over it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = max(nodes * FILES_PER_NODE + FILES_BASE, FILES_USUAL)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def port_range(text):
    """Outside the range from which the kernel gives ports to anybody."""
    if not text:
        ephemeral = read_number("/proc/sys/net/ipv4/ip_local_port_range")
        return (
            FIRST_PORT,
            (ephemeral if ephemeral > FIRST_PORT + 1024 else 32768) - 1,
        )
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    if not match or not 0 < int(match[1]) <= int(match[2]) < 65536:
        raise ClusterError(f"--ports wants LOW-HIGH, not '{text}'")
    return int(match[1]), int(match[2])


def port_is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def claim_block(first):
    """An abstract socket is the lock: it needs no file, is shared by all
    users, and goes away with its owner."""
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0pmi2x-cluster-ports-{first}")
    except OSError:
        lock.close()
        return None
    return lock


def reserve_ports(count, low, high):
    """Returns the first of count free ports and the locks to keep open."""
    first, locks = low - low % -PORT_BLOCK, []
    block = first
    while first + count - 1 <= high:
        if block >= first + count:
            return first, locks
        lock = claim_block(block)
        if lock:
            locks.append(lock)
        block += PORT_BLOCK
        if not lock or not all(
            map(port_is_free, range(block - PORT_BLOCK, block))
        ):
            for held in locks:
                held.close()
            first, locks = block, []
    raise ClusterError(
        f"no {count} free ports in a row within {low}-{high}; " "see --ports"
    )
