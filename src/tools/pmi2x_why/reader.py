# SPDX-License-Identifier: BSD-3-Clause
"""The state of the ranks of a step on this node, from /proc. pmi2x why sends this
file's text to the nodes of a step, where nothing of pmi2x need be installed. Arguments:
JOB.STEP, and the wanted ranks ("5,7-9"; none: all). Prints lines "NODE PIECE"; the
pieces together are JSON, compressed, in base 64. Lines have at most 1,024 bytes,
because longer ones could be mixed with those of other nodes."""

import base64
import json
import os
import re
import subprocess
import sys
import zlib

ANSWER_S = 10  # for scontrol
PIECE = 800  # bytes of a line
PATH_MAX = 4096
DEPTH_MAX = 64  # depth of processes below each other
FILES_MAX = 64  # reported files of a process
DAEMON = "slurmstepd"

# System calls in which a process may wait: number on x86_64 and aarch64 (None: not there),
# and which argument is a descriptor or a path.
CALLS = {
    "read": (0, 63, "fd 0"),
    "write": (1, 64, "fd 0"),
    "open": (2, None, "path 0"),
    "close": (3, 57, "fd 0"),
    "stat": (4, None, "path 0"),
    "fstat": (5, 80, "fd 0"),
    "lstat": (6, None, "path 0"),
    "poll": (7, None, ""),
    "mmap": (9, 222, "fd 4"),
    "ioctl": (16, 29, "fd 0"),
    "pread64": (17, 67, "fd 0"),
    "pwrite64": (18, 68, "fd 0"),
    "readv": (19, 65, "fd 0"),
    "writev": (20, 66, "fd 0"),
    "access": (21, None, "path 0"),
    "select": (23, None, ""),
    "sched_yield": (24, 124, ""),
    "msync": (26, 227, ""),
    "pause": (34, None, ""),
    "nanosleep": (35, 101, ""),
    "connect": (42, 203, "fd 0"),
    "accept": (43, 202, "fd 0"),
    "sendto": (44, 206, "fd 0"),
    "recvfrom": (45, 207, "fd 0"),
    "sendmsg": (46, 211, "fd 0"),
    "recvmsg": (47, 212, "fd 0"),
    "execve": (59, 221, "path 0"),
    "wait4": (61, 260, ""),
    "semop": (65, 193, ""),
    "msgrcv": (70, 188, ""),
    "fcntl": (72, 25, "fd 0"),
    "flock": (73, 32, "fd 0"),
    "fsync": (74, 82, "fd 0"),
    "fdatasync": (75, 83, "fd 0"),
    "truncate": (76, 45, "path 0"),
    "ftruncate": (77, 46, "fd 0"),
    "getdents": (78, None, "fd 0"),
    "chdir": (80, 49, "path 0"),
    "rename": (82, None, "path 0"),
    "mkdir": (83, None, "path 0"),
    "rmdir": (84, None, "path 0"),
    "creat": (85, None, "path 0"),
    "unlink": (87, None, "path 0"),
    "readlink": (89, None, "path 0"),
    "rt_sigtimedwait": (128, 137, ""),
    "rt_sigsuspend": (130, 133, ""),
    "statfs": (137, 43, "path 0"),
    "fstatfs": (138, 44, "fd 0"),
    "sync": (162, 81, ""),
    "futex": (202, 98, ""),
    "io_getevents": (208, 4, ""),
    "getdents64": (217, 61, "fd 0"),
    "clock_nanosleep": (230, 115, ""),
    "epoll_wait": (232, None, ""),
    "waitid": (247, 95, ""),
    "openat": (257, 56, "path 1"),
    "mkdirat": (258, 34, "path 1"),
    "newfstatat": (262, 79, "path 1"),
    "unlinkat": (263, 35, "path 1"),
    "renameat": (264, 38, "path 1"),
    "readlinkat": (267, 78, "path 1"),
    "faccessat": (269, 48, "path 1"),
    "pselect6": (270, 72, ""),
    "ppoll": (271, 73, ""),
    "semtimedop": (220, 192, ""),
    "epoll_pwait": (281, 22, ""),
    "accept4": (288, 242, "fd 0"),
    "preadv": (295, 69, "fd 0"),
    "pwritev": (296, 70, "fd 0"),
    "recvmmsg": (299, 243, "fd 0"),
    "syncfs": (306, 267, "fd 0"),
    "renameat2": (316, 276, "path 1"),
    "execveat": (322, 281, "path 1"),
    "copy_file_range": (326, 285, "fd 0"),
    "statx": (332, 291, "path 1"),
    "io_uring_enter": (426, 426, ""),
    "openat2": (437, 437, "path 1"),
    "faccessat2": (439, 439, "path 1"),
}
MACHINES = {"x86_64": 0, "aarch64": 1}
ESTABLISHED = "01"  # in /proc/net/tcp
WAITS_FOR_CHILD = ("wait4", "waitid", "do_wait")


