# SPDX-License-Identifier: BSD-3-Clause
"""Requests of clients, in values that JSON can express."""

import json
import os
import re
import warnings

try:
    import resource
except ImportError:  # not on this system
    resource = None

from ._results import Error, Refused

BATCH = 1000
BATCH_SIZE = 4 << 20  # characters of arguments in a request
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LIMITS = "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "STACK"


def command(argv):
    """The arguments of a task as a list, or TypeError."""
    if callable(argv):
        raise TypeError("tasks are commands, not functions: give the program and its arguments as a list")
    if isinstance(argv, (str, bytes, os.PathLike)):
        raise TypeError(f"a command is a list, the program first: [{argv!r}], or [\"sh\", \"-c\", ...]")
    return list(argv)


def seconds(time):
    """A time limit in seconds; text as of pmi2x-dvm submit --time: "90s", "1:30:00". The
    head refuses other text."""
    if not isinstance(time, str):
        return time
    if re.fullmatch(r"([0-9]+[smhd])+", time):
        return sum(int(n) * UNITS[unit] for n, unit in re.findall("([0-9]+)(.)", time))
    known = re.fullmatch(r"(?:([0-9]+)-)?([0-9]+(?::[0-9]+){0,2})", time)
    if not known:
        return time
    fields = [int(field) for field in known[2].split(":")]
    if known[1]:  # hours come first
        fields += [0] * (3 - len(fields))
    elif len(fields) == 1:
        fields += [0]
    total = 0
    for field in fields:
        total = 60 * total + field
    return total + int(known[1] or 0) * UNITS["d"]


def own_limits():
    """The umask and soft limits of this process, which tasks get."""
    own = {}
    try:  # os.umask would set it for other threads, too
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            own["umask"] = next(int(x.split()[1], 8) for x in status if x.startswith("Umask:"))
    except (OSError, StopIteration):
        pass  # kernels before 4.7 do not say it
    if resource:
        soft = {n: resource.getrlimit(getattr(resource, "RLIMIT_" + n))[0] for n in LIMITS}
        own["limits"] = {n: -1 if v == resource.RLIM_INFINITY else v for n, v in soft.items()}
    return own


def _path(value):
    return os.fsdecode(os.fspath(value))


def _plain(value):
    return os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else value


def requests(tasks):
    """The tasks in lists for one request each, by their number and their size."""
    begin = size = 0
    for at, task in enumerate(tasks):
        if at - begin == BATCH or size >= BATCH_SIZE:
            yield tasks[begin:at]
            begin, size = at, 0
        argv = task.get("argv")
        if isinstance(argv, (list, tuple)):
            size += sum(len(a) for a in argv if isinstance(a, str))
    if begin < len(tasks):
        yield tasks[begin:]


def is_text(text):
    """Python has lone surrogates for bytes that are no UTF-8; JSON cannot say them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def directory(path):
    """Its name as text, or Error."""
    name = _path(path)
    if not is_text(name):
        raise Error(f"the directory {name!a} is not UTF-8 text")
    return name


def texts(env):
    """Without variables that are no text, as pmi2x-dvm leaves them out."""
    env = {_plain(name): _plain(value) for name, value in env.items()}
    for name, value in list(env.items()):
        if not is_text(name) or isinstance(value, str) and not is_text(value):
            warnings.warn(f"the variable {name!a} is left out: its value is not UTF-8 text")
            del env[name]
    return env


def _whole(digits):
    number = int(digits)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("is too large")
    return number


def encode(value):
    return json.dumps(value, allow_nan=False, ensure_ascii=False, default=_path).encode()


def unfit(task):
    """Refused, of a task that would make the head refuse the whole request; else None."""
    for key, value in task.items():
        try:
            json.loads(encode(value).decode(), parse_int=_whole)
        except UnicodeEncodeError:
            return Refused(key, "is not UTF-8 text")
        except (TypeError, ValueError) as error:
            return Refused(key, str(error))
    return None
