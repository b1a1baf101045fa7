# SPDX-License-Identifier: BSD-3-Clause
"""Where DVMs are, and connections with their heads."""

import contextlib
import fcntl
import hashlib
import hmac
import ipaddress
import os
import socket
import stat
import struct
import time

from ._results import Error

VERSION = 9
SUFFIX = ".address"
ANSWER_SECONDS = 5
TRY_SECONDS = 0.05  # between looks at a DVM that is starting
DEAD_HEAD_SECONDS = 60  # as of remote.c


def base():
    """Where the directories of this user's DVMs are."""
    given = os.environ.get("PMI2X_DVM_DIR")
    return given or f"/tmp/pmi2x-dvm-{os.getuid()}"


def shared_base():
    """Where the files are by which clients on other nodes find them."""
    given = os.environ.get("PMI2X_DVM_DIR")
    return given or os.path.expanduser("~/.pmi2x-dvm")


def names():
    """The DVMs of this job, or, outside of jobs, of this machine, or else of others."""
    found = _answering()
    for members in found.values():
        for connection in members.values():
            connection.close()
    return list(found)


def _answering():
    """{name: {number: connection}} of these; the number of a DVM of its own is 0."""
    job = os.environ.get("SLURM_JOB_ID") or None
    found = _open_all(_open_here, [n for n in _list(base()) if job in (None, _job(n))])
    return found if found or job else _open_all(_open_there, _files())


def _open_all(opened, names):
    found = {}
    for each in names:
        with contextlib.suppress(OSError, Error):
            connection = opened(each)
            name, number = _split(each)
            found.setdefault(name, {})[number] = connection
    return found


def _job(name):
    """The Slurm job in which a DVM was started, or ""."""
    try:
        with open(os.path.join(base(), name, "lock")) as file:
            return file.read()
    except OSError:
        return ""


def _files():
    return [f[: -len(SUFFIX)] for f in _list(shared_base()) if f.endswith(SUFFIX)]


def _split(name):
    """NAME and 3 for NAME.3, one of several DVMs under one name; otherwise 0."""
    first, _, number = name.rpartition(".")
    return (first, int(number)) if first and number.isdecimal() else (name, 0)


def _open_members(name):
    """{number: connection} of those that answer."""
    for opened, names in (_open_here, _list(base())), (_open_there, _files()):
        found = _open_all(opened, [n for n in names if n != name and _split(n)[0] == name])
        if found:
            return found[name]
    return {}


def _list(directory):
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []


def _open_here(name):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(os.path.join(base(), name, "head.sock"))
    except OSError:
        s.close()
        raise
    return _Here(s)


def _open_there(name):
    if "/" not in name:
        name = os.path.join(shared_base(), name + SUFFIX)
    return _connect_there(_read_address(name))


def open_dvm(name):
    """{number: connection} of the DVM of this name, or of its members; empty: it is not up."""
    opened = [_open_there] if "/" in name else [_open_here, _open_there]
    for each in opened:
        with contextlib.suppress(OSError):
            return {0: each(name)}
    return _open_members(name)


def find():
    """The name of the DVM that is meant, and its connections as of open_dvm."""
    job = os.environ.get("SLURM_JOB_ID") or None
    own = job and _open_own(f"job{job}")
    if own:
        return f"job{job}", own
    found = _answering()
    if len(found) == 1:
        return found.popitem()
    raise Error(
        f"several DVMs are up: {', '.join(found)}; choose one"
        if found
        else "no DVM is up on this machine, and no file tells of one on another machine: start one with pmi2x-dvm up"
    )


def _open_own(name):
    """Waits while this DVM is starting or ending."""
    found = open_dvm(name)
    while not found and _is_taken(name):
        time.sleep(TRY_SECONDS)
        found = open_dvm(name)
    return found


def _is_taken(name):
    """As place_is_taken in rundir.c."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(base(), name, "lock")) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


# ---- connections ----


class _Here:
    """Lines over the unix socket of a head on this machine."""

    def __init__(self, connection):
        self._socket = connection
        self.send = connection.sendall

    def lines(self):
        with self._socket.makefile("rb") as lines:
            yield from lines

    def shutdown(self):
        self._socket.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._socket.close()

    def forget(self):
        """Close this process's descriptor alone, whatever else has the socket."""
        fd = self._socket.detach()
        if fd >= 0:
            os.close(fd)


class _There(_Here):
    """A connection over frames, which may be cut anywhere: src/common/libio/frames.h."""

    UP, DOWN = 1, 2
    PIECE = 1 << 20

    def __init__(self, connection):
        super().__init__(connection)
        self.send = self._send

    def _send(self, data):
        for at in range(0, len(data), self.PIECE):
            piece = data[at : at + self.PIECE]
            self._socket.sendall(struct.pack("<IHH", len(piece), self.UP, 0) + piece)

    def lines(self):
        rest = b""
        for piece in self._pieces():
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole

    def _pieces(self):
        with self._socket.makefile("rb") as frames:
            for header in iter(lambda: frames.read(8), b""):
                size, kind, _ = struct.unpack("<IHH", header)
                if kind != self.DOWN:
                    return
                yield frames.read(size)


