# SPDX-License-Identifier: BSD-3-Clause
"""Speak the protocol of PyTorch's TCPStore as its releases do, and check the answers.

Arguments: a release, 1.13 or 2.6; what to do:
  all       every operation that the release has, by all ranks at once
  dies      a rank goes while it waits for a key; the others get theirs
  mixed     both releases on one connection: it is closed
  big       more than a value may have: the connection is closed
  fails     the last rank fails while the others wait for its key: the step ends
  apart     as fails, but ranks of the first node never connect: they open a file, the third argument
  late      rank 0 opens a file, the third argument, before it sets what the others wait for
  unknown   a query that no release has, on 256 connections
  stranger  a connection, which is to be closed at once
"""

import os
import socket
import struct
import sys
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LOCAL_SIZE = int(os.environ["LOCAL_WORLD_SIZE"])
OLD = {"SET": 0, "COMPARE_SET": 1, "GET": 2, "ADD": 3, "WAIT": 5, "GETNUMKEYS": 6, "DELETE_KEY": 8}
NEW = {"SET": 1, "COMPARE_SET": 2, "GET": 3, "ADD": 4, "CHECK": 5, "WAIT": 6, "GETNUMKEYS": 7,
       "DELETE_KEY": 8, "APPEND": 9, "MULTI_GET": 10, "MULTI_SET": 11, "CANCEL_WAIT": 12, "PING": 13}
VALUE_MAX = 8 << 20


def item(data):
    return struct.pack("=Q", len(data)) + data


def connect(*address):
    """As PyTorch does: the first node may begin later than others."""
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.1)


