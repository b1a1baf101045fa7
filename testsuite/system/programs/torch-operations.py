# SPDX-License-Identifier: BSD-3-Clause
"""Call every operation of torch's TCPStore, in an order that makes the results certain, and
print what each rank gets. The server is torch's own or the one of pmi2x: PMI2X_TORCH.

Argument: a directory; a file for each rank is left there.
"""

import datetime
import os
import sys

import torch.distributed as dist

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SERVED = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
SHORT = datetime.timedelta(milliseconds=200)
LINES = []


def connect():
    options = {} if dist.TCPStore.__init__.__doc__.find("use_libuv") < 0 else {"use_libuv": False}
    return dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), SIZE, RANK == 0 and not SERVED,
        timeout=datetime.timedelta(seconds=120), wait_for_workers=False, **options,
    )


def say(name, call, *arguments):
    """The result, or the kind of the error."""
    try:
        result = call(*arguments)
    except (RuntimeError, ValueError) as error:
        result = type(error).__name__
    LINES.append(f"{name}: {result!r}")


def meet(store, name):
    if store.add(f"meet/{name}", 1) == SIZE:
        store.set(f"met/{name}", "1")
    store.wait([f"met/{name}"])


def own_keys(store):
    key = f"own/{RANK}"
    say("set", store.set, key, "one")
    say("get", store.get, key)
    say("set again", store.set, key, "two")
    say("get again", store.get, key)
    say("set empty", store.set, f"{key}/empty", "")
    say("get empty", store.get, f"{key}/empty")
    say("long", store.set, f"{key}/" + "k" * 4000, "v" * (1 << 20))
    say("get long", lambda: len(store.get(f"{key}/" + "k" * 4000)))
    say("add", store.add, f"{key}/n", 5)
    say("add less", store.add, f"{key}/n", -7)
    say("get sum", store.get, f"{key}/n")
    say("add to text", store.add, f"{key}/text", 0)
    say("compare_set new", store.compare_set, f"{key}/c", "", "first")
    say("compare_set equal", store.compare_set, f"{key}/c", "first", "second")
    say("compare_set other", store.compare_set, f"{key}/c", "first", "third")
    say("compare_set absent", store.compare_set, f"{key}/d", "what", "third")
    say("wait", store.wait, [key, f"{key}/c"])
    say("wait late", store.wait, [f"{key}/never"], SHORT)
    say("get after a late wait", store.get, key)
    say("delete_key", store.delete_key, key)
    say("delete_key again", store.delete_key, key)


def shared_keys(store):
    meet(store, "own")
    if RANK == 0:
        say("num_keys", store.num_keys)
        store.set("counted", "")
    store.wait(["counted"])
    store.set(f"x/{RANK}", f"of {RANK}")
    say("wait all", store.wait, [f"x/{rank}" for rank in range(SIZE)])
    for rank in range(SIZE):
        say(f"get of {rank}", store.get, f"x/{rank}")
    winner = store.compare_set("winner", "", str(RANK))
    meet(store, "elected")
    say("one winner", lambda: store.get("winner") == winner)


def newer(store):
    key = f"own/{RANK}"
    for name, arguments in (
        ("check", ([f"x/{RANK}"],)), ("check", ([f"{key}/never"],)),
        ("append", (f"{key}/a", "one")), ("append", (f"{key}/a", "two")),
        ("get", (f"{key}/a",)),
        ("multi_set", ([f"{key}/m", f"{key}/o"], ["1", "2"])),
        ("multi_get", ([f"{key}/o", f"{key}/m"],)),
    ):
        if hasattr(store, name) and hasattr(store, "check"):
            say(name, getattr(store, name), *arguments)


store = connect()
own_keys(store)
shared_keys(store)
newer(store)
with open(os.path.join(sys.argv[1], f"rank-{RANK}"), "w") as out:
    print(*LINES, sep="\n", file=out)
meet(store, "end")
if RANK == 0 and not SERVED:  # the server ends with this process
    store.wait([f"bye/{rank}" for rank in range(1, SIZE)])
elif not SERVED:
    store.set(f"bye/{RANK}", "")
print("done", dist.TCPStore.__module__)
