# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: many tasks, from where they come, and how fast they are."""

import json
import os

import pytest

from dvms import LOCAL_NODES, dvm, env, living, local, one, status, there, wait_until
from harness import run

__all__ = ["dvm", "env", "local", "one", "there"]


def test_many_tasks(local, tmp_path):
    report = tmp_path / "report"
    result = local(
        "submit", "--wait", "--report", report, "--array", "1-500", "sh", "-c",
        "test {} -ne 250 || { echo unlucky >&2; exit 3; }",
    )  # fmt: skip
    assert result.code == 1
    result.says("500 tasks: 499 done, 1 failed")
    result.says("exit status 3: sh -c test 250 -ne 250 || { echo unlucky >&2; exit 3; }: unlucky")
    tasks = [json.loads(line) for line in report.read_text().splitlines()]
    assert sorted(t["id"] for t in tasks) == list(range(1, 501))
    assert [t["err"] for t in tasks if t["code"]] == ["unlucky\n"]


def test_values_lines_and_files(local, tmp_path):
    out = tmp_path / "out.%t"
    local("submit", "--wait", "--output", out, "echo", ":::", "a", "b c").ok()
    assert (tmp_path / "out.1").read_text() == "a\n"
    assert (tmp_path / "out.2").read_text() == "b c\n"
    lines = tmp_path / "lines"
    lines.write_text("x\ny\n")
    local("submit", "--wait", "--output", out, "--each-line", lines, "echo", "-{}-").ok()
    assert (tmp_path / "out.4").read_text() == "-y-\n"


