# SPDX-License-Identifier: BSD-3-Clause
"""An executor of RADICAL-Pilot's agent that runs tasks on a DVM.

RADICAL-Pilot has a fixed list of executors, so that two lines have to be added to create()
in its agent/executing/base.py: doc/engines.md. "agent_spawner": "PMI2X" in the
configuration of a resource then chooses this one.

A batch of tasks is one request to the head. A task has no process on the agent's node. It
has a script of its own only where RADICAL-Pilot's script has to do something: for pre_exec,
post_exec and startup_timeout.
"""

import concurrent.futures
import functools
import os
import queue
import shlex
import threading

import radical.utils as ru
from radical.pilot import constants as rpc
from radical.pilot import states as rps
from radical.pilot.agent.executing.base import AgentExecutingComponent
from radical.pilot.agent.launch_method.base import LaunchMethod

from . import connect
from ._results import TIME_LIMIT, Error

IN_DIRECTORY = 'cd "$0" && exec "$@"'


class Pmi2x(AgentExecutingComponent):
    """Executes tasks on the DVM that connect() of pmi2x_dvm finds."""

    def __repr__(self):
        """Components of RADICAL-Pilot without this name do not hear of cancelled tasks."""
        return f"<radical.pilot.agent.executing {type(self).__name__}>"

    def initialize(self):
        super().initialize()
        self._launcher = _Launcher(self._log)
        self._environment = ru.env_eval("env/bs0_orig.env")  # as of launch methods
        self._environment.update({k: v for k, v in os.environ.items() if k.startswith("RP_")})
        self._lock = threading.Lock()
        self._known = {}  # tasks
        self._futures = {}
        self._ends = queue.Queue()
        self._dvm = connect()
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()

    def finalize(self):
        """Tasks that run end with the connection."""
        self._ends.put(None)
        self._collector.join()
        self._dvm.close()

    def get_task(self, tid):
        return self._known.get(tid)

    def cancel_task(self, task):
        with self._lock:
            future = self._futures.get(task["uid"])
        if future:
            self._dvm.cancel(future)

    def work(self, tasks):
        self.advance_tasks(tasks, rps.AGENT_EXECUTING, publish=True, push=False)
        ready = []
        for task in tasks:
            self._prof.prof("task_start", uid=task["uid"])
            self._known[task["uid"]] = task
            try:
                ready.append((task, self._request(task)))
            except Exception as error:  # of the description, or of a command
                self._fail([task], error)
        try:
            futures = self._dvm.submit_many([request for _, request in ready])
        except Exception as error:
            self._fail([task for task, _ in ready], error)
            return
        for (task, _), future in zip(ready, futures):
            self._watch_task(task, future)

    def _watch_task(self, task, future):
        with self._lock:
            self._futures[task["uid"]] = future
        future.add_done_callback(lambda future: self._ends.put((task, future)))
        self.handle_timeout(task)
        if self.is_canceled(task) is True:
            self.cancel_task(task)

    def _fail(self, tasks, error):
        """Tasks that cannot be submitted."""
        self._log.error("submitting tasks failed: %r", error)
        for task in tasks:
            self._known.pop(task["uid"], None)
            task["exception"], task["exception_detail"] = repr(error), str(error)
            self._prof.prof("unschedule_start", uid=task["uid"])
        self.publish(rpc.AGENT_UNSCHEDULE_PUBSUB, tasks)
        self.advance_tasks(tasks, rps.FAILED, publish=True, push=False)

    # ---- requests ----

    def _request(self, task):
        """A task of pmi2x_dvm."""
        description, directory, uid = task["description"], task["task_sandbox_path"], task["uid"]
        gpus = description["gpus_per_rank"]
        if gpus != int(gpus):
            raise ValueError(f"gpus_per_rank is {gpus}: ranks of pmi2x-dvm have whole GPUs")
        ru.rec_makedir(directory)
        self._run(task, "pre_launch")
        task["stdout"] = task["stderr"] = ""
        task["stdout_file"] = os.path.join(directory, description.get("stdout") or f"{uid}.out")
        task["stderr_file"] = os.path.join(directory, description.get("stderr") or f"{uid}.err")
        return {
            "argv": self._command(task),
            "ranks": description["ranks"],
            "cores": description["cores_per_rank"],
            "gpus": int(gpus),
            "path": task["stdout_file"].replace("%", "%%"),
            "error": task["stderr_file"].replace("%", "%%"),
            "append": True,
            "name": uid,
            "env": self._environment,
            "tied": True,
        }

    def _command(self, task):
        description, directory = task["description"], task["task_sandbox_path"]
        needs_script = ("pre_exec", "post_exec", "startup_timeout", "named_env")
        if any(map(description.get, needs_script)) or self.session.rcfg.get("task_pre_exec"):
            _, script = self._create_exec_script(self._launcher, task)
            return ["/bin/sh", "-c", IN_DIRECTORY, directory, script]
        lines = [self._get_rp_env(task), f"export RP_RANKS={description['ranks']}"]
        lines.append(self._launcher.get_rank_cmd())
        if description["threading_type"] == rpc.OpenMP:
            lines.append(f"export OMP_NUM_THREADS={description['cores_per_rank']}")
        lines.append(self._get_task_env(task, self._launcher))
        lines.append(f"cd {shlex.quote(directory)} && exec {self._launcher.get_exec(task)}")
        return ["/bin/sh", "-c", "\n".join(lines)]

    def _extend_pre_exec(self, td, slots=None):
        """The DVM chooses the GPUs, and sets CUDA_VISIBLE_DEVICES."""
        super()._extend_pre_exec(td)

    @staticmethod
    def _run(task, key):
        """Commands of a description that are for the agent's node."""
        for command in task["description"].get(key) or []:
            out, err, code = ru.sh_callout(command, shell=True, cwd=task["task_sandbox_path"])
            if code:
                raise RuntimeError(f"{key} failed: {command}: {err or out}")

    # ---- ends, in a thread of its own ----

    def _collect(self):
        ends = []
        while None not in ends:
            ends = [self._ends.get()]
            while not self._ends.empty():
                ends.append(self._ends.get())
            tasks = [self._end(*end) for end in ends if end]
            if tasks:
                self.publish(rpc.AGENT_UNSCHEDULE_PUBSUB, tasks)
                self.advance_tasks(tasks, rps.AGENT_STAGING_OUTPUT_PENDING, publish=True, push=True)

    def _end(self, task, future):
        uid = task["uid"]
        with self._lock:
            self._futures.pop(uid, None)
            self._known.pop(uid, None)
        task["exit_code"], task["target_state"] = None, rps.FAILED
        try:
            result = future.result()
            self._stamp(uid, result)
            self._conclude(task, result)
            self._run(task, "post_launch")
        except concurrent.futures.CancelledError:
            task["target_state"] = rps.CANCELED
        except (Error, RuntimeError) as error:
            task["target_state"] = rps.FAILED
            task["exception"], task["exception_detail"] = repr(error), str(error)
        self._prof.prof("unschedule_start", uid=uid)
        return task

    @staticmethod
    def _conclude(task, result):
        task["exit_code"] = result.code
        if result.cancelled or result.why == TIME_LIMIT:
            task["exit_code"], task["target_state"] = None, rps.CANCELED
        elif result.code == 0:
            task["target_state"] = rps.DONE
        else:
            task["exception"] = 'RuntimeError("task failed")'
            task["exception_detail"] = result.why or f"exit code: {result.code}"

    def _stamp(self, uid, result):
        """The head's and the nodes' times, as the events of RADICAL-Pilot's scripts."""
        stamp = functools.partial(self._prof.prof, uid=uid)
        submitted, placed, started, ended = result.times
        for event in "task_run_start", "launch_start", "launch_submit":
            stamp(event, ts=submitted)
        if started:
            for event in "task_run_ok", "exec_start", "rank_start":
                stamp(event, ts=started)
            for event in "rank_stop", "exec_stop":
                stamp(event, ts=ended)
        stamp("launch_collect", ts=ended)
        stamp("launch_stop", ts=ended)
        stamp("task_run_stop")


class _Launcher(LaunchMethod):
    """What RADICAL-Pilot's scripts ask of a launch method."""

    def __init__(self, log):
        self.name, self._log, self._pwd = "PMI2X", log, os.getcwd()

    def get_rank_cmd(self):
        return "export RP_RANK=${SLURM_PROCID:-0}\n"
