# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x check --local: looks at this host only, without a step and without slurmctld.
The plugin's file says which programs it starts, and which options it knows."""

import difflib
import os
import pathlib
import re
import shutil
import stat
import sys

from pmi2x_check import judge, look
from pmi2x_check.judge import CRITICAL, OK, WARNING, Finding

CONFIGURATIONS = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                  "/run/slurm/conf/slurm.conf", "/usr/local/etc/slurm.conf")
LIBPMIX_PLACES = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib64",
                  "/usr/local/lib")
LIBPMIX_FIRST = 4, 2
PMIX_VERSION = ("import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).PMIx_Get_version; "
                "f.restype = ctypes.c_char_p; print(f().decode())")
RUN_S = 20
HOST = "this host"
# Files that the plugin starts or opens: package, where they are needed, and what fails
# without.
AGENT, LAUNCHER = "pmi2x-agent", "libpmi2x-srun.so"
OPTIONAL = {"pmi2x-pmixd": "PMIx clients, such as Open MPI,",
            "pmi2x-topology": "ranks, which each read the topology of the node,",
            "libpmi2x-lend.so": "steps with PMI2X_LEND fail, and all others"}
AGAIN = "install the packages of one release of pmi2x on this host"


def read_bytes(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


# ---- Slurm's files ----


def prefix_of_slurm():
    """Where Slurm is installed, if in a prefix of its own, such as /opt/slurm-24.11; or ""."""
    program = find_program("slurmd") or find_program("srun")
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(program or "/usr/bin/srun")))
    return "" if prefix in ("/", "/usr", "/usr/local") else prefix


def configuration_file(prefix):
    named = os.environ.get("SLURM_CONF")
    places = (f"{prefix}/etc/slurm.conf", *CONFIGURATIONS) if prefix else CONFIGURATIONS
    return named or next((path for path in places if os.path.exists(path)), "")


def options_in(path):
    """{option: value} of a file of Slurm; of what Slurm reads only the lines."""
    text = re.sub(r"\\\n", " ", read_bytes(path).decode(errors="replace"))
    lines = [line.partition("#")[0] for line in text.splitlines()]
    found = {}
    for line in lines:
        for name, quoted, plain in re.findall(r'(\w+)\s*=\s*(?:"([^"]*)"|(\S*))', line):
            found.setdefault(name, quoted or plain)
    return found


def option(options, name, default=""):
    """Slurm takes names in any case."""
    return next((value for key, value in options.items() if key.lower() == name.lower()),
                default)


def slurm_here():
    """Version of Slurm on this host, or ""."""
    slurmd = find_program("slurmd")
    shown = look.run([slurmd, "-V"], RUN_S)[1] if slurmd else ""
    found = re.search(r" (\d+\.\d+\.\d+)", shown)
    return found[1] if found else ""


def find_program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


# ---- the plugin ----


class Plugin:
    """Facts in the file of the plugin."""

    def __init__(self, path):
        self.path, data = path, read_bytes(path)
        build = re.search(rb"pmi2x build (\S+ protocol \d+)\0", data)
        slurm = re.search(rb"pmi2x slurm 0x([0-9a-f]+)\0", data)
        number = int(slurm[1], 16) if slurm else 0
        self.build = build[1].decode() if build else ""
        self.slurm = (f"{number >> 16}.{number >> 8 & 255:02}.{number & 255}"
                      if number else "")
        self.options = {name.decode() for name in re.findall(rb"\0(Pmi2x\w+)(?=\0)", data)}
        self.files = {name.rpartition("/")[2]: name for name in (
            found.decode() for found in re.findall(
                rb"\0(/[^\0]*/pmi2x/(?:pmi2x-\w+|libpmi2x-(?:lend|srun)\.so))(?=\0)", data))}


def find_plugin(options, defaults):
    """The file, or None, and where Slurm looks: in PluginDir alone, if that is set."""
    places = list(filter(None, option(options, "PluginDir").split(":"))) or defaults
    found = next((f"{place}/mpi_pmi2x.so" for place in places
                  if os.path.exists(f"{place}/mpi_pmi2x.so")), None)
    return found, ":".join(places)


