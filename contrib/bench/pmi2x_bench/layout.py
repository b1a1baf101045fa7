# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a step lie on its nodes."""

import collections
import re

from .errors import BenchError

UNEVEN_MOST = 256  # ranks of a full node of an uneven layout
KINDS = "block, cyclic, plane=K, uneven or uneven=MOST"


class Layout(collections.namedtuple("Layout", "kind number")):
    """kind as srun -m has it, or uneven; number: of plane and uneven."""

    def __str__(self):
        shown = self.kind == "plane" or (
            self.kind == "uneven" and self.number != UNEVEN_MOST
        )
        return f"{self.kind}={self.number}" if shown else self.kind

    def counts(self, nodes, per_node):
        """Ranks of each node. Uneven: as many full nodes as there can be while
        each node has one; what is left over goes to the next node."""
        if self.kind != "uneven":
            return [per_node] * nodes
        counts, left = [], nodes * per_node - nodes
        for _ in range(nodes):
            more = min(left, self.number - 1)
            counts.append(1 + more)
            left -= more
        if left:
            raise BenchError(
                f"--layout {self}: {nodes} nodes of {self.number} ranks do "
                f"not hold {nodes} x {per_node}; ask for a larger MOST"
            )
        return counts

    def srun_options(self):
        """Apart from the numbers of nodes and tasks."""
        if self.kind == "uneven":
            return ["-m", "arbitrary"]
        return ["-m", f"plane={self.number}" if self.number else self.kind]


BLOCK = Layout("block", 0)


def parse(word):
    match = re.fullmatch(r"(plane|uneven)=([1-9][0-9]{0,6})", word)
    if match:
        return Layout(match[1], int(match[2]))
    if word == "uneven":
        return Layout("uneven", UNEVEN_MOST)
    if word in ("block", "cyclic"):
        return Layout(word, 0)
    raise BenchError(f"--layout: '{word}' is none of {KINDS}")


def parse_list(text):
    return list(dict.fromkeys(parse(word) for word in text.split(",")))
