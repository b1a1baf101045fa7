# SPDX-License-Identifier: BSD-3-Clause
"""A rank that attacks the memory and the sockets it shares with its agent.

Arguments: what to do (a function below); how often. Prints "attacked".
"""

import ctypes
import mmap
import os
import random
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

KEEP_SIZE, PUNCH_HOLE = 1, 2
HEADER = 4096
SLOT_HEAD = 128
SLOT = 4 * 8192 + 65536
LIBC = ctypes.CDLL(None, use_errno=True)


class Extended(pmi.Pmi2):
    """Takes the descriptors that come with the answer to fullinit."""

    def __init__(self):
        super().__init__()
        self.fds = []

    def fill(self):
        data, fds, _, _ = socket.recv_fds(self.socket, 65536, 8)
        if not data:
            raise pmi.Closed
        self.fds += fds
        self.input += data

    def init(self):
        self.greet()
        fields = {
            "pmirank": pmi.RANK,
            "pmi2x": 1,
            "pmi2x_build": "attack",
            "pmi2x_region": 1,
            "pmi2x_slots": 4,
        }
        answer = self.ask("fullinit", **fields)
        assert answer["rc"] == "0" and "pmi2x-slots" in answer, answer
        assert len(self.fds) == 3, self.fds
        self.region, self.slots, self.wake = self.fds
        self.region_size = int(answer["pmi2x-region-size"])
        self.slots_size = int(answer["pmi2x-slots-size"])
        self.slot = int(answer["pmi2x-slot"])


def refused(what, *arguments):
    try:
        what(*arguments)
    except (OSError, ValueError):
        return
    sys.exit(f"NOT REFUSED: {what.__name__}{arguments}")


def fallocate(fd, mode, offset, length):
    if LIBC.fallocate(
        fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)
    ):
        raise OSError(ctypes.get_errno(), "fallocate")


def reopen_and(fd, act):
    """Do it through another open file of the same memory."""
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    try:
        act(again)
    finally:
        os.close(again)


def map_for_writing(fd):
    mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


def write_byte(fd):
    os.pwrite(fd, b"x", 0)


def shrink(fd):
    os.ftruncate(fd, 4096)


def grow(fd):
    os.ftruncate(fd, 1 << 40)


def punch(fd):
    fallocate(fd, KEEP_SIZE | PUNCH_HOLE, 0, 4096)


def region(client, times):
    """The results region can be neither written nor resized."""
    for act in map_for_writing, write_byte, shrink, grow, punch:
        refused(act, client.region)
        refused(reopen_and, client.region, act)
    for act in shrink, grow:
        refused(act, client.slots)
        refused(reopen_and, client.slots, act)


def slots(client, times):
    """Anything at all, anywhere in the slots of the node, and holes."""
    memory = mmap.mmap(client.slots, client.slots_size)
    dice = random.Random(1)
    for i in range(times):
        at = dice.randrange(0, client.slots_size - 64)
        if i % 3:
            at = HEADER + at % 8192 // SLOT_HEAD * 4  # heads of the first
        memory[at : at + 32] = dice.randbytes(32)
        if i % 64 == 0:
            fallocate(
                client.slots, KEEP_SIZE | PUNCH_HOLE, at & ~4095, 1 << 16
            )
        if i % 16 == 0:
            os.write(client.wake, b"\1\0\0\0\0\0\0\0")


def counters(client, times):
    """Says that ranks have entered that have not, and the reverse."""
    memory = mmap.mmap(client.slots, client.slots_size)
    dice = random.Random(2)
    for _ in range(times):
        for at in 0, 64, 128:
            memory[at : at + 4] = dice.randbytes(4)
        os.write(client.wake, b"\1\0\0\0\0\0\0\0")


def entries(client, times):
    """Entries that look right, with lengths that do not."""
    memory = mmap.mmap(client.slots, client.slots_size)
    size = client.slots_size - HEADER
    mine = HEADER + client.slot * SLOT
    assert 0 < mine < size + HEADER
    dice = random.Random(3)
    for ticket in range(1, times + 1):
        head = b"".join(
            value.to_bytes(4, "little")
            for value in (
                dice.choice((ticket, 0, 1, 0xFFFFFFFF)),
                dice.choice((0, 1, 2, 0xFFFFFFFF)),
                dice.choice((0, 1, 8064, 8065, 0x7FFFFFFF, 0xFFFFFFFF)),
                dice.choice((0, 1, 64, 0xFFFFFFFF)),
                dice.choice((0, 1, 1008, 0x20000001, 0xFFFFFFFF)),
            )
        )
        at = mine + 32 * (ticket % 4)
        memory[at : at + 20] = head
        memory[0:4] = b"\xff\xff\xff\x7f"
        os.write(client.wake, b"\1\0\0\0\0\0\0\0")


def ticket(client, times):
    """Hides the second entry of slot 0, as if there were none."""
    memory = mmap.mmap(client.slots, client.slots_size)
    client.fence()
    while int.from_bytes(memory[HEADER : HEADER + 4], "little") != 2:
        time.sleep(0.01)
    memory[HEADER : HEADER + 4] = bytes(4)
    client.fence()


def eventfd(client, times):
    """Fill it, so that who wakes the agent would have to wait, and block."""
    os.set_blocking(client.wake, False)
    full = (0xFFFFFFFFFFFFFFFE).to_bytes(8, "little")
    for i in range(times):
        try:
            os.write(client.wake, full)
        except BlockingIOError:
            pass
        os.set_blocking(client.wake, i % 2 == 0)
        os.set_blocking(client.wake, False)


def descriptors(client, times):
    """Open files that nobody has asked for."""
    for i in range(times):
        client.socket.settimeout(5)
        body = b"cmd=info-getjobattr;key=universeSize;"
        data = b"%-6d" % len(body) + body
        socket.send_fds(client.socket, [data], [0] * 200)
        client.receive()


def main():
    client = Extended()
    client.init()
    globals()[sys.argv[1]](client, int(sys.argv[2]))
    print("attacked", flush=True)
    client.finalize()


if __name__ == "__main__":
    main()