def _read_address(path):
    """The contents of the file, as a dict; "head" is a list."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, encoding="ascii") as file:
        st = os.fstat(fd)
        if not stat.S_ISREG(st.st_mode) or st.st_uid != os.geteuid() or st.st_mode & 0o77:
            raise Error(f"{path} must be your file, and no other user may read it")
        words = [line.split() for line in file if line.strip()]
    if not words or words[0] != ["pmi2x-dvm", str(VERSION)]:
        raise Error(f"{path} is not the file of a DVM, or one of another version")
    address = {word[0]: word[1] for word in words if word[0] != "head"}
    address["head"] = [(word[1], int(word[2])) for word in words if word[0] == "head"]
    return address


def _end_without_answer(connection):
    """A head whose machine has died does not say so: an error follows in a minute."""
    options = {
        "TCP_USER_TIMEOUT": DEAD_HEAD_SECONDS * 1000,
        "TCP_KEEPIDLE": DEAD_HEAD_SECONDS // 4,
        "TCP_KEEPINTVL": DEAD_HEAD_SECONDS // 4,
        "TCP_KEEPCNT": 3,
    }
    for name, value in options.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _connect_there(address):
    error = ConnectionError("the file names no head")
    for to in address["head"]:
        try:
            connection = socket.create_connection(to, ANSWER_SECONDS)
        except OSError as failure:
            error = failure
            continue
        try:
            _prove(connection, address)
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _end_without_answer(connection)
            return _There(connection)
        except OSError as failure:
            error = failure
        connection.close()
    raise error


# ---- the handshake: src/common/libio/handshake.h ----

HANDSHAKE = 3
PROTOCOL = 13
HEAD, CLIENT = 0xFFFFFFFF, 0xFFFFFFFE
NONCE, PROOF = 24, 32
MAGIC = b"pmi2x\r\n\0"
BUILD = b"python"


def _text(data):
    return struct.pack("<I", len(data)) + data


def _message(body):
    return MAGIC + struct.pack("<HH", HANDSHAKE, len(body)) + body


def _endpoint(name):
    ip = ipaddress.ip_address(name[0].split("%")[0])
    packed = ip.packed if ip.version == 6 else b"\0" * 10 + b"\xff\xff" + ip.packed
    return packed + struct.pack("<H", name[1])


def _prove(connection, address):
    """Both ends prove that they know the secret; OSError when the other does not."""
    job = _text(address["dvm"].encode())
    ends = struct.pack("<II", CLIENT, HEAD)
    nonce = os.urandom(NONCE)
    connection.sendall(
        _message(_text(BUILD) + struct.pack("<H", PROTOCOL) + job + ends + nonce)
    )
    with connection.makefile("rb", 0) as answers:
        build, its_nonce, proof = _read_answer(answers)
    covered = struct.pack("<H", HANDSHAKE) + _text(BUILD) + _text(build)
    covered += struct.pack("<HH", PROTOCOL, PROTOCOL) + job + ends
    covered += nonce + _endpoint(connection.getsockname())
    covered += its_nonce + _endpoint(connection.getpeername())

    def proof_of(who):
        text = _text(b"pmi2x link: " + who) + covered
        return hmac.new(bytes.fromhex(address["secret"]), text, hashlib.sha256).digest()

    if not hmac.compare_digest(proof, proof_of(b"acceptor")):
        raise ConnectionError("another DVM answers there: the DVM of the file has ended")
    connection.sendall(_message(proof_of(b"connector")))


def _read_exactly(file, size):
    data = b""
    while len(data) < size:
        piece = file.read(size - len(data))
        if not piece:
            raise ConnectionError("another DVM, or version of pmi2x, answers there")
        data += piece
    return data


def _read_answer(file):
    """Build, nonce, proof."""
    header = _read_exactly(file, len(MAGIC) + 4)
    version, size = struct.unpack("<HH", header[len(MAGIC) :])
    body = _read_exactly(file, size)
    build_end = len(body) - (3 + NONCE + PROOF)
    build = body[4:build_end]
    right = header.startswith(MAGIC) and version == HANDSHAKE and build_end >= 4
    if not right or body[:build_end] != _text(build):
        raise ConnectionError("another DVM, or version of pmi2x, answers there")
    if body[build_end : build_end + 3] != struct.pack("<HB", PROTOCOL, 0):
        raise ConnectionError("another DVM, or version of pmi2x, answers there")
    rest = body[build_end + 3 :]
    return build, rest[:NONCE], rest[NONCE:]
