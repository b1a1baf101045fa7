# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x bench collectives: what it measures, and what it refuses before anything starts."""

import collections
import io
import pathlib
import resource
import sys
import types

import pytest

from harness import run

BENCH = pathlib.Path(__file__).parents[2] / "contrib" / "bench"
sys.path.insert(0, str(BENCH))

from pmi2x_bench import layout, limits, matrix, place  # noqa: E402
from pmi2x_bench.collectives import record, report, steps  # noqa: E402
from pmi2x_bench.errors import BenchError  # noqa: E402
from pmi2x_bench.record import rows_of  # noqa: E402

PEERS = "none,none:meet,pmi2,pmi2x:stock,pmi2x:pmi1,pmi2x:own,floor"


@pytest.fixture
def bench(prefix):
    def start(*argv, **options):
        return run([prefix / "libexec" / "pmi2x" / "pmi2x-bench-collectives", *argv], **options)

    return start


def read_csv(path):
    return list(rows_of(path.read_text().splitlines()))


# ---- measuring ----


def test_every_operation(bench, prefix, tmp_path):
    path = tmp_path / "times.csv"
    with_pmix = (prefix / "libexec" / "pmi2x" / "pmi2x-bench-pmix").exists()
    names = PEERS + (",pmi2x:pmix" if with_pmix else "")
    result = bench(
        *("-q", "--private", 3, "--nodes", 3, "--ranks-per-node", 2),
        *("--mpi", names, "--op", ",".join(matrix.OPS), "--work", 100),
        *("--repeats", 1, "--rounds", 2, "--csv", path),
        timeout=300,
    ).ok()
    assert result.stderr == "", result
    found = {(row["op"], row["mpi"], row["variant"]) for row in read_csv(path)}
    peers = matrix.peers(names, None)
    wanted = {(op, *p) for op in matrix.OPS for p in peers if p.can(op)}
    assert found == wanted


def test_layouts(bench, tmp_path):
    path = tmp_path / "times.csv"
    ways = "block,cyclic,plane=2,uneven,uneven=5"
    bench(
        *("-q", "--private", 3, "--nodes", 3, "--ranks-per-node", 3),
        *("--mpi", "pmi2x,floor:shm", "--op", "fence,ring", "--layout", ways),
        *("--repeats", 1, "--rounds", 1, "--csv", path),
        timeout=300,
    ).ok()
    found = {(row["op"], row["mpi"], row["layout"]) for row in read_csv(path)}
    assert {way for _, _, way in found} == set(ways.split(","))
    assert ("fence", "floor", "uneven=5") in found


def test_table_of_a_file(bench, tmp_path):
    path = tmp_path / "times.csv"
    argv = ["-q", "--mpi", "floor", "--repeats", 2, "--rounds", 2]
    first = bench(*argv, "--csv", path).ok()
    again = bench("--table", path).ok()
    assert [l for l in first.lines if "floor:" in l] == [
        l for l in again.lines if "floor:" in l
    ]
    shown = bench("--table", path, "--markdown").ok()
    assert any(l.startswith("| nodes |") for l in shown.lines)


def test_dvm_rows_on_a_test_cluster(prefix, tmp_path):
    """Whether it is as fast as it must be depends on the machine."""
    path = tmp_path / "dvm.csv"
    program = prefix / "libexec" / "pmi2x" / "pmi2x-bench-dvm"
    run([program, "-q", "up", "fence", "--nodes", 2, "--ranks", 2, "--rounds", 1,
         "--csv", path], timeout=120)
    assert {(row["row"], row["what"]) for row in read_csv(path)} == {
        ("up", "pmi2x-dvm"), ("up", "srun true"),
        ("fence", "pmi2x-dvm"), ("fence", "step of srun"),
    }


# ---- layouts ----


@pytest.mark.parametrize(
    "text, nodes, per_node, counts",
    [
        ("block", 3, 4, [4, 4, 4]),
        ("cyclic", 3, 4, [4, 4, 4]),
        ("plane=2", 3, 4, [4, 4, 4]),
        ("uneven", 4, 4, [13, 1, 1, 1]),
        ("uneven=8", 4, 4, [8, 6, 1, 1]),
        ("uneven=4", 4, 4, [4, 4, 4, 4]),
        ("uneven", 256, 16, [256] * 15 + [16] + [1] * 240),
    ],
)
def test_ranks_of_nodes(text, nodes, per_node, counts):
    assert layout.parse(text).counts(nodes, per_node) == counts


