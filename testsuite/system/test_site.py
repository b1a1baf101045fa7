# SPDX-License-Identifier: BSD-3-Clause
"""A cluster that resembles a site: its hosts are apart, its daemons do what those of
sites do, and pmi2x changes nothing of what Slurm then shows. Needs root."""

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess

import pytest

from faulty import daemon
from faulty import links as links_between
from harness import PATIENCE, SLOWNESS, Cluster, below, run, wait_until
from processes import links_in
from wide import mostly

NODES = 4
PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "ip")
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def make_site(prefix, kind, path, nodes, *options):
    missing = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    if missing:
        pytest.skip(f"--site needs {' '.join(missing)}: contrib/build/install-deps test")
    cluster = Cluster(prefix, path, kind, nodes, ["--site", *PATIENCE, *options])
    cluster.up()
    return cluster


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Jobs of a site have a /tmp of their own: for what they share with a test."""
    path = pathlib.Path("/var/tmp") / f"pmi2x-site-{os.getpid()}"
    path.mkdir(mode=0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def raw(place):
    """As that of all tests, where every user of a site reaches it."""
    programs = place / "programs"
    shutil.copytree(pathlib.Path(__file__).parent / "programs", programs)
    return lambda name, *argv: ["/usr/bin/python3", "-SE", programs / f"{name}.py", *argv]


@pytest.fixture(scope="module")
def site_cluster(request, prefix, kind, site, place):
    if site:
        yield request.getfixturevalue("session_cluster")
        return
    cluster = make_site(prefix, kind, place / "cluster", NODES)
    yield cluster
    cluster.down()


@pytest.fixture
def cluster(site_cluster):
    yield from site_cluster.left_clean()


@pytest.fixture
def start(cluster, place):
    """Start a step whose ranks wait in a fence; returns it and its job."""
    started = []

    def start_one(kind, *options):
        name = f"site-{kind}-{len(started)}"
        command = ["srun", f"--mpi={kind}", "-J", name, *options]
        command += ["sh", "-c", f"touch {place}/{name}.$SLURM_PROCID; sleep 1000"]
        step = cluster.start(*command, stdout=None, stderr=subprocess.DEVNULL)
        started.append(step)
        wait_until(lambda: len(list(place.glob(f"{name}.*"))) == 4)
        (job,) = cluster.run("squeue", "-h", "-o", "%i", "-n", name).ok().lines
        return step, job

    yield start_one
    for step in started:
        step.kill()
        step.wait()


def test_hosts_are_apart(cluster):
    """Name, addresses of both families, and network are a node's own."""
    script = "echo $(hostname) $(ip -o addr show scope global | awk '{print $4}')"
    lines = cluster.srun("-N4", "sh", "-c", script).ok().lines
    assert len({line.split()[0] for line in lines}) == 4
    addresses = [address for line in lines for address in line.split()[1:]]
    assert len(set(addresses)) == 8, lines
    networks = cluster.srun("-N4", "readlink", "/proc/self/ns/net").ok().lines
    assert len({*networks, os.readlink("/proc/self/ns/net")}) == 5, networks


def test_nothing_leads_out(cluster):
    """No route but that between the hosts."""
    routes = cluster.srun("-N4", "ip", "route").ok().lines
    assert len(routes) == 4 and all("10.66.0.0/16" in r for r in routes), routes


def test_ipv6_only(prefix, kind, place, raw):
    line = "CommunicationParameters=DisableIPv4,EnableIPv6"
    options = ["--slurm-conf-line", line]
    cluster = make_site(prefix, kind, place / "ipv6", 2, *options)
    try:
        result = cluster.srun("-N2", "-n4", *raw("exchange", "2")).ok()
        assert result.lines.count("exchanged 4") == 4
    finally:
        cluster.down()


def test_scripts_run(cluster):
    """TaskProlog of each task; Prolog and Epilog on each node."""
    script = "echo $SLURM_JOB_ID $SITE_TASK_PROLOG"
    lines = cluster.srun("-N4", "-n8", "sh", "-c", script).ok().lines
    ((job, user),) = {tuple(line.split()) for line in lines}
    assert user == "root" and len(lines) == 8
    log = cluster.dir / "log" / "scripts"
    for name in "prolog", "epilog":
        wait_until(lambda: log.read_text().count(f"{name} {job} n") == 4)


def test_spank_plugin_is_there(cluster):
    conf = cluster.dir / "plugstack.conf"
    if not conf.exists():
        pytest.skip("there is no compiler")
    assert pathlib.Path(conf.read_text().split()[1]).exists()


