# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm --output, --error and --append: whose files tasks write to."""

import collections

import pytest

from dvms import dvm, env, one, there

__all__ = ["dvm", "env", "one", "there"]

BOTH = "echo out; echo err >&2"


def test_output_and_error_have_files(one, tmp_path):
    one("submit", "--wait", "-o", "a/%t/out", "-e", "b/{}/%t.err", "sh", "-c", BOTH, ":::", "x", "y").ok()
    for task, value in ("1", "x"), ("2", "y"):
        assert (tmp_path / "a" / task / "out").read_text() == "out\n"
        assert (tmp_path / "b" / value / f"{task}.err").read_text() == "err\n"


def test_error_alone_leaves_output(one, tmp_path):
    said = one("run", "-e", "err", "sh", "-c", BOTH).ok()
    assert (said.stdout, said.stderr) == ("out\n", "")
    assert (tmp_path / "err").read_text() == "err\n"
    one("run", "--no-output", "-e", "err2", "sh", "-c", BOTH).ok()
    assert (tmp_path / "err2").read_text() == "err\n"


def test_one_file_for_both_loses_nothing(one, tmp_path):
    one("run", "-o", "log", "-e", "log", "sh", "-c", f"{BOTH}; {BOTH}").ok()
    assert (tmp_path / "log").read_text() == "out\nerr\nout\nerr\n"
    one("run", "-o", "log", "true").ok()
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize("more", [("-n", "3"), ("--retries", "2")])
def test_several_writers_of_one_task_lose_nothing(one, tmp_path, more):
    one("run", "-o", "log", *more, "sh", "-c", "echo $PMI2X_DVM_RANK.$PMI2X_DVM_INSTANCE; [ $1 = -n ]", "-", more[0])
    expected = ["0.0", "1.0", "2.0"] if more[0] == "-n" else ["0.0", "0.1", "0.2"]
    assert sorted((tmp_path / "log").read_text().split()) == expected


def test_tasks_append_to_one_file(one, tmp_path):
    line = "x" * 100
    (tmp_path / "log").write_text("before\n")
    one("submit", "--wait", "--append", "-o", "log", "--array", "1-40", "sh", "-c",
        f"for i in 1 2 3 4 5; do echo $0 {line}; done").ok()  # fmt: skip
    lines = collections.Counter((tmp_path / "log").read_text().splitlines())
    assert lines == {"before": 1, **{f"{k} {line}": 5 for k in range(1, 41)}}


@pytest.mark.parametrize("arguments", [
    ("submit", "-o", "log", "--array", "1-2", "true"),
    ("submit", "-e", "log", "true", ":::", "a", "b"),
    ("submit", "-o", "log.%r.%%t", "--each-line", "/dev/null", "true"),
    ("submit", "-o", "log", "--json", "/dev/null"),
    ("batch", "-o", "log.{}", "/dev/null"),
], ids=" ".join)  # fmt: skip
def test_one_file_for_many_tasks_is_refused(one, arguments, tmp_path):
    said = one(*arguments).says("all tasks would write to one file")
    assert said.code == 2
    assert "%t" in said.stderr
    one(arguments[0], "--append", *arguments[1:]).ok()


def test_equal_values_do_not_share_a_file(one, tmp_path):
    words = "submit", "--wait", "-o", "{1}.out", "sh", "-c", "echo {1} {2}"
    said = one(*words, ":::", "a", "b", ":::", "1", "2").failed()
    said.says(f"task 2 is rejected: path: task 1 writes {tmp_path}/a.out, too: add %t to the name, or give --append")
    said.says("2 tasks: 2 done, 0 failed, 2 refused")
    assert (tmp_path / "a.out").read_text() == "a 1\n"
    one(*words[:2], "--append", *words[2:], ":::", "b", "b", ":::", "3").ok()
    assert (tmp_path / "b.out").read_text() == "b 1\nb 3\nb 3\n"
    for kept in ("-o", "/dev/null"), ("-o", "{}.%t"), ("-o", "{#}", "-e", "{#}"):
        one("submit", "--wait", *kept, "true", ":::", "a", "a").ok()
    line = '{"argv": ["true"], "error": "e"}\n'
    said = one("submit", "--wait", "--json", "-", stdin=line * 2).failed()
    said.says(f"line 2 of - is rejected: error: line 1 writes {tmp_path}/e, too")


