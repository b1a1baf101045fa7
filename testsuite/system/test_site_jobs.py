# SPDX-License-Identifier: BSD-3-Clause
"""What sites do with jobs: arrays, requeue, preemption, sizes that change."""

import json
import os
import re
import shlex
import signal

import pytest

from faulty import HANGS_S, RANKS, TREE, ranks_of, remove_stale_sockets
from dvms import living
from harness import Cluster, run, wait_until

REST = ["fence", "allgather", "ring", "finalize"]
FORCE = "Nodes=ALL OverSubscribe=FORCE:1"
LINES = [
    # A job whose time has come is found by this; by default it is 60 s.
    "SchedulerParameters=bf_interval=1,sched_interval=2",
    "PreemptType=preempt/partition_prio",
    "PreemptMode=SUSPEND,GANG",
    f"PartitionName=suspended {FORCE} PriorityTier=1 PreemptMode=SUSPEND",
    f"PartitionName=requeued {FORCE} PriorityTier=1 PreemptMode=REQUEUE",
    f"PartitionName=urgent {FORCE} PriorityTier=9 PreemptMode=OFF",
]

URGENT = [*TREE, "--exclusive", "--partition=urgent"]


@pytest.fixture(scope="module")
def own(prefix, scratch, kind, only_pmi2x):
    path = scratch / "jobs"
    # A requeued job waits until the credential of its first run has expired.
    auth = f"AuthInfo=socket={path}/run/munge.socket,cred_expire=5"
    options = [w for l in [auth, *LINES] for w in ("--slurm-conf-line", l)]
    cluster = Cluster(prefix, path, kind, 5, options)
    yield from cluster.while_up()


class Job:
    """A batch job of steps of fault-clients; their files are in its directory."""

    def __init__(self, cluster, client, directory, script, options):
        self.cluster, self.dir = cluster, directory
        file = directory / "script"
        file.write_text(
            "#!/bin/sh\n"
            f"cd {directory}\n"
            f"step() {{ srun --mpi={cluster.kind} -n10 {client} $PWD \"$@\"; }}\n"
            f"{script}\n"
        )
        result = cluster.run(
            "sbatch", "--parsable", "-N5", "--ntasks-per-node=2",
            "--open-mode=append", f"--output={directory}/output",
            *options, file,
        ).ok()
        self.id = result.stdout.strip()

    @property
    def output(self):
        return (self.dir / "output").read_text(errors="replace")

    def seen(self, name, ranks=RANKS):
        return all((self.dir / f"{name}.{rank}").exists() for rank in ranks)

    def wait_for(self, name):
        wait_until(lambda: self.seen(name), HANGS_S)

    def make(self, name):
        (self.dir / name).touch()

    def state(self):
        shown = self.cluster.run("squeue", "-h", "-o", "%T", "-j", self.id)
        return shown.stdout.strip()

    def has_begun_again(self):
        shown = self.cluster.run("scontrol", "show", "job", self.id).stdout
        return "Restarts=1" in shown and not re.search(
            "JobState=(PENDING|COMPLETING|REQUEUED)", shown
        )

    def begin_now(self):
        """Of a requeued job, whose first run has ended everywhere. Not in the same
        second: slurmd refuses credentials that are no younger than that end."""
        wait_until(
            lambda: self.state() == "PENDING" or self.has_begun_again(), HANGS_S
        )
        updated = self.cluster.run(
            "scontrol", "update", f"jobid={self.id}", "StartTime=now+2"
        )
        assert not updated.code or self.has_begun_again(), updated


@pytest.fixture
def submit(own, fault_client, tmp_path):
    tmp_path.chmod(0o755)
    made = []

    def submit_one(script, *options):
        made.append(Job(own, fault_client, tmp_path, script, options))
        return made[-1]

    yield submit_one
    for job in made:
        own.run("scancel", "--quiet", job.id)
    left = own.wait_until_clean()
    assert not left, f"left behind: {left}"


def test_array(own, submit, raw):
    """Its jobs are jobs of their own, at the same time on the same nodes."""
    exchange = " ".join(map(str, raw("exchange", "2")))
    script = f"srun --mpi={own.kind} {exchange}"
    job = submit(script, "--wait", "--array=0-5")
    assert job.output.splitlines().count("exchanged 10") == 60, job.output


# The second run of a job has the number of the first, and so have its steps.
TWICE = """
case ${SLURM_RESTART_COUNT:-0} in
0) step init fence touch=in 9:gate=never fence;;
*) step init fence allgather ring finalize; echo again $?;;
esac
"""


def test_requeue(own, submit):
    job = submit(TWICE, "--requeue")
    job.wait_for("in")
    own.run("scontrol", "requeue", job.id).ok()
    job.begin_now()
    job.wait_for("done")
    wait_until(lambda: "again" in job.output)
    assert "again 0" in job.output


def test_requeue_after_a_crash(own, submit):
    """What a killed slurmstepd has left under the step's name is in nobody's way."""
    # The job is still there when its step has ended.
    stays = TWICE.replace("never fence;;", "never fence; sleep 1000;;")
    assert stays != TWICE
    job = submit(stays, "--requeue")
    job.wait_for("in")
    sockets = set(own.sockets())
    for node in "n1", "n3":
        os.kill(own.step_daemon(node), signal.SIGKILL)
    assert sockets and sockets <= set(own.sockets())
    own.run("scontrol", "requeue", job.id).ok()
    job.begin_now()
    job.wait_for("done")
    wait_until(lambda: not own.sockets())
    logs = [path.read_text() for path in own.dir.glob("log/slurmd.*.log")]
    assert not [log for log in logs if "cannot create the socket" in log]