def has_containers(cluster):
    text = (cluster.dir / "slurm.conf").read_text()
    return re.search("=(job_container|namespace)/tmpfs$", text, re.M)


@pytest.mark.parametrize("user", ["nobody", "games"])
def test_ordinary_users(cluster, raw, user):
    """Their jobs run as they do, with a /tmp that is theirs."""
    srun = ["srun", f"--mpi={cluster.kind}", "-N2", "-n4"]
    become = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}"]
    become.append("--clear-groups")
    script = f"id -un; stat -c %U /tmp; exec {' '.join(map(str, raw('exchange', '2')))}"
    result = cluster.run(*become, *srun, "sh", "-c", script, cwd="/").ok()
    assert result.lines.count(user) == (8 if has_containers(cluster) else 4), result
    assert result.lines.count("exchanged 4") == 4, result


def test_private_tmp(cluster):
    """A job sees nothing of another's, and what it leaves goes with it."""
    if not has_containers(cluster):
        pytest.skip("in a chroot jobs have no /tmp of their own")
    for _ in range(2):
        result = cluster.srun("-N2", "sh", "-c", "ls -A /tmp; touch /tmp/mark").ok()
        assert result.lines == [], result


def test_memory_is_confined(cluster):
    """More than --mem ends the step, by the kernel."""
    greedy = "x = bytearray(300 << 20)"
    srun = ["-N1", "-n1", "--mem=100M", "/usr/bin/python3", "-SEc"]
    cluster.srun(*srun, greedy).failed().says("oom")
    cluster.srun(*srun, "x = 1").ok()


@pytest.mark.parametrize("options", [[], ["--oom-kill-step"]], ids=["", "OOMKillStep"])
def test_memory_is_used_up(cluster, raw, options):
    """The fence in which the others wait names the rank that the kernel has ended."""
    if options and options[0] not in cluster.run("srun", "--help").stdout:
        pytest.skip("srun --oom-kill-step is of Slurm 23.11")
    options = ["-N2", "--ntasks-per-node=2", "--mem=100M", *options]
    result = cluster.srun(*options, *raw("leave", "2", "greedy", "0", "3")).failed()
    result.says("oom")
    assert re.search(r"rank [23] \(node n\d\) exited by signal 9", result.stderr), result


@pytest.mark.parametrize("size", ["64k", "1m"])
def test_little_shared_memory(cluster, probe, hello, place, size):
    """pmi2x needs none of /dev/shm. MPI libraries do: the step says who has given up."""
    if not has_containers(cluster):
        pytest.skip("in a chroot jobs have no /dev/shm of their own")
    shutil.copy(hello, place / "hello")
    shell = ["sh", "-c", f'mount -o remount,size={size} /dev/shm && exec "$@"', "sh"]
    step = ["-N2", "--ntasks-per-node=2", *shell]
    cluster.srun(*step, probe, "kvs", "allgather", "ring", "kvs").ok()
    result = cluster.srun(*step, place / "hello")
    named = re.search(r"rank \d .*(called abort|exited by signal)", result.stderr)
    assert named or result.code == 0, result


def join_directly(cluster, addresses):
    """A wire between nodes n1 and n2 beside the network that all are in."""
    first, second = (daemon(cluster, "slurmd", node) for node in ("n1", "n2"))
    add = f"link add wire netns {first} type veth peer name wire netns {second}"
    run(["ip", *add.split()]).ok()
    for pid, address in zip((first, second), addresses):
        for words in f"addr add {address} dev wire nodad", "link set wire up":
            run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", *words.split()]).ok()


def ends_of_links(cluster, *nodes):
    """Addresses of the connections between the agents of two nodes."""
    pids = [cluster.agent(node) for node in nodes]
    found = links_between(*pids) if all(pids) else []
    return {end()[0] for s in found for end in (s.getsockname, s.getpeername)}


