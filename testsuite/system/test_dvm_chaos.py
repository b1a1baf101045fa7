# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: kills and cuts under many mixed tasks. Each task ends once, and nothing is left."""

import contextlib
import json
import os
import pathlib
import random
import signal
import struct
import time

import pytest

from dvm_network import Network, check_allowed
from dvms import PROCESSES, living, there, wait_until
from test_dvm_journal import END, RECORD_HEADER, ends, records
from test_faults_daemons import seed

__all__ = ["there"]

NODES = 5
NEEDED = 3  # nodes that are surely up when one of them is killed: tasks of two can run
OPTIONS = ("--orphan", "6", "--within", "8")
FAULTS = ("cut", "daemon", "zygote", "rank", "head", "cut", "daemon", "zygote", "rank", "cut")
CUTS_S = (0.2, 1, 3, 9)  # the lease is 6.75 s
DOUBT_S = 8  # after a cut: until then the head may take the node for lost
LIMIT_S = 2400
LOSSES = 3  # a task is queued again after that number of lost nodes, at most
MARK = "CHAOS_WORK"  # in the environment of each task
KINDS = ("short",) * 5 + ("failing", "output", "node", "nodes", "long")


@pytest.fixture(scope="module", autouse=True)
def allowed():
    check_allowed()


class Work:
    """Mixed tasks. Each rank notes its starts; a task of kind "output" writes one line."""

    def __init__(self, network, raw, chance):
        self.network, self.random = network, chance
        self.base = network.base / "work"
        self.base.mkdir()
        network.env[MARK] = str(self.base)  # tasks inherit it from their submit
        note = f"echo $PMI2X_DVM_INSTANCE >> {self.base}/start.$PMI2X_DVM_TASK.$PMI2X_DVM_RANK;"
        mpi = f"{note} exec {' '.join(map(str, raw('exchange', '1')))}"
        self.scripts = {
            "short": f"{note} sleep 0.2",
            "failing": f"{note} exit 3",
            "output": f"{note} sleep 0.1; echo task $PMI2X_DVM_TASK",
            "node": mpi,
            "nodes": mpi,
            "long": f"{note} exec python3 -SE {network.beats} {network.base} 1",
        }
        self.more = {
            "failing": {"retries": 1},
            "output": {"output": "file", "path": f"{self.base}/output.%t.%i"},
            "node": {"ranks": 3, "nodes": 1},
            "nodes": {"ranks": 4, "nodes": 2},
        }
        self.kinds = {}  # of tasks by number
        self.killed = set()  # tasks of which the test has killed a rank

    def submit_any(self, count):
        self.submit(self.random.choices(KINDS, k=count))

    def submit(self, kinds):
        tasks = [
            {"argv": ["sh", "-c", self.scripts[kind]], **self.more.get(kind, {})}
            for kind in kinds
        ]
        lines = "\n".join(map(json.dumps, tasks))
        done = self.network("submit", "--json", "-", stdin=lines).ok()
        self.kinds.update(zip(map(int, done.lines), kinds, strict=True))

    def ranks(self):
        """{process: task} of those that run, with what they have started."""
        found = {}
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                env = (path / "environ").read_bytes()
                if (
                    f"{MARK}={self.base}\0".encode() in env
                    and b"PMI2X_DVM_TASK=" in env
                    and (path / "comm").read_text().strip() not in PROCESSES
                ):
                    task = env.split(b"PMI2X_DVM_TASK=")[1].split(b"\0")[0]
                    found[int(path.name)] = int(task)
        return found

    def starts(self):
        """{(task, rank): instances} in the order of their starts."""
        return {
            tuple(map(int, path.name.split(".")[1:])): path.read_text().split()
            for path in self.base.glob("start.*")
        }


