# SPDX-License-Identifier: BSD-3-Clause
# How packages are made, and what is in them beside what "make install" installs.
EXTRA_DIST += contrib/packaging/build-deb contrib/packaging/make-tarball \
	contrib/packaging/firewalld.xml \
	contrib/packaging/lintian-exceptions contrib/packaging/mpi.conf \
	contrib/packaging/slurmd-limits.conf \
	contrib/packaging/spack_repo/pmi2x/repo.yaml \
	contrib/packaging/spack_repo/pmi2x/packages/pmi2x/package.py \
	contrib/packaging/build-rpm contrib/packaging/pmi2x.spec \
	testsuite/packages testsuite/packages-next testsuite/packages-node testsuite/release \
	debian/changelog debian/control debian/copyright debian/not-installed \
	debian/rules debian/source/format \
	debian/libpmi2x-allgather0.install debian/libpmi2x-dev.install \
	debian/libpmi2x0.install debian/pmi2x-agent.install \
	debian/pmi2x-plugin.examples debian/pmi2x-plugin.install \
	debian/pmi2x-plugin.postinst \
	debian/pmi2x-tools.install