@pytest.mark.parametrize(
    "network, addresses",
    [
        ("fd77::/64", ["fd77::1/64", "fd77::2/64"]),
        pytest.param(
            "10.77.0.0/24", ["10.77.0.1/24", "10.77.0.2/24"], marks=pytest.mark.wide
        ),
    ],
    ids=["IPv6", "IPv4"],
)
def test_two_networks(prefix, kind, only_pmi2x, place, raw, network, addresses):
    """The links are in the one that Pmi2xNetwork names, not in that of NodeAddr."""
    conf, go = place / "mpi.conf", place / "go"
    go.unlink(missing_ok=True)
    conf.write_text(f"Pmi2xNetwork={network}\n")
    cluster = make_site(prefix, kind, place / "networks", 2, "--mpi-conf", conf)
    try:
        join_directly(cluster, addresses)
        command = ["srun", f"--mpi={kind}", "-N2", "-n4", *raw("gate", "2", "3", go)]
        with cluster.start(*command, stdout=None, stderr=None) as step:
            ends = wait_until(lambda: ends_of_links(cluster, "n1", "n2"))
            go.touch()
            assert step.wait(timeout=60 * SLOWNESS) == 0
        assert {f"{end}/{network[-2:]}" for end in ends} == set(addresses)
    finally:
        cluster.down()


def shown_by_hwloc(cluster, *options, **variables):
    """What ranks find, and are bound to when they want the first CPU of it."""
    script = (
        'test ! -r "$HWLOC_XMLFILE" || echo shared; hwloc-bind --get; '
        "hwloc-bind pu:0 -- hwloc-bind --get; exec lstopo-no-graphics --of console --no-io"
    )
    srun = ["-N2", "--ntasks-per-node=2", *options, "sh", "-c", script]
    return sorted(cluster.srun(*srun, env=variables).ok().lines)


def check_shared_topology(cluster):
    """It is that of the step's CPUs, and the file shows what each finds by itself."""
    for options in [], ["--overcommit"]:
        own = shown_by_hwloc(cluster, *options)
        assert (sum("PU L#1" in line for line in own) == 0) == bool(options), own
        both = shown_by_hwloc(cluster, *options, PMI2X_TOPOLOGY="variables")
        assert both == sorted([*own, *["shared"] * 4])


def test_cores_are_confined(prefix, kind, place, raw):
    """Where nodes claim no more CPUs than there are."""
    cpus = len(os.sched_getaffinity(0))
    if cpus < 2:
        pytest.skip("there is one CPU only")
    cluster = make_site(prefix, kind, place / "cores", 2, "--cpus", str(cpus))
    try:
        show = "import os; print(len(os.sched_getaffinity(0)))"
        command = ["/usr/bin/python3", "-SEc", show]
        for n in 1, cpus:
            options = ["-N2", f"--ntasks-per-node={n}", "--cpu-bind=cores"]
            assert set(cluster.srun(*options, *command).ok().lines) == {"1"}
        assert cluster.srun("-n2", *raw("exchange", "2")).ok()
        if kind == "pmi2x" and shutil.which("lstopo-no-graphics"):
            check_shared_topology(cluster)
    finally:
        cluster.down()


def forgotten(groups):
    """With cgroup v2 Slurm 22.05 and 24.11 try once to remove the group in which a task
    begins, and leave it and those above it where that fails: with any MPI plugin."""
    special = [group for group in groups if group.name == "task_special"]
    return {*special, *(group for one in special for group in one.parents)}


@pytest.mark.parametrize("how", ["well", "kill", "exit", "scancel"])
def test_no_group_is_left(cluster, raw, start, how):
    """However a step ends, its control groups go; the fixture looks for the rest."""
    before = set(cluster.groups())
    if how == "scancel":
        step, job = start(cluster.kind, "-N2", "-n4")
        cluster.run("scancel", job).ok()
        step.wait(timeout=60 * SLOWNESS)
    elif how == "well":
        cluster.srun("-N2", "-n4", *raw("exchange", "2")).ok()
    else:
        cluster.srun("-N2", "-n4", *raw("leave", "2", how, "3", "2"))

    def left():
        groups = set(cluster.groups()) - before
        return groups - forgotten(groups)

    with contextlib.suppress(AssertionError):
        wait_until(lambda: not left())
    assert not left()


def test_wait_for_children(cluster, raw):
    """What a rank has begun may go on after its end. Needs proctrack/cgroup."""
    if "--wait-for-children" not in cluster.run("srun", "--help").stdout:
        pytest.skip("srun --wait-for-children is of Slurm 25.11")
    if "" not in cluster.state["cgroups"]:
        pytest.skip("srun --wait-for-children needs control groups of v2")
    script = f"{' '.join(map(str, raw('exchange', '1')))} && (sleep 1; echo child) &"
    step = ["--wait-for-children", "-N4", "-n8", "sh", "-c", script]
    result = cluster.srun(*step).ok()
    assert result.lines.count("exchanged 8") == 8, result
    assert result.lines.count("child") == 8, result


# ---- what Slurm shows of a step, beside mpi/none ----