class Chaos:
    """Faults, one after another, each on a victim that is chosen at random."""

    def __init__(self, network, work, journal, options, cuts):
        self.network, self.work, self.journal = network, work, journal
        self.random, self.options, self.cuts = work.random, options, cuts
        self.down = {}  # node: when its link is up again
        self.doubtful = {}  # node: until when it may be lost yet

    def mend_links(self, all_of_them=False):
        now = time.monotonic()
        for node, until in list(self.down.items()):
            if all_of_them or now >= until:
                self.network.link(node, "up")
                del self.down[node]
                self.doubtful[node] = now + DOUBT_S
        self.doubtful = {n: until for n, until in self.doubtful.items() if until > now}

    def sure(self):
        """Names of nodes that are up, and stay so when another one is lost."""
        return self.up() - {f"n{node}" for node in {**self.down, **self.doubtful}}

    def cut(self):
        sure = sorted(self.sure())
        if len(sure) <= NEEDED:
            return False
        node = int(self.random.choice(sure)[1:])
        self.network.link(node, "down")
        self.down[node] = time.monotonic() + self.random.choice(self.cuts)
        return True

    def _kill_on_a_node(self, name):
        """The kill counts when the head has noticed: until then the node seems to be
        up."""
        sure = sorted(self.sure())
        found = sorted((node_of(pid), pid) for pid, n in self.processes().items() if n == name)
        found = [(node, pid) for node, pid in found if node in sure and serves(pid, name)]
        if len(sure) < NEEDED or not found:
            return False
        node, pid = self.random.choice(found)
        if not kill(pid):
            return False
        wait_until(lambda: node not in self.up())
        return True

    def daemon(self):
        return self._kill_on_a_node("pmi2x-dvmd")

    def zygote(self):
        return self._kill_on_a_node("pmi2x-dvm-zygot")

    def rank(self):
        ranks = self.work.ranks()
        if not ranks:
            self.work.submit(["long"])
        pid = self.random.choice(sorted(ranks)) if ranks else None
        if not pid or not kill(pid):
            return False
        self.work.killed.add(ranks[pid])
        return True

    def head(self):
        [head] = [pid for pid, name in self.processes().items() if name == "pmi2x-dvm-head"]
        if len(self.sure()) < NEEDED or not kill(head):
            return False
        self.print_log()
        wait_until(lambda: "pmi2x-dvm-head" not in self.processes().values())
        self.mend_links(all_of_them=True)
        self.network.start_next_on(range(NODES))
        print(self.network.up("--resume", self.journal, *self.options, nodes=1).stderr)
        return True

    def print_log(self):
        """The last head's: the next one writes it anew, and it goes when all is right."""
        for path in pathlib.Path(self.network.env["PMI2X_DVM_DIR"]).rglob("log"):
            print(path.read_text())

    def processes(self):
        return living(self.network.env["PMI2X_DVM_DIR"])

    def up(self):
        return {n["name"] for n in self.network.status()["nodes"] if n["state"] == "up"}

    def replace_lost(self):
        """Start another daemon on each node whose last one has gone."""
        up = self.up()
        for node in set(range(NODES)) - set(self.down):
            if f"n{node}" not in up and not self.network.daemon_of(node):
                self.network.start_next_on([node])
                self.network("grow", "-N", "1", timeout=120)  # a later one may succeed

    def turn(self, kind, limit):
        """Make one fault, as soon as it has a victim."""
        while True:
            assert time.monotonic() < limit, (kind, self.network.status())
            self.mend_links()
            self.replace_lost()
            if getattr(self, kind)():
                print(time.strftime("%X"), kind, self.down)
                return
            time.sleep(0.05)


def serves(pid, name):
    """The process is neither a rank before its exec, nor a zygote whose daemon was
    killed: its node may have another daemon."""
    with contextlib.suppress(OSError):
        before, rest = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)
        parent = pathlib.Path(f"/proc/{rest.split()[1]}/comm").read_text().strip()
        return before.endswith(f"({name}") and (
            parent == "pmi2x-dvmd" if name == "pmi2x-dvm-zygot" else parent != name
        )
    return False


def node_of(pid):
    with contextlib.suppress(OSError):
        for entry in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if entry.startswith(b"SLURMD_NODENAME="):
                return entry.split(b"=")[1].decode()
    return ""


