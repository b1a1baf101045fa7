# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm batch under faults and load. Each line ends once, and its output is there."""

import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

import pytest

from dvms import env, living, there, wait_until
from test_dvm_batch import heed_signals
from test_faults_daemons import seed

__all__ = ["env", "there"]

LINES = 400
NODES = "2"
DISK_KB = 2048
FAULTS = ("interrupt", "kill", "head", "daemon", "disk", "reader", "edit", "edit")
COUNT = 30  # faults
LIMIT_S = 600
PRINTS = 3000  # bytes of a line that prints much
MORE = 9000  # than a result has


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own."""
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_KB}k", "tmpfs", path], check=False)
    if done.returncode:
        pytest.skip("tmpfs cannot be mounted: only root may")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


class File:
    """Lines that note that they run, print, and fail if their number says so."""

    def __init__(self, disk, notes, chance):
        self.path, self.notes, self.random = disk / "tasks", notes, chance
        self.numbers = list(range(LINES))
        self.next = LINES
        self.write()

    def line(self, number):
        size = self.prints(number)
        much = f"head -c {size} /dev/zero | tr '\\0' x; echo;" if size else ""
        ends = f"echo end {number} >&2; [ {int(self.fails(number))} = 0 ]"
        return f"echo {number} >> {self.notes}; {much} sleep 0.{number % 5}; echo out {number}; {ends}"

    def fails(self, number):
        return number % 10 == 9

    def prints(self, number):
        return MORE if number % 28 == 3 else PRINTS if number % 7 == 3 else 0

    def output(self, number):
        size = self.prints(number)
        return ("x" * size + "\n" if size else "") + f"out {number}\n"

    def write(self):
        """As editors do: the file is another one."""
        text = "".join(self.line(number) + "\n" for number in self.numbers)
        room = self.path.parent
        with contextlib.suppress(OSError):  # the disk may be full
            (room / "new").write_text(text)
            os.replace(room / "new", self.path)

    def edit(self):
        """New lines at any place, others go, and the order changes."""
        gone = self.random.randrange(len(self.numbers))
        del self.numbers[gone : gone + 3]
        for _ in range(5):
            self.numbers.insert(self.random.randrange(len(self.numbers)), self.next)
            self.next += 1
        if self.random.random() < 0.3:
            self.random.shuffle(self.numbers)
        self.write()

    def in_file(self):
        return [int(line.split()[1]) for line in self.path.read_text().splitlines()]


class Batch:
    """A run of the command, whose printed output is read slowly, or not at all for a while."""

    def __init__(self, prefix, env, file):
        self.child = subprocess.Popen(
            [prefix / "bin/pmi2x-dvm", "batch", "--local", NODES, "--print", file.path],
            env=env, cwd=file.path.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=heed_signals,
        )  # fmt: skip
        self.reads = threading.Event()
        self.reads.set()
        self.said = ""
        self.threads = [threading.Thread(target=t) for t in (self.read_slowly, self.read_errors)]
        for thread in self.threads:
            thread.start()

    def read_slowly(self):
        while self.reads.wait() and os.read(self.child.stdout.fileno(), 8192):
            time.sleep(0.002)

    def read_errors(self):
        for line in self.child.stderr:
            self.said += line

    def end(self, seconds=120):
        self.reads.set()
        code = self.child.wait(seconds)
        for thread in self.threads:
            thread.join()
        self.child.stdout.close()
        self.child.stderr.close()
        return code


class Faults:
    def __init__(self, env, disk, file, chance):
        self.env, self.disk, self.file, self.random = env, disk, file, chance

    def kill(self, name):
        found = [pid for pid, n in living(self.env["PMI2X_DVM_DIR"]).items() if n == name]
        with contextlib.suppress(ProcessLookupError):
            if found:
                os.kill(self.random.choice(found), signal.SIGKILL)

    def interrupt(self, batch):
        batch.child.send_signal(self.random.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))

    def kill_batch(self, batch):
        batch.child.kill()

    def fill(self, batch):
        with contextlib.suppress(OSError), open(self.disk / "filler", "wb", 0) as filler:
            while filler.write(b"x" * 4096):
                pass
        time.sleep(self.random.random())
        (self.disk / "filler").unlink()

    def stop_reading(self, batch):
        batch.reads.clear()
        time.sleep(self.random.random())
        batch.reads.set()

    def one(self, batch):
        kind = self.random.choice(FAULTS)
        {
            "interrupt": self.interrupt, "kill": self.kill_batch, "disk": self.fill,
            "reader": self.stop_reading,
            "head": lambda _: self.kill("pmi2x-dvm-head"),
            "daemon": lambda _: self.kill("pmi2x-dvmd"),
            "edit": lambda _: self.file.edit(),
        }[kind](batch)  # fmt: skip
        return kind


def ends(disk):
    """{number of a line: its results}, of all runs."""
    found = collections.defaultdict(list)
    for path in disk.glob("tasks.results*"):
        for text in path.read_text().splitlines():
            result = json.loads(text)
            if result["state"] in ("done", "failed"):
                found[int(result["command"].split()[1])].append(result)
    return found


def output_of(result, whole):
    """A full disk may have cost the complete output, but never its end."""
    if "files_lost" in result and result["out"] == whole[-4096:]:
        return whole
    files = result.get("files", [])
    return pathlib.Path(files[0]).read_text() if files else result["out"]


def check(file, disk):
    found = ends(disk)
    wanted = file.in_file()
    runs = collections.Counter(map(int, file.notes.read_text().split()))
    assert {n: len(found[n]) for n in wanted if len(found[n]) != 1} == {}
    for number in wanted:
        (result,) = found[number]
        assert result["state"] == ("failed" if file.fails(number) else "done"), result
        assert runs[number] >= 1
        assert "output_lost" not in result
        assert output_of(result, file.output(number)) == file.output(number), result
        assert result["err"] == f"end {number}\n", result
    return sum("files_lost" in result for (result,) in found.values())


@pytest.mark.wide
def test_batch_in_a_changed_file_under_faults(prefix, env, disk, tmp_path):
    number = seed()
    print(f"PMI2X_TEST_SEED={number}")
    chance = random.Random(number)
    file = File(disk, tmp_path / "notes", chance)
    faults = Faults(env, disk, file, chance)
    kinds, limit, left = [], time.monotonic() + LIMIT_S, None
    while left != 0:  # the last run is without faults
        assert time.monotonic() < limit
        left = COUNT - len(kinds)
        batch = Batch(prefix, env, file)
        while batch.child.poll() is None and len(kinds) < COUNT:
            time.sleep(chance.random())
            kinds.append(faults.one(batch))
        code = batch.end()
        print(kinds, code, batch.said, sep="\n")
    assert code == 1 and "tasks:" in batch.said  # some lines fail
    lost = check(file, disk)
    print(f"{lost} complete outputs lost, {len(ends(disk))} lines")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]), 120)


# ---- many lines, and many jobs ----


@pytest.mark.wide
def test_ten_thousand_lines_stopped_in_each_way(prefix, env, tmp_path):
    """No line succeeds twice, and none is missed. An interrupted one may have done its work."""
    ok = tmp_path / "ok"
    fails = range(399, 10_000, 400)
    (tmp_path / "tasks").write_text("".join(
        f"[ {int(i in fails)} = 0 ] || [ -e {ok} ] && echo {i} >> done\n" for i in range(10_000)
    ))  # fmt: skip

    def batch(*more):
        return subprocess.Popen(
            [prefix / "bin/pmi2x-dvm", "batch", "--local", *more, "tasks"], env=env, cwd=tmp_path,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals,
        )  # fmt: skip

    def done():
        path = tmp_path / "done"
        return path.read_text().split() if path.exists() else []

    def succeeded():
        results = map(json.loads, (tmp_path / "tasks.results").read_text().splitlines())
        return sorted(r["line"] - 1 for r in results if r["state"] == "done")

    gives_up = batch("--max-fails", "10")
    assert "more than --max-fails allows" in gives_up.communicate(timeout=300)[1]
    before = len(done())
    for number in signal.SIGTERM, signal.SIGINT:
        stopped = batch()
        wait_until(lambda: len(done()) > before + 500, 300)
        stopped.send_signal(number)
        assert "this goes on: pmi2x-dvm batch --local tasks" in stopped.communicate(timeout=300)[1]
        assert stopped.returncode == -number
        before = len(done())
    rest = batch()
    rest.communicate(timeout=300)
    assert rest.returncode == 1
    assert succeeded() == [i for i in range(10_000) if i not in fails]
    ok.touch()
    last = batch("--retry-failed")
    last.communicate(timeout=300)
    assert last.returncode == 0
    assert succeeded() == list(range(10_000)) == sorted(set(map(int, done())))


@pytest.mark.wide
def test_arrays_of_two_users_on_one_node(cluster, prefix, public, ordinary_user):
    """Each element has its own DVM and results, also where the elements share a file."""
    count, lines = 20, 5
    jobs = []
    for name, user in ("root", []), ("other", ordinary_user):
        place = public / f"array-{name}"
        place.mkdir()
        place.chmod(0o777)
        (place / "tasks").write_text("".join(
            f"echo $SLURM_ARRAY_TASK_ID {i} >> {place}/ran; echo out {i}\n" for i in range(lines)
        ))  # fmt: skip
        cluster.run(
            *user, "env", f"PATH={prefix}/bin:{os.environ['PATH']}", "sbatch", f"--array=1-{count}",
            "-w", "n1", "-n1", f"--chdir={place}", "-o", "out.%a", "--wrap",
            "mkdir -p -m 700 dvm; export PMI2X_DVM_DIR=$PWD/dvm; pmi2x-dvm batch tasks",
        ).ok()  # fmt: skip
        jobs.append(place)
    for place in jobs:
        wait_until(lambda place=place: len(list(place.glob("tasks.*.results"))) == count, 300)
        wait_until(lambda place=place: not list(place.glob("*.journal")), 300)
        ran = (place / "ran").read_text().splitlines()
        assert sorted(ran) == sorted(f"{k} {i}" for k in range(1, count + 1) for i in range(lines))
        for k in range(1, count + 1):
            results = map(json.loads, (place / f"tasks.{k}.results").read_text().splitlines())
            assert sorted(r["out"] for r in results) == [f"out {i}\n" for i in range(lines)]
