# SPDX-License-Identifier: BSD-3-Clause
"""What users see of ended tasks: listings, lines about failures, files of results."""

import json
import os
import subprocess

import pytest

from dvms import dvm, env, local, one, there

__all__ = ["dvm", "env", "local", "one", "there"]

DIES = "echo first >&2; echo last >&2; kill -SEGV $$"
SIGNAL = "killed by signal 11 (Segmentation fault)"


@pytest.fixture
def small_disk(tmp_path):
    path = tmp_path / "disk"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path], check=False).returncode:
        pytest.skip("tmpfs cannot be mounted: only root may")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def text_of(result):
    return result.stdout + result.stderr


def test_all_ended_tasks_are_listed(one):
    """Also beside many tasks that wait."""
    one("submit", "--wait", "--quiet", "--array", "1-2500", "true").ok()
    one("submit", "--array", "1-1100", "sleep", "600").ok()
    tasks = json.loads(one("ps", "--ended", "--json").ok().stdout)["tasks"]
    assert sorted(t["id"] for t in tasks if t["state"] == "done") == list(range(1, 2501))
    assert one("ps", "--ended").ok().lines[-1] == "and 100 more: pmi2x-dvm show TASK, why TASK"
    assert one("cancel", "--all").ok().lines == ["1100 tasks are cancelled"]


def test_listings_have_command_and_end_of_errors(one, tmp_path):
    (tmp_path / "tasks").write_text(f"# comment\ntrue\n{DIES}\n")
    one("batch", "tasks").failed().says(f"task 2, line 3, failed: {SIGNAL}: {DIES}: last\n")
    listed = one("ps", "--ended").ok().stdout
    assert "line 2: true\n" in listed
    assert f"line 3: {DIES}\n" in listed
    assert f"{SIGNAL}: last\n" in listed
    shown = json.loads(one("show", "2").ok().stdout)
    assert (shown["argv"], shown["line"]) == (["/bin/sh", "-c", DIES], 3)
    why = one("why", "2").ok().stdout
    assert f"task 2: failed, {SIGNAL}: last" in why
    assert DIES in why


def test_wait_names_the_command_of_a_failure(one):
    one("submit", "sh", "-c", DIES).ok()
    one("wait").failed().says(f"task 1 failed: {SIGNAL}: sh -c {DIES}: last")


def test_run_names_the_signal(one):
    assert one("run", "sh", "-c", DIES).says(f"last\npmi2x-dvm: {SIGNAL}").code == 139


def test_report_of_submit_has_commands(one, tmp_path):
    one("submit", "--wait", "--report", "r", "sh", "-c", "exit $0", ":::", "0", "3").failed()
    found = [json.loads(line) for line in (tmp_path / "r").read_text().splitlines()]
    assert {(r["line"], r["command"], r["code"]) for r in found} == {
        (1, "sh -c exit $0 0", 0),
        (2, "sh -c exit $0 3", 3),
    }


# ---- bytes ----

# Escapes of a terminal: ESC, and CSI (U+009B) as UTF-8 and as one byte.
ESCAPES = r"printf 'gr\303\274n \033[31m \302\233 \233 \177' >&2; exit 3"
ESCAPED = r"grün \x1b[31m \xc2\x9b \x9b \x7f"


def test_escapes_in_output_do_not_reach_the_terminal(one):
    said = one("submit", "--wait", "-J", "a\x1b[1m\x9b", "sh", "-c", ESCAPES).failed().says(ESCAPED)
    listed = one("ps", "--ended").ok()
    assert ESCAPED in listed.stdout
    assert r"a\x1b[1m\xc2\x9b" in listed.stdout
    shown = one("show", "1").ok()
    why = one("why", "1").ok()
    for result in said, listed, shown, why, one("ps", "--ended", "--json").ok():
        assert not any(c in text_of(result) for c in "\x1b\x7f\x9b\ufffd")
    assert json.loads(shown.stdout)["err"] == "grün \x1b[31m \x9b \\x9b \x7f"


LATIN = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize("arguments", [
    ("run", "-J", LATIN, "true"),
    ("run", "-o", LATIN, "true"),
    ("run", "--counter", f"{LATIN}=1", "true"),
    ("up", "--local", "--name", LATIN),
    ("up", "--local", "--name", "x", "--journal", LATIN),
    ("drain", LATIN),
    ("shrink", LATIN),
    ("batch", "--local", "--journal", LATIN, "-"),
], ids=lambda a: a[0] + a[1][:4])  # fmt: skip
def test_text_that_json_cannot_carry_is_refused(one, arguments):
    assert one(*arguments).says("is not UTF-8 text").code == 2


def test_directory_that_json_cannot_carry_is_refused(one, tmp_path):
    (tmp_path / LATIN).mkdir()
    one("run", "true", cwd=tmp_path / LATIN).failed().says("working directory is not UTF-8 text")


# ---- files of results ----