def test_json_lines_of_which_one_is_wrong(local):
    lines = [
        {"argv": ["true"]},
        {"argv": ["true"], "rnaks": 2},
        {"argv": ["true"], "ranks": 2},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + " \r\nno json\n"
    text += '{"argv": ["true"], "path": "a\\u0000b"}\n'
    result = local("submit", "--wait", "--json", "-", stdin=text).failed()
    result.says("line 6 of - is rejected: path: a text contains a NUL byte")
    result.says("line 5 of - is rejected: not a JSON object")
    result.says("line 2 of - is rejected: rnaks: unknown key")
    result.says("2 tasks: 2 done, 0 failed, 3 refused")


def test_only_ten_lines_that_are_wrong_are_printed(local):
    result = local("submit", "--wait", "--json", "-", stdin="no json\n" * 26).failed()
    assert result.stderr.count("is rejected") == 10
    result.says("16 more are rejected")


def test_more_nodes_than_ranks_names_the_option(dvm):
    dvm("up", "--local", "2").ok()
    dvm("submit", "-N", "2", "true").failed().says("2 nodes need as many ranks: give -n 2")
    dvm("down").ok()


@pytest.mark.parametrize("number", [1, 2], ids=["one", "two"])
def test_largest_task_of_a_long_submit_is_first(dvm, env, number):
    """The command sends it in the second of two requests, also to one of several DVMs."""
    nodes = ("--local", str(number), "--slots", "2", "--dvms", str(number))
    dvm("up", *nodes, "--order", "large").ok()
    tasks = [{"argv": ["true"]}] * 1100 + [{"argv": ["true"], "cores": 2}]
    text = "".join(json.dumps(task) + "\n" for task in tasks)
    ids = dvm("submit", "--json", "-", stdin=text).ok().lines
    dvm("wait", *ids).ok()
    same = [i for i in ids if int(i) % number == int(ids[-1]) % number]  # its DVM's
    first, largest = (json.loads(dvm("show", i).ok().stdout)["t"][1] for i in (same[0], same[-1]))
    assert largest < first
    dvm("down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_task_with_the_most_work_is_first(dvm, env):
    dvm("up", "--local", "1", "--slots", "2", "--order", "works").failed().says("--order is fifo")
    dvm("up", "--local", "1", "--slots", "2", "--order", "work").ok()
    keys = {"cores": 2}, {"cores": 2, "time": 10}, {"time": 30}
    text = "".join(json.dumps({"argv": ["true"], **more}) + "\n" for more in keys)
    ids = dvm("submit", "--json", "-", stdin=text).ok().lines
    dvm("wait", *ids).ok()
    placed = [json.loads(dvm("show", i).ok().stdout)["t"][1] for i in ids]
    assert placed[2] < placed[1] < placed[0]
    dvm("down").ok()
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


def test_lines_that_are_no_text(local, tmp_path):
    """A command is run whole, or not at all; and the line of a long file is told."""
    lines = tmp_path / "lines"
    lines.write_bytes(b"true\n" * 1500 + b"touch here\0 not\ntouch \xff\ntrue\n")
    result = local("batch", lines, cwd=tmp_path).failed()
    result.says(f"line 1501 of {lines} is rejected: the line contains a NUL byte")
    result.says(f"line 1502 of {lines} is rejected: an argument is not UTF-8 text")
    result.says("1501 tasks: 1501 done, 0 failed, 2 refused")
    assert not (tmp_path / "here").exists()
    no_text = os.fsdecode(b"\xff")
    result = local("submit", "--wait", "test", ":::", "x", no_text, "y").failed()
    result.says("task 2 is rejected: an argument is not UTF-8 text")
    result.says("2 tasks: 2 done, 0 failed, 1 refused")


def test_a_batch_that_cannot_be_begun(dvm, env, tmp_path):
    """The error is reported before a DVM is started."""
    (tmp_path / "lines").write_text("true\n")
    batch = "batch", "--local", "1"
    dvm(*batch, tmp_path / "none").failed().says("cannot read")
    dvm(*batch, tmp_path).failed().says("Is a directory")
    report = tmp_path / "none" / "report"
    dvm(*batch, "--report", report, tmp_path / "lines").failed().says("cannot write")
    assert not living(env["PMI2X_DVM_DIR"])


def test_memory_of_large_nodes(local):
    """Bytes need no unit; what no node has is refused for that."""
    local("submit", "--wait", "--mem", "100000000", "true").ok()
    local("submit", "--mem", "8T", "true").failed().says("can never fit")
    local("submit", "--mem", "9999999T", "true").failed().says("is too much")


@pytest.mark.parametrize("words", ["submit true", "run echo x", "ps", "submit --wait --report /dev/full true"])
def test_output_that_cannot_be_written(local, prefix, env, words):
    """As on a full disk: whoever needs it is told."""
    command = f"{prefix}/bin/pmi2x-dvm {words} > /dev/full"
    result = run(["sh", "-c", command], env=env)
    assert result.code == 1
    result.says("cannot be written")


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-"])
def test_output_is_no_request(local, prefix, env, closed):
    """Where the command was started with a closed descriptor."""
    down = '{"op": "down", "work": "cancel"}'
    task = f"echo '{down}'; echo '{down}' >&2"
    command = [prefix / "bin/pmi2x-dvm", "run", "sh", "-c", task]
    result = run(["sh", "-c", f'"$@" {closed}', "sh", *command], env=env)
    assert result.code == (closed != "0<&-"), result
    assert status(local)["ready"]


def test_never_more_than_fits(local, tmp_path):
    """Tasks count themselves while they run."""
    (tmp_path / "here").mkdir()
    count = f"cd {tmp_path}/here; touch $$; ls | wc -l; sleep 0.05; rm $$"
    out = tmp_path / "out.%t"
    local("submit", "--wait", "-c3", "--output", out, "--array", "1-20", "sh", "-c", count).ok()
    seen = [int(path.read_text()) for path in tmp_path.glob("out.*")]
    assert len(seen) == 20
    assert max(seen) <= LOCAL_NODES


def test_counters(dvm, tmp_path):
    dvm("up", "--local", "1", "--slots", "8", "--counter", "licence=1").ok()
    count = f"cd {tmp_path}/here; touch $$; ls | wc -l; sleep 0.05; rm $$"
    (tmp_path / "here").mkdir()
    out = tmp_path / "out.%t"
    dvm(
        "submit", "--wait", "--counter", "licence=1", "--output", out,
        "--array", "1-10", "sh", "-c", count,
    ).ok()  # fmt: skip
    assert {path.read_text() for path in tmp_path.glob("out.*")} == {"1\n"}
    dvm("down").ok()


def test_ps_show_wait_cancel(local):
    ids = local("submit", "--name", "mine", "--array", "1-9", "sleep", "600").ok().lines
    assert len(ids) == 9
    wait_until(lambda: status(local)["running"] == 8)
    result = local("ps").ok()
    assert result.lines[0] == "8 running, 1 queued, 0 ended"
    assert json.loads(local("show", ids[0]).ok().stdout)["name"] == "mine"
    local("cancel", ids[0]).ok()
    local("wait", ids[0]).failed().says("1 failed")
    local("down").failed().says("8 tasks have not ended")
    local("cancel", "--all").ok()
    wait_until(lambda: status(local)["running"] == 0)


def test_a_batch_file(dvm, env, tmp_path):
    """In an allocation it starts a DVM; here one is up already, and stays."""
    dvm("up", "--local", "2", "--slots", "2").ok()
    file = tmp_path / "tasks"
    file.write_text("# a comment\necho $((6*7)) > answer\n\n \t\r\nfalse\n")
    result = dvm("batch", file, cwd=tmp_path).failed()
    result.says("2 tasks: 1 done, 1 failed")
    assert (tmp_path / "answer").read_text() == "42\n"
    assert status(dvm)["ended"] == 2
    dvm("down").ok()


def test_bench(prefix, tmp_path):
    """Values of each kind, in the table and the file; what is missing is named."""
    bench = [prefix / "bin/pmi2x", "bench", "dvm", "local", "queue", "--rounds", "1"]
    few = ["--tasks", "200", "--slow-tasks", "20", "--csv", tmp_path / "dvm.csv"]
    result = run([*bench, *few], env={**os.environ, "TMPDIR": str(tmp_path)})
    assert result.code in (0, 1)  # a bar may be missed on a busy machine
    lines = (tmp_path / "dvm.csv").read_text().splitlines()
    for what in "pmi2x-dvm", "pmi2x-dvm --journal", '"fork, exec, wait in C"':
        assert any(line.startswith(f"local,{what},1,,") for line in lines)
    assert any(line.startswith('queue,"head, a queued task",1,,') for line in lines)
    if "HyperQueue  not done" in result.stdout:
        result.says("HyperQueue: not here: pip install hyperqueue")
    assert list(tmp_path.iterdir()) == [tmp_path / "dvm.csv"]


# ---- what people type ----


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["submit", "--aray", "1-3", "echo"], "submit: there is no option --aray\n"),
        (["up", "--ord=x"], "--order is fifo"),
        (["up", "--or=x"], "up: --or=x is the beginning of several options: --orphan, --order\n"),
        (["report", "--no-such", "x"], "report: there is no option --no-such\n"),
        (["submit", "--retries"], "submit: --retries needs a value"),
        (["up", "--nosuch"], "up: there is no option --nosuch"),
        (["run", "-z", "true"], "run: there is no option -z"),
        (["batch", "-o", "out.%j", "tasks"], '--output: unknown "%j"'),
        (["submit", "--array", "1,", "echo"], "--array is NUMBER, FIRST-LAST"),
        (["submit", "-t", "4294967296", "echo"], "--time is MINUTES, M:S"),
        (["submit", "-t", "25d", "echo"], "at most 24 days"),
        (["submit", "--per-node", "two", "echo"], "--per-node must be a number from 0 to"),
        (["up", "--local=0"], "--local must be a number from 1 to"),
        (["grow", "-N", "x"], "-N must be a number from 1 to"),
        (["grow", "--grace", "3", "node"], "grow: there is no option --grace"),
    ],
)
def test_wrong_options_are_named(dvm, arguments, words):
    result = dvm(*arguments)
    assert result.code == 2, str(result)
    result.says(words)


