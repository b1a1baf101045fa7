# SPDX-License-Identifier: BSD-3-Clause
"""A rank of the trial of pmi2x check: puts a value, fences, gets all, in PMI-1.

pmi2x check sends this file's text to the nodes, where nothing but the plugin and its
agent need be installed. Rank 0 prints "passed" and how many ranks there are."""

import os
import socket
import sys


def main():
    wire = socket.socket(fileno=int(os.environ["PMI_FD"])).makefile("rw", newline="\n")
    rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])

    def ask(command, **fields):
        words = ["cmd=" + command, *("%s=%s" % item for item in fields.items())]
        wire.write(" ".join(words) + "\n")
        wire.flush()
        answer = dict(word.partition("=")[::2] for word in wire.readline().split())
        if answer.get("rc", "0") != "0" or "cmd" not in answer:
            sys.exit("rank %d: %s was answered with %s" % (rank, command, answer))
        return answer

    ask("init", pmi_version=1, pmi_subversion=1)
    name = ask("get_my_kvsname")["kvsname"]
    ask("put", kvsname=name, key="trial-%d" % rank, value="value-%d" % rank)
    ask("barrier_in")
    for other in range(size):
        value = ask("get", kvsname=name, key="trial-%d" % other).get("value")
        if value != "value-%d" % other:
            sys.exit("rank %d: rank %d has put %s?" % (rank, other, value))
    ask("finalize")
    if rank == 0:
        print("passed", size)


if __name__ == "__main__":
    main()