def test_a_requeued_batch_of_tasks(own, submit, prefix, tmp_path, base):
    """pmi2x-dvm goes on with its journal: what has ended is not run again."""
    command = prefix / "bin/pmi2x-dvm"
    if not command.exists():
        pytest.skip("pmi2x-dvm was not built: libjansson-dev is missing")
    later = "until [ -e go ]; do sleep 0.1; done; "
    lines = [f"{later if i >= 30 else ''}echo {i} >> ran\n" for i in range(60)]
    (tmp_path / "tasks").write_text("".join(lines))
    place = f"PMI2X_DVM_DIR={base}"
    job = submit(f"{place} {command} batch tasks; echo code $?", "--requeue")

    def ended():
        shown = run(["env", place, command, "status", "--json"])
        return not shown.code and json.loads(shown.stdout)["ended"] == 30

    wait_until(ended, HANGS_S)
    own.run("scontrol", "requeue", job.id).ok()
    wait_until(lambda: not living(base), HANGS_S)
    job.make("go")
    job.begin_now()
    # That which was requeued may have had the time to say how it has ended.
    wait_until(lambda: re.search(r"code (?!143)", job.output), HANGS_S)
    assert "30 tasks have ended, 30 continue" in job.output, job.output
    assert "code 0" in job.output
    assert sorted(map(int, (tmp_path / "ran").read_text().split())) == [*range(60)]
    assert not list(tmp_path.glob("*.journal"))


def test_preempted_by_requeue(own, submit, start_faulty):
    job = submit(TWICE, "--requeue", "--partition=requeued", "--exclusive")
    job.wait_for("in")
    urgent = start_faulty(
        own, "init", *REST, options=URGENT
    )
    urgent.end().ok()
    job.begin_now()
    job.wait_for("done")


def test_preempted_by_suspension(own, submit, start_faulty):
    """It goes on where it was: nobody is taken for dead, nothing is reported."""
    words = " ".join(["init fence touch=in 9:gate=go", *REST])
    job = submit(
        f"PMI2X_STALL_REPORT=1 step {words}; echo ended $?",
        "--partition=suspended", "--exclusive",
    )
    job.wait_for("in")
    urgent = start_faulty(
        own, "init", "fence", "touch=in", "gate=go", *REST,
        options=URGENT,
    )
    urgent.wait_for("in", RANKS)
    wait_until(lambda: job.state() == "SUSPENDED")
    job.make("go")
    urgent.make("go")
    urgent.end().ok()
    job.wait_for("done")
    wait_until(lambda: "ended" in job.output)
    assert "ended 0" in job.output


def allocate(own, script, *options):
    """Run a script in an allocation of all nodes."""
    return own.run(
        "salloc", "-N5", "--ntasks-per-node=4", *options, "sh", "-c", script
    )


def test_exclusive_steps(own, raw):
    """Two have room at a time; the others wait for them."""
    exchange = shlex.join(map(str, raw("exchange", "2")))
    step = f"srun --exclusive --mpi={own.kind} -N5 -n10 {exchange} & "
    result = allocate(own, step * 5 + "wait").ok()
    assert result.lines.count("exchanged 10") == 50, result
    assert not own.wait_until_clean()


@pytest.fixture
def down(own):
    """Takes node n3 down with its step, until the test has ended."""

    def take_down():
        os.kill(own.step_daemon("n3"), signal.SIGKILL)
        line = ["nodename=n3", "state=DOWN", "reason=test"]
        own.run("scontrol", "update", *line).ok()

    yield take_down
    own.restart("slurmd.n3")
    wait_until(lambda: not own.busy_nodes())
    remove_stale_sockets(own)


def test_no_kill(own, start_faulty, down):
    """The step survives a node, and only what needs that node fails."""
    step = start_faulty(
        own, "init", "fence", "touch=in", "gate=go", "touch=out", "fence",
        options=[*TREE, "--no-kill"],
    )
    step.wait_for("in", RANKS)
    down()
    step.wait_until_says("Node failure on n3")
    step.make("go")
    result = step.fails("fence 1 failed: .*node n3")
    assert step.seen("out") == RANKS - ranks_of("n3"), result
    assert "ending step" not in result.stderr, result


SHRINK = """
srun --mpi=pmi2x -w n[1-{nodes}] -N{nodes} -n{ranks} {client} {dir} \
    init fence touch=in gate=go {rest} & step=$!
while [ $(ls {dir} | grep -c '^in') != {ranks} ]; do sleep 0.1; done
cd {dir} && scontrol update jobid=$SLURM_JOB_ID NodeList=n[1-2] > log &&
. ./slurm_job_${{SLURM_JOB_ID}}_resize.sh || exit
# Slurm ends what runs on the other nodes in its own time.
for file in in.[4-9]; do
    while [ -e $file ] && kill -0 $(cat $file); do sleep 0.1; done
done 2> log
srun --overlap --mpi=pmi2x -N2 -n4 {again}
echo second $?
touch go
wait $step
echo first $?
srun --mpi=pmi2x -N2 -n4 {again}
echo third $?
"""


@pytest.mark.parametrize("nodes, ranks", [(2, 4), (5, 10)])
def test_shrink(own, fault_client, raw, tmp_path, nodes, ranks):
    """A job gives nodes away: a step that is on none of them goes on, another one
    fails, and later steps see the nodes that are left."""
    script = SHRINK.format(
        nodes=nodes, ranks=ranks, client=fault_client, dir=tmp_path,
        rest=" ".join(REST), again=shlex.join(map(str, raw("exchange", "1"))),
    )
    result = allocate(own, script, "-w", "n[1-5]").ok()
    assert "second 0" in result.lines and "third 0" in result.lines, result
    assert result.lines.count("exchanged 4") == 8, result
    assert ("first 0" in result.lines) == (ranks == 4), result
    assert not own.wait_until_clean()
