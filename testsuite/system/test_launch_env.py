# SPDX-License-Identifier: BSD-3-Clause
"""What slurmstepd makes of the variables by which srun prepares a step, changed on
the way as a modified srun may do it."""

import pathlib
import re
import socket

import pytest

from harness import wait_until

NODES = 2
FORGED = "slurmstepd:error:forged"  # SPANK takes blanks for ends of words


@pytest.fixture
def changed(spank_cluster, plugstack, compile_spank, raw, only_pmi2x):
    """Run a step whose slurmstepds get these variables."""
    plugin = compile_spank("programs/spank-env.c")

    def start(*changes):
        plugstack.write_text(f"required {plugin} {' '.join(changes)}\n")
        return spank_cluster.srun(f"-N{NODES}", "-n4", *raw("exchange", "2"))

    return start


def logs(cluster):
    return [
        line
        for path in (cluster.dir / "log").iterdir()
        for line in path.read_text(errors="replace").splitlines()
    ]


@pytest.mark.parametrize(
    "change", ["PMI2X_SECRET", f"PMI2X_SECRET={'00' * 32}", "PMI2X_PORT_SEED"]
)
def test_no_secret(changed, change):
    """Zeros are not a secret either."""
    changed(change).failed().says("srun has not prepared this step")


DAMAGED = {
    "PMI2X_SECRET": ["", "12", "x" * 64],
    "PMI2X_PORT_SEED": ["", "0", "-1", "18446744073709551616"],
    "PMI2X_PREPUT": ["0", "0g"],
}


@pytest.mark.parametrize(
    "name, value", [(name, value) for name in DAMAGED for value in DAMAGED[name]]
)
def test_damaged(changed, name, value):
    """Records count in a spawned step only."""
    result = changed(f"{name}={value}", "PMI2X_SPAWNER_JOBID=1.0").failed()
    result.says(f"the value of {name} in the step's environment is damaged")


def test_another_step(changed, spank_cluster):
    """What belongs to that step stays."""
    changed("PMI2X_RUN=1").ok()
    script = ["sh", "-c", "echo $SLURM_JOB_ID.$SLURM_STEP_ID; exec sleep 1000"]
    with spank_cluster.start("srun", "--mpi=pmi2x", f"-N{NODES}", *script) as other:
        name = other.stdout.readline().strip()
        paths = list(spank_cluster.dir.glob("spool/*/pmi2x-*"))
        assert len(paths) == NODES
        result = changed(f"PMI2X_STEP_JOBID={name}", "PMI2X_RUN=1").failed()
        result.says(f"and the environment says that it is step {name}")
        for path in paths:
            with socket.socket(socket.AF_UNIX) as visitor:
                visitor.connect(str(path))
        other.terminate()


@pytest.mark.parametrize("name", ["PMI2X_STEP_JOBID", "PMI2X_SPAWNER_JOBID"])
@pytest.mark.parametrize(
    "value", [f"1.0%n{FORGED}", "../1.0", "1", "1.0.0", "4294967296.0"]
)
def test_no_name_of_a_step(changed, spank_cluster, name, value):
    result = changed(f"{name}={value}").failed()
    result.says(f"the value of {name} in the step's environment is damaged")
    assert not [l for l in logs(spank_cluster) if l.startswith(FORGED)]
    assert FORGED not in result.stderr


# ---- what is left of the secret ----


def mappings(pid):
    """[(first, end, its flags)] of what a process may write."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if match := re.match("([0-9a-f]+)-([0-9a-f]+) rw", line):
            found.append([int(match[1], 16), int(match[2], 16), ""])
        elif re.match("[0-9a-f]+-", line):
            found.append([0, 0, ""])
        elif line.startswith("VmFlags:"):
            found[-1][2] = line
    return [mapping for mapping in found if mapping[1]]


def memory_of(pid):
    """What a process has written, as far as it would be in a core dump."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for first, end, flags in mappings(pid):
            if " dd" not in flags:
                memory.seek(first)
                yield memory.read(end - first)


@pytest.fixture
def sleeping(spank_cluster, kind, only_pmi2x):
    """The slurmstepd of a step that does nothing."""
    command = ["srun", f"--mpi={kind}", "-N2", "sh", "-c", "echo up; sleep 100"]
    srun = spank_cluster.start(*command, stderr=None)
    assert srun.stdout.readline() == "up\n"
    yield wait_until(lambda: spank_cluster.step_daemon("n1"))
    srun.terminate()
    srun.communicate(timeout=60)


def test_no_secret_in_a_core_dump(sleeping):
    text = re.compile(rb"PMI2X_SECRET=[0-9a-f]{64}")
    found = [text.findall(part) for part in memory_of(sleeping)]
    assert found and not any(found)
    assert any(" dd" in flags for _, _, flags in mappings(sleeping))
