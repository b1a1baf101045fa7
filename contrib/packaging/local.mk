# SPDX-License-Identifier: BSD-3-Clause
# How packages are made, and what is in them beside what "make install" installs.
EXTRA_DIST += contrib/packaging/release contrib/packaging/sbom contrib/packaging/make-tarball \
	contrib/packaging/container/Dockerfile contrib/packaging/easybuild/pmi2x-0.1.0.eb \
	contrib/packaging/enroot/51-slurm-pmi2x.sh contrib/packaging/firewalld.xml \
	contrib/packaging/lintian-exceptions contrib/packaging/mpi.conf \
	contrib/packaging/slurmd-limits.conf \
	contrib/packaging/spack_repo/pmi2x/repo.yaml \
	contrib/packaging/spack_repo/pmi2x/packages/pmi2x/package.py \
	contrib/packaging/pmi2x.spec contrib/packaging/pmi2x-plugin.spec \
	contrib/packaging/plugin-deb/control.in contrib/packaging/plugin-deb/plugin.postinst \
	contrib/packaging/plugin-deb/plugin.prerm \
	contrib/packaging/plugin-deb/rules \
	contrib/packaging/pmi2x-doc.spec contrib/packaging/doc-deb/control.in \
	contrib/packaging/doc-deb/pmi2x-doc.doc-base contrib/packaging/doc-deb/rules \
	contrib/packaging/ansible/site.yml \
	contrib/packaging/ansible/roles/pmi2x/defaults/main.yml \
	contrib/packaging/ansible/roles/pmi2x/tasks/main.yml \
	testsuite/packages testsuite/packages-apt testsuite/packages-dnf testsuite/packages-doc testsuite/packages-image \
	testsuite/packages-machine testsuite/packages-next testsuite/packages-node \
	testsuite/packages-site testsuite/packages-slurms testsuite/release \
	debian/changelog debian/control debian/copyright debian/not-installed \
	debian/rules debian/source/format \
	debian/libpmi2x-allgather0.install debian/libpmi2x-dev.install \
	debian/libpmi2x0.install debian/pmi2x-agent.install debian/pmi2x-agent.postinst \
	debian/pmi2x-tools.install
