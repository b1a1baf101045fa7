# SPDX-License-Identifier: BSD-3-Clause
"""Connections to an agent that prove nothing, from another user.

Arguments: what to do (a function below); the port; more for some of them. Prints
how the agent ended what was sent: "dropped", "held", or "taken".
"""

import hashlib
import hmac
import os
import socket
import struct
import sys

NOBODY = 65534
MAGIC = b"pmi2x\r\n\0"
VERSION = 3
PROTOCOL = struct.pack("<H", 1)
TIMEOUT_S = 20
HELD_MAX = 600  # more than an agent keeps


def connect(port):
    link = socket.socket()
    link.settimeout(TIMEOUT_S)
    link.connect(("127.0.0.1", port))
    return link


def message(body, version=VERSION, length=None):
    length = len(body) if length is None else length
    return MAGIC + struct.pack("<HH", version, length) + body


def text(value):
    return struct.pack("<I", len(value)) + value.encode()


def hello(job, here, there, nonce, build="0.1.0"):
    return message(
        text(build) + PROTOCOL + text(job) + struct.pack("<II", here, there) + nonce
    )


def end_of(link):
    """How the agent ends it: it says nothing to us that we wait for."""
    try:
        while link.recv(65536):
            pass
    except socket.timeout:
        return "held"
    except OSError:
        pass
    return "dropped"


def read_message(link):
    head = b""
    while len(head) < 12:
        head += link.recv(12 - len(head)) or sys.exit("no answer")
    length = struct.unpack("<H", head[10:])[0]
    body = b""
    while len(body) < length:
        body += link.recv(length - len(body)) or sys.exit("half an answer")
    return body


def endpoint(address):
    mapped = b"\0" * 10 + b"\xff\xff" + socket.inet_aton(address[0])
    return mapped + struct.pack("<H", address[1])


def prove(port, job, here, there, secret):
    """The handshake of a connector, with a secret of our choice."""
    link, nonce = connect(port), os.urandom(24)
    link.sendall(hello(job, int(here), int(there), nonce))
    answer = read_message(link)
    build_bytes = struct.unpack("<I", answer[:4])[0]
    build = answer[4 : 4 + build_bytes].decode()
    assert answer[6 + build_bytes] == 0, "it says that this is another step"
    theirs = answer[7 + build_bytes : 31 + build_bytes]
    transcript = text("pmi2x link: connector") + struct.pack("<H", VERSION)
    transcript += text("0.1.0") + text(build)
    transcript += PROTOCOL + answer[4 + build_bytes :][:2] + text(job)
    transcript += struct.pack("<II", int(here), int(there))
    transcript += nonce + endpoint(link.getsockname())
    transcript += theirs + endpoint(link.getpeername())
    proof = hmac.new(bytes.fromhex(secret), transcript, hashlib.sha256)
    link.sendall(message(proof.digest()))
    link.settimeout(3)
    return "taken" if end_of(link) == "held" else "dropped"


def replay(port, *recorded):
    """Send what another connection has sent, each part after an answer."""
    link = connect(port)
    for index, part in enumerate(recorded):
        link.sendall(bytes.fromhex(part))
        if index + 1 < len(recorded):
            read_message(link)
    return end_of(link)


def nothing(port):
    return end_of(connect(port))


def garbage(port):
    link = connect(port)
    link.sendall(os.urandom(4096))
    return end_of(link)


def half(port, job):
    link = connect(port)
    link.sendall(hello(job, 1, 0, b"n" * 24)[:30])
    return end_of(link)


def long(port):
    """The largest length that there is, and bytes without end."""
    link = connect(port)
    try:
        link.sendall(message(b"x" * 65535, length=0xFFFF) * 16)
    except OSError:
        pass
    return end_of(link)


def other(port, job):
    """Well formed, for another step."""
    link = connect(port)
    link.sendall(hello(f"9{job}", 1, 0, b"n" * 24))
    return end_of(link)


def bind(port):
    """Listen on a narrower address, where the agent listens on all."""
    thief = socket.socket()
    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        thief.bind(("127.0.0.1", port))
        thief.listen()
    except OSError:
        return "dropped"
    return "taken"


def flood(port, job, count, mark, after):
    """`count` connections of all kinds. Makes the file `mark` after `after` of them."""
    kinds = (
        b"",
        os.urandom(64),
        hello(job, 1, 0, b"n" * 24)[:30],
        hello(f"9{job}", 1, 0, b"n" * 24),
        hello(job, 1, 0, b"n" * 24),
        message(b"", length=0xFFFF),
    )
    held = []
    for i in range(int(count)):
        if i == int(after):
            open(mark, "w").close()
        try:
            link = connect(port)
            link.sendall(kinds[i % len(kinds)])
        except OSError:
            continue
        held.append(link)
        if len(held) > HELD_MAX:
            held.pop(0).close()
    return "dropped"


def main():
    name, port, *rest = sys.argv[1:]
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    print(globals()[name](int(port), *rest))


if __name__ == "__main__":
    main()
