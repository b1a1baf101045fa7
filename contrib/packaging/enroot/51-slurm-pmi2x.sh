#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A hook of enroot: passes on to a container what its rank needs of a step of mpi/pmi2x.
# enroot's own 50-slurm-pmi.sh passes on the variables of PMIx for --mpi=pmix only. Put it
# into /etc/enroot/hooks.d on the compute nodes.
set -eu

if [ "${SLURM_MPI_TYPE-}" != pmi2x ] || [ -z "${SLURM_STEP_ID-}" ]; then
	exit 0
fi

pass_on() # VARIABLE...
{
	local name
	for name; do
		[ -z "${!name+set}" ] || printf '%s=%s\n' "$name" "${!name}" >>"$ENROOT_ENVIRON"
	done
}

if [ -z "${PYXIS_RUNTIME_PATH-}" ]; then
	pass_on $(compgen -e PMI_) $(compgen -e PMIX_) PMI2X_SYNC MPIR_CVAR_PMI_VERSION OMPI_MCA_reachable
else
	# pyxis starts one container for all ranks of a node, and sets in each of them what is in
	# the environment of that one. 50-slurm-pmi.sh has put a rank there.
	sed -i '/^PMI_RANK=/d' "$ENROOT_ENVIRON"
fi
# The directory is there if pmi2x-pmixd runs already (Pmi2xPmix=early). Without it clients
# ask the server.
if [ -d "${PMIX_SERVER_TMPDIR-}" ]; then
	[ -n "${PYXIS_RUNTIME_PATH-}" ] || pass_on OMPI_MCA_btl_vader_backing_directory
	printf '%s x-create=dir,bind,rw,nosuid,noexec,nodev,private,nofail\n' \
		"$PMIX_SERVER_TMPDIR" >>"$ENROOT_MOUNTS"
fi