@pytest.mark.parametrize("words", [
    ("submit", "--help"), ("help", "submit"), ("submit", "-h"), ("submit", "-n", "2", "--help"),
])  # fmt: skip
def test_help_of_a_command(dvm, words):
    lines = dvm(*words).ok().lines
    assert lines[0].startswith("usage: pmi2x-dvm submit")
    assert any("--array" in line for line in lines)


def test_each_pair_of_braces_is_replaced(one, tmp_path):
    one("submit", "--wait", "-o", tmp_path / "new/{}.out", "echo", "{}{}", "{}", ":::", "a").ok()
    assert (tmp_path / "new/a.out").read_text() == "aa a\n"


def test_combinations_of_several_values(one, tmp_path):
    (tmp_path / "letters").write_text("x\ny\n")
    command = "sh", "-c", "echo {#}:{2}-{1} {} >> {1}.out", ":::", "a", "b", "::::", "letters"
    one("submit", "--wait", "-c", "4", *command).ok().says("4 tasks: 4 done")
    assert (tmp_path / "a.out").read_text() == "1:x-a a x\n2:y-a a y\n"
    assert (tmp_path / "b.out").read_text() == "3:x-b b x\n4:y-b b y\n"
    words = "echo", ":::", "a b", ":::", "c"
    one("submit", "--wait", "--array", "7-8", "-o", "{1}.out", "-J", "n{#}", *words).ok()
    assert (tmp_path / "7.out").read_text() == "7 a b c\n"
    assert (tmp_path / "8.out").read_text() == "8 a b c\n"