@pytest.mark.parametrize("text", ["", "plane", "plane=0", "uneven=x", "Block"])
def test_no_such_layout(text):
    with pytest.raises(BenchError, match="is none of block"):
        layout.parse(text)


# ---- matrices that cannot be ----


def options_of(**given):
    options = {"nodes": "2", "ranks_per_node": "2", "bytes": "64"}
    options |= {"op": "fence", "layout": "block", "srun_option": []}
    return types.SimpleNamespace(**{**options, **given})


@pytest.mark.parametrize(
    "given, message",
    [
        ({"bytes": "1024"}, "not within 1 to 1023"),
        ({"bytes": "0"}, "not within 1 to 1023"),
        ({"nodes": "4,x"}, "'x' is not a number"),
        ({"nodes": "65537"}, "not within 1 to 65536"),
        ({"nodes": "65536", "ranks_per_node": "17"}, "more than 1048576"),
        ({"op": "fnce"}, "there is no 'fnce'"),
        ({"layout": "uneven=1"}, "do not hold 2 x 2"),
    ],
)
def test_impossible_points(given, message):
    with pytest.raises(BenchError, match=message):
        matrix.points(options_of(**given))


@pytest.mark.parametrize(
    "peers, op, message",
    [
        ("pmi2", "iallgather", "none of pmi2:stock can"),
        ("floor", "ring", "can do 'ring'"),
        ("pmi2,pmi2x", "true", "without PMI: --mpi none,pmi2:stock,pmi2x:own"),
        ("pmi2,floor", "ring", "floor:socket can do none"),
        ("none,pmi2", "fence", "none can do none of fence"),
        ("pmi2:mine", "fence", "after ':' may be own"),
        ("none:own", "true", "after ':' may be meet"),
        ("pmix:own", "fence", "no choice of a client"),
        ("none:meet", "step", "without PMI: --mpi none,none:meet"),
        ("none,none:meet", "true", "none:meet can do none of true"),
        ("floor:pipe", "fence", "may be socket or shm"),
        ("pmi-2", "fence", "is not a type"),
    ],
)
def test_impossible_pairs(peers, op, message):
    with pytest.raises(BenchError, match=message):
        points = matrix.points(options_of(op=op))
        matrix.check_pairs(points, matrix.peers(peers, None))


@pytest.mark.parametrize("width", ["1", "1025", "x"])
def test_width_out_of_range(bench, width):
    bench("--mpi", "floor", "--width", width).failed().says("not within")


def test_unknown_type(bench):
    bench(
        "-q", "--mpi", "pmi9", "--private", 1, timeout=120
    ).failed().says("srun --mpi=list names")


