# SPDX-License-Identifier: BSD-3-Clause
"""The executors of the Python client without a DVM: tasks, keys, errors, cancelling, and
shutdown. Heads and engines are stubs (head_stub.py)."""

import asyncio
import concurrent.futures
import functools
import logging
import os
import pathlib
import sys
import tempfile
import types
import unittest

import head_stub
import pmi2x_dvm
from head_stub import WAITING, Head
from pmi2x_dvm import _executor

head_stub.parsl()
head_stub.rhapsody()
head_stub.radical()

from pmi2x_dvm import parsl_executor, radical_executor, rhapsody_backend  # noqa: E402

LATE_S = 60  # for the test, not for the subject
logging.disable(logging.CRITICAL)


class WithHead(unittest.TestCase):
    def setUp(self):
        self.head = Head()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        for each in parsl_executor, radical_executor, rhapsody_backend:
            each.connect = lambda name=None: self.head.client()

    def only_task(self):
        (task,) = self.head.tasks.values()
        return task


class Futures(WithHead):
    def setUp(self):
        super().setUp()
        self.dvm = self.head.client()
        self.addCleanup(self.dvm.close)

    def test_keys_of_a_task_reach_the_head(self):
        task = self.dvm.submit(("a", "b"), ranks=2, time="1h", cwd=self.place, env={"A": "1"}, tied=True)
        self.assertEqual(task.result(LATE_S).code, 0)
        sent = self.only_task()
        self.assertEqual((sent["argv"], sent["ranks"], sent["time"], sent["tied"]), (["a", "b"], 2, 3600, True))
        self.assertEqual((sent["profile"]["cwd"], sent["profile"]["env"]), (self.place, {"A": "1"}))
        self.assertFalse({"cwd", "env", "check"} & set(sent))

    def test_profile_is_sent_once(self):
        for _ in range(2):
            self.dvm.submit(["a"]).result(LATE_S)
        first, second = (request["profile"] for request in self.head.asked("submit"))
        self.assertIn("env", first)
        self.assertEqual(second, {"id": first["id"]})

    def test_result_has_times_and_output(self):
        result = self.dvm.submit(["exit", "3"]).result(LATE_S)
        self.assertEqual((result.code, result.out, result.err), (3, b"said\n", b"wrong\n"))
        self.assertEqual((result.setup_time, result.seconds), (0.5, 2.0))

    def test_checked_failure_is_an_exception(self):
        with self.assertRaisesRegex(pmi2x_dvm.Failed, "exit status 3: wrong"):
            self.dvm.submit(["exit", "3"], check=True).result(LATE_S)
        self.assertEqual(self.dvm.submit(["a"], check=True).result(LATE_S).code, 0)

    def test_refused_task_is_named_and_others_run(self):
        with self.assertRaisesRegex(pmi2x_dvm.Refused, "argv: is never started"):
            self.dvm.submit(["no"])
        tasks = self.dvm.submit_many([{"argv": ["a"]}, {"argv": ["no"]}, {"argv": ["a"], "ranks": float("nan")}])
        self.assertEqual(tasks[0].result(LATE_S).code, 0)
        self.assertEqual([task.exception(LATE_S).key for task in tasks[1:]], ["argv", "ranks"])

    def test_full_queue_is_waited_for(self):
        self.head.full, before = 2, _executor.FULL_SECONDS
        _executor.FULL_SECONDS = 0
        try:
            results = list(self.dvm.map([["exit", str(i)] for i in range(4)], timeout=LATE_S))
        finally:
            _executor.FULL_SECONDS = before
        self.assertEqual([result.code for result in results], [0, 1, 2, 3])

    def test_cancel_ends_a_task(self):
        task = self.dvm.submit(["a", WAITING])
        self.assertTrue(task.running())
        self.assertEqual(self.dvm.cancel(task), 1)
        self.assertTrue(task.result(LATE_S).cancelled)
        self.assertEqual(self.dvm.cancel(task), 0)
        other = self.dvm.submit(["a", WAITING])
        self.assertTrue(other.cancel())
        self.assertRaises(concurrent.futures.CancelledError, other.result, LATE_S)
        self.assertEqual(self.head.asked("cancel")[-1]["ids"], [other.id])

    def test_shutdown_waits_and_takes_no_more(self):
        task = self.dvm.submit(["a"])
        self.dvm.shutdown()
        self.assertTrue(task.done())
        self.assertRaisesRegex(RuntimeError, "after shutdown", self.dvm.submit, ["a"])

    def test_shutdown_cancels_if_asked_to(self):
        task = self.dvm.submit(["a", WAITING])
        self.dvm.shutdown(cancel_futures=True)
        self.assertTrue(task.cancelled())

    def test_lost_head_fails_what_waits(self):
        task = self.dvm.submit(["a", WAITING])
        self.head.shutdown()
        self.assertRaisesRegex(pmi2x_dvm.Error, "the DVM stub has ended", task.result, LATE_S)
        self.assertRaisesRegex(pmi2x_dvm.Error, "has ended", self.dvm.status)


