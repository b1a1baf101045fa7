# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch without an address in a script: PMI2X_TORCH, with Debian's python3-torch and
with clients that speak the protocol of its TCPStore themselves."""

import os
import re
import subprocess

import pytest

from faulty import daemon
from harness import STEP_S, stopped, wait_until

STORE, TREE = {"PMI2X_TORCH": "store"}, {"PMI2X_TORCH": "tree"}
RELEASES = ["1.13", "2.6"]
# The agent of root's step may not look at processes with capabilities, which it lacks.
ORDINARY = ["setpriv", "--bounding-set=-all"] if os.getuid() == 0 else []

pytestmark = pytest.mark.usefixtures("only_pmi2x")


@pytest.fixture(scope="module")
def torch():
    """PyTorch of Debian."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("no python3-torch")


@pytest.fixture
def train(srun, raw, torch):
    """Run a script of PyTorch on two nodes, with the Python that has it. Each process
    takes seconds of processor time to load it."""
    script = raw("torch-train")[2]

    def start(*argv, env=STORE):
        layout = ["-N2", "--ntasks-per-node=2"]
        return srun(*layout, "/usr/bin/python3", script, *argv, env=env)

    return start


@pytest.fixture
def client(srun, raw):
    def start(release, what, ranks=8, env=STORE):
        layout = ["-N4", f"-n{ranks}", "--distribution=cyclic"]
        return srun(*layout, *raw("tcpstore", release, what), env=env)

    return start


def trained(result):
    return sorted(line for line in result.lines if line.startswith("trained"))


@pytest.mark.parametrize("mode", ["env", "store", "tree"])
def test_script_trains_without_an_address(train, mode):
    """Rank 0 has the server with env, the agent of the first node with store, and that of
    each node with tree."""
    result = train("all", env={"PMI2X_TORCH": mode}).ok()
    assert trained(result) == [
        f"trained {rank} of 4, {rank % 2} of 2" for rank in range(4)
    ], result


@pytest.mark.wide
def test_torchrun_meets_at_the_port_that_is_kept(srun, raw, torch):
    """A task a node, each of which starts two processes with ranks of their own."""
    script = raw("torch-train")[2]
    command = (
        # 1.13 fails with Python 3.11 without --redirects and --tee: nothing but the output of workers.
        "/usr/bin/python3 -m torch.distributed.run --redirects=2 --tee=1 "
        "--nnodes=$WORLD_SIZE --nproc_per_node=2 "
        "--rdzv_id=$SLURM_JOB_ID.$SLURM_STEP_ID --rdzv_backend=c10d "
        f"--rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT {script} all"
    )
    env = {"PMI2X_TORCH": "env"}
    result = srun("-N2", "-n2", "sh", "-c", command, env=env, timeout=3 * STEP_S).ok()
    assert len(re.findall("trained [0-3] of 4, [01] of 2", result.stdout)) == 4, result


@pytest.fixture
def jax():
    """A Python that has JAX, which Debian has not."""
    python = os.environ.get("PMI2X_TEST_JAX", "/usr/bin/python3")
    if subprocess.run([python, "-c", "import jax"], capture_output=True).returncode:
        pytest.skip("no Python with jax: PMI2X_TEST_JAX names it")
    return python


@pytest.mark.wide
def test_two_programs_of_jax_meet_at_once_without_an_address(cluster, srun, raw, jax):
    command = ["-N2", "--ntasks-per-node=2", jax, raw("jax-initialize")[2]]
    env = {"PMI2X_TORCH": "env", "JAX_PLATFORMS": "cpu"}
    other = cluster.start("srun", "--mpi=pmi2x", *command, env=env)
    result = srun(*command, env=env, timeout=3 * STEP_S).ok()
    met = sorted(line for line in result.lines if line.startswith("met"))
    assert met == [f"met {rank} of 4" for rank in range(4)], result
    assert other.wait(3 * STEP_S) == 0, other.stderr.read()


def test_operations_answer_as_those_of_torch(srun, raw, torch, tmp_path):
    """The real client of torch, with torch's own server and with those of agents. Two of
    the four ranks share a node."""
    script = raw("torch-operations")[2]
    found = {}
    for mode in "env", "store", "tree":
        directory = tmp_path / mode
        directory.mkdir()
        layout = ["-N3", "-n4"]
        srun(*layout, "/usr/bin/python3", script, directory, env={"PMI2X_TORCH": mode}).ok()
        found[mode] = {path.name: path.read_text().splitlines() for path in directory.iterdir()}
    assert len(found["env"]) == 4
    assert len(found["env"]["rank-0"]) > 25, found
    assert found["store"] == found["tree"] == found["env"]


@pytest.mark.parametrize("env", [STORE, TREE])
def test_rank_that_dies_ends_the_training(train, env):
    result = train("dies", env=env).failed()
    assert not trained(result), result


