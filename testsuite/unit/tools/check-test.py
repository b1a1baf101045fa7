# SPDX-License-Identifier: BSD-3-Clause
"""What pmi2x check says of nodes, of a Slurm that scripts play, by Nagios' rules."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
PROGRAM = SOURCE / "src/tools/pmi2x-check"
sys.path.insert(0, str(SOURCE / "src/tools"))

from pmi2x_check import judge, local  # noqa: E402
from pmi2x_check.judge import CRITICAL, OK, UNKNOWN, WARNING, Finding  # noqa: E402

BUILD = "0.1.0-0123456789ab protocol 7"
SCRIPTS = {
    "scontrol": """#!/bin/sh
[ "$2 $3" = "hostnames n[7-8]" ] && { printf 'n7\\nn8\\n'; exit; }
[ "$2" = hostnames ] && { cat "$PLAYED/names"; exit; }
cat "$PLAYED/errors" >&2
cat "$PLAYED/config"
""",
    "sinfo": """#!/bin/sh
cat "$PLAYED/states"
""",
    "squeue": """#!/bin/sh
[ "$SLURM_TIME_FORMAT" = %s ] && cat "$PLAYED/completing"
""",
    "srun": """#!/bin/sh
case "$*" in
--mpi=list) echo "MPI plugin types are...  none pmi2 $(cat "$PLAYED/types")" ;;
*--mpi=none*) cat "$PLAYED/facts" ;;
*--mpi=pmi2x*) cat "$PLAYED/trial" >&2; [ ! -s "$PLAYED/trial" ] && echo passed 2 ;;
esac
""",
    "pmi2x-probe": """#!/bin/sh