# ---- Parsl ----


def bash_app(body):
    """As Parsl wraps it: @bash_app around the function of the user."""
    wrapped = functools.partial(parsl_executor.remote_side_bash_executor, body)
    return types.SimpleNamespace(__wrapped__=wrapped, __name__="wrapped")


class Parsl(WithHead):
    def setUp(self):
        super().setUp()
        self.executor = parsl_executor.DvmExecutor()
        self.executor.run_dir = self.place
        self.executor.start()
        self.addCleanup(self.executor.shutdown)

    def submit(self, line, specification=None, **keys):
        return self.executor.submit(bash_app(lambda **unused: line), specification or {}, **keys)

    def test_command_of_a_bash_app_is_the_task(self):
        need = {"num_tasks": 4, "cores_per_task": 2, "gpus_per_task": 1, "num_nodes": 2}
        self.assertEqual(self.submit("echo 1", need, walltime=7).result(LATE_S), 0)
        sent = self.only_task()
        self.assertEqual(sent["argv"], ["/bin/bash", "-c", "echo 1"])
        self.assertEqual([sent[key] for key in ("ranks", "cores", "gpus", "nodes", "time")], [4, 2, 1, 2, 7])
        self.assertTrue(sent["tied"])

    def test_files_of_a_bash_app_are_made_here(self):
        out, err = f"{self.place}/new/o%", f"{self.place}/err"
        self.submit("true", stdout=(out, "w"), stderr=(err, "w")).result(LATE_S)
        sent = self.only_task()
        self.assertEqual((sent["path"], sent["error"], sent["append"]), (out.replace("%", "%%"), err, True))
        self.assertEqual(pathlib.Path(out).read_text(), "")
        self.assertIn("--> executable follows <--\ntrue\n", pathlib.Path(err).read_text())

    def test_failures_are_those_of_parsl(self):
        errors = parsl_executor.errors
        for kind, line, keys in (
            (errors.BashAppNoReturn, None, {}), (ValueError, 7, {}),
            (errors.BadStdStreamFile, "true", {"stdout": "/proc/none/file"}),
            (errors.MissingOutputs, "true", {"outputs": [types.SimpleNamespace(filepath="/none")]}),
        ):  # fmt: skip
            self.assertIsInstance(self.submit(line, **keys).exception(LATE_S), kind)
        self.assertEqual(len(self.head.tasks), 1)  # that without its output

    def test_codes_and_limits_are_failures(self):
        call = parsl_executor._BashCall(lambda: "", (), {"walltime": 5}, {})
        result = functools.partial(types.SimpleNamespace, id=1, err=b"wrong\n")
        self.assertRaises(parsl_executor.errors.BashExitFailure, call._result_of, result(code=3, why=""))
        self.assertRaisesRegex(parsl_executor.errors.AppTimeout, "walltime: 5",
                               call._result_of, result(code=137, why=parsl_executor.TIME_LIMIT))

    def test_unknown_keys_are_refused(self):
        self.assertRaises(parsl_executor.InvalidResourceSpecification, self.submit, "true", {"ranks": 1})
        self.assertEqual(self.submit("true", {"num_tasks": None}).result(LATE_S), 0)

    def test_refused_task_is_its_future_s_exception(self):
        self.head._submit = lambda request: {"ids": [1], "refused": [{"index": 0, "key": "ranks", "why": "never fit"}]}
        self.assertRaisesRegex(pmi2x_dvm.Refused, "never fit", self.submit("true").result, LATE_S)

    def test_python_app_has_an_interpreter(self):
        future = self.executor.submit(len, {"num_tasks": 2}, "text")
        # Nothing has written a result: the stub of the head runs no program.
        self.assertIsInstance(future.exception(LATE_S), OSError)
        argv = self.only_task()["argv"]
        self.assertEqual(argv[:2], [sys.executable, parsl_executor.WORKER])
        self.assertTrue(argv[2].startswith(f"{self.place}/pmi2x/"))
        self.assertEqual(os.listdir(f"{self.place}/pmi2x"), [])

    def test_preloaded_app_of_one_rank_is_forked(self):
        for ranks, preloaded in (1, True), (2, None):
            self.head = Head()
            executor = parsl_executor.DvmExecutor(preloaded=True, working_dir=self.place)
            executor.start()
            executor.submit(len, {"num_tasks": ranks}, "text").exception(LATE_S)
            executor.shutdown()
            sent = self.only_task()
            self.assertEqual(sent.get("preloaded"), preloaded)
            self.assertEqual(sent["argv"][0], parsl_executor.WORKER if preloaded else sys.executable)

    def test_shutdown_submits_what_was_there(self):
        futures = [self.submit("true") for _ in range(5)]
        self.executor.shutdown()
        self.assertTrue(all(future.done() for future in futures))
        self.assertEqual(len(self.head.tasks), 5)
        self.assertRaisesRegex(RuntimeError, "has been shut down", self.submit, "true")


