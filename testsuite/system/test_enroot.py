# SPDX-License-Identifier: BSD-3-Clause
"""Programs in containers of enroot and pyxis, which are built from their sources. These
are in the directories PMI2X_ENROOT_TREE and PMI2X_PYXIS_TREE."""

import os
import pathlib
import shutil
import subprocess

import pytest

from container import make_root
from harness import Cluster

TOP = pathlib.Path(__file__).resolve().parents[2]
HELLO = TOP / "contrib" / "cluster" / "mpi-hello.c"
HOOK = TOP / "contrib/packaging/enroot/51-slurm-pmi2x.sh"
pytestmark = [pytest.mark.wide, pytest.mark.plain("tried on plain nodes only")]

# enroot's programs are static. Its sources bring a C library and the kernel's headers as
# submodules; Debian's do as well. Nothing here needs makeself.
MUSL = """#!/bin/sh
exec musl-gcc "$@" -idirafter {headers}
"""
# NVIDIA builds its packages with these flags. enroot then leaves descriptors open.
FLAGS = "-DALLOW_SPECULATION -DINHERIT_FDS"
# The nodes are one machine, and each has containers of its own.
CONF = """ENROOT_DATA_PATH {path}/data/${{SLURMD_NODENAME}}
ENROOT_RUNTIME_PATH {path}/run/${{SLURMD_NODENAME}}
ENROOT_CACHE_PATH {path}/cache
ENROOT_TEMP_PATH {path}
"""
# UCX, which MPICH uses, cannot open the memory of another user namespace by /proc.
UCX = {"UCX_TLS": "posix,self", "UCX_POSIX_USE_PROC_LINK": "n"}
LIBRARIES = ["mpich", "openmpi"]
STEP = ["-N2", "-n4", "--ntasks-per-node=2"]


def sources(name, scratch):
    """A copy of the tree that a variable names."""
    tree = os.environ.get(f"PMI2X_{name.upper()}_TREE")
    if not tree:
        pytest.skip(f"PMI2X_{name.upper()}_TREE names no sources of {name}")
    ignore = shutil.ignore_patterns(".git")  # its submodules are not fetched
    return shutil.copytree(tree, scratch / name, symlinks=True, ignore=ignore)


def put_dependencies(deps):
    """What enroot's makefile looks for, with Debian's musl and headers."""
    include = deps / "dist/musl/include"
    (include / "sys").mkdir(parents=True)
    (include / "sys/cdefs.h").touch()
    arch = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
    for name in ("linux", "asm-generic", f"{arch}/asm"):
        (include / pathlib.Path(name).name).symlink_to(f"/usr/include/{name}")
    for name in ("musl", "linux-headers", "makeself"):
        (deps / name).mkdir(exist_ok=True)
        (deps / name / ".stamp").touch()
    makeself = deps / "dist/makeself/bin/enroot-makeself"
    compiler = deps / "dist/musl/bin/musl-gcc"
    for path in (makeself, compiler):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MUSL.format(headers=include))
        path.chmod(0o755)
    return compiler


@pytest.fixture(scope="module")
def enroot(scratch):
    """Where enroot is installed, with NVIDIA's hook and ours."""
    if os.getuid():
        pytest.skip("tried as root only")
    if not shutil.which("mksquashfs") or not shutil.which("musl-gcc"):
        pytest.skip("squashfs-tools or musl-tools is not there")
    tree = sources("enroot", scratch)
    compiler = put_dependencies(tree / "deps")
    prefix = scratch / "enroot-inst"
    argv = ["make", f"CC={compiler}", f"LDFLAGS=-static -L{tree}/deps/dist/libbsd"]
    subprocess.run([*argv, f"prefix={prefix}", "install"], cwd=tree, check=True,
                   env={**os.environ, "CPPFLAGS": FLAGS}, stdout=subprocess.DEVNULL)
    hooks = prefix / "etc/enroot/hooks.d"
    shutil.copy(prefix / "share/enroot/hooks.d/50-slurm-pmi.sh", hooks)
    shutil.copy(HOOK, hooks)
    (prefix / "etc/enroot/enroot.conf").write_text(CONF.format(path=prefix))
    return prefix


@pytest.fixture(scope="module")
def image(enroot, compile_program):
    """Makes an image, in which the program is /program: enroot hides /tmp."""

    def make(library):
        path = enroot / f"{library}.sqsh"
        if not path.exists():
            trees = []
            if library == "openmpi":
                link = ["mpicc.openmpi", "--showme:libdirs"]
                place = subprocess.check_output(link, text=True).split()[0]
                trees = [pathlib.Path(place).parent, "/etc/openmpi", "/usr/share/openmpi"]
            root = enroot / library
            program = compile_program(HELLO, f"mpicc.{library}")
            make_root(root, program, trees, ["/bin/sh"])
            shutil.copy(program, root / "program")
            squash = ["mksquashfs", root, path, "-quiet", "-no-progress"]
            subprocess.run(squash, check=True, stdout=subprocess.DEVNULL)
        return path

    return make


@pytest.fixture
def cluster(prefix, kind, scratch, enroot):
    """Two nodes whose programs find enroot, with further lines for slurm.conf."""
    if kind != "pmi2x":
        pytest.skip("compared with nothing")
    made = []

    def start(*lines):
        options = [word for line in lines for word in ("--slurm-conf-line", line)]
        made.append(Cluster(prefix, scratch / "enroot-nodes", kind, 2, options))
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{enroot}/bin:{path}"
        made[0].up()
        os.environ["PATH"] = path
        return made[0]

    yield start
    for each in made:
        left = each.wait_until_clean()
        each.down()
        assert not left, f"left behind: {left}"


@pytest.mark.parametrize("library", LIBRARIES)
def test_program_starts_in_enroot(cluster, enroot, image, library):
    path = image(library)
    nodes = cluster()
    command = ["env", f"PATH={enroot}/bin:{os.environ['PATH']}", "enroot"]
    nodes.srun("-N2", *command, "create", "--name", library, path).ok()
    settings = [word for pair in UCX.items() for word in ("--env", "=".join(pair))]
    result = nodes.srun(*STEP, *command, "start", *settings, library, "/program",
                        env={"PMI2X_PMIX": "early"}).ok()
    assert result.stdout.startswith("size 4 "), result


@pytest.mark.parametrize("library", LIBRARIES)
def test_program_starts_in_pyxis(cluster, image, scratch, library):
    path = image(library)
    plugin = scratch / "pyxis" / "spank_pyxis.so"
    if not plugin.exists():
        subprocess.run(["make"], cwd=sources("pyxis", scratch), check=True,
                       stdout=subprocess.DEVNULL)
    conf = scratch / "plugstack.conf"
    conf.write_text(f"required {plugin} runtime_path={scratch}/pyxis-run\n")
    nodes = cluster(f"PlugStackConfig={conf}")
    result = nodes.srun(*STEP, f"--container-image={path}", "/program",
                        env={"PMI2X_PMIX": "early", **UCX}).ok()
    assert result.stdout.startswith("size 4 "), result
