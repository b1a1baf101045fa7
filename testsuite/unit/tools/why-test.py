# SPDX-License-Identifier: BSD-3-Clause
"""What pmi2x why says of real processes, of a step that scripts play."""

import contextlib
import io
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
PROGRAM = SOURCE / "src/tools/pmi2x-why"
sys.path.insert(0, str(SOURCE / "src/tools"))

from pmi2x_why import nodes, reader, words  # noqa: E402

PATIENCE_S = 60
STEP = "4711.0"
SCRIPTS = {
    "scontrol": """#!/bin/sh
case $2 in
step) echo "   State=RUNNING NodeList=n[1-2] SrunHost:Pid=$(cat "$PLAYED/host"):7" ;;
hostnames) printf 'n1\\nn2\\n' ;;
4711.0) cat "$PLAYED/$3" ;;
esac
""",
    # The options of srun, up to the command, are not looked at.
    "srun": """#!/bin/sh
asked=$*
while :; do
	case $1 in
	python3) break ;;
	*/pmi2x-trace) case $asked in *--nodelist=n2*) cat "$PLAYED/status" ;; esac; exit ;;
	esac
	shift
done
for node in n1 n2; do SLURMD_NODENAME=$node "$@"; done
""",
}
HEAD = "PID      JOBID    STEPID   LOCALID GLOBALID\n"


def status_node(name, entered, *phases):
    """As pmi2x trace --live --json has it; a rank for each phase."""
    first = {"n1": 0, "n2": 3}[name]
    ranks = [{"first": first + i, "last": first + i, "phase": phase, "stopped": False,
              "entered": [entered if phase == "active" else 0, 0, 0, 0]}
             for i, phase in enumerate(phases)]
    return {"node": name, "answered": True, "age_ms": 5, "requests": 0,
            "ended": [0, 0, 0, 0], "ranks": ranks, "links": []}


STATUS = {
    "step": STEP,
    "waiting": ["fence 0: 5 s, waiting for 2 of 5 ranks: 2-3"],
    "nodes": [status_node("n1", 1, "active", "active", "before init"),
              status_node("n2", 0, "active", "ended")],
}


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.01)
    return result


@contextlib.contextmanager
def process(*argv):
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield child.pid
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def seen(pid):
    return words.line(reader.chain(pid, reader.table()))


class Reader(unittest.TestCase):
    def await_words(self, pid, text):
        try:
            until(lambda: text in seen(pid))
        except AssertionError:
            self.fail(f"no '{text}' in '{seen(pid)}'")

    def test_one_that_sleeps(self):
        with process("sleep", "1000") as pid:
            self.await_words(pid, "sleep is in clock_nanosleep")

    def test_one_that_is_stopped(self):
        with process("sleep", "1000") as pid:
            os.kill(pid, signal.SIGSTOP)
            self.await_words(pid, "sleep is stopped by a signal")

    def test_one_that_opens_a_file(self):
        with tempfile.TemporaryDirectory() as place:
            os.mkfifo(f"{place}/in put")
            with process("cat", f"{place}/in put") as pid:
                self.await_words(pid, f"cat is in openat of {place}/in put (")

    def test_a_path_from_the_working_directory(self):
        with tempfile.TemporaryDirectory() as place:
            os.mkfifo(f"{place}/input")
            with process("sh", "-c", f"cd {place} && exec cat input") as pid:
                self.await_words(pid, f"of {os.path.realpath(place)}/input (")

    def test_one_that_reads(self):
        with tempfile.TemporaryDirectory() as place:
            os.mkfifo(f"{place}/pipe")
            with process("cat", f"{place}/pipe") as pid, open(f"{place}/pipe", "w"):
                self.await_words(pid, f"cat is in read of {place}/pipe (")

    def test_the_child_that_a_shell_waits_for(self):
        with process("sh", "-c", "sleep 1000; true") as pid:
            self.await_words(pid, "sleep is in clock_nanosleep")

    def test_one_that_runs(self):
        with process("sh", "-c", "while :; do :; done") as pid:
            self.await_words(pid, "sh runs")

    def test_a_name_with_brackets(self):
        with tempfile.TemporaryDirectory() as place:
            os.symlink("/bin/sleep", f"{place}/a) R (b")
            with process(f"{place}/a) R (b", "1000") as pid:
                self.await_words(pid, "a) R (b is in clock_nanosleep")

    def test_one_that_has_gone(self):
        self.assertEqual(seen(1 << 30), "its process has ended")

    def test_the_file_system(self):
        self.assertEqual(reader.file_system(os.getpid(), "/proc/1/stat")["type"], "proc")


