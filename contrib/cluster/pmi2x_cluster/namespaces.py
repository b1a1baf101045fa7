# SPDX-License-Identifier: BSD-3-Clause
"""Namespaces of hosts. The supervisor holds them by descriptors: they have no name
outside of it, and vanish when it and the processes in them have ended."""

import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess

from .processes import LIBC

# Kinds that a host has of its own, in the order in which they are entered: names of
# files are those of the new place once "mnt" was.
FLAGS = {
    "net": 0x40000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
    "mnt": 0x00020000,
}
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_BIND = 4096
NS_GET_MNTNS_ID = 0x8008B705  # since Linux 6.11
LIST_FILE = "run/namespaces"  # below the state directory


def check(result):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def mount(source, target, kind=None, flags=0, data=None):
    words = [w and str(w).encode() for w in (source, target, kind, data)]
    try:
        check(LIBC.mount(*words[:3], ctypes.c_ulong(flags), words[3]))
    except OSError as error:
        raise OSError(error.errno, f"mount {target}: {error.strerror}") from None


def bind(source, target):
    mount(source, target, flags=MS_BIND)


def unshare(kinds):
    check(LIBC.unshare(sum(FLAGS[kind] for kind in kinds)))
    if "mnt" in kinds:
        mount("none", "/", flags=MS_REC | MS_PRIVATE)


def make(setup, kinds=tuple(FLAGS)):
    """A child makes them and ends: what is left is {kind: path of the descriptor}, with
    "mnt" also the "root" of the child, which is not the namespace's own in a chroot.

    setup() is called in the child, and unshares all of the kinds."""
    said, say = os.pipe()
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(go)
            setup()
            os.write(say, b"k")
            os.read(wait, 1)
            os._exit(0)
        except BaseException as error:
            os.write(say, str(error).encode())
        finally:
            os._exit(1)
    os.close(say)
    os.close(wait)
    try:
        answer = os.read(said, 4096)
        if answer != b"k":
            raise OSError(answer.decode() or "the namespaces could not be made")
        held = {k: os.open(f"/proc/{pid}/ns/{k}", os.O_RDONLY) for k in kinds}
        if "mnt" in kinds:
            held["root"] = os.open(f"/proc/{pid}/root", os.O_PATH)
    finally:
        os.close(said)
        os.close(go)
        os.waitpid(pid, 0)
    return {k: f"/proc/{os.getpid()}/fd/{fd}" for k, fd in held.items()}


def descriptors(made):
    """In the process that has made them."""
    return {kind: int(path.rpartition("/")[2]) for kind, path in made.items()}


def check_allowed():
    """Raises OSError where this process may not make any, or not mount in them."""

    def setup():
        unshare(FLAGS)
        mount("tmpfs", "/dev/shm", "tmpfs")

    close(make(setup))


def in_chroot():
    """Whether entering the mount namespace that we are in changes the root."""
    pid = os.fork()
    if pid == 0:
        try:
            root = os.stat("/")
            fd = os.open("/proc/self/ns/mnt", os.O_RDONLY)
            check(LIBC.setns(fd, 0))
            os._exit(0 if os.path.samestat(root, os.stat("/")) else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0


def number_of(made):
    """The number of a mount namespace; None where an older kernel does not tell it."""
    with contextlib.suppress(OSError):
        answer = fcntl.ioctl(descriptors(made)["mnt"], NS_GET_MNTNS_ID, bytes(8))
        return struct.unpack("Q", answer)[0]
    return None


def close(made):
    for fd in descriptors(made).values():
        os.close(fd)


def make_on(cpu, setup, kinds=tuple(FLAGS)):
    def setup_there():
        os.sched_setaffinity(0, {cpu})
        setup()

    return make(setup_there, kinds)


def first_numbers():
    """{cpu: the number of a mount namespace that was just made there}"""
    numbers = {}
    for cpu in os.sched_getaffinity(0):
        made = make_on(cpu, lambda: unshare(["mnt"]), ["mnt"])
        numbers[cpu] = number_of(made) or 0
        close(made)
    return numbers


def make_low(setup, numbers):
    """make() so that what is made has a lower number than any mount namespace to come.

    A process may keep a mount namespace as a file, as job_container/tmpfs does, only
    if its own has a lower number. Since Linux 6.18 each CPU counts in a range of its
    own, and takes a new one, above all others, when that is used up. `numbers` is what
    first_numbers() has returned, and is brought up to date."""
    while True:
        cpu = min(numbers, key=numbers.get)
        made = make_on(cpu, setup)
        others = [number for other, number in numbers.items() if other != cpu]
        if all((number_of(made) or 0) <= number for number in others):
            return made
        close(made)
        numbers.update(first_numbers())


def enter(paths):
    """The calling process, which has one thread, moves there."""
    cwd = os.getcwd()
    held = [os.open(paths[k], os.O_RDONLY) for k in FLAGS if k in paths]
    root = os.open(paths["root"], os.O_PATH) if "root" in paths else None
    for fd in held:
        check(LIBC.setns(fd, 0))
        os.close(fd)
    if root is not None:
        os.fchdir(root)
        os.chroot(".")
        os.close(root)
    os.chdir(cwd)


def publish(path, hosts):
    """For load(): {host: {kind: path of its descriptor}}."""
    with open(f"{path}/{LIST_FILE}.new", "w", encoding="utf-8") as file:
        json.dump(hosts, file)
    os.rename(f"{path}/{LIST_FILE}.new", f"{path}/{LIST_FILE}")


def load(path):
    """The state that the cluster's supervisor has published in a directory; empty
    before it has."""
    try:
        with open(f"{path}/{LIST_FILE}", encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def run_in(paths, argv, text):
    """Run a short command there; raises OSError with what it said."""
    done = subprocess.run(
        argv,
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: enter(paths),
    )
    if done.returncode != 0:
        raise OSError(f"{' '.join(argv)}: {done.stdout.strip()}")


def become_host(name, files):
    """In a new set of namespaces: the host's name, its own view of devices and of
    shared memory, and files of the site in place of the machine's."""
    socket.sethostname(name)
    mount("sysfs", "/sys", "sysfs")
    mount("tmpfs", "/dev/shm", "tmpfs", data="mode=1777")
    for target, source in files.items():
        if os.path.exists(target):
            bind(source, target)