def kill(pid):
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def read_ends(journal):
    """{task: (instance, status, why)}"""
    data, found = (journal / "journal").read_bytes(), {}
    for kind, task, at in records(journal / "journal"):
        if kind == END:
            body = at + RECORD_HEADER
            instance, status = struct.unpack_from("<Ii", data, body + 9)
            length = struct.unpack_from("<I", data, body + 64)[0]
            found[task] = instance, status, data[body + 68 : body + 68 + length].decode()
    return found


def is_right(kind, killed, end, once):
    instance, status, why = end
    if status == (3 << 8 if kind == "failing" else 0):
        return True
    return killed or ("lost" in why and (once or instance >= LOSSES))


def check_ends(work, journal, once):
    assert ends(journal / "journal") == dict.fromkeys(work.kinds, 1)
    found = read_ends(journal)
    wrong = {
        task: (kind, found[task])
        for task, kind in work.kinds.items()
        if not is_right(kind, task in work.killed, found[task], once)
    }
    assert not wrong
    return found


def check_starts(work, found, once):
    starts = work.starts()
    for (task, rank), instances in starts.items():
        assert len(set(instances)) == len(instances), (task, rank, instances)
        again = work.kinds[task] == "failing"  # its retry is asked for
        assert not once or again or instances in ([], ["0"]), (task, rank, instances)
    for task, (instance, status, _) in found.items():
        if status == 0:
            ranks = work.more.get(work.kinds[task], {}).get("ranks", 1)
            for rank in range(ranks):
                assert starts[task, rank][-1] == str(instance), (task, rank)
            if work.kinds[task] == "output":
                output = work.base / f"output.{task}.{instance}"
                assert output.read_text() == f"task {task}\n"


def check_nothing_is_left(network, work, chaos):
    wait_until(lambda: not chaos.processes())
    assert not work.ranks()
    assert not [path for path in network.base.rglob("*") if path.is_socket()]
    assert not (chaos.journal / "daemons").exists()
    left = [p for p in pathlib.Path(network.env["PMI2X_DVM_DIR"]).rglob("*") if p.is_file()]
    assert all(path.suffix == ".log" or path.name == "log" for path in left), left


def run_chaos(network, raw, journal, tasks, faults, once, cuts):
    chosen = seed()
    print(f"PMI2X_TEST_SEED={chosen}")
    chance = random.Random(chosen)
    options = (*OPTIONS, *(["--once"] if once else []))
    work = Work(network, raw, chance)
    chaos = Chaos(network, work, journal, options, cuts)
    plan = (list(FAULTS) * faults)[:faults]
    chance.shuffle(plan)
    network.up("--journal", journal, *options)
    limit = time.monotonic() + LIMIT_S
    for kind in plan:
        work.submit_any(tasks // faults)
        chaos.turn(kind, limit)
    chaos.mend_links(all_of_them=True)
    chaos.replace_lost()
    network("wait", timeout=120)  # it fails, as tasks have
    assert network.status()["ended"] == len(work.kinds) >= tasks
    chaos.print_log()
    network("down").ok()
    check_nothing_is_left(network, work, chaos)
    check_starts(work, check_ends(work, journal, once), once)
    network.assert_one_at_a_time()


def test_each_task_ends_once_whatever_is_killed_or_cut(prefix, tmp_path, raw):
    """One fault of each kind."""
    with Network(prefix, tmp_path, NODES) as network:
        run_chaos(network, raw, tmp_path / "j", 60, len(set(FAULTS)), False, CUTS_S[:1])


@pytest.mark.wide
@pytest.mark.parametrize("once", [False, True], ids=["again", "once"])
def test_each_task_ends_once_after_200_kills_and_cuts(prefix, tmp_path, raw, once):
    with Network(prefix, tmp_path, NODES) as network:
        run_chaos(network, raw, tmp_path / "j", 2000, 200, once, CUTS_S)