def shown_pids(cluster, node, job):
    """(step, local, global rank) of what scontrol listpids shows on a node."""
    command = [cluster.program, "run", "--dir", cluster.dir, "--host", node]
    result = run([*command, "scontrol", "listpids", job, node]).ok()
    rows = [line.split() for line in result.lines[1:]]
    return sorted(row[1:] for row in rows if row[2].startswith("0") and row[3] != "-")


def test_listpids_and_sstat(cluster, kind, start):
    """The plugin adds no process to a step, and takes none away."""
    seen = {}
    for plugin in "none", kind:
        step, job = start(plugin, "-N2", "--ntasks-per-node=2")
        pids = [shown_pids(cluster, node, job) for node in nodes_of(cluster, job)]
        fields = "NTasks,MaxRSSNode,AveCPU,Pids"
        text = cluster.run("sstat", "-Pn", "-j", job, "-o", fields).ok().lines
        tasks, _, cpu, _ = text[-1].split("|")
        seen[plugin] = [[row[1:] for row in rows] for rows in pids], tasks, bool(cpu)
        cluster.run("scancel", job).ok()
        step.wait(timeout=60 * SLOWNESS)
    assert seen["none"] == seen[kind], seen


def nodes_of(cluster, job):
    nodes = cluster.run("squeue", "-h", "-j", job, "-o", "%N").ok().stdout.strip()
    return cluster.run("scontrol", "show", "hostnames", nodes).ok().lines


def test_accounting(cluster, kind, raw):
    """State, exit code, tasks and nodes of steps in the database."""
    seen = {}
    for plugin in "none", kind:
        seen[plugin] = []
        for code, state in (0, "COMPLETED"), (3, "FAILED"):
            script = f"echo $SLURM_JOB_ID; exit {code}"
            result = cluster.srun("-N2", "-n4", "sh", "-c", script, mpi=plugin)
            step = f"{result.lines[0]}.0"
            fields = "State,ExitCode,NTasks,NNodes,AllocCPUS"
            ask = ["sacct", "-Pn", "-j", step, "-o", fields]
            wait_until(lambda: state in cluster.run(*ask).stdout)
            seen[plugin].append(cluster.run(*ask).ok().lines)
    assert seen["none"] == seen[kind], seen


# ---- nodes that differ ----


def inside(cluster, node, *argv, kinds=("net",)):
    """A command in the namespaces of a node."""
    pid = daemon(cluster, "slurmd", node)
    enter = [f"--{kind}=/proc/{pid}/ns/{'mnt' if kind == 'mount' else kind}" for kind in kinds]
    return run(["nsenter", *enter, *argv])


@pytest.fixture
def differing(prefix, kind, only_pmi2x, place):
    """Makes a cluster of two nodes whose agents' debug lines are in slurmd's log."""
    made = []

    def make(*options):
        cluster = make_site(prefix, kind, place / "differing", NODES, "--slurm-conf-line",
                            "SlurmdDebug=debug", *options)
        made.append(cluster)
        return cluster

    yield make
    for cluster in made:
        cluster.down()


def test_nodes_with_other_local_ports_make_links_without_messages(differing, raw):
    cluster = differing()
    low = {"n1": "20000 60999", "n2": "10000 20000", "n3": "40000 65535"}
    for node, ports in low.items():
        path = "/proc/sys/net/ipv4/ip_local_port_range"
        inside(cluster, node, "sh", "-c", f"echo {ports} >{path}").ok()
    assert any(messages_of_step(cluster, raw) == 0 for _ in range(3))  # late nodes get one


def messages_of_step(cluster, raw):
    """How many nodes of a step were told by a message to connect."""
    before = read_logs(cluster)
    cluster.srun(f"-N{NODES}", f"-n{2 * NODES}", *raw("exchange", "2")).ok()
    said = read_logs(cluster)
    assert said.count("link to node") > before.count("link to node")
    return said.count("to connect to port") - before.count("to connect to port")


def read_logs(cluster):
    return "".join(cluster.log_of(f"n{i + 1}") for i in range(NODES))


def give_other_conf(cluster, node, place, text):
    """A node sees another mpi.conf, when its slurmd reads it next."""
    other, usual = place / "other-mpi.conf", cluster.dir / "mpi.conf"
    other.write_text(text)
    inside(cluster, node, "mount", "--bind", other, usual, kinds=["mount"]).ok()
    cluster.run("scontrol", "reconfigure").ok()


def step_of_four(cluster, raw):
    return cluster.srun(f"-N{NODES}", "-n", NODES, *raw("exchange", "2"))