@pytest.mark.parametrize("env", [STORE, TREE])
@pytest.mark.parametrize("release", RELEASES)
def test_every_operation_is_answered_as_torch_does(client, release, env):
    result = client(release, "all", env=env).ok()
    assert result.lines.count("done all") == 8, result


@pytest.mark.parametrize("release", RELEASES)
def test_client_that_dies_in_wait_holds_up_nobody(client, release):
    client(release, "dies").ok()


@pytest.mark.parametrize("env", [STORE, TREE])
def test_rank_that_fails_ends_the_waits_of_others_by_name(srun, raw, env):
    """Also on a node where nobody has used PMI or pmi2x-sync."""
    argv = [*ORDINARY, *raw("tcpstore", "1.13", "fails")]
    result = srun("-N4", "--ntasks-per-node=2", *argv, env=env).failed()
    result.says("rank 7 (node n4) exited with exit code 5, and other ranks use the TCPStore")
    waits = r"; key never: \d+ s, ranks? [0-6 ,-]+ \(nodes? n[n1-4 ,]+\) waits? for it"
    assert re.search(waits, result.stderr), result
    assert result.code == 5, result


def test_rank_that_fails_ends_the_waits_of_nodes_other_than_the_first(srun, raw, tmp_path):
    """With tree, no rank of the first node has connected."""
    os.mkfifo(tmp_path / "gate")
    argv = [*raw("tcpstore", "1.13", "apart"), tmp_path / "gate"]
    result = srun("-N4", "--ntasks-per-node=2", *argv, env=TREE).failed()
    result.says("rank 7 (node n4) exited with exit code 5, and other ranks use the TCPStore")
    assert result.code == 5, result


def test_ranks_are_named_for_a_key_that_is_missing(cluster, raw, prefix, tmp_path):
    """By srun and by pmi2x why: rank 0 computes, rank 3 has never connected, and the others wait."""
    os.mkfifo(tmp_path / "gate")
    program = " ".join(map(str, raw("tcpstore", "1.13", "late")))
    script = f"[ $RANK != 3 ] || read gate <{tmp_path}/gate; exec {program} {tmp_path}/gate"
    argv = ["srun", "--mpi=pmi2x", "-J", "torch-waits", "-N4", "-n4", *ORDINARY, "sh", "-c", script]
    step = cluster.start(*argv, env={**STORE, "PMI2X_STALL_REPORT": "1"})
    waits = (r"key late: \d+ s, ranks 1-2 \(nodes n2, n3\) wait for it, and it has no value; "
             r"rank 0 \(node n1\) is connected, and does not wait; "
             r"rank 3 \(node n4\) is not connected to the TCPStore")
    said = next((line for line in step.stderr if re.search(waits, line)), "")
    job = cluster.run("squeue", "-h", "-o", "%i", "-n", "torch-waits").lines[0]
    shown = cluster.run(prefix / "bin" / "pmi2x", "why", f"{job}.0").ok().stdout
    for _ in range(2):
        (tmp_path / "gate").write_text("go\n")
    assert step.wait(60) == 0, step.stderr.read()
    assert said and re.search(f"^{waits}$", shown, re.M), (said, shown)
    for line in (
        r"ranks 1-2 \(2 nodes\): python3 is in recvfrom of a socket \(waits for the TCPStore\)",
        r"rank 0 \(node n1\): python3 is in openat of .*/gate .*"
        r"\(connected to the TCPStore, and does not wait for it\)",
        r"rank 3 \(node n4\): sh is in openat of .*/gate .*\(not connected to the TCPStore\)",
    ):
        assert re.search(f"^{line}$", shown, re.M), (line, shown)


def test_mixed_releases_are_closed_by_name(client, cluster):
    client("1.13", "mixed", ranks=4).ok()
    assert "two releases share a connection" in cluster.log_of("n1")


def test_value_over_the_limit_is_closed_by_name(client, cluster):
    client("2.6", "big", ranks=4).ok()
    assert "a value of 8388609 bytes, and 8388608 are allowed" in cluster.log_of("n1")


def test_client_that_connects_again_and_again_does_not_fill_the_log(client, cluster):
    """MPI's messages in the same log have a limit of lines, too."""
    before = cluster.log_of("n1").count("closed a connection to the TCPStore")
    client("2.6", "unknown", ranks=1).ok()
    wait_until(lambda: "closed 240 more connections to the TCPStore" in cluster.log_of("n1"))
    assert cluster.log_of("n1").count("closed a connection to the TCPStore") - before == 16


@pytest.mark.parametrize("env", [STORE, TREE])
def test_process_of_another_user_is_refused(client, cluster, env):
    client("1.13", "stranger", ranks=1, env=env).ok()
    assert "a process of another user" in cluster.log_of("n1")