# ---- RHAPSODY ----


def task_of(uid, argv, **keys):
    return dict({"uid": uid, "executable": argv[0], "arguments": argv[1:]}, **keys)


class Rhapsody(WithHead):
    def run_all(self, tasks, until, meanwhile=None):
        """The last state of each task, when `until` tasks have ended."""
        found = {}

        async def work():
            backend = await rhapsody_backend.DvmExecutionBackend()
            done = asyncio.Event()

            def note(task, state):
                found[task["uid"]] = state
                if sum(state != "RUNNING" for state in found.values()) == until:
                    done.set()

            backend._callback_func = note
            await backend.submit_tasks(tasks)
            if meanwhile:
                await meanwhile(backend)
            await asyncio.wait_for(done.wait(), LATE_S)
            await backend.shutdown()
            self.assertEqual(await backend.state(), "SHUTDOWN")

        asyncio.run(work())
        return found

    def test_commands_are_tasks_of_one_request(self):
        own = {"ranks": 8, "cores": 2, "nodes": 2}
        tasks = [task_of("a", ["sim", 1], task_backend_specific_kwargs=own),
                 task_of("b", ["sim", "|", "sort"], task_backend_specific_kwargs={"shell": True}),
                 task_of("c", ["exit", "3"], capture_stdio=True)]
        self.assertEqual(self.run_all(tasks, 3), {"a": "DONE", "b": "DONE", "c": "FAILED"})
        (request,) = self.head.asked("submit")
        first, second, third = request["tasks"]
        self.assertEqual([first[key] for key in ("argv", "name", "ranks", "cores", "nodes")],
                         [["sim", "1"], "a", 8, 2, 2])
        self.assertEqual(second["argv"], ["/bin/sh", "-c", "sim | sort"])
        self.assertEqual((third["path"], third["error"]), ("/sandbox/c.stdout", "/sandbox/c.stderr"))
        self.assertEqual((tasks[0]["stdout"], tasks[0]["exit_code"]), ("said\n", 0))
        self.assertEqual((tasks[2]["stdout"], tasks[2]["exit_code"]), ("/sandbox/c.stdout", 3))

    def test_functions_and_unknown_keys_fail(self):
        tasks = [dict(task_of("a", ["x"]), function=len),
                 task_of("b", ["x"], task_backend_specific_kwargs={"rank": 1}), task_of("c", ["no"])]
        self.assertEqual(self.run_all(tasks, 3), dict.fromkeys("abc", "FAILED"))
        for task, why in zip(tasks, ("not functions", "unknown keys: rank", "is never started")):
            self.assertIn(why, task["stderr"])

    def test_cancelled_tasks_are_called_so(self):
        async def cancel(backend):
            self.assertEqual(await backend.cancel_task("a"), True)
            self.assertEqual(await backend.cancel_task("none"), False)
            self.assertEqual(await backend.cancel_all_tasks() > 0, True)

        tasks = [task_of("a", ["x", WAITING]), task_of("b", ["x", WAITING])]
        self.assertEqual(self.run_all(tasks, 2, cancel), {"a": "CANCELED", "b": "CANCELED"})


# ---- RADICAL-Pilot ----


class Agent(radical_executor.Pmi2x):
    """With what its component of RADICAL-Pilot does, and a note of it."""

    def __init__(self):
        self.published, self.moved, self.stamps, self.cancelled = [], {}, [], set()
        self.session = types.SimpleNamespace(rcfg={})
        self._log = logging.getLogger("radical")
        self._prof = types.SimpleNamespace(prof=lambda event, uid, ts=None: self.stamps.append((event, ts)))

    def advance_tasks(self, tasks, state, publish, push):
        for task in tasks:
            self.moved.setdefault(task["uid"], []).append(state)

    def publish(self, channel, tasks):
        self.published += [task["uid"] for task in tasks]

    def is_canceled(self, task):
        return task["uid"] in self.cancelled

    def _get_rp_env(self, task):
        return "export RP_TASK_ID=1"

    def _get_task_env(self, task, launcher):
        return "export A=1"

    def _create_exec_script(self, launcher, task):
        return None, f"{task['uid']}.exec.sh"