def test_values_name_directories(one, tmp_path):
    for name in "a", "b":
        (tmp_path / name).mkdir()
    words = "submit", "--wait", "-D", "{}", "-o", "{}.out", "sh", "-c", "echo $# $PWD > here; pwd"
    one(*words, ":::", "a", tmp_path / "b").ok()
    for name in "a", "b":
        assert (tmp_path / f"{name}.out").read_text() == f"{tmp_path}/{name}\n"
        assert (tmp_path / name / "here").read_text() == f"0 {tmp_path}/{name}\n"
    (tmp_path / "a2").mkdir()
    one("submit", "--wait", "--chdir", "{1}{2}", "-o", "{#}.out", "pwd", ":::", "a", ":::", "2").ok()
    assert (tmp_path / "1.out").read_text() == f"{tmp_path}/a2\n"
    assert one("run", "-D", "a2", "pwd").ok().stdout == f"{tmp_path}/a2\n"
    one("run", "-D", "none", "pwd").failed().says(f"cannot enter the directory {tmp_path}/none")
    assert one("run", "-D", "", "pwd").says("--chdir: the name of the directory is empty").code == 2


def test_json_names_directories(one, tmp_path):
    (tmp_path / "a").mkdir()
    lines = '{"argv": ["pwd"], "cwd": "a", "path": "out"}\n{"argv": ["pwd"], "path": "out2"}\n'
    one("submit", "--wait", "--json", "-", stdin=lines).ok()
    assert (tmp_path / "out").read_text() == f"{tmp_path}/a\n"
    assert (tmp_path / "out2").read_text() == f"{tmp_path}\n"


def test_array_has_steps_and_lists(one):
    one("submit", "--wait", "-o", "{}.out", "--array", "0-10:5,008-9,3", "true").ok()
    names = [line for line in one("run", "ls").ok().lines if line.endswith(".out")]
    assert names == ["0.out", "008.out", "009.out", "10.out", "3.out", "5.out"]


def test_time_limit_has_units(one):
    result = one("submit", "--wait", "-t", "1s", "sh", "-c", "sleep 60").failed()
    result.says("1 failed")


def test_files_of_values(one, tmp_path):
    (tmp_path / "values").write_bytes(b"\xef\xbb\xbfa\r\nb")
    one("submit", "--wait", "-o", tmp_path / "{}.out", "echo", "::::", tmp_path / "values").ok()
    assert (tmp_path / "a.out").read_text() == "a\n"
    assert (tmp_path / "b.out").read_text() == "b\n"


def test_lines_run_in_the_shell_that_is_named(one, tmp_path):
    (tmp_path / "tasks").write_text("echo $0 >> ran\n")
    one("batch", "tasks").ok()
    one("batch", "--shell", "bash", "tasks").ok()
    assert (tmp_path / "ran").read_text() == "/bin/sh\nbash\n"


def test_tasks_are_cancelled_by_name_and_range(one):
    """Two names, each of 8 tasks; 4 run at a time."""
    waits = "sh", "-c", "until [ -e go ]; do sleep 0.05; done"
    one("submit", "-J", "a", "--array", "1-8", *waits).ok()
    one("submit", "-J", "b", "--array", "1-8", *waits).ok()
    assert one("cancel", "--name", "a").ok().lines == ["8 tasks are cancelled"]
    assert one("cancel", "--name", "none").ok().lines == ["0 tasks are cancelled"]
    assert one("signal", "sigcont", "9-12").ok().lines == ["4 tasks were sent the signal"]
    assert one("cancel", "9-11,13", "16").ok().lines == ["5 tasks are cancelled"]
    wait_until(lambda: status(one)["running"] == 3 and status(one)["queued"] == 0)
    assert one("cancel", "5-", "1").code == one("cancel", "--all", "1").code == 2
    assert one("cancel", "1-9999999").says("are more than 1000000 tasks").code == 2


def test_cancel_and_signal_of_ended_tasks_fail(one):
    one("submit", "--wait", "--array", "1-3", "true").ok()
    one("submit", "sleep", "600").ok()
    for command in ["cancel", "2-3"], ["signal", "CONT", "2-3"]:
        result = one(*command)
        assert result.lines == ["2 tasks had already ended"]
        assert result.code == 1
    assert one("cancel", "3-4").ok().lines == ["1 task is cancelled", "1 task had already ended"]


def test_local_nodes_share_the_machine(dvm, env):
    dvm("up", "--local", "2").ok().says("the 2 nodes are all this machine and share its cores")
    dvm("down").ok()
    assert not dvm("up", "--local", "1").ok().stderr
    dvm("down").ok()
