# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm: output of tasks that nobody reads, or that has no end, harms no other task."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from dvms import dvm, env, living, one, there, wait_until

__all__ = ["dvm", "env", "one", "there"]

NOISY = 8
MEMORY = 64 << 20  # bytes of a head or a daemon, whatever tasks print
SIZE = 16 << 20


@pytest.fixture
def start(prefix, env):
    """Starts clients, and kills those that are left."""
    clients = []

    def start(*arguments, **more):
        command = [prefix / "bin/pmi2x-dvm", *arguments]
        clients.append(subprocess.Popen(command, env=env, **more))
        return clients[-1]

    yield start
    for client in clients:
        client.send_signal(signal.SIGCONT)
        client.kill()
        client.communicate()


def memory(env):
    """The largest resident size of a process of the DVM, in bytes."""
    found = []
    for pid in living(env["PMI2X_DVM_DIR"]):
        with contextlib.suppress(OSError):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            found += [int(x.split()[1]) * 1024 for x in status.splitlines() if x.startswith("VmHWM")]
    return max(found)


def reasons(dvm, task):
    """The reasons of a task that may not exist yet."""
    result = dvm("why", "--json", str(task))
    return [] if result.code else json.loads(result.stdout)["reasons"]


def running(dvm):
    return json.loads(dvm("status", "--json").ok().stdout)["running"]


def until_unread(dvm, task):
    return wait_until(lambda: [r for r in reasons(dvm, task) if "is not being read by" in r])


# ---- others ----


def test_tasks_whose_output_is_not_read_harm_no_other(dvm, env, start):
    dvm("up", "--local", "1", "--slots", str(NOISY + 1)).ok()
    clients = [start("run", "yes", stdout=subprocess.PIPE) for _ in range(NOISY)]
    until_unread(dvm, NOISY)
    begun = time.monotonic()
    assert dvm("run", "echo", "heard").ok().stdout == "heard\n"
    assert time.monotonic() - begun < 10  # an unbounded queue takes longer
    assert memory(env) < MEMORY
    for client in clients:
        client.kill()
    wait_until(lambda: not running(dvm))
    dvm("down").ok()


def test_reader_that_comes_back_gets_all(one, start):
    program = f"head -c {SIZE} /dev/zero | tr '\\0' x; echo end >&2"
    client = start("run", "sh", "-c", program, stdout=subprocess.PIPE)
    reason = until_unread(one, 1)
    assert f"process {client.pid}" in reason[0]
    out, _ = client.communicate(timeout=60)
    assert client.returncode == 0
    assert out == b"x" * SIZE


def test_end_of_a_task_does_not_wait_for_its_reader(one, start):
    """Bytes in the pipes at the end are sent beyond the window."""
    client = start("run", "head", "-c", str(SIZE), "/dev/zero", stdout=subprocess.PIPE)
    until_unread(one, 1)
    one("cancel", "1").ok()
    wait_until(lambda: not running(one))
    client.communicate(timeout=60)
    assert client.returncode == 128 + signal.SIGTERM


# ---- bytes ----


def test_bytes_of_any_kind_come_as_they_were_written(one, start, tmp_path):
    parts = bytes(range(256)) * 1000, os.urandom(1 << 20), b"text\n" * 50000, b"\0" * SIZE
    data = b"".join(parts)
    (tmp_path / "data").write_bytes(data)
    client = start("run", "cat", tmp_path / "data", stdout=subprocess.PIPE)
    out, _ = client.communicate(timeout=60)
    assert client.returncode == 0
    assert out == data


# ---- clients that are cut off ----

BATCH = 400


def up_with_limit(dvm, env, unread):
    """A DVM whose head keeps this many bytes for a client that does not read; half of a request."""
    env["PMI2X_DVM_UNREAD"] = str(unread)
    dvm("up", "--local", "1", "--slots", "4").ok()
    yield dvm
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


@pytest.fixture
def impatient(dvm, env):
    yield from up_with_limit(dvm, env, 256 << 10)


@pytest.fixture
def small(dvm, env):
    yield from up_with_limit(dvm, env, 16 << 20)


def test_client_that_is_cut_off_says_so(impatient, start, tmp_path):
    program = f"head -c 4096 /dev/zero | tr '\\0' x; until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    submit = "submit", "--wait", "--array", f"1-{BATCH}", "sh", "-c", program, "{}"
    client = start(*submit, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    wait_until(lambda: running(impatient) == 4)
    client.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    impatient("wait")
    client.send_signal(signal.SIGCONT)
    _, err = client.communicate(timeout=60)
    assert client.returncode == 1
    assert "the head closed this connection: it did not read its output and results" in err
    assert "the DVM has ended" not in err


def send_much(client):
    with contextlib.suppress(OSError):
        for _ in range(20):
            client.sendall(b"x" * (1 << 20))


def test_request_that_is_too_large_is_answered(small, env):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{env['PMI2X_DVM_DIR']}/local/head.sock")
        sender = threading.Thread(target=send_much, args=[client], daemon=True)
        sender.start()
        line = client.makefile("rb").readline()
        sender.join()
    event = json.loads(line)
    assert event["ev"] == "closed"
    assert "a request has more than 8 MiB" in event["why"]


# ---- requests ----

LARGE = "x" * 100000
MANY = 50  # tasks with three of these each are more than a request of 8 MiB


def test_tasks_with_large_arguments_are_sent_in_parts(small, tmp_path):
    line = json.dumps({"argv": ["true", LARGE, LARGE, LARGE]})
    (tmp_path / "tasks").write_text(f"{line}\n" * MANY)
    result = small("submit", "--wait", "--json", tmp_path / "tasks").ok()
    result.says(f"{MANY} tasks")


def test_python_sends_tasks_with_large_arguments_in_parts(small, prefix, env):
    program = f"""
import pmi2x_dvm
with pmi2x_dvm.connect() as dvm:
    assert not any(r.code for r in dvm.map([["true"] + ["{LARGE}"] * 3] * {MANY}))
"""
    subprocess.run(
        [sys.executable, "-c", program],
        env={**env, "PYTHONPATH": str(prefix / "share/pmi2x/python")},
        check=True,
    )


@pytest.mark.parametrize("command", [("batch", "-"), ("submit", "--wait", "--json", "-")])
def test_line_of_a_slow_pipe_starts_at_once(one, start, tmp_path, command):
    client = start(*command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    for name in "first", "second":
        line = f"touch {tmp_path}/{name}"
        if "--json" in command:
            line = json.dumps({"argv": line.split()})
        client.stdin.write(line + "\n")
        client.stdin.flush()
        wait_until((tmp_path / name).exists)
    client.communicate(timeout=60)
    assert client.returncode == 0