def test_nodes_with_other_options_are_named(differing, place, raw):
    """What harms nobody is a line in slurmd's log; another tree is srun's last line."""
    conf = place / "usual-mpi.conf"
    conf.write_text("Pmi2xTreeWidth=2\nPmi2xCollectiveTimeout=600\n")
    cluster = differing("--mpi-conf", conf)
    give_other_conf(cluster, "n2", place, "Pmi2xTreeWidth=2\nPmi2xCollectiveTimeout=500\n")
    wait_until(lambda: step_of_four(cluster, raw).code == 0
               and "Pmi2xCollectiveTimeout is 500 on node n2 and 600 on node n1" in
               cluster.log_of("n2"))
    inside(cluster, "n2", "umount", cluster.dir / "mpi.conf", kinds=["mount"]).ok()
    give_other_conf(cluster, "n2", place, "Pmi2xTreeWidth=3\n")
    wait_until(lambda: "do not agree on the tree of the step: Pmi2xTreeWidth is" in
               step_of_four(cluster, raw).stderr)
    shown = cluster.run(cluster.prefix / "bin" / "pmi2x", "check", "--no-trial")
    assert "Pmi2xTreeWidth of mpi.conf differs: " in shown.stdout, shown


def test_first_node_without_pytorch_ends_the_step_by_name(differing, place):
    """Ranks of the other nodes would wait for its ports."""
    conf = place / "usual-mpi.conf"
    conf.write_text("Pmi2xTorch=env\n")
    cluster = differing("--mpi-conf", conf)
    give_other_conf(cluster, "n1", place, "Pmi2xTorch=off\n")
    result = cluster.srun("-N2", "-n2", "sleep", "60").failed()
    result.says("Pmi2xTorch is set on node n2 and off on node n1, the first one")


# ---- several, and what is left ----


def namespaces(cluster):
    """All that processes of a cluster are in, or hold open, and this test is not."""
    own = {os.readlink(path) for path in pathlib.Path("/proc/self/ns").iterdir()}
    return links(below(cluster.state["guard"])) - own


def links(pids):
    found = set()
    for pid in pids:
        for where in "ns", "fd":
            found |= set(links_in(f"/proc/{pid}/{where}"))
    return {name for name in found if re.match(r"(net|mnt|uts|cgroup):", name)}


@pytest.mark.parametrize("how", mostly("both", "down", "guard", "supervisor"))
def test_nothing_is_left(prefix, kind, place, raw, how):
    """Of two at once, one goes; also when it is killed while a step runs."""
    one = make_site(prefix, kind, place / "one", 2)
    two = make_site(prefix, kind, place / "two", 2)
    try:
        step = "srun", "-N2", "sleep", "1000"
        job = one.start(*step, stdout=None, stderr=subprocess.DEVNULL)
        wait_until(lambda: [s.endswith("sleep 1000") for s in one.strays()].count(True) == 2)
        held = namespaces(one)
        assert len(held) > 2 * 4
        groups = list(map(pathlib.Path, one.state["cgroups"].values()))
        assert all(path.is_dir() for path in groups)
        end(one, how)
        job.wait(timeout=60 * SLOWNESS)
        wait_until(lambda: not any(path.exists() for path in groups))
        wait_until(lambda: not held & links(all_processes()))
        assert str(one.dir) not in pathlib.Path("/proc/self/mounts").read_text()
        two.srun("-N2", "-n4", *raw("exchange", "1")).ok()
    finally:
        run([one.program, "down", "--dir", one.dir])
        two.down()


def all_processes():
    return [p.name for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()]


def end(cluster, how):
    if how == "down":
        cluster.down()
        return
    guard = cluster.state["guard"]
    # All others descend from it; some of them come and go meanwhile.
    supervisor = max(below(guard), key=lambda pid: len(below(pid)))
    victims = {"guard": [guard], "supervisor": [supervisor]}
    for pid in victims.get(how, [guard, supervisor]):
        os.kill(pid, signal.SIGKILL)
    if how == "both":  # then only "down" removes the control groups
        cluster.down()


def test_needs_root(prefix):
    program = prefix / "libexec" / "pmi2x" / "pmi2x-cluster"
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if os.geteuid() != 0:
        nobody = []
    elif run([*nobody, "test", "-x", program]).code != 0:
        pytest.skip(f"{program} is not reachable for an ordinary user")
    result = run([*nobody, program, "up", "--site", "-N2", "--dir", "/var/tmp/none"])
    result.failed().says("needs root")