case $1 in
--nodes) cat "$PLAYED/rows" ;;
--mpi) echo "speaks something"; exit "$(cat "$PLAYED/speaks")" ;;
esac
""",
}


def row(node, file="mpi_pmi2x.so", verdict="ok"):
    return f"{node:24} {file:13} {BUILD:32} {verdict}\n"


def facts(node, descriptors=131072, ephemeral="32768\t60999"):
    lines = (f"descriptors {descriptors}", "locked 65536", "cpus 64",
             f"ephemeral {ephemeral}")
    return "".join(f"{node} {line}\n" for line in lines)


class Bed(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        for name, text in SCRIPTS.items():
            (self.place / name).write_text(text)
            (self.place / name).chmod(0o755)
        self.say("errors", "")
        self.say("completing", "")
        self.say("config", "PluginDir               = /usr/lib/slurm\n"
                 "SrunPortRange           = 0-0\nPmi2xPorts              = (default)\n")
        self.say("states", "n1 idle\nn2 mixed\nn3 allocated\nn4 down\n")
        self.say("names", "n1\nn2\n")
        self.say("types", "pmi2x")
        self.say("rows", row("(this host)") + row("n1") + row("n2", "pmi2x-agent"))
        self.say("facts", facts("n1") + facts("n2"))
        self.say("trial", "")

    def say(self, name, text):
        (self.place / name).write_text(text)

    def check(self, *argv, **more):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("SLURM", "PMI"))}
        env.update({"PATH": f"{self.place}:{os.environ['PATH']}",
                    "PLAYED": str(self.place), **more})
        return subprocess.run([sys.executable, "-B", PROGRAM, *argv], env=env, text=True,
                              capture_output=True, timeout=60, check=False)

    def says(self, level, *texts, argv=()):
        done = self.check(*argv)
        self.assertEqual(done.returncode, level, done.stdout + done.stderr)
        self.assertTrue(done.stdout.startswith(f"PMI2X {judge.NAMES[level]} - "), done.stdout)
        for text in texts:
            self.assertIn(text, done.stdout)
        return done.stdout


class Nodes(Bed):
    def test_all_is_well(self):
        self.says(OK, f"build {BUILD}", "2 nodes (n1, n2) has exchanged data",
                  "28672-32767, the default", "busy or down: n3 allocated, n4 down")

    def test_named_nodes_that_are_busy(self):
        self.says(UNKNOWN, "busy or down: n3 allocated, n4 down", "exchanged data",
                  argv=["--nodes", "n[1-4]"])

    def test_named_nodes_that_slurm_does_not_know(self):
        self.say("names", "".join(f"n{i}\n" for i in range(1, 15)))
        self.says(UNKNOWN, "UNKNOWN - ", "Slurm knows no node n5, n6, n7, n8, n9, n10, n11, "
                  "n12 and 2 more", "exchanged data", argv=["--nodes", "n[1-14]"])

    def test_in_an_allocation_they_are_its_own(self):
        self.say("states", "n1 allocated\nn2 allocated\n")
        done = self.check(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2]")
        self.assertEqual(done.returncode, OK, done.stdout)

    def test_json(self):
        answer = json.loads(self.check("--json").stdout)
        self.assertEqual(answer["status"], "OK")
        self.assertEqual({f["level"] for f in answer["findings"]}, {"OK"})

    def test_findings_for_prometheus(self):
        self.say("rows", row("n1", verdict="missing") + row("n2"))
        path = self.place / "pmi2x.prom"
        self.says(CRITICAL, argv=["--prometheus", str(path)])
        self.assertEqual(path.stat().st_mode & 0o777, 0o644)
        lines = path.read_text().splitlines()
        values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        self.assertLessEqual(float(values.pop("pmi2x_check_time_seconds")), time.time())
        self.assertEqual(values["pmi2x_check_status"], "2")
        self.assertEqual(values['pmi2x_check_finding{check="build",node="n1"}'], "2")
        self.assertEqual(values['pmi2x_check_finding{check="ports",node=""}'], "0")
        self.assertEqual(len(values), len(lines) - 7)
        done = self.check("--prometheus", "/nonexistent/file")
        self.assertEqual(done.returncode, UNKNOWN)
        self.assertIn("/nonexistent/file: No such file or directory", done.stderr)

    def test_another_build(self):
        self.say("rows", row("n1", verdict="another build") + row("n2"))
        self.says(WARNING, "mpi_pmi2x.so has another build on 1 node (n1)", "exchanged data")

    def test_a_node_without_plugin(self):
        self.say("rows", row("n1", verdict="missing") + row("n2"))
        self.says(CRITICAL, "is missing on 1 node (n1)", "scontrol reconfigure",
                  "1 node (n2)")

    def test_a_plugin_for_another_slurm(self):
        self.say("types", "")
        said = self.says(CRITICAL, "cannot load the plugin mpi/pmi2x", "built for Slurm of this version")
        self.assertNotIn("trial", said)
        self.say("config", "PluginDir = /x\nSLURM_VERSION = 22.05.8\nPmi2xPmix = auto\n")
        self.say("types", "\nsrun: plugin_peek: Incompatible Slurm plugin "
                 "/x/mpi_pmi2x.so version (24.11.5)")
        self.says(CRITICAL, "the installed one is for Slurm 24.11.5",
                  "built for Slurm 22.05.8, as mpi_pmi2x.so in /x\n")

    def test_plugin_for_another_slurm_on_a_node_is_critical(self):
        self.say("rows", row("(this host)") +
                 row("n1", verdict="for Slurm 22.05.7, not 22.05.8") + row("n2"))
        said = self.says(
            CRITICAL, "mpi_pmi2x.so is for Slurm 22.05.7, not 22.05.8, on 1 node (n1)",
            "install pmi2x-plugin there, built for the Slurm of the node",
            "a step of 1 node (n2)")
        self.assertNotIn("all have build", said)

    def test_node_that_is_completing_for_minutes_is_named_with_its_remedy(self):
        self.say("states", "n1 idle\nn2 mixed\nn7 completing\nn8 completing\n")
        self.say("completing", f"{int(time.time()) - 300} n[7-8]\n")
        said = self.says(CRITICAL, "2 nodes (n7, n8) have been completing a job for 5 minutes",
                         "systemctl restart slurmd", "exchanged data")
        self.assertNotIn("busy", said)

    def test_node_that_begins_to_complete_is_busy(self):
        self.say("states", "n1 idle\nn2 mixed\nn7 completing\n")
        self.say("completing", f"{int(time.time())} n[7-8]\n")
        self.says(OK, "busy or down: n7 completing")

    def test_stuck_node_of_an_allocation_is_not_tried(self):
        self.say("states", "n1 allocated\nn2 allocated\nn7 completing\n")
        self.say("completing", f"{int(time.time()) - 300} n[7-8]\n")
        done = self.check(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2,7]")
        self.assertEqual(done.returncode, CRITICAL, done.stdout)
        self.assertIn("1 node (n7) has been completing", done.stdout)
        self.assertIn("2 nodes (n1, n2) has exchanged", done.stdout)

    def test_all_nodes_stuck(self):
        self.say("states", "n7 completing\n")
        self.say("completing", f"{int(time.time()) - 300} n[7-8]\n")
        self.says(CRITICAL, "1 node (n7) has been completing", "no node is free")

    def test_no_trial_before_slurmctld_knows_the_plugin(self):
        self.say("config", "PluginDir = /x\nSrunPortRange = 0-0\n")
        self.say("trial", "would fail\n")
        said = self.says(CRITICAL, "slurmctld has not loaded the plugin",
                         "scontrol reconfigure")
        self.assertNotIn("trial:", said)

    def test_trial_that_slurmd_does_not_answer_names_nodes_and_remedy(self):
        self.say("trial", "srun: error: Task launch for StepId=7.0 failed on node n2: "
                 "Socket timed out on send/recv operation\nsrun: error: Application "
                 "launch failed: x\nsrun: Job step aborted\n")
        self.says(CRITICAL, "slurmd does not answer on 1 node (n2)",
                  "systemctl restart slurmd")

    def test_the_trial_fails(self):
        self.say("trial", "srun: error: x\npmi2x: n1 cannot connect to n2, port 7\n")
        self.says(CRITICAL, "has failed: pmi2x: n1 cannot connect", "open the ports")
        self.say("trial", "pmi2x: install X\npmi2x: cannot prepare the step: no such file\n")
        self.says(CRITICAL, "has failed: pmi2x: install X\n")
        self.say("trial", "slurmstepd: error: execve(): python3: No such file or directory\n"
                 "srun: error: n1: task 0: Exited with exit code 2\n")
        self.says(CRITICAL, "has failed: it needs python3, which a node lacks\n")

    def test_no_trial(self):
        self.say("trial", "would fail\n")
        self.assertNotIn("trial", self.says(OK, argv=["--no-trial"]))

    def test_few_descriptors(self):
        self.say("facts", facts("n1", descriptors=256) + facts("n2"))
        self.says(WARNING, "LimitNOFILE of slurmd is low", "on 1 node (n1)")

    def test_infiniband_needs_locked_memory(self):
        self.say("facts", facts("n1") + facts("n2") + "n2 infiniband yes\n")
        self.says(WARNING, "LimitMEMLOCK of slurmd is low", "on 1 node (n2)")

    def test_ports_that_others_take(self):
        self.say("config", "PluginDir = /x\nPmi2xPorts = 40000-40999\n")
        self.says(WARNING, "Pmi2xPorts=40000-40999 lies in", "on 2 nodes (n1, n2)")

    def test_few_ports(self):
        self.say("config", "PluginDir = /x\nSrunPortRange = 7000-7009\nPmi2xPmix = auto\n")
        self.says(WARNING, "SrunPortRange=7000-7009 are few ports")

    def test_default_ports_that_others_take(self):
        self.say("facts", facts("n1") + facts("n2", ephemeral="1024 65535"))
        self.says(WARNING, "the default, 28672-32767, lies in", "on 1 node (n2)",
                  "Pmi2xPorts in mpi.conf")

    def test_default_ports_outside_of_differing_ranges_are_ok(self):
        self.say("facts", facts("n1") + facts("n2", ephemeral="10000 20000"))
        self.says(OK, "28672-32767, the default")

    def test_options_that_differ_are_named_with_their_nodes(self):
        same = "n1 options Pmi2xStallReport=5\nn2 options pmi2xstallreport = 5 \n"
        self.say("facts", facts("n1") + facts("n2") + same
                 + "n1 options Pmi2xTreeWidth=4\nn2 options Pmi2xPmixLibrary=/x\n")
        said = self.says(WARNING, "Pmi2xTreeWidth of mpi.conf differs: 4 on 1 node (n1); "
                         "(default) on 1 node (n2)", "scontrol reconfigure")
        self.assertNotIn("StallReport", said)
        self.assertNotIn("PmixLibrary", said)

    def test_options_that_are_the_same_are_ok(self):
        self.say("facts", facts("n1") + facts("n2") + "n1 options\nn2 options\n"
                 "n1 options Pmi2xPorts=1025-2000 Pmi2xTreeWidth=4\n"
                 "n2 options Pmi2xTreeWidth=4\nn2 options Pmi2xPorts=1025-2000\n")
        self.says(OK, "options: mpi.conf has the same options on 2 nodes (n1, n2)")

    def test_spool_directory_is_too_long_for_a_socket(self):
        config = "PluginDir = /x\nPmi2xPorts = (default)\nSlurmdSpoolDir = "
        spool = "/" + "d" * 88 + "/%n"
        self.say("config", config + spool)
        self.says(OK)
        self.say("config", config + "/d" + spool)
        self.says(WARNING, "is too long for a socket on 2 nodes (n1, n2)",
                  "shorten it to 92 bytes")

    def test_a_silent_node(self):
        self.say("facts", facts("n1"))
        self.says(UNKNOWN, "not known on 1 node (n2)")

    def test_no_slurmctld(self):
        self.say("config", "")
        self.says(UNKNOWN, "slurmctld does not answer", "scontrol ping")

    def test_slurm_cannot_authenticate(self):
        self.say("config", "")
        for reason in ('Munge encode failed: Failed to connect to "/run/munge.socket"',
                       "slurm_send_node_msg: REQUEST_BUILD_INFO has authentication error"):
            self.say("errors", "scontrol: error: If munged is up, restart it\n"
                     f"scontrol: error: {reason}\n"
                     "slurm_load_ctl_conf error: Protocol authentication error\n")
            self.says(UNKNOWN, f"cannot authenticate on this host: scontrol: error: {reason}",
                      "start munge here", "sackd")

    def test_no_slurm(self):
        (self.place / "scontrol").unlink()
        done = self.check(PATH=str(self.place))
        self.assertEqual(done.returncode, UNKNOWN)
        self.assertIn("run this on a host from which jobs are started", done.stdout)

    def test_no_node_is_free(self):
        self.say("states", "n1 allocated\n")
        self.says(UNKNOWN, "no node is free")

    def test_in_a_step(self):
        done = self.check(PMI_FD="3")
        self.assertEqual(done.returncode, UNKNOWN)
        self.assertIn("run it on a login node", done.stdout)

    def test_a_program_that_is_not_there_is_unknown(self):
        done = self.check("--mpi", "/nonexistent")
        self.assertEqual(done.returncode, UNKNOWN)
        self.assertIn("/nonexistent: there is no such file", done.stdout)

    def test_an_empty_list_of_nodes_is_rejected(self):
        done = self.check("--nodes", "")
        self.assertEqual(done.returncode, UNKNOWN)
        self.assertIn("--nodes is empty", done.stderr)

    def test_programs(self):
        for status, level in ((0, OK), (1, CRITICAL), (4, OK), (5, CRITICAL),
                              (6, UNKNOWN)):
            self.say("speaks", str(status))
            done = self.check("--mpi", "/bin/true")
            self.assertEqual((done.returncode, done.stdout), (level, "speaks something\n"))

    def test_usage(self):
        for argv in ["--none"], ["--run", "x"]:
            self.assertEqual(self.check(*argv).returncode, UNKNOWN)


MARKS = (b"ELF\0pmi2x build %s\0pmi2x slurm 0x160508\0Pmi2xPmix\0Pmi2xPorts\0"
         b"%s/pmi2x/pmi2x-agent\0%s/pmi2x/pmi2x-pmixd\0%s/pmi2x/libpmi2x-srun.so\0"
         b"%s/pmi2x/libpmi2x-lend.so\0")


class Local(Bed):
    """pmi2x check --local, of a host that files and scripts play."""

    def setUp(self):
        super().setUp()
        self.make_plugin(BUILD)
        (self.place / "pmi2x").mkdir()
        for name in "pmi2x-pmixd", "libpmi2x-srun.so", "libpmi2x-lend.so":
            self.program(f"pmi2x/{name}", "exit 2")
        self.program("pmi2x/pmi2x-agent", f"echo 'pmi2x build {BUILD}'; exit 2")
        self.program("slurmd", "echo slurm-wlm 22.05.8")
        self.say("slurm.conf", f"ClusterName=x\nplugindir=/nowhere:{self.place}\n")
        self.say("mpi.conf", "# a comment\nPmi2xPmix=no Pmi2xPorts=7000-7999\n")

    def make_plugin(self, build):
        place = os.fsencode(self.place)
        (self.place / "mpi_pmi2x.so").write_bytes(
            MARKS % (build.encode(), place, place, place, place))

    def program(self, name, script):
        self.say(name, f"#!/bin/sh\n{script}\n")
        (self.place / name).chmod(0o755)

    def check(self, *argv, **more):
        return super().check("--local", *argv, **{"SLURM_CONF": f"{self.place}/slurm.conf",
                                                  **more})

    def test_all_is_well(self):
        self.says(OK, f"build {BUILD}, for Slurm 22.05.8", "pmi2x-agent starts",
                  "mpi.conf sets Pmi2xPmix, Pmi2xPorts", "slurmd does not run",
                  "only root can change libpmi2x-lend.so, libpmi2x-srun.so, pmi2x-agent, pmi2x-pmixd\n")

    def test_local_check_asks_nothing_of_slurm(self):
        for name in "scontrol", "sinfo", "squeue", "srun":
            self.program(name, f"touch {self.place}/asked; sleep 1000")
        self.says(OK)
        self.assertFalse((self.place / "asked").exists())

    def test_no_plugin(self):
        (self.place / "mpi_pmi2x.so").unlink()
        self.says(CRITICAL, f"there is no mpi_pmi2x.so in /nowhere:{self.place}")

    def test_slurm_in_a_prefix_of_its_own(self):
        prefix = self.place / "opt/slurm-22.05"
        for name in "sbin", "etc", "lib/slurm":
            (prefix / name).mkdir(parents=True)
        shutil.move(self.place / "slurmd", prefix / "sbin")
        shutil.move(self.place / "mpi_pmi2x.so", prefix / "lib/slurm")
        (prefix / "etc/slurm.conf").write_text("ClusterName=x\n")
        (prefix / "etc/mpi.conf").write_text("Pmi2xPmix=no\n")
        path = {"PATH": f"{prefix}/sbin:{os.environ['PATH']}", "SLURM_CONF": ""}
        done = self.check(**path)
        self.assertEqual(done.returncode, OK, done.stdout + done.stderr)
        self.assertIn(f"{prefix}/etc/mpi.conf sets Pmi2xPmix", done.stdout)
        (prefix / "lib/slurm/mpi_pmi2x.so").unlink()
        done = self.check(**path)
        self.assertIn(f"there is no mpi_pmi2x.so in {prefix}/lib/slurm\n", done.stdout)

    def test_plugin_beside_plugin_dir_is_not_found(self):
        self.say("slurm.conf", "ClusterName=x\nPluginDir=/nowhere\n")
        self.says(CRITICAL, "there is no mpi_pmi2x.so in /nowhere\n")

    def test_plugin_for_another_slurm(self):
        self.program("slurmd", "echo slurm 24.05.8")
        self.says(CRITICAL, "is for Slurm 22.05.8, and this host has Slurm 24.05.8",
                  "built for Slurm 24.05.8")

    def test_file_that_is_no_plugin(self):
        self.say("mpi_pmi2x.so", "nothing")
        self.says(CRITICAL, "is not mpi_pmi2x.so of pmi2x")

    def test_agent_that_others_can_change(self):
        (self.place / "pmi2x/pmi2x-agent").chmod(0o775)
        self.says(CRITICAL, "other users than root can change", "mode 775")

    def test_agent_that_is_missing(self):
        (self.place / "pmi2x/pmi2x-agent").unlink()
        self.says(CRITICAL, "pmi2x-agent: No such file", "install the package pmi2x-agent")

    def test_agent_that_lacks_a_library(self):
        self.program("pmi2x/pmi2x-agent", "echo 'error while loading libuv.so.1' >&2; exit 127")
        self.says(CRITICAL, "does not start: error while loading libuv.so.1")

    def test_agent_of_another_build_or_protocol(self):
        self.program("pmi2x/pmi2x-agent", "echo pmi2x build 0.2.0-x protocol 7")
        self.says(WARNING, "pmi2x-agent has another build, 0.2.0-x protocol 7")
        self.program("pmi2x/pmi2x-agent", "echo pmi2x build 0.2.0-x protocol 8")
        self.says(CRITICAL, "pmi2x-agent has another protocol, 0.2.0-x protocol 8")

    def test_pmixd_that_is_missing_is_a_warning(self):
        (self.place / "pmi2x/pmi2x-pmixd").unlink()
        self.says(WARNING, "PMIx clients, such as Open MPI, do without it")

    def test_controller_needs_the_plugin_only(self):
        plugin = local.Plugin(str(self.place / "mpi_pmi2x.so"))
        (self.place / "pmi2x/pmi2x-agent").unlink()
        with unittest.mock.patch.object(local, "find_program", return_value=None):
            self.assertEqual(list(local.judge_files(plugin)), [])

    def test_option_with_a_spelling_mistake(self):
        self.say("mpi.conf", "Pmi2xPmx=no\n")
        self.says(WARNING, "this plugin has no option Pmi2xPmx", "is it Pmi2xPmix?")

    def test_libpmix_that_cannot_be_loaded(self):
        self.say("libpmix.so.2", "nothing")
        for word, level in ("auto", WARNING), ("early", CRITICAL):
            self.say("mpi.conf", f"Pmi2xPmix={word}\nPmi2xPmixLibrary={self.place}/libpmix.so.2\n")
            self.says(level, "libpmix.so.2 cannot be loaded")

    def test_libpmix_is_loaded_where_python_does_not_know_its_path(self):
        """Without PATH in the environment."""
        self.say("libpmix.so.2", "nothing")
        options = {"pmi2xpmixlibrary": f"{self.place}/libpmix.so.2"}
        with unittest.mock.patch.object(sys, "executable", ""):
            found = local.judge_libpmix(options)
        self.assertIn(f"OSError: {self.place}/libpmix.so.2: ", found.text)

    def test_with_options_of_other_checks(self):
        for argv in ["--nodes", "n1"], ["--all"], ["--no-trial"], ["--mpi", "x"]:
            self.assertEqual(self.check(*argv).returncode, UNKNOWN)


class Daemon(unittest.TestCase):
    """The slurmd of --local, of files that play /proc."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.proc = pathlib.Path(place.name)
        for pid, name, environment in ((7, "slurmd", b"X=1\0SLURM_CONF=/a/slurm.conf\0"),
                                       (8, "slurmd", b"X=1\0"), (9, "slurmctld", b"")):
            (self.proc / str(pid)).mkdir()
            (self.proc / f"{pid}/comm").write_text(f"{name}\n")
            (self.proc / f"{pid}/cmdline").write_bytes(b"slurmd\0-D\0")
            (self.proc / f"{pid}/environ").write_bytes(environment)

    def found(self, conf):
        return [path.name for path in local.running_slurmd(conf, self.proc)]

    def test_slurmd_of_another_configuration_is_not_meant(self):
        self.assertEqual(self.found("/a/slurm.conf"), ["7"])
        self.assertEqual(self.found("/etc/slurm/slurm.conf"), ["8"])
        (self.proc / "8/cmdline").write_bytes(b"slurmd\0-f\0/b/slurm.conf\0-D\0")
        self.assertEqual(self.found("/b/slurm.conf"), ["8"])

    def test_slurmd_that_has_not_loaded_the_plugin_is_critical(self):
        maps = self.proc / "7/maps"
        maps.write_text("00-01 r--p 0 0 0 /usr/lib/slurm/mpi_pmi2.so\n")
        self.assertEqual(local.judge_slurmd(self.proc / "7").level, CRITICAL)
        maps.write_text("00-01 r--p 0 0 0 /usr/lib/slurm/mpi_pmi2x.so\n")
        self.assertEqual(local.judge_slurmd(self.proc / "7").text,
                         "slurmd has loaded the plugin")
        maps.unlink()
        self.assertEqual(local.judge_slurmd(self.proc / "7").level, OK)

    def test_limits_are_those_of_slurmd(self):
        (self.proc / "7/limits").write_text(
            "Limit                     Soft Limit           Hard Limit           Units\n"
            "Max locked memory         65536                unlimited            bytes\n"
            "Max open files            1024                 4096                 files\n")
        facts = local.facts_of(self.proc / "7")
        self.assertEqual((facts["descriptors"], facts["locked"]), (["4096"], ["unlimited"]))


class Levels(unittest.TestCase):
    def test_the_worst_counts(self):
        for levels, worst in (((OK, WARNING), WARNING), ((UNKNOWN, OK), UNKNOWN),
                              ((UNKNOWN, WARNING), WARNING),
                              ((WARNING, CRITICAL, UNKNOWN), CRITICAL), ((), UNKNOWN)):
            found = [Finding(level, "x", "y") for level in levels]
            self.assertEqual(judge.worst(found), worst)

    def test_many_nodes(self):
        self.assertEqual(judge.names([f"n{i}" for i in range(10)]),
                         "n0, n1, n2, n3, n4, n5, n6, n7 and 2 more")


if __name__ == "__main__":
    unittest.main(verbosity=2)
