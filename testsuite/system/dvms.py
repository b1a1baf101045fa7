# SPDX-License-Identifier: BSD-3-Clause
"""DVMs for tests of pmi2x-dvm: on this machine, each with directories of its own."""

import contextlib
import json
import os
import pathlib
import signal
import time

import pytest

from harness import run

LOCAL_NODES = 2
SLOTS = 4
PROCESSES = ("pmi2x-dvm-head", "pmi2x-dvmd", "pmi2x-dvm-zygot", "pmi2x-output", "pmi2x-dvm-warm")


@pytest.fixture(scope="module", autouse=True)
def there(prefix):
    if not (prefix / "bin/pmi2x-dvm").exists():
        pytest.skip("pmi2x-dvm was not built: libjansson-dev is missing")


@pytest.fixture
def env(base):
    """The environment of commands whose DVMs are this test's alone."""
    return {**os.environ, "PMI2X_DVM_DIR": str(base)}


@pytest.fixture
def dvm(prefix, env, tmp_path):
    """A command, in the test's directory: submit --wait leaves results there."""

    def command(*arguments, cwd=tmp_path, **more):
        return run([prefix / "bin/pmi2x-dvm", *arguments], env=env, cwd=cwd, **more)

    return command


def living(base):
    """Processes of DVMs whose directory, or whose head's, is below this one."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = (path / "comm").read_text().strip()
            state = (path / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if name in PROCESSES and state != "Z":
                env = (path / "environ").read_bytes()
                if f"PMI2X_DVM_DIR={base}\0".encode() in env:
                    found[int(path.name)] = name
    return found


def up_here(dvm, env, nodes):
    dvm("up", "--local", str(nodes), "--slots", str(SLOTS)).ok()
    yield dvm
    dvm("down", "--cancel")
    wait_until(lambda: not living(env["PMI2X_DVM_DIR"]))


@pytest.fixture
def local(dvm, env):
    """A DVM of this machine's, which leaves nothing behind."""
    yield from up_here(dvm, env, LOCAL_NODES)


@pytest.fixture
def one(dvm, env):
    """A DVM of one node."""
    yield from up_here(dvm, env, 1)


def wait_until(true, seconds=30):
    limit = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < limit
        time.sleep(0.05)
    return value


def status(dvm):
    return json.loads(dvm("status", "--json").ok().stdout)


def kill_one(env, name):
    pid = next(p for p, n in living(env["PMI2X_DVM_DIR"]).items() if n == name)
    os.kill(pid, signal.SIGKILL)