@pytest.mark.parametrize("option", ["-o", "-e"])
@pytest.mark.parametrize("name", ["50%_x", "log.%j", "log%"])
def test_unknown_word_is_refused(one, option, name):
    assert one("run", option, name, "true").says('unknown "%').code == 2


def test_unknown_word_in_json_is_refused(one):
    text = '{"argv": ["true"], "path": "/tmp/log.%j"}\n'
    one("submit", "--wait", "--json", "-", stdin=text).failed().says('unknown "%j"')


def test_file_that_cannot_be_written_is_named(one, tmp_path):
    (tmp_path / "file").write_text("")
    one("run", "-o", "file/%t", "true").failed().says("--output: cannot make")
    text = f'{{"argv": ["true"], "error": "{tmp_path}/file/%t"}}\n'
    one("submit", "--wait", "--json", "-", stdin=text).failed().says(f"cannot write {tmp_path}/file/1")


# ---- output TASK ----


def test_output_is_printed_from_result_or_files(one):
    one("submit", "--wait", "sh", "-c", BOTH).ok()
    one("submit", "--wait", "-o", "%t.%r", "-n2", "sh", "-c", BOTH).ok()
    one("submit", "--wait", "--no-output", "-e", "e", "sh", "-c", BOTH).ok()
    said = one("output", "1").ok()
    assert (said.stdout, said.stderr) == ("out\n", "err\n")
    said = one("output", "2").ok()
    assert (said.stdout, said.stderr) == ("out\nout\n", "err\nerr\n")
    said = one("output", "3").ok()
    assert (said.stdout, said.stderr) == ("", "err\n")


def test_output_of_lines_is_printed_without_a_dvm(dvm, tmp_path):
    good = tmp_path / "good"
    lines = [f"echo out {i}; echo err {i} >&2; [ {i} != 3 ] || [ -e {good} ]" for i in range(1, 6)]
    (tmp_path / "tasks").write_text("# a comment\n" + "\n".join(lines) + "\n")
    dvm("output", "tasks").failed().says("has no such results")
    dvm("batch", "--local", "tasks").failed()
    said = dvm("output", "tasks").ok()
    assert said.stdout == "".join(f"out {i}\n" for i in range(1, 6))
    assert said.stderr == "".join(f"err {i}\n" for i in range(1, 6))
    assert dvm("output", "--failed", "tasks.results").ok().stdout == "out 3\n"
    assert dvm("output", "tasks", "2", "5-6").ok().lines == ["out 1", "out 4", "out 5"]
    dvm("output", "tasks", "1").failed().says("has no such results")
    assert dvm("output", "tasks", "x").says('"x" is no number of a line').code == 2
    good.touch()
    dvm("batch", "--local", "--retry-failed", "tasks").ok()
    assert dvm("output", "tasks").ok().stdout == said.stdout
    dvm("output", "none").failed().says("cannot read none")


def test_output_says_that_more_was_printed(one):
    one("submit", "sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x; echo; echo y >&2").ok()
    one("wait").ok()
    said = one("output", "1").ok().says("only the last 4096 bytes of standard output are kept")
    assert said.stdout == 4095 * "x" + "\n"
    assert said.stderr.endswith("keeps all\ny\n")


def test_output_of_task_that_runs_is_refused(one):
    one("submit", "sleep", "600").ok()
    one("output", "1").failed().says("its output is kept when it has ended")
    one("cancel", "1").ok()
    one("output", "2").failed().says("there is no task 2")