def results(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_last_line_says_where_results_are(one, tmp_path):
    (tmp_path / "tasks").write_text("true\nfalse\n")
    said = one("batch", "tasks").failed().stderr
    assert said.splitlines()[-1] == f"results: {tmp_path}/tasks.results"
    said = one("submit", "--wait", "true").ok().stderr
    assert said.splitlines()[-1] == "results: pmi2x-dvm.local.3.results"


def test_results_of_standard_input_are_kept(one, tmp_path):
    said = one("batch", "-", stdin="echo x; false\ntrue\n").failed().stderr
    assert said.splitlines()[-1] == "results: pmi2x-dvm.local.1.results"
    found = {r["line"]: r["command"] for r in results(tmp_path / "pmi2x-dvm.local.1.results")}
    assert found == {1: "echo x; false", 2: "true"}


def test_results_of_an_earlier_dvm_are_kept(one, tmp_path):
    (tmp_path / "pmi2x-dvm.local.1.results").write_text("earlier\n")
    one("submit", "--wait", "true").ok()
    assert (tmp_path / "pmi2x-dvm.local.1.results.1").read_text() == "earlier\n"
    assert results(tmp_path / "pmi2x-dvm.local.1.results")[0]["command"] == "true"


# ---- complete output ----

LONG = "\n".join(map(str, range(5000))) + "\n"
PRINTS = "seq 0 4999"


def outputs(path):
    return {p.name: p.read_text() for p in path.iterdir()}


def test_output_that_is_longer_than_a_result_has_a_file(one, tmp_path):
    (tmp_path / "tasks").write_text(f"echo short\n\n{PRINTS}\n{PRINTS} >&2; echo few; false\n")
    said = one("batch", "tasks").failed().stderr
    assert said.splitlines()[-2] == f"complete output of 2 tasks with more than 4 KiB: {tmp_path}/tasks.outputs"
    assert outputs(tmp_path / "tasks.outputs") == {"3.out": LONG, "4.err": LONG}
    assert {r["line"]: r["files"] for r in results(tmp_path / "tasks.results") if "files" in r} == {
        3: [f"{tmp_path}/tasks.outputs/3.out"],
        4: [f"{tmp_path}/tasks.outputs/4.err"],
    }
    printed = one("output", "tasks", "1", "3", "4").ok()
    assert (printed.stdout, printed.stderr) == (f"short\n{LONG}few\n", LONG)
    assert one("output", "2").ok().stdout == LONG


def test_complete_output_of_an_earlier_run_is_kept(one, tmp_path):
    (tmp_path / "tasks").write_text(PRINTS + "\n")
    one("batch", "tasks").ok()
    one("batch", "--again", "tasks").ok()
    assert outputs(tmp_path / "tasks.outputs") == {"1.out": LONG, "1.1.out": LONG}


def test_print_prints_complete_output(one, tmp_path):
    for command in ("submit", "--wait", "--print", "seq", "0", "4999"), ("batch", "--print", "tasks"):
        (tmp_path / "tasks").write_text(PRINTS + "\n")
        assert one(*command).ok().stdout == LONG
    assert outputs(tmp_path / "pmi2x-dvm.local.outputs") == {"1.out": LONG}


def test_report_names_complete_output(one, tmp_path):
    one("submit", "--wait", "--report", "r", "seq", "0", "4999").ok().says("complete output of 1 task")
    [result] = results(tmp_path / "r")
    assert result["files"] == [f"{tmp_path}/pmi2x-dvm.local.outputs/1.out"]
    assert outputs(tmp_path / "pmi2x-dvm.local.outputs") == {"1.out": LONG}


def test_two_batches_of_one_dvm_have_their_own_output(one, tmp_path):
    for name in "a", "b":
        (tmp_path / name).write_text(f"{PRINTS}; echo {name}\n")
        one("batch", name).ok()
        assert outputs(tmp_path / f"{name}.outputs") == {"1.out": f"{LONG}{name}\n"}


def test_results_and_output_can_be_moved_together(one, tmp_path):
    (tmp_path / "tasks").write_text(PRINTS + "\n")
    one("batch", "tasks").ok()
    (tmp_path / "new").mkdir()
    for name in "tasks.results", "tasks.outputs":
        (tmp_path / name).rename(tmp_path / "new" / name)
    assert one("output", "new/tasks").ok().stdout == LONG


def test_lost_output_is_reported_and_its_end_is_kept(one, tmp_path):
    (tmp_path / "tasks").write_text(PRINTS + "\n")
    (tmp_path / "tasks.outputs").touch()  # no directory
    lost = "of the output of 1 task only the last 4 KiB are kept: Not a directory"
    one("batch", "tasks").ok().says(lost)
    assert one("output", "tasks").ok().says(lost).stdout == LONG[-4096:]
    assert one("output", "1").ok().says(lost).stdout == LONG[-4096:]


def test_full_disk_costs_the_output_and_not_the_task(one, tmp_path, small_disk):
    (tmp_path / "tasks").write_text("head -c 4000000 /dev/zero; echo ended\n")
    (tmp_path / "tasks.outputs").symlink_to(small_disk)
    one("batch", "tasks").ok().says("only the last 4 KiB are kept: No space left on device")
    assert one("output", "tasks").ok().stdout.endswith("ended\n")


def test_task_over_nodes_has_the_output_of_all_its_parts(local, tmp_path):
    over, said = ("-n", "2", "-N", "2"), "rank 0\nrank 1\n"
    assert local("submit", "--wait", "--print", *over, "sh", "-c", "echo rank $PMI2X_DVM_RANK").ok().stdout.endswith(said)
    assert outputs(tmp_path / "pmi2x-dvm.local.outputs") == {"1.r1.out": "rank 1\n"}
    assert local("output", "1").ok().stdout == said
    # Rank 1 fails, which ends rank 0, when both have printed.
    (tmp_path / "tasks").write_text(
        "echo rank $PMI2X_DVM_RANK; touch $PMI2X_DVM_RANK; until [ -e 0 ]; do sleep 0.02; done; exit $PMI2X_DVM_RANK\n"
    )
    local("batch", *over, "tasks").failed()
    assert local("output", "tasks").ok().stdout == said


def test_tasks_that_print_little_make_no_directory(one, tmp_path):
    one("submit", "--wait", "--array", "1-20", "echo").ok()
    assert not (tmp_path / "pmi2x-dvm.local.outputs").exists()