class Store:
    def __init__(self, release):
        self.queries = OLD if release == "1.13" else NEW
        self.socket = connect(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        if release != "1.13":
            self.socket.sendall(struct.pack("=BI", 0, 0x3C85F7CE))
            self.send("PING", struct.pack("=I", 77))
            assert self.read("=I") == 77

    def send(self, query, *parts):
        self.socket.sendall(bytes([self.queries[query]]) + b"".join(parts))

    def receive(self, length):
        data = b""
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def read(self, form):
        return struct.unpack(form, self.receive(struct.calcsize(form)))[0]

    def value(self):
        return self.receive(self.read("=Q"))

    def set(self, key, value):
        self.send("SET", item(key), item(value))

    def get(self, key):
        self.send("GET", item(key))
        return self.value()

    def add(self, key, number):
        self.send("ADD", item(key), struct.pack("=q", number))
        return self.read("=q")

    def compare_set(self, key, expected, value):
        self.send("COMPARE_SET", item(key), item(expected), item(value))
        return self.value()

    def begin_wait(self, *keys):
        self.send("WAIT", struct.pack("=Q", len(keys)), *map(item, keys))

    def wait(self, *keys):
        self.begin_wait(*keys)
        assert self.receive(1) == b"\0"

    def check(self, *keys):
        self.send("CHECK", struct.pack("=Q", len(keys)), *map(item, keys))
        return self.receive(1) == b"\0"

    def count(self):
        self.send("GETNUMKEYS")
        return self.read("=q")

    def delete(self, key):
        self.send("DELETE_KEY", item(key))
        return self.read("=q")

    def barrier(self, name):
        if self.add(name, 1) == SIZE:
            self.set(name + b"-passed", b"1")
        self.wait(name + b"-passed")


def key(word, rank=RANK):
    return b"/%s\0%d" % (word, rank)


def exchange(store):
    store.set(key(b"x"), b"%d" % RANK)
    store.wait(*(key(b"x", rank) for rank in range(SIZE)))
    for rank in range(SIZE):
        assert store.get(key(b"x", rank)) == b"%d" % rank


def every_release(store):
    exchange(store)
    store.barrier(b"exchanged")
    assert store.get(key(b"absent")) == b""
    assert store.compare_set(key(b"c"), b"other", b"new") == b"other"
    assert store.compare_set(key(b"c"), b"", b"new") == b"new"
    assert store.compare_set(key(b"c"), b"no", b"newer") == b"new"
    assert store.compare_set(key(b"c"), b"new", b"") == b""
    assert store.add(key(b"n"), 5) == 5 and store.add(key(b"n"), -7) == -2
    assert store.get(key(b"n")) == b"-2"
    assert store.delete(key(b"n")) == 1 and store.delete(key(b"n")) == 0
    store.barrier(b"changed")
    assert store.count() >= 2 * SIZE
    store.set(key(b"big"), b"v" * VALUE_MAX if RANK == 0 else b"")
    assert len(store.get(key(b"big"))) == (VALUE_MAX if RANK == 0 else 0)


def given_up_wait(store):
    """A client of 1.13 sends its next query; a new one says that it gives up."""
    store.begin_wait(key(b"never"))
    if "CANCEL_WAIT" in store.queries:
        store.send("CANCEL_WAIT")
        assert store.receive(1) == b"\1"
    assert store.add(key(b"after"), 1) == 1
    store.set(key(b"never"), b"")
    assert store.get(key(b"after")) == b"1"


def new_releases(store):
    assert store.check(key(b"x"), key(b"c")) and not store.check(key(b"x"), key(b"n"))
    assert store.check()
    store.send("APPEND", item(key(b"a")), item(b"one"))
    store.send("APPEND", item(key(b"a")), item(b"two"))
    store.send("MULTI_SET", struct.pack("=Q", 2), *map(item, (key(b"m"), b"1", key(b"o"), b"2")))
    keys = [key(word) for word in (b"a", b"m", b"absent", b"o")]
    store.send("MULTI_GET", struct.pack("=Q", 4), *map(item, keys))
    assert [store.value() for _ in keys] == [b"onetwo", b"1", b"", b"2"]


def do_all(store):
    assert store.add(b"init/", 1) <= SIZE
    every_release(store)
    given_up_wait(store)
    if store.queries is NEW:
        new_releases(store)


def do_dies(store):
    if RANK == 1:
        store.begin_wait(b"late")
        store.socket.close()
    else:
        store.wait(key(b"gone", 1))
    if RANK == 1:
        store = Store(sys.argv[1])
        store.set(key(b"gone"), b"")
        store.set(b"late", b"")
    store.barrier(b"end")


def closed(store):
    """The agent closes the connection, and serves others."""
    try:
        store.receive(1)
    except (EOFError, ConnectionResetError):
        return
    raise AssertionError("the connection is still open")


def do_mixed(store):
    store.send("GETNUMKEYS")
    store.read("=q")
    store.socket.sendall(struct.pack("=BIQ", 0, 0x3C85F7CE, 0))
    closed(store)


def do_big(store):
    store.send("SET", item(b"k"), struct.pack("=Q", VALUE_MAX + 1))
    closed(store)
    Store(sys.argv[1]).barrier(b"end")


def do_fails(store):
    if RANK == SIZE - 1:
        store.wait(*(key(b"here", rank) for rank in range(SIZE - 1)))
        sys.exit(5)
    store.set(key(b"here"), b"")
    store.wait(b"never")


def do_apart(store):
    if RANK == SIZE - 1:
        store.wait(*(key(b"here", rank) for rank in range(LOCAL_SIZE, SIZE - 1)))
        sys.exit(5)
    store.set(key(b"here"), b"")
    store.wait(b"never")


def do_late(store):
    if RANK == 0:
        with open(sys.argv[3]) as gate:
            gate.readline()
        store.set(b"late", b"")
    store.wait(b"late")
    store.barrier(b"end")


def do_unknown(store):
    for _ in range(256):
        other = Store(sys.argv[1])
        other.socket.sendall(b"\xff")
        closed(other)
    store.add(b"still", 1)


def do_stranger(store):
    closed(store)


if sys.argv[2] == "apart" and os.environ["GROUP_RANK"] == "0":
    open(sys.argv[3]).close()
if sys.argv[2] == "stranger" and RANK == 0 and os.getuid() == 0:
    os.setresgid(1, 1, 1)
    os.setresuid(1, 1, 1)
try:
    globals()["do_" + sys.argv[2]](Store(sys.argv[1]))
except (EOFError, ConnectionResetError):
    assert sys.argv[2] == "stranger"
print("done", sys.argv[2])
