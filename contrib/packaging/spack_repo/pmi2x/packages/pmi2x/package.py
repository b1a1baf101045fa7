# SPDX-License-Identifier: BSD-3-Clause
"""How Spack builds pmi2x from the tarball of a release."""

import os

from spack.package import *
from spack_repo.builtin.build_systems.autotools import AutotoolsPackage


class Pmi2x(AutotoolsPackage):
    """Slurm plugin that starts MPI jobs fast, its agent, client libraries and tools."""

    # Where contrib/packaging/make-tarball has left it: the current directory.
    url = f"file://{os.getcwd()}/pmi2x-0.1.0.tar.xz"

    license("BSD-3-Clause AND GPL-2.0-or-later")

    # Without a sum: the tarball is the site's. spack install --no-checksum
    version("0.1.0")

    variant("plugin", default=False, description="The plugin, for the slurm of this spec")
    variant("slurm_source", default="none", values=lambda value: True, multi=False,
            when="+plugin", description="Source tree of that slurm, where its configure "
            "has been run, or that contrib/build/slurm-source has made")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("uthash", type="build")
    depends_on("rdma-core", type="build")  # headers: the library is opened where it is
    depends_on("hwloc@2:")
    depends_on("jansson@2.12:")
    depends_on("libsodium@1.0.18:")
    depends_on("libuv@1.41:")
    depends_on("pmix@4.2:")
    depends_on("xxhash@0.8:", type="build")  # compiled in
    depends_on("python@3.9:", type="run")
    depends_on("slurm", when="+plugin")

    def configure_args(self):
        with_all = [f"--with-{name}" for name in ("hwloc", "jansson", "pmix", "verbs")]
        if self.spec.satisfies("~plugin"):
            return [*with_all, "--without-slurm"]
        return [*with_all, f"--with-slurm={self.spec['slurm'].prefix}",
                f"--with-slurm-source={self.spec.variants['slurm_source'].value}"]