class Radical(WithHead):
    def setUp(self):
        super().setUp()
        radical_executor._Launcher.get_exec = lambda launcher, task: task["description"]["executable"]
        self.agent = Agent()
        self.agent.initialize()

    def task(self, uid, **description):
        usual = {"ranks": 2, "cores_per_rank": 3, "gpus_per_rank": 1.0, "threading_type": "",
                 "executable": "sim"}  # fmt: skip
        return {"uid": uid, "task_sandbox_path": f"{self.place}/{uid}", "description": dict(usual, **description)}

    def end(self):
        """Collects the ends of all tasks, and is over."""
        concurrent.futures.wait(list(self.agent._futures.values()), LATE_S)
        self.agent.finalize()

    def test_description_becomes_a_task(self):
        self.agent.work([self.task("t%", threading_type="OpenMP")])
        self.end()
        sent = self.only_task()
        self.assertEqual([sent[key] for key in ("ranks", "cores", "gpus", "name")], [2, 3, 1, "t%"])
        self.assertEqual(sent["path"], f"{self.place}/t%%/t%%.out")
        self.assertEqual(sent["argv"][:2], ["/bin/sh", "-c"])
        for line in ("export RP_RANKS=2", "export OMP_NUM_THREADS=3", "export A=1",
                     f"cd {self.place}/t% && exec sim"):
            self.assertIn(line, sent["argv"][2])
        self.assertEqual(sent["profile"]["env"]["HOME"], "/home")
        self.assertEqual(self.agent.moved["t%"], ["AGENT_EXECUTING", "AGENT_STAGING_OUTPUT_PENDING"])
        self.assertIn(("exec_start", 2.5), self.agent.stamps)

    def test_script_is_for_what_needs_one(self):
        self.agent.work([self.task("t", pre_exec=["module load x"])])
        self.end()
        self.assertEqual(self.only_task()["argv"][2:],
                         [radical_executor.IN_DIRECTORY, f"{self.place}/t", "t.exec.sh"])

    def test_wrong_descriptions_fail_alone(self):
        tasks = [self.task("part", gpus_per_rank=0.5), self.task("pre", pre_launch=["missing"]),
                 self.task("post", post_launch=["missing"]), self.task("good")]
        self.agent.work(tasks)
        self.end()
        self.assertIn("whole GPUs", tasks[0]["exception_detail"])
        self.assertIn("pre_launch failed: missing", tasks[1]["exception_detail"])
        self.assertEqual([self.agent.moved[uid][-1] for uid in ("part", "pre")], ["FAILED"] * 2)
        self.assertEqual([task["target_state"] for task in tasks[2:]], ["FAILED", "DONE"])
        self.assertEqual(sorted(self.agent.published), ["good", "part", "post", "pre"])

    def test_states_follow_results(self):
        result = functools.partial(types.SimpleNamespace, cancelled=False, why="")
        for ended, state, detail in (
            (result(code=0), "DONE", None), (result(code=3), "FAILED", "exit code: 3"),
            (result(code=1, why="node lost"), "FAILED", "node lost"),
            (result(code=137, cancelled=True), "CANCELED", None),
            (result(code=137, why=radical_executor.TIME_LIMIT), "CANCELED", None),
        ):  # fmt: skip
            task = {"target_state": "FAILED"}
            self.agent._conclude(task, ended)
            self.assertEqual((task["target_state"], task.get("exception_detail")), (state, detail))
        self.end()

    def test_task_that_was_cancelled_before_is_ended(self):
        self.agent.cancelled.add("t")
        radical_executor._Launcher.get_exec = lambda launcher, task: WAITING
        self.head.tasks = {}
        task = self.task("t")
        command = self.agent._command
        self.agent._command = lambda task: [*command(task), WAITING]
        self.agent.work([task])
        self.end()
        self.assertEqual(task["target_state"], "CANCELED")

    def test_lost_head_fails_tasks(self):
        self.agent._dvm.close()
        task = self.task("t")
        self.agent.work([task])
        self.end()
        self.assertEqual(self.agent.moved["t"][-1], "FAILED")
        self.assertIn("has ended", task["exception_detail"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
