# SPDX-License-Identifier: BSD-3-Clause
"""What tests with RADICAL-Pilot share: a script, and the description of the resource."""

import json

RADICAL = """
import os, sys
import radical.pilot as rp

session = rp.Session()
try:
    pilots, tasks = rp.PilotManager(session), rp.TaskManager(session)
    pilot = pilots.submit_pilots(rp.PilotDescription({
        "resource": "local.slurm", "cores": 8, "runtime": 10, "exit_on_error": True,
        "sandbox": os.environ["HOME"]}))
    tasks.add_pilots(pilot)
    some = [rp.TaskDescription({"executable": "/bin/echo", "arguments": [i]}) for i in range(6)]
    some.append(rp.TaskDescription({
        "executable": "/bin/sh", "arguments": ["-c", "echo rank $RP_RANK"], "ranks": 8}))
    done = tasks.submit_tasks(some)
    tasks.wait_tasks()
    print("states", {task.state for task in done})
    print("ranks", sorted(set(done[-1].stdout.split()) - {"rank"}))
finally:
    session.close(download=False)
"""
RESOURCE = {
    "default_schema": "local",
    "schemas": {"local": {"job_manager_endpoint": "fork://localhost",
                          "filesystem_endpoint": "file://localhost"}},
    "resource_manager": "SLURM", "agent_config": "default", "agent_scheduler": "CONTINUOUS",
    "agent_spawner": "POPEN",
    "rp_version": "installed", "virtenv_mode": "use", "python_dist": "default",
    "cores_per_node": 4, "gpus_per_node": 0,
}  # fmt: skip


def radical_resource(home, prefix, environment, method):
    """Describe the resource local.slurm, whose launch method is that of pmi2x-dvm's engines."""
    configs = home / ".radical/pilot/configs"
    configs.mkdir(parents=True)
    path = {"pre_exec_cached": [f"export PATH={prefix}/libexec/pmi2x/pmi2x-dvm-engines:$PATH"]}
    resource = {
        **RESOURCE,
        "launch_methods": {"order": [method], method: path},
        "virtenv": str(environment),
        "default_remote_workdir": str(home),
    }
    (configs / "resource_local.json").write_text(json.dumps({"slurm": resource}))