def read(path):
    """The bytes of a file; None if it has gone or may not be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def text(path):
    data = read(path)
    return None if data is None else data.decode("utf-8", "replace").strip()


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return None


# ---- processes ----


def stat(pid):
    """Name, state, parent and start of a process; None when it has gone."""
    line = text("/proc/%d/stat" % pid)
    if not line:
        return None
    fields = line[line.rindex(")") + 2 :].split()
    name = line[line.index("(") + 1 : line.rindex(")")]
    return {"name": name, "state": fields[0], "parent": int(fields[1]),
            "start": int(fields[19])}


def table():
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    found = ((pid, stat(pid)) for pid in pids)
    return {pid: process for pid, process in found if process}


def listed(step):
    """{rank: pid} as Slurm knows it; it also knows processes before their exec."""
    argv = ["scontrol", "listpids", step]
    argv += [os.environ["SLURMD_NODENAME"]] if "SLURMD_NODENAME" in os.environ else []
    try:
        shown = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               timeout=ANSWER_S).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return {}
    head, *lines = shown.splitlines() or [""]
    rows = [dict(zip(head.split(), line.split())) for line in lines]
    return {int(row["GLOBALID"]): int(row["PID"]) for row in rows
            if row.get("PID", "").isdigit() and row.get("GLOBALID", "").isdigit()}


def environment(pid):
    data = read("/proc/%d/environ" % pid) or b""
    pairs = (item.partition(b"=") for item in data.split(b"\0"))
    return {name.decode("latin-1"): value.decode("latin-1") for name, _, value in pairs}


def own(step, processes):
    """The ranks by the environment of this user's processes: of those with one rank
    number, the process whose parent has another."""
    job, _, number = step.partition(".")
    wanted = {"SLURM_JOB_ID": job, "SLURM_STEP_ID": number,
              "SLURMD_NODENAME": os.environ.get("SLURMD_NODENAME")}
    rank_of = {}
    for pid in processes:
        env = environment(pid)
        mine = all(env.get(name) == value for name, value in wanted.items())
        if mine and env.get("SLURM_PROCID", "").isdigit():
            rank_of[pid] = int(env["SLURM_PROCID"])
    return {rank: pid for pid, rank in rank_of.items()
            if rank_of.get(processes[pid]["parent"]) != rank}


# ---- what one does ----


def call_name(number):
    column = MACHINES.get(os.uname().machine)
    for name, numbers in CALLS.items():
        if column is not None and numbers[column] == number:
            return name
    return "system call %d" % number


def read_path(pid, address):
    """A path in the memory of a process."""
    try:
        with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
            memory.seek(address)
            # Not beyond the page: the next one may not be there.
            data = memory.read(min(PATH_MAX, 4096 - address % 4096))
            if b"\0" not in data:
                data += memory.read(PATH_MAX)
    except (OSError, ValueError, OverflowError):
        return None
    return data.partition(b"\0")[0].decode("utf-8", "replace") or None


def absolute(pid, path, directory):
    """directory: a descriptor, or None for the working directory."""
    if path is None or path.startswith("/"):
        return path
    at = "cwd" if directory is None else "fd/%d" % directory
    return os.path.join(link("/proc/%d/%s" % (pid, at)) or "?", path)


def signed(word):
    value = word & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def file_of_call(pid, name, words):
    kind, _, which = CALLS[name][2].partition(" ") if name in CALLS else ("", "", "")
    if kind == "fd":
        descriptor = signed(words[int(which)])
        return None if descriptor < 0 else link("/proc/%d/fd/%d" % (pid, descriptor))
    if kind == "path":
        at = int(which)
        directory = signed(words[0]) if at else -1
        return absolute(pid, read_path(pid, words[at]),
                        directory if directory >= 0 else None)
    return None


def mapped_file(pid, address):
    for line in (text("/proc/%d/maps" % pid) or "").splitlines():
        fields = line.split(None, 5)
        first, _, last = fields[0].partition("-")
        if int(first, 16) <= address < int(last, 16):
            return fields[5] if len(fields) > 5 and fields[5][0] == "/" else None
    return None


def system_call(pid, thread):
    """Name and file of the call that it is in. "": it is in none; None: not known."""
    line = text("/proc/%d/task/%d/syscall" % (pid, thread))
    if not line:
        return None, None
    if line == "running":
        return "", None
    words = [int(word, 0) for word in line.split()]
    if words[0] < 0:  # a page that is being read
        return "", mapped_file(pid, words[-1])
    name = call_name(words[0])
    return name, file_of_call(pid, name, words[1:7])


def unescape(word):
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), word)


def file_system(pid, path):
    """Type and source of the file system of a path, or None."""
    best = None
    for line in (text("/proc/%d/mountinfo" % pid) or "").splitlines():
        fields = line.split()
        point = unescape(fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and (best is None or len(point) >= len(best[0])):
            after = fields.index("-") + 1
            best = point, fields[after], unescape(fields[after + 1])
    return {"type": best[1], "source": best[2], "mounted": best[0]} if best else None


def open_files(pid):
    """Files that it has open, the newest first; None: that may not be read."""
    try:
        numbers = sorted(map(int, os.listdir("/proc/%d/fd" % pid)), reverse=True)
    except OSError:
        return None
    paths = (link("/proc/%d/fd/%d" % (pid, number)) for number in numbers)
    real = [p for p in paths if p and p.startswith("/") and not p.startswith("/dev/")]
    return list(dict.fromkeys(real))[:FILES_MAX]


def thread_that_waits(pid):
    """The thread that waits for a disk or a file server, else the first."""
    try:
        threads = [int(name) for name in os.listdir("/proc/%d/task" % pid)]
    except OSError:
        threads = []
    for thread in threads:
        line = text("/proc/%d/task/%d/stat" % (pid, thread)) or ")"
        if line.rpartition(")")[2].split()[:1] == ["D"]:
            return thread
    return pid


def before_exec(process):
    return process["name"] == DAEMON


def describe(pid, process):
    thread = thread_that_waits(pid)
    call, file = system_call(pid, thread)
    if thread != pid:
        process = dict(process, state="D")
    uptime = float((text("/proc/uptime") or "0").split()[0])
    seconds = uptime - process["start"] / os.sysconf("SC_CLK_TCK")
    wchan = text("/proc/%d/task/%d/wchan" % (pid, thread))
    return {
        "pid": pid,
        "name": process["name"],
        "state": process["state"],
        "seconds": round(max(seconds, 0), 1),
        "executed": not before_exec(process),
        "call": call,
        "file": file,
        "file_system": file_system(pid, file) if file and file[0] == "/" else None,
        "wchan": wchan if wchan not in ("0", "") else None,
        "files": open_files(pid),
    }


def newest_child(pid, processes):
    children = [p for p, process in processes.items()
                if process["parent"] == pid and process["state"] != "Z"]
    return max(children, key=lambda p: processes[p]["start"], default=None)


def chain(pid, processes):
    """A rank's process, and what it waits for: its child, its child's, and so on."""
    found = []
    while pid in processes and len(found) < DEPTH_MAX:
        what = describe(pid, processes[pid])
        found.append(what)
        waits = what["call"] in WAITS_FOR_CHILD or what["wchan"] in WAITS_FOR_CHILD
        if not waits and what["executed"]:
            break
        pid = newest_child(pid, processes)
    return found


# ---- connections with the TCPStore of PMI2X_TORCH=store ----


def store_port(env):
    """The port in the environment of a rank, as /proc/net/tcp has it; "": no store is served."""
    port = env.get("MASTER_PORT", "")
    served = "PMI2X_TORCH_STEP" in env and env.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return "%04X" % int(port) if served and port.isdigit() else ""


def sockets_to(pid, port):
    """Names of the sockets that are connected to this port, as links in /proc/PID/fd."""
    found = set()
    for name in "tcp", "tcp6":
        for line in (text("/proc/%d/net/%s" % (pid, name)) or "").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[2].endswith(":" + port) and fields[3] == ESTABLISHED:
                found.add("socket:[%s]" % fields[9])
    return found


def open_links(pid):
    try:
        names = os.listdir("/proc/%d/fd" % pid)
    except OSError:
        return set()
    return {link("/proc/%d/fd/%s" % (pid, name)) for name in names}


def with_children(pid, processes):
    found, parents = {pid}, {pid}
    while parents:
        parents = {p for p, process in processes.items()
                   if process["parent"] in parents and p not in found}
        found |= parents
    return found


def store_state(pid, processes, what):
    """"away": no process of the rank is connected; "waits": its program is in a call on such a
    connection; "idle": it is connected and does something else. None: no store is served."""
    port = store_port(environment(pid))
    if not port:
        return None
    sockets = sockets_to(pid, port)
    if not any(sockets & open_links(p) for p in with_children(pid, processes)):
        return "away"
    return "waits" if what and what[-1]["file"] in sockets else "idle"


# ---- all of the node ----


def parse_ranks(words):
    wanted = set()
    for word in filter(None, words.split(",")):
        first, _, last = word.partition("-")
        wanted.update(range(int(first), int(last or first) + 1))
    return wanted


def look(step, wanted):
    processes = table()
    ranks = listed(step) or own(step, processes)
    found = []
    for rank, pid in sorted(ranks.items()):
        if not wanted or rank in wanted:
            what = chain(pid, processes)
            found.append({"rank": rank, "processes": what,
                          "store": store_state(pid, processes, what)})
    return found


def main(argv):
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    answer = json.dumps(look(argv[0], parse_ranks(argv[1] if argv[1:] else "")))
    packed = base64.b64encode(zlib.compress(answer.encode())).decode()
    # The end of another node's line may come after this one.
    for at in range(0, len(packed), PIECE):
        print("\n%s %s" % (node, packed[at : at + PIECE]))


if __name__ == "__main__":
    main(sys.argv[1:])