def environment(result):
    return dict(line.split("=", 1) for line in result.lines if "=" in line)


def test_variables_are_set_where_the_job_has_not(srun):
    env = {**STORE, "LOCAL_RANK": "7"}
    got = environment(srun("-N2", "-n2", "sh", "-c", "[ $SLURM_PROCID = 0 ] || env", env=env).ok())
    assert got["RANK"] == got["GROUP_RANK"] == "1" and got["WORLD_SIZE"] == "2"
    assert got["LOCAL_RANK"] == "7" and got["LOCAL_WORLD_SIZE"] == "1"
    assert got["TORCHELASTIC_USE_AGENT_STORE"] == "True"
    assert got["TORCHELASTIC_RESTART_COUNT"] == "0"
    assert got["JAX_COORDINATOR_ADDRESS"].startswith(got["MASTER_ADDR"] + ":")
    assert got["JAX_COORDINATOR_ADDRESS"] != got["MASTER_ADDR"] + ":" + got["MASTER_PORT"]


def test_all_nodes_have_the_ports_of_the_first(srun):
    lines = srun("-N4", "-n8", "sh", "-c", "echo $MASTER_PORT $JAX_COORDINATOR_ADDRESS", env=STORE).ok().lines
    assert len(lines) == 8 and len(set(lines)) == 1, lines


def test_each_node_serves_its_tasks_with_tree(srun):
    script = "echo $SLURM_NODEID $MASTER_ADDR $MASTER_PORT $JAX_COORDINATOR_ADDRESS"
    lines = srun("-N4", "-n8", "sh", "-c", script, env=TREE).ok().lines
    nodes, addresses, ports, jax = zip(*map(str.split, lines))
    assert set(addresses) == {"127.0.0.1"} and len(set(jax)) == 1, lines
    assert len(set(ports)) == len(set(nodes)) == len(set(zip(nodes, ports))), lines


def test_rank_that_fails_ends_no_step_that_does_not_use_the_store(srun, prefix):
    """Pmi2xTorch=store may be the default of a site."""
    sync = f"{prefix}/bin/pmi2x-sync barrier"
    script = f"[ $SLURM_PROCID != 3 ] || exit 5; {sync} || echo barrier $?"
    result = srun("-N4", "-n4", "sh", "-c", script, env=STORE).failed()
    assert result.lines == ["barrier 3"] * 3, result


def test_address_of_the_job_stays(srun):
    env = {**STORE, "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "29500"}
    result = srun("-N2", "-n2", "env", env=env).ok()
    got = environment(result)
    assert got["MASTER_ADDR"] == "192.0.2.1" and got["MASTER_PORT"] == "29500"
    assert "TORCHELASTIC_USE_AGENT_STORE" not in got
    result.says("because the job has set MASTER_ADDR or MASTER_PORT")


def test_late_node_begins_when_the_first_has_left(cluster, tmp_path):
    """Pmi2xTorch may be the default of a site, and so of programs that do not meet."""
    script = f"touch {tmp_path}/$SLURM_PROCID; echo $MASTER_PORT"
    argv = ["srun", "--mpi=pmi2x", "-N2", "-n2", "sh", "-c", script]
    with stopped(daemon(cluster, "slurmd", "n2")):
        step = cluster.start(*argv, env=STORE)
        wait_until((tmp_path / "0").exists)
        wait_until(lambda: not cluster.step_daemon("n1"))
    out, err = step.communicate(timeout=STEP_S)
    assert not step.returncode and not err, (err, cluster.log_of("n2")[-3000:])
    first, late = out.split()
    assert first == late, out


def test_step_of_a_task_has_variables_of_its_own(srun):
    """What the outer step has set was not set by the job."""
    inner = "srun --mpi=pmi2x --overlap -N2 -n2 sh -c 'echo $RANK of $WORLD_SIZE: $MASTER_PORT'"
    script = f"echo outer $MASTER_PORT; [ $RANK != 2 ] || {inner}"
    result = srun("-N3", "-n3", "sh", "-c", script, env=STORE).ok()
    outer = {line.split()[-1] for line in result.lines if line.startswith("outer")}
    found = sorted(line.split(": ") for line in result.lines if ": " in line)
    assert [ranks for ranks, _ in found] == ["0 of 2", "1 of 2"], result
    assert found[0][1] == found[1][1] and not outer & {found[0][1]}, result
    assert "serves no TCPStore" not in result.stderr, result


def test_step_without_the_option_has_no_variables(srun):
    got = environment(srun("-N2", "-n2", "env").ok())
    assert not {"MASTER_ADDR", "WORLD_SIZE", "JAX_COORDINATOR_ADDRESS"} & got.keys()
