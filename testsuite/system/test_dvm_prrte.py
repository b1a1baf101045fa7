# SPDX-License-Identifier: BSD-3-Clause
"""Commands of PRRTE for workflow engines, which start a DVM and its tasks by them."""

import contextlib
import os
import signal
import subprocess

import pytest

from conftest import wheel
from dvms import dvm, env, living, there, wait_until
from engines import RADICAL, radical_resource
from harness import run
from test_dvm_batch import heed_signals

__all__ = ["dvm", "env", "there"]

pytestmark = pytest.mark.usefixtures("only_pmi2x")

# As RADICAL-Pilot gives them.
PRTE = "--pmixmca ptl_base_max_msg_size 1073741824 --prtemca routed_radix 1 --prtemca plm_rsh_num_concurrent 1"
PRUN = "--np {} --map-by node:HWTCPUS:PE=2:OVERSUBSCRIBE --bind-to hwthread:overload-allowed --host {} --pmixmca ptl_base_max_msg_size 1073741824 --verbose"


@pytest.fixture
def variables(dvm, env):
    return {**env, "PATH": f"{dvm('engines').ok().stdout.strip()}:{env['PATH']}"}


@pytest.fixture
def command(variables, tmp_path):
    return lambda *words: run(words, env=variables, cwd=tmp_path)


@pytest.fixture
def prte(variables, tmp_path):
    """The process of a prte on this machine, which is ready."""
    (tmp_path / "hosts").write_text("localhost slots=4\n")
    words = ["stdbuf", "-oL", "prte", "--report-uri", "uri", "--hostfile", "hosts", *PRTE.split()]
    process = subprocess.Popen(
        words, env=variables, cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        preexec_fn=heed_signals)  # fmt: skip
    assert process.stdout.readline().startswith("DVM prte-")
    assert process.stdout.readline() == "DVM ready\n"
    yield process
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    process.wait()
    wait_until(lambda: not living(variables["PMI2X_DVM_DIR"]))


@pytest.fixture
def uri(prte, tmp_path):
    return (tmp_path / "uri").read_text().strip()


def test_prun_runs_tasks_of_the_dvm(prte, uri, command, dvm):
    """The rank that fails ends the other one, so it waits for that."""
    script = (
        "echo $PMIX_RANK; [ $PMIX_RANK = 0 ] || exec touch said; "
        "until [ -e said ]; do sleep 0.01; done; exit 7"
    )
    options = PRUN.format(2, f"{os.uname().nodename}:2").split()
    result = command("prun", "--dvm-uri", uri, *options, "sh", "-c", script)
    assert sorted(result.lines) == ["0", "1"]
    assert result.code == 7
    assert command("prun", "--dvm-uri", "file:uri", "-n", "1", "true").ok()
    assert "ended (1 failed)" in dvm("status").ok().stdout
    assert command("pterm", "--dvm-uri", uri).ok()
    assert prte.wait(30) == 0
    assert command("pterm", "--dvm-uri", uri).code == 1


def test_unknown_option_of_prun_is_named(command):
    for name in "prun", "prte", "pterm":
        result = command(name, "--no-such", "true")
        assert result.code == 2
        assert f"{name}: there is no option --no-such" in result.stderr


def test_daemons_have_no_library_of_stdbuf(prte, variables):
    for pid in living(variables["PMI2X_DVM_DIR"]):
        with open(f"/proc/{pid}/environ") as file:
            assert not {"LD_PRELOAD", "_STDBUF_O"} & {v.split("=")[0] for v in file.read().split("\0")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_dvm_ends_with_prte(prte, variables, number):
    prte.send_signal(number)
    assert prte.wait(30) == (-number if number == signal.SIGKILL else 0)
    wait_until(lambda: not living(variables["PMI2X_DVM_DIR"]))


def test_prte_survives_its_parent(variables, tmp_path, command):
    """No reader is left of its output, and no process of its session."""
    script = "prte --report-uri uri & until [ -s uri ]; do sleep 0.05; done"
    with subprocess.Popen(["sh", "-c", script], env=variables, cwd=tmp_path, text=True,
                          start_new_session=True, stdout=subprocess.PIPE) as parent:  # fmt: skip
        assert parent.wait(30) == 0
    assert command("prun", "--dvm-uri", "file:uri", "-n", "1", "echo", "runs").ok().lines == ["runs"]
    command("pterm", "--dvm-uri", "file:uri").ok()
    wait_until(lambda: not living(variables["PMI2X_DVM_DIR"]))


def test_wrong_hosts_of_prte_are_refused(command, tmp_path):
    for text, why in [
        ("localhost slots=1\nother slots=1", "host other is another machine"),
        ("a slots=1\nb slots=2", "same number of slots"),
        ("a slots=x", 'host a has "slots=x"'),
        ("# none", "names no host"),
    ]:
        (tmp_path / "hosts").write_text(text)
        result = command("prte", "--hostfile", "hosts")
        assert result.code == 1
        assert why in result.stderr


def test_prte_takes_hosts_of_the_job(in_allocation, tmp_path):
    (tmp_path / "hosts").write_text("n2 slots=3\nn3 slots=3\n")
    script = (
        f"cd {tmp_path}; PATH=$(pmi2x-dvm engines):$PATH;"
        "prte --daemonize --report-uri uri --hostfile hosts --no-ready-msg;"
        "prun --dvm-uri file:uri -n 3 --host n3:2,n2:1 sh -c 'echo rank $PMIX_RANK $SLURMD_NODENAME';"
        "prun --dvm-uri file:uri -n 1 --host n1:1 true; echo rc $?"
    )
    result = in_allocation(3, script).ok()
    assert sorted(line.split()[1] for line in result.lines if line.startswith("rank")) == ["0", "1", "2"]
    assert "rc 1" in result.lines


@pytest.mark.wide
def test_radical_pilot_uses_commands_of_prrte(build, in_allocation, prefix, tmp_path):
    environment = wheel(build, "venv-radical-1.102")
    radical_resource(tmp_path, prefix, environment, "PRTE")
    (tmp_path / "script.py").write_text(RADICAL)
    result = in_allocation(
        2,
        f"cd {tmp_path}; export HOME=$PWD RADICAL_BASE=$PWD PATH={environment}/bin:$PATH;"
        "python -B script.py; echo rc $?",
        timeout=500,
    ).ok()
    assert "states {'DONE'}" in result.lines
    assert f"ranks {[str(i) for i in range(8)]}" in result.lines
    assert "rc 0" in result.lines