def test_too_many_for_the_allocation(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    monkeypatch.setenv("SLURM_JOB_CPUS_PER_NODE", "16(x2),8,16")
    over = matrix.points(options_of(nodes="8"))
    with pytest.raises(BenchError, match="salloc -N8"):
        place.check_allocation(over, options_of())
    wide = matrix.points(options_of(ranks_per_node="9"))
    with pytest.raises(BenchError, match="8 CPUs a node, not 9"):
        place.check_allocation(wide, options_of())
    uneven = matrix.points(
        options_of(nodes="4", ranks_per_node="4", layout="uneven")
    )
    with pytest.raises(BenchError, match="not 13; .*uneven=MOST"):
        place.check_allocation(uneven, options_of())
    place.check_allocation(wide, options_of(srun_option=["-O"]))


# ---- limits of the machine ----

BIG = matrix.Point("fence", 256, 16, layout.BLOCK, 64)


@pytest.fixture
def machine(monkeypatch):
    """A machine with room for everything; the dictionary takes some away."""
    numbers = {
        "/proc/sys/kernel/pid_max": 1 << 22,
        "/proc/sys/kernel/threads-max": 1 << 22,
        "/proc/sys/net/ipv4/ip_local_port_range": 32768,
    }
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    rlimits = {resource.RLIMIT_NPROC: unlimited, resource.RLIMIT_NOFILE: unlimited}
    given = types.SimpleNamespace(
        numbers=numbers, rlimits=rlimits, kb=1 << 30, pids=(None, None), user=1000
    )
    monkeypatch.setattr(limits, "read_number", lambda path: numbers.get(path))
    monkeypatch.setattr(limits, "available_kb", lambda: given.kb)
    monkeypatch.setattr(limits, "cgroup_pids", lambda: given.pids)
    monkeypatch.setattr(limits.os, "geteuid", lambda: given.user)
    monkeypatch.setattr(limits.resource, "getrlimit", lambda which: rlimits[which])
    monkeypatch.setattr(
        limits.resource,
        "setrlimit",
        lambda which, values: rlimits.update({which: values}),
    )
    return given


def refused(words, point=BIG):
    with pytest.raises(BenchError) as caught:
        limits.check_private(point.nodes, [point])
    text = str(caught.value)
    for word in words:
        assert word in text, text


def test_room_for_everything(machine):
    limits.check_private(256, [BIG])


@pytest.mark.parametrize("name", ["pid_max", "threads-max"])
def test_too_few_processes_of_the_kernel(machine, name):
    machine.numbers[f"/proc/sys/kernel/{name}"] = 4096
    refused([f"kernel.{name} is 4096", f"sysctl -w kernel.{name}="])


def test_too_few_processes_of_the_control_group(machine):
    machine.pids = (1000, "/sys/fs/cgroup/x/pids.max")
    refused(["allows 1000", "> /sys/fs/cgroup/x/pids.max"])


def test_too_few_processes_of_the_user(machine):
    machine.rlimits[resource.RLIMIT_NPROC] = (500, 1000)
    refused(["the limit is 1000", "ulimit -u "])
    machine.user = 0  # it does not bind root
    limits.check_private(256, [BIG])


def test_too_few_files(machine):
    machine.rlimits[resource.RLIMIT_NOFILE] = (64, 1024)
    refused(["open files", "the limit is 1024", "ulimit -n "])


def test_soft_limit_is_raised(machine):
    machine.rlimits[resource.RLIMIT_NOFILE] = (64, 1 << 20)
    limits.check_private(256, [BIG])
    assert machine.rlimits[resource.RLIMIT_NOFILE][0] > 1024


def test_too_little_memory(machine):
    machine.kb = 1 << 20
    refused(["MB of memory, 1024 MB are free", "free -m"])


def test_values_of_all_ranks_need_memory(machine):
    """16,384 values in each of 16,384 ranks are more than the ranks."""
    machine.kb = 24 << 20
    large = BIG._replace(per_node=64)
    limits.check_private(256, [large])
    refused(["MB of memory"], large._replace(op="allgather"))


def test_no_ports_to_listen_on(machine):
    machine.numbers["/proc/sys/net/ipv4/ip_local_port_range"] = 20100
    refused(["begins at 20100", "sysctl -w net.ipv4.ip_local_port_range="])


def test_limits_of_the_floor_program(prefix):
    """The program knows its limits; a hard limit can be raised by root only."""
    floor = prefix / "libexec" / "pmi2x" / "floor"
    result = run(
        ["sh", "-c", f"ulimit -n 100; exec '{floor}' -N2 -r100 -c"]
    ).failed()
    result.says("ulimit -n").says("the limit is 100")
    run([floor, "-N", 65536, "-r", 16, "-b", 262144, "-c"]).failed()


# ---- what is made of the results ----


def sample(times, repeat, **more):
    made = steps.Sample("span", "met", 1.0)
    made.times, made.repeat = times, repeat
    vars(made).update(more)
    return made


def test_pairs_are_of_one_repeat():
    point = BIG._replace(op="true")
    none, ours = matrix.peers("none,pmi2x", None)
    results = report.Results([point], [none, ours])
    for repeat, (bare, mine) in enumerate([(1.0, 1.1), (2.0, 2.2), (5.0, 5.5)]):
        results.add((point, none), sample([bare], repeat))
        if repeat != 1:
            results.add((point, ours), sample([mine], repeat))
    assert results.pairs((point, ours), (point, none)) == [(1.1, 1.0), (5.5, 5.0)]
    cells = report.row(results, point, ours, ours)
    assert cells["to none"] == "1.100"


def test_hidden_share():
    point, (own,) = BIG._replace(op="overlap"), matrix.peers("pmi2x", None)
    results = report.Results([point], [own])
    phases = {"exchange": [0.2], "compute": [1.0]}
    made = sample([1.05], 1, phases=phases, parts=[1e-6], waits=[0.01])
    results.add((point, own), made)
    assert report.row(results, point, own, own)["hidden"] == "75 %"


def test_phases_of_a_line():
    line = (
        "result op=overlap client=x ranks=4096 bytes=64 clock=span puts=met "
        "times=1,2,3,4,5,6 parts=0,0,7,0,0,8 waits=0,0,9,0,0,10"
    )
    made = steps.parse_sample(BIG._replace(op="overlap"), line, 1.0)
    assert made.times == [3, 6] and made.phases["compute"] == [2, 5]
    assert made.parts == [7, 8] and made.waits == [9, 10]


def test_stamps_without_pmi():
    point = BIG._replace(op="init", nodes=1, per_node=2)
    text = "stamp abc 10.0 0.5\nstamp abc 10.25 1.0\n"
    assert steps.parse_sample(point, text, 1.0).times == [1.25]
    apart = text.replace("abc 10.25", "def 99")
    assert steps.parse_sample(point, apart, 1.0).times == [1.0]
    with pytest.raises(BenchError, match="1 of 2 ranks"):
        steps.parse_sample(point, "stamp abc 10.0 0.5\n", 1.0)


def test_csv_and_back(tmp_path):
    point, (own,) = BIG._replace(op="ifence"), matrix.peers("pmi2x", None)
    results = report.Results([point], [own])
    results.add((point, own), sample([0.5, 0.25], 1, parts=[1, 2], waits=[3, 4]))
    file = io.StringIO()
    writer = record.FORM.writer(file, {"machine": "m"})
    writer.rows(record.rows(point, own, results.of((point, own))[0]))
    path = tmp_path / "file.csv"
    path.write_text(file.getvalue())
    again, notes = record.read([path])
    assert notes == {"ifence": {"machine": "m"}}
    assert list(report.table(again)) == list(report.table(results))


def test_notes_of_several_files(tmp_path):
    """A plot names the commands whose results it shows, no others."""
    (own,) = matrix.peers("pmi2x", None)
    paths = []
    for op, told in ("fence", "a"), ("ring", "b"), ("fence", "c"), ("fence", "a"):
        file, point = io.StringIO(), BIG._replace(op=op)
        writer = record.FORM.writer(file, {"machine": "m", "command": told})
        writer.rows(record.rows(point, own, sample([0.5], len(paths) + 1)))
        paths.append(tmp_path / f"{len(paths)}.csv")
        paths[-1].write_text(file.getvalue())
    notes = record.read(paths)[1]
    assert notes["fence"] == {"machine": "m", "command": "a\nc"}
    assert notes["ring"] == {"machine": "m", "command": "b"}


# ---- pmi2x bench store ----


def test_store_measures_each_round(prefix, tmp_path):
    path = tmp_path / "store.csv"
    program = prefix / "libexec" / "pmi2x" / "pmi2x-bench-store"
    argv = ["-q", "--op", "all,one,barrier,sync,true", "--peers", "store,sync,file,none,pmi2x",
            "--nodes", 2, "--ranks-per-node", 2, "--rounds", 2, "--repeats", 1]
    result = run([program, *argv, "--csv", path], timeout=300).ok()
    assert result.stderr == "", result
    found = read_csv(path)
    rounds = {("all", "store"): 2, ("one", "store"): 2, ("barrier", "store"): 2,
              ("sync", "sync"): 2, ("sync", "file"): 2, ("true", "none"): 1,
              ("true", "pmi2x"): 1}
    assert collections.Counter((row["op"], row["peer"]) for row in found) == rounds
    assert all(float(row["server_cpu_seconds"]) > 0 for row in found if row["peer"] == "store")