# The rank's child has the connection, as a program that a shell has started.
CLIENT = "import socket; s = socket.create_connection(('127.0.0.1', {port})); {then}"


class Store(unittest.TestCase):
    """Ranks of a step with a TCPStore."""

    def state_of(self, command, port, wanted, **more):
        env = {**os.environ, "MASTER_PORT": str(port), "PMI2X_TORCH_STEP": STEP,
               "TORCHELASTIC_USE_AGENT_STORE": "True", **more}
        with mock.patch.dict(os.environ, env), process(*command) as pid:
            def state():
                processes = reader.table()
                return reader.store_state(pid, processes, reader.chain(pid, processes))

            until(lambda: state() == wanted and seen(pid) != "sh runs")

    def client(self, port, then):
        return ["sh", "-c", f'{sys.executable} -c "{CLIENT.format(port=port, then=then)}"; true']

    def test_connections_of_a_rank(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self.state_of(["sleep", "1000"], port, "away")
            self.state_of(self.client(port, "s.recv(1)"), port, "waits")
            self.state_of(self.client(port, "import time; time.sleep(1000)"), port, "idle")
            self.state_of(self.client(port, "s.recv(1)"), port, None, PMI2X_TORCH_STEP="x",
                          TORCHELASTIC_USE_AGENT_STORE="False")


class Words(unittest.TestCase):
    WHAT = {"pid": 7, "name": "prog", "state": "S", "seconds": 12.4, "executed": True,
            "call": None, "file": None, "file_system": None, "wchan": None, "files": None}

    def line(self, *changes):
        return words.line([{**self.WHAT, **change} for change in changes])

    def test_without_the_right_to_trace(self):
        self.assertEqual(
            self.line({"state": "D", "wchan": "rpc_wait_bit", "files": ["/a", "/b\x1b"]}),
            "prog waits for a device or a file server (state D), in the kernel's "
            "rpc_wait_bit; open files: /a, /b?")
        self.assertEqual(self.line({}), "prog sleeps")

    def test_a_network_file_system(self):
        system = {"type": "nfs4", "source": "server:/home", "mounted": "/home"}
        self.assertEqual(
            self.line({"call": "read", "file": "/home/x", "file_system": system}),
            "prog is in read of /home/x (nfs4 of server:/home)")

    def test_a_page(self):
        self.assertEqual(self.line({"state": "D", "call": "", "file": "/lib/x"}),
                         "prog waits for a device or a file server (state D), reading a "
                         "page of /lib/x")

    def test_before_its_exec(self):
        before = {"executed": False, "name": "slurmstepd"}
        self.assertEqual(self.line({**before, "state": "D"}),
                         "has not executed its program, 12 s after it began: waits for a "
                         "device or a file server (state D)")
        self.assertEqual(self.line(before, {"name": "prolog", "call": "wait4"}),
                         "has not executed its program, 12 s after it began: waits for "
                         "prolog, which is in wait4")

    def test_ranks_that_do_the_same_are_one_line(self):
        rank = [{"rank": r, "processes": [self.WHAT]} for r in range(6)]
        found = {"n1": rank[:3], "n2": rank[3:5], "n3": [{"rank": 5, "processes": []}]}
        self.assertEqual(list(words.lines(found)), [
            "ranks 0-4 (2 nodes): prog sleeps", "rank 5 (node n3): its process has ended"])


    def test_ranks_are_apart_by_their_connection_with_the_store(self):
        ranks = [{"rank": i, "processes": [self.WHAT], "store": state}
                 for i, state in enumerate(["waits", "waits", "idle", "away", None])]
        self.assertEqual(list(words.lines({"n1": ranks})), [
            "ranks 0-1 (node n1): prog sleeps (waits for the TCPStore)",
            "rank 2 (node n1): prog sleeps (connected to the TCPStore, and does not wait for it)",
            "rank 3 (node n1): prog sleeps (not connected to the TCPStore)",
            "rank 4 (node n1): prog sleeps"])


class Answers(unittest.TestCase):
    def test_pieces(self):
        text = "".join(f"n1 {piece}\n" for piece in self.pieces([{"rank": 1}]))
        self.assertEqual(nodes.gather(text), {"n1": [{"rank": 1}]})

    def test_lines_whose_ends_come_late(self):
        """As srun shows what nodes have written to terminals."""
        said = []
        for node in "n1", "n2":
            with mock.patch.dict(os.environ, SLURMD_NODENAME=node), \
                    mock.patch.object(reader, "look", lambda *_: [{"rank": 1}]), \
                    contextlib.redirect_stdout(io.StringIO()) as out:
                reader.main(["7.0"])
            said.append(out.getvalue())
        text = said[0][:-1] + said[1] + "\n"
        self.assertEqual(nodes.gather(text), dict.fromkeys(["n1", "n2"], [{"rank": 1}]))

    def pieces(self, value):
        packed = nodes.base64.b64encode(nodes.zlib.compress(json.dumps(value).encode()))
        return [packed[:8].decode(), packed[8:].decode()]

    def test_incomplete_answers_are_ignored(self):
        first, last = self.pieces([{"rank": 1}])
        for pieces in [first], [last], [first, last[:-4]], ["%"], [""]:
            with self.subTest(pieces=pieces):
                self.assertEqual(nodes.gather("".join(f"n1 {p}\n" for p in pieces)), {})

    def test_ranges(self):
        self.assertEqual(nodes.ranges({1, 2, 3, 7, 9, 10}), "1-3,7,9-10")
        self.assertEqual(reader.parse_ranks("1-3,7,9-10"), {1, 2, 3, 7, 9, 10})


class Played(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        for name, text in SCRIPTS.items():
            (self.place / name).write_text(text)
            (self.place / name).chmod(0o755)
        for node in "n1", "n2":
            (self.place / node).write_text(HEAD)
        (self.place / "host").write_text("login1")
        (self.place / "status").write_text(json.dumps(STATUS))

    def why(self, *argv):
        env = {**os.environ, "PLAYED": str(self.place),
               "PATH": f"{self.place}:{os.environ['PATH']}"}
        return subprocess.run([sys.executable, "-B", PROGRAM, *argv], env=env, text=True,
                              capture_output=True, timeout=60, check=False)

    def has(self, node, rank, pid):
        with open(self.place / node, "a") as file:
            file.write(f"{pid:<8} 4711     0        0       {rank}\n")

    def test_why_describes_all_ranks(self):
        with process("sleep", "1000") as one, process("sh", "-c", "exec sleep 1000") as two:
            os.kill(two, signal.SIGSTOP)
            self.has("n1", 3, one)
            self.has("n2", 4, two)
            until(lambda: "stopped" in seen(two) and "clock" in seen(one))
            done = self.why(STEP)
            some = self.why("--ranks", "4", "--json", STEP)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the srun of step 4711.0 runs on login1", done.stdout)
        self.assertIn("rank 3 (node n1): sleep is in clock_nanosleep\n", done.stdout)
        self.assertRegex(done.stdout, r"rank 4 \(node n2\): \w+ is stopped by a signal")
        found = json.loads(some.stdout)["nodes"]
        self.assertEqual([r["rank"] for r in found["n2"]], [4])
        self.assertEqual(found["n1"], [])

    def test_srun_on_a_node_of_the_step(self):
        """It is asked there, and the late ranks alone are looked at: of n1 one that has
        not begun, of n2 one that has not entered."""
        (self.place / "host").write_text("n2.cluster")
        with process("sleep", "1000") as pid:
            for rank in range(3):
                self.has("n1", rank, pid)
            self.has("n2", 3, pid)
            done = self.why(STEP)
        self.assertIn(STATUS["waiting"][0], done.stdout)
        self.assertRegex(done.stdout, r"\nranks 2-3 \(2 nodes\): sleep [^\n]*\n$")

    def test_all_ranks_are_looked_at_if_connections_of_pytorch_wait(self):
        (self.place / "host").write_text("n2.cluster")
        line = "key x: 5 s, 2 connections of PyTorch wait for it, and it has no value"
        nodes = [{**node, "keys": {"key": "x", "torch": True}} for node in STATUS["nodes"]]
        played = {**STATUS, "waiting": [line], "nodes": nodes}
        (self.place / "status").write_text(json.dumps(played))
        with process("sleep", "1000") as pid:
            self.has("n1", 0, pid)
            self.has("n2", 4, pid)
            done = self.why(STEP)
        self.assertIn(line, done.stdout)
        self.assertIn("ranks 0, 4 (2 nodes): sleep", done.stdout)

    def test_nobody_is_waited_for(self):
        """What hangs may hang in the program: how to see that is said."""
        (self.place / "host").write_text("n2.cluster")
        calm = {**STATUS, "waiting": [], "nodes": [status_node("n1", 0, "active"),
                                                   status_node("n2", 0, "active")]}
        (self.place / "status").write_text(json.dumps(calm))
        done = self.why(STEP)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no rank is late: all compute, or have ended; --ranks LIST says",
                      done.stdout)

    def test_a_node_without_an_answer(self):
        srun = (self.place / "srun").read_text().replace("in n1 n2", "in n1")
        (self.place / "srun").write_text(srun + "echo 'srun: error: n2 is down' >&2\n")
        done = self.why(STEP)
        self.assertEqual(done.returncode, 1)
        self.assertIn("nobody could look at n2\n  srun: error: n2 is down", done.stdout)

    def test_no_such_step(self):
        (self.place / "scontrol").write_text("#!/bin/sh\necho 'Step 4711.0 not found' >&2\n")
        done = self.why(STEP)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no step 4711.0", done.stderr)

    def test_slurm_cannot_authenticate(self):
        (self.place / "scontrol").write_text(
            "#!/bin/sh\necho 'scontrol: error: Munge encode failed: no socket' >&2\n"
            "echo 'slurm_get_job_steps error: Protocol authentication error' >&2\n")
        done = self.why(STEP)
        self.assertEqual(done.returncode, 2)
        self.assertIn("Munge encode failed: no socket: start munge here", done.stderr)

    def test_commands_of_slurm_get_a_reduced_environment(self):
        with mock.patch.dict(os.environ, {"SLURM_CONF": "/c", "SLURM_SACK_SOCKET": "/s",
                                          "SLURM_JOB_ID": "1", "PMI_FD": "3"}, clear=True):
            self.assertEqual(nodes.environment(),
                             {"SLURM_CONF": "/c", "SLURM_SACK_SOCKET": "/s"})

    def says_why_not(self, word, *texts):
        done = self.why(word)
        self.assertEqual(done.returncode, 2)
        for text in texts:
            self.assertIn(text, done.stderr)

    def squeue_prints(self, text):
        squeue = self.place / "squeue"
        squeue.write_text(f"#!/bin/sh\nprintf '{text}'\n")
        squeue.chmod(0o755)

    def test_a_job_stands_for_its_only_step(self):
        self.squeue_prints(f"4711.batch\\n{STEP}\\n4711.extern\\n")
        done = self.why("4711")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(STEP, done.stdout)

    def test_a_job_with_several_steps_or_none_is_rejected(self):
        self.squeue_prints("4711.0\\n4711.7\\n")
        self.says_why_not("4711", "several steps: name one of 4711.0, 4711.7")
        self.squeue_prints("4711.batch\\n")
        self.says_why_not("4711", "no step that srun has started")

    def test_other_words_are_rejected(self):
        self.says_why_not("abc", "abc is not a step ID: write JOB or JOB.STEP")
        self.says_why_not("4711.batch", "4711.batch has no PMI")

    def test_a_silent_slurmctld_is_named_first(self):
        for words in "Could not establish a configuration source", \
                "Unable to process configuration file":
            (self.place / "scontrol").write_text(f"#!/bin/sh\necho 'scontrol: fatal: {words}' >&2\n")
            self.says_why_not(STEP, "slurmctld does not answer: ", "SLURM_CONF")


if __name__ == "__main__":
    unittest.main(verbosity=2)