def judge_plugin(plugin, slurm):
    if not plugin.build:
        return Finding(CRITICAL, "plugin", f"{plugin.path} is not mpi_pmi2x.so of pmi2x",
                       "install pmi2x-plugin again")
    if slurm and plugin.slurm and slurm != plugin.slurm:
        return Finding(
            CRITICAL, "plugin", f"{plugin.path} is for Slurm {plugin.slurm}, and this host "
            f"has Slurm {slurm}", f"install pmi2x-plugin, built for Slurm {slurm}")
    text = f"build {plugin.build}, for Slurm {plugin.slurm or 'of an unknown version'}"
    return Finding(OK, "build", text)


# ---- what it starts ----


def what_is_wrong(path):
    """Why the plugin does not start this file, which nobody but root may change."""
    try:
        status = os.stat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    if status.st_uid not in (0, os.getuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return (f"other users than root can change {path} (owner {status.st_uid}, mode "
                f"{stat.S_IMODE(status.st_mode):o})")
    if os.statvfs(path).f_flag & os.ST_NOEXEC:
        return f"{path} is on a file system that is mounted noexec"
    return ""


def judge_file(name, path, wrong):
    if name in OPTIONAL and not os.path.exists(path):
        return Finding(WARNING, "files", f"{wrong}: {OPTIONAL[name]} do without it", AGAIN)
    return Finding(CRITICAL, "files", wrong, "install the package pmi2x-agent on this host; "
                   "its files belong to root, with mode 755 or 644")


def judge_files(plugin):
    """srun needs its library, a compute node the programs."""
    wanted = {LAUNCHER} if find_program("srun") else set()
    if find_program("slurmd"):
        wanted |= {AGENT, *OPTIONAL}
    wanted = sorted(wanted & set(plugin.files))
    faults = {name: wrong for name in wanted
              if (wrong := what_is_wrong(plugin.files[name]))}
    for name, wrong in faults.items():
        yield judge_file(name, plugin.files[name], wrong)
    if wanted and not faults:
        yield Finding(OK, "files", f"only root can change {', '.join(wanted)}")


def judge_agent(plugin):
    """Run by hand it says its build, if it finds its libraries."""
    path = plugin.files.get(AGENT, "")
    if not os.access(path, os.X_OK):
        return
    _, shown, errors = look.run([path], RUN_S)
    said = re.search(r"pmi2x build (\S+ protocol \d+)", shown + errors)
    if not said:
        yield Finding(CRITICAL, "agent", f"{path} does not start: "
                      f"{look.last_line(shown, errors)}", "install the libraries that it needs")
    elif said[1] == plugin.build:
        yield Finding(OK, "agent", "pmi2x-agent starts, and has the plugin's build")
    elif said[1].split()[1:] == plugin.build.split()[1:]:
        yield Finding(WARNING, "agent", f"pmi2x-agent has another build, {said[1]}", AGAIN)
    else:
        yield Finding(CRITICAL, "agent", f"pmi2x-agent has another protocol, {said[1]}, and "
                      "steps fail", AGAIN)


# ---- libpmix ----


def find_libpmix(options):
    named = option(options, "Pmi2xPmixLibrary")
    if named:
        return named
    found = [path for place in LIBPMIX_PLACES
             for path in pathlib.Path("/").glob(f"{place[1:]}/libpmix.so.2")]
    return str(found[0].resolve()) if found else ""


def judge_libpmix(options):
    if option(options, "Pmi2xPmix").lower() == "no":
        return Finding(OK, "libpmix", "mpi.conf offers no PMIx")
    path = find_libpmix(options)
    early = option(options, "Pmi2xPmix").lower() == "early"
    remedy = "install libpmix2 (Debian, Ubuntu) or pmix (RPM), 4.2 or later"
    if not path:
        return Finding(CRITICAL if early else OK, "libpmix", "this host has no libpmix: PMIx "
                       "clients, such as Open MPI, cannot run here", remedy)
    python = sys.executable or "python3"  # unknown without PATH
    _, shown, errors = look.run([python, "-c", PMIX_VERSION, path], RUN_S)
    version = re.search(r"(\d+)\.(\d+)\S*", shown)
    if not version:
        return Finding(CRITICAL if early else WARNING, "libpmix", f"{path} cannot be loaded: "
                       f"{look.last_line(errors)}", remedy)
    if (int(version[1]), int(version[2])) < LIBPMIX_FIRST:
        return Finding(CRITICAL if early else WARNING, "libpmix", f"{path} is libpmix "
                       f"{version[0]}: PMIx clients do not start here", remedy)
    return Finding(OK, "libpmix", f"libpmix {version[0]}, {path}")


# ---- mpi.conf ----


def judge_options(path, options, plugin):
    known = {name.lower(): name for name in plugin.options}
    wrong = [name for name in options
             if name.lower().startswith("pmi2x") and name.lower() not in known]
    for name in wrong:
        close = difflib.get_close_matches(name.lower(), known, 1)
        remedy = f"is it {known[close[0]]}?" if close else "mpi_pmi2x.conf(5) lists them"
        yield Finding(WARNING, "mpi.conf", f"{path}: this plugin has no option {name}, and "
                      "ignores it", remedy)
    if not wrong:
        ours = sorted(name for name in options if name.lower().startswith("pmi2x"))
        yield Finding(OK, "mpi.conf", f"{path} sets {', '.join(ours)}" if ours else
                      "mpi.conf sets no option of pmi2x")


# ---- slurmd, if it runs ----


def conf_of(proc):
    """The configuration file of a slurmd; None: that is not to be read."""
    words = read_bytes(proc / "cmdline").decode(errors="replace").split("\0")
    if "-f" in words[:-1]:
        return words[words.index("-f") + 1]
    environment = read_bytes(proc / "environ")
    if not environment and os.geteuid():
        return None
    named = re.search(rb"(?:^|\0)SLURM_CONF=([^\0]*)", environment)
    return named[1].decode() if named else ""


def running_slurmd(conf, proc=pathlib.Path("/proc")):
    """Directories below /proc of each slurmd that has this configuration."""
    named = [path.parent for path in proc.glob("[0-9]*/comm")
             if read_bytes(path).strip() == b"slurmd"]
    default = "" if conf in CONFIGURATIONS else conf
    return [path for path in named if conf_of(path) in (None, conf, default)]


def judge_slurmd(proc):
    """slurmd keeps the plugins that it has found open; only root can see that."""
    maps = read_bytes(proc / "maps")
    if maps and b"/mpi_pmi2x.so" not in maps:
        return Finding(
            CRITICAL, "slurmd", "slurmd has not loaded the plugin: a step of pmi2x would leave "
            "this node completing", "run \"systemctl reload slurmd\" before such a step comes")
    return Finding(OK, "slurmd", "slurmd has loaded the plugin" if maps else
                   "slurmd runs; only root can see whether it has loaded the plugin")


def facts_of(proc):
    """Facts about this host, as a step would find them: look.NODE_SCRIPT."""
    found = {"cpus": [str(os.cpu_count() or 1)]}
    for name, text in (("descriptors", "open files"), ("locked", "locked memory")):
        line = re.search(rf"^Max {text} +\S+ +(\S+)",
                         read_bytes(proc / "limits").decode(errors="replace"), re.M)
        if line:
            found[name] = [line[1]]
    found["ephemeral"] = read_bytes("/proc/sys/net/ipv4/ip_local_port_range").decode().split()
    if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
        found["infiniband"] = ["yes"]
    return found


def judge_daemon(conf):
    daemons = running_slurmd(conf)
    if not daemons:
        yield Finding(OK, "slurmd", "slurmd does not run")
    for proc in daemons[:1]:
        yield judge_slurmd(proc)
        yield from judge.judge_limits({HOST: facts_of(proc)})


# ---- all of it ----


def default_places(prefix, default_plugins):
    """Where Slurm looks without PluginDir. Packages know the place of a Slurm in /usr only."""
    own = [f"{prefix}/{name}/slurm" for name in ("lib", "lib64")] if prefix else []
    return [place for place in own if os.path.isdir(place)] or [default_plugins]


def findings(default_plugins):
    """default_plugins: where the Slurm that pmi2x was built for looks without PluginDir."""
    prefix = prefix_of_slurm()
    conf = configuration_file(prefix)
    options = options_in(conf)
    mpi_conf = os.path.join(os.path.dirname(conf), "mpi.conf")
    of_mpi = options_in(mpi_conf)
    path, places = find_plugin(options, default_places(prefix, default_plugins))
    if not path:
        yield Finding(CRITICAL, "plugin", f"there is no mpi_pmi2x.so in {places or 'PluginDir'}",
                      "install pmi2x-plugin, built for the Slurm of this host")
        return
    plugin = Plugin(path)
    yield judge_plugin(plugin, slurm_here())
    yield from judge_files(plugin)
    yield from judge_agent(plugin)
    yield judge_libpmix(of_mpi)
    yield from judge_options(mpi_conf, of_mpi, plugin)
    yield from judge_daemon(conf)
