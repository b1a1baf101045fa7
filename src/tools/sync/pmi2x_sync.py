# SPDX-License-Identifier: BSD-3-Clause
"""Barriers, keys and gathers for the tasks of a step of srun --mpi=pmi2x, from Python.

    import pmi2x_sync

    with pmi2x_sync.connect() as step:
        step.put("address", b"n1:1234")
        step.barrier(timeout=60)
        print(step.rank, step.size, step.get("address", wait=True))

It does what pmi2x-sync(1) does, over one connection, and needs Python 3.6 only. Keys are
texts or bytes; values are given as texts or bytes and come back as bytes. An object is for
one thread at a time. After a fork the child needs a connection of its own.
"""

import os
import socket
import struct
import time

VERSION = 1  # STORE_CLIENT_VERSION
VALUE_MAX = 8 << 20
KEY_MAX = 8 << 10
ASK, ANSWER, CANCEL, HELLO = 1, 2, 3, 6
SET, GET, COMPARE_SET, ADD, APPEND, CHECK = range(6)
WAIT, FETCH, DELETE, COUNT, MEET, MISSING = range(6, 12)
LOCAL, GATHER = 1, 2
TRUSTED = 0, 65534  # root, here and in a user namespace


class Error(Exception):
    """It cannot be done: the message says why."""


class Timeout(Error):
    """The time is over: the message names the missing ranks or keys."""


def _bytes(what, most, name):
    raw = what.encode() if isinstance(what, str) else bytes(what)
    if len(raw) > most:
        raise Error(f"a {name} has more than {most >> 10} KiB")
    return raw


def _string(raw):
    return struct.pack("<I", len(raw)) + raw


class Step:
    """A connection with the step; see connect()."""

    def __init__(self, name, rank):
        self.rank = rank
        self._last = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._open(name)
        except BaseException:
            self._socket.close()
            raise

    def _open(self, name):
        try:
            self._socket.connect(b"\0" + name.encode())
        except OSError as error:
            raise Error(
                f"cannot connect to the step on this node: {error} (the step is over, or "
                "this is a container with a network of its own, or another node)"
            ) from error
        peer = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("3i", peer)[1] not in (*TRUSTED, os.geteuid()):
            raise Error("another user listens at the socket in PMI2X_SYNC")
        self._send(struct.pack("<BII", HELLO, VERSION, self.rank))
        self.size = self._answer(0, time.monotonic() + 60)[0]

    def close(self):
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- messages ----

    def _send(self, message):
        try:
            self._socket.settimeout(None)
            self._socket.sendall(struct.pack("<I", len(message)) + message)
        except OSError as error:
            raise Error("lost the agent of this node: the step is ending") from error

    def _read(self, size, until):
        parts = []
        while size:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                left = 1e-6
            self._socket.settimeout(left)
            try:
                part = self._socket.recv(min(size, 1 << 20))
            except OSError as error:
                if isinstance(error, socket.timeout):
                    raise
                part = b""
            if not part:
                raise Error("lost the agent of this node: the step is ending")
            parts.append(part)
            size -= len(part)
            until = None  # once a message begins to come the rest is waited for
        return b"".join(parts)

    def _answer(self, number, until):
        """The number and the values of the answer to this request."""
        while True:
            size = struct.unpack("<I", self._read(4, until))[0]
            message = self._read(size, None)
            kind, of = struct.unpack_from("<BQ", message)
            if (kind, of) == (ANSWER, number):
                return self._unpack(message)

    @staticmethod
    def _unpack(message):
        status, number, size = struct.unpack_from("<BqI", message, 9)
        at = 22 + size
        text = message[22:at].decode("ascii", "replace")
        if status:
            raise Error(text)
        values = []
        (count,) = struct.unpack_from("<I", message, at)
        at += 4
        for _ in range(count):
            at += 1
            if not message[at - 1]:
                values.append(None)
                continue
            (size,) = struct.unpack_from("<I", message, at)
            values.append(message[at + 4 : at + 4 + size])
            at += 4 + size
        return number, values, text

    def _ask(self, op, keys, flags=0, number=0, value=b"", expected=b"", timeout=None):
        keys = [_bytes(key, KEY_MAX, "key") for key in keys]
        self._last += 1
        until = None if timeout is None else time.monotonic() + timeout
        message = struct.pack("<BQBBBIqI", ASK, self._last, 0, op, flags, self.rank, number, len(keys))
        message += b"".join(map(_string, keys)) + _string(expected)
        self._send(message + _string(_bytes(value, VALUE_MAX, "value")))
        try:
            return self._answer(self._last, until)
        except socket.timeout:
            self._send(struct.pack("<BQ", CANCEL, self._last))
            raise Timeout(self._why_late(op, keys, flags, timeout)) from None

    def _why_late(self, op, keys, flags, timeout):
        """The request has been withdrawn, so this rank is missing, too."""
        late = f"timed out after {timeout:g} s"
        if op == MEET:
            return f"{late}: missing: {self._ask(MISSING, keys, flags)[2]}"
        if op in (WAIT, FETCH):
            missing = [key for key in keys[:32] if not self._ask(CHECK, [key], flags)[0]]
            return f"{late}: missing: " + ", ".join(
                "key " + key.decode("utf-8", "replace") for key in missing
            )
        return late

    # ---- what tasks do ----

    def barrier(self, name="default", node=False, timeout=None):
        """Wait until all tasks of the step, or of this node, are in it."""
        self._ask(MEET, [name], LOCAL if node else 0, timeout=timeout)

    def allgather(self, value, name="default", node=False, timeout=None):
        """The values of all tasks, in the order of their ranks."""
        flags = GATHER | (LOCAL if node else 0)
        return self._ask(MEET, [name], flags, value=value, timeout=timeout)[1]

    def put(self, key, value, node=False):
        self._ask(SET, [key], LOCAL if node else 0, value=value)

    def append(self, key, value, node=False):
        self._ask(APPEND, [key], LOCAL if node else 0, value=value)

    def get(self, key, wait=False, node=False, timeout=None):
        """The value; None: the key does not exist."""
        op = FETCH if wait else GET
        return self._ask(op, [key], LOCAL if node else 0, timeout=timeout)[1][0]

    def wait(self, *keys, node=False, timeout=None):
        """Wait until all keys exist."""
        self._ask(WAIT, keys, LOCAL if node else 0, timeout=timeout)

    def add(self, key, number=1, node=False):
        """The sum; a key that does not exist is 0."""
        return self._ask(ADD, [key], LOCAL if node else 0, number=number)[0]

    def delete(self, key, node=False):
        """Whether the key existed."""
        return bool(self._ask(DELETE, [key], LOCAL if node else 0)[0])

    def elect(self, name, node=False):
        """True for one task, the first one that asks."""
        me = str(self.rank).encode()
        key = b"elect\1" + _bytes(name, KEY_MAX - 6, "name")
        flags = LOCAL if node else 0
        return self._ask(COMPARE_SET, [key], flags, value=me)[1][0] == me


def connect():
    """Connect with the step of this process, by its environment."""
    name, _, rest = os.environ.get("PMI2X_SYNC", "").partition(":")
    rank, _, step = rest.partition(":")
    job, _, number = step.rpartition(".")
    same = os.environ.get("SLURM_STEP_ID", number) == number
    if "SLURM_HET_SIZE" not in os.environ:
        same = same and os.environ.get("SLURM_JOB_ID", job) == job
    if not name or not rank.isdigit() or not same:
        raise Error("this process is not in a step of pmi2x: start it with srun --mpi=pmi2x")
    return Step(name, int(rank))
