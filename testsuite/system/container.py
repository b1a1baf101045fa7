# SPDX-License-Identifier: BSD-3-Clause
"""Directories that are roots of containers: an MPI program, and all that it loads."""

import pathlib
import re
import shutil
import subprocess

LEFT_OUT = shutil.ignore_patterns("python*", "*.h", "*.mod", "*.a")
# Files of the node that all containers see. The mounts go with the process.
ENTER = """#!/bin/sh
for directory in dev proc sys; do
	mount --rbind /$directory {root}/$directory || exit 1
done
exec chroot {root} "$@"
"""


def libraries_of(files):
    """Paths of the shared libraries that are loaded with these."""
    said = subprocess.run(
        ["ldd", *files], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ).stdout
    return set(re.findall(r"(/\S+) \(0x", said))


def inside(root, path):
    return root / str(path).lstrip("/")


def make_root(root, program, trees, more=()):
    """Make a root directory with a program, directories, further programs and the
    libraries that they load. Returns the command that runs the program in it."""
    for name in ("dev", "etc", "proc", "sys", "tmp"):
        (root / name).mkdir(parents=True)
    files = [program, *more]
    for tree in trees:
        shutil.copytree(tree, inside(root, tree), ignore=LEFT_OUT, dirs_exist_ok=True)
        files += pathlib.Path(tree).rglob("*.so*")
    for path in [program, *more, *libraries_of(files)]:
        inside(root, path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, inside(root, path))
    enter = root / "enter"
    enter.write_text(ENTER.format(root=root))
    enter.chmod(0o755)
    return ["unshare", "--mount", enter, program]
