# SPDX-License-Identifier: BSD-3-Clause
"""Ranks whose files, and whose C library, are not the node's."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from container import make_root
from harness import Cluster

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
HELLO = TOP / "contrib" / "cluster" / "mpi-hello.c"
CLIENT = HERE / "programs" / "fault-client.c"
# The kernel's headers, and libraries that are headers only.
HEADERS = ["-idirafter", "/usr/include"]
STEP = ["-N4", "-n8", "--ntasks-per-node=2"]
WORDS = ["init", "fence", "allgather", "ring", "ifence", "wait", "put=2"]
WORDS += ["fence", "finalize"]


def client_sources():
    """The sources of the client library: its folder's, and what the makefile adds."""
    folder = TOP / "contrib" / "libpmi2x"
    text = (folder / "local.mk").read_text()
    rule = re.search(r"libclient_la_SOURCES = (.*?[^\\])\n", text, re.DOTALL)
    more = [TOP / name for name in re.findall(r"\S+\.c\b", rule[1])]
    return [*folder.glob("*.c"), *more]


@pytest.fixture(scope="module")
def musl(build):
    """Compile with musl."""
    if not shutil.which("musl-gcc"):
        pytest.skip("musl-gcc is not there")
    arch = subprocess.run(
        ["gcc", "-print-multiarch"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    paths = [build / "tree", TOP / "src" / "common", TOP / "contrib" / "libpmi2x"]
    paths += [TOP / "contrib" / "libpmi2x" / "include", TOP / "src"]
    flags = ["-O1", "-D_GNU_SOURCE", *(f"-I{path}" for path in paths)]
    flags += [*HEADERS, "-idirafter", f"/usr/include/{arch}"]

    def compile_one(path, *argv):
        subprocess.run(["musl-gcc", *flags, "-o", path, *argv], check=True)
        return path

    return compile_one


@pytest.fixture(scope="module")
def static_client(musl, scratch):
    return musl(scratch / "client-static", "-static", CLIENT, *client_sources())


@pytest.fixture
def step(srun, tmp_path, only_pmi2x):
    """Runs a step of clients that are given their words and a directory."""

    def run_step(program, directory=tmp_path, seen_as=None, **options):
        argv = [*program, seen_as or directory, *WORDS]
        result = srun(*STEP, *argv, **options).ok()
        done = {path.name for path in directory.glob("done.*")}
        assert done == {f"done.{rank}" for rank in range(8)}, result

    return run_step


def test_musl(step, musl, scratch):
    """The shared library, and a program that is linked with it."""
    library = scratch / "libpmi2x-musl.so"
    musl(library, "-shared", "-fPIC", *client_sources())
    client = musl(
        scratch / "client-musl", CLIENT, library, f"-Wl,-rpath,{scratch}"
    )
    step([client])


@pytest.mark.skipif(os.getuid() != 0, reason="chroot wants root")
def test_chroot(step, static_client, tmp_path):
    """Nothing of the node is there: neither /proc nor /dev/shm, nor a library."""
    root = tmp_path / "root"
    (root / "out").mkdir(parents=True)
    shutil.copy(static_client, root / "client")
    chroot = [shutil.which("chroot"), root, "/client"]
    step(chroot, root / "out", seen_as="/out")


@pytest.mark.skipif(os.getuid() != 0, reason="namespaces want root")
def test_namespaces(step, static_client):
    """As a container's start does: it forks, and the rank is a grandchild that has
    ids, processes, network, shared memory and names of its own."""
    unshare = [shutil.which("unshare"), "--fork", "--pid", "--net", "--ipc"]
    step([*unshare, "--uts", "--mount", static_client])


@pytest.mark.plain("tried on plain nodes only")
@pytest.mark.parametrize("version", ["Debian", "5"])
def test_open_mpi(srun, prefix, kind, mpi_container, version):
    """With the node's libpmix as server, and the same or another one inside."""
    if kind != "pmi2x" or not (prefix / "libexec" / "pmi2x" / "pmi2x-pmixd").exists():
        pytest.skip("no PMIx server")
    command = mpi_container(HELLO, version)
    result = srun("-N2", "-n4", *command, env={"PMI2X_PMIX_GDS": "hash"}).ok()
    assert result.stdout.startswith("size 4 "), result
    assert not result.stderr, result


@pytest.mark.plain("tried on plain nodes only")
@pytest.mark.parametrize("pmix", ["early", "auto"])
@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_program_starts_with_what_the_hook_of_enroot_passes_on(
        srun, prefix, kind, compile_program, library, pmix):
    """With an environment that is empty but for that, and a mount namespace."""
    if kind != "pmi2x" or os.getuid():
        pytest.skip("the hook is for pmi2x, and mount wants root")
    if library == "openmpi" and not (prefix / "libexec/pmi2x/pmi2x-pmixd").exists():
        pytest.skip("no PMIx server")
    program = compile_program(HELLO, f"mpicc.{library}")
    hook = TOP / "contrib/packaging/enroot/51-slurm-pmi2x.sh"
    result = srun("-N2", "-n4", HERE / "programs/enroot-start", hook, program,
                  env={"PMI2X_PMIX": pmix}).ok()
    assert result.stdout.startswith("size 4 "), result


def test_hook_of_enroot_leaves_the_variables_of_ranks_to_pyxis(tmp_path):
    """pyxis would set those of the rank that starts the container in all of the node."""
    environ, mounts = tmp_path / "environ", tmp_path / "mounts"
    environ.write_text("PMI_RANK=1\nPMI_SIZE=4\n")
    server = tmp_path / "server"
    server.mkdir()
    run = {"SLURM_MPI_TYPE": "pmi2x", "SLURM_STEP_ID": "0", "PYXIS_RUNTIME_PATH": "/run/pyxis"}
    run |= {"PMI_RANK": "1", "PMI_SIZE": "4", "PMIX_SERVER_TMPDIR": str(server)}
    run |= {"ENROOT_ENVIRON": str(environ), "ENROOT_MOUNTS": str(mounts)}
    hook = TOP / "contrib/packaging/enroot/51-slurm-pmi2x.sh"
    subprocess.run(["bash", hook], env={"PATH": os.environ["PATH"], **run}, check=True)
    assert environ.read_text() == "PMI_SIZE=4\n"
    assert mounts.read_text().startswith(f"{server} ")


# ---- podman ----


@pytest.fixture
def podman():
    """The directory of a podman that can run a container on this machine."""
    if not shutil.which("podman") or not shutil.which("runc"):
        pytest.skip("podman or runc is not there")
    if os.getuid():
        pytest.skip("tried as root only")
    # Its path is short: podman wants less than 50 characters.
    with tempfile.TemporaryDirectory(prefix="pod", dir="/tmp") as directory:
        path = pathlib.Path(directory)
        true = pathlib.Path(shutil.which("true"))
        make_root(path / "root", true, [])
        run = subprocess.run(
            [HERE / "programs/podman-start", path, path / "root", true],
            env={**os.environ, "PMI_FD": "0", "SLURM_PROCID": "0"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if run.returncode:
            pytest.skip(f"podman runs no container here: {run.stderr.splitlines()[-1:]}")
        yield path


@pytest.mark.wide
@pytest.mark.plain("tried on plain nodes only")
@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_program_starts_in_podman(srun, prefix, kind, compile_program, podman, library):
    """One container for each rank, whose root has nothing of the node. Ranks of a node
    share its /dev/shm."""
    if kind != "pmi2x":
        pytest.skip("compared with nothing")
    trees = []
    if library == "openmpi":
        if not (prefix / "libexec/pmi2x/pmi2x-pmixd").exists():
            pytest.skip("no PMIx server")
        link = subprocess.check_output(["mpicc.openmpi", "--showme:libdirs"], text=True)
        place = pathlib.Path(link.split()[0]).parent
        trees = [place, "/etc/openmpi", "/usr/share/openmpi"]
    program = compile_program(HELLO, f"mpicc.{library}")
    make_root(podman / library, program, trees)
    argv = [HERE / "programs/podman-start", podman, podman / library, program]
    step = ["-N2", "-n4", "--ntasks-per-node=2"]
    result = srun(*step, *argv, env={"PMI2X_PMIX": "early"}).ok()
    assert result.stdout.startswith("size 4 "), result


# ---- srun --container ----

# The script that pmi2x(7) recommends to sites: runc passes on the descriptors from 3
# on, all of which must be open. PMI_FD is 60 on every node and in every rank.
RUN = """#!/bin/bash
for ((fd = 3; fd < 60; fd++)); do
	[ -e /proc/self/fd/$fd ] || eval "exec $fd</dev/null"
done
exec runc --root {state} run --preserve-fds 58 --bundle "$1" "$2"
"""
NAME = "%n.%u.%j.%s.%t"
OCI_CONF = """EnvExclude="^SLURM_CONF"
RunTimeEnvExclude="^SLURM_CONF"
RunTimeQuery="runc --root={state} state {name}"
RunTimeKill="runc --root={state} kill --all {name}"
RunTimeDelete="runc --root={state} delete --force {name}"
RunTimeRun="{run} %b {name}"
"""


@pytest.fixture
def oci_cluster(prefix, scratch, kind, srun, site):
    """A cluster whose nodes run containers with runc."""
    major, minor = srun("--version").stdout.split()[1].split(".")[:2]
    if (int(major), int(minor)) < (24, 11):
        pytest.skip("srun --container serves MPI plugins from Slurm 24.11 on")
    if not shutil.which("runc"):
        pytest.skip("runc is not there")
    if os.getuid() or site:
        pytest.skip("containers of runc want root, and the hosts of no site")
    path, state = scratch / "oci", scratch / "oci-state"
    state.mkdir()
    cluster = Cluster(prefix, path, kind, 4)
    cluster.up()
    run = path / "oci-run"
    run.write_text(RUN.format(state=state))
    run.chmod(0o755)
    text = OCI_CONF.format(state=state, name=NAME, run=run)
    (path / "oci.conf").write_text(text)
    yield cluster
    cluster.down()


def make_bundle(path, client):
    """A container with nothing in it but the client and a directory."""
    root = path / "rootfs"
    (root / "out").mkdir(parents=True)
    (root / "proc").mkdir()  # runc closes descriptors by it
    shutil.copy(client, root / "client")
    proc = {"destination": "/proc", "type": "proc", "source": "proc"}
    kinds = ["pid", "mount", "ipc", "uts", "network"]
    process = {"user": {"uid": 0, "gid": 0}, "args": ["/client"], "cwd": "/"}
    config = {
        "ociVersion": "1.0.0",
        "process": {**process, "env": ["PATH=/"]},
        "root": {"path": "rootfs", "readonly": False},
        "mounts": [proc],
        "linux": {"namespaces": [{"type": kind} for kind in kinds]},
    }
    (path / "config.json").write_text(json.dumps(config))
    return root / "out"


def test_oci_runtime(oci_cluster, static_client, tmp_path, only_pmi2x):
    """srun --container with RunTimeRun in oci.conf."""
    out = make_bundle(tmp_path, static_client)
    container = f"--container={tmp_path}"
    oci_cluster.srun(*STEP, container, "/client", "/out", *WORDS).ok()
    assert {path.name for path in out.glob("done.*")} == {
        f"done.{rank}" for rank in range(8)
    }
    assert not oci_cluster.wait_until_clean()
