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

pass_on $(compgen -e PMI_) $(compgen -e PMIX_) PMI2X_SYNC MPIR_CVAR_PMI_VERSION OMPI_MCA_reachable
# The directory is there if pmi2x-pmixd runs already (Pmi2xPmix=early). Without it clients
# ask the server.
if [ -d "${PMIX_SERVER_TMPDIR-}" ]; then
	pass_on OMPI_MCA_btl_vader_backing_directory
	printf '%s x-create=dir,bind,rw,nosuid,noexec,nodev,private,nofail\n' \
		"$PMIX_SERVER_TMPDIR" >>"$ENROOT_MOUNTS"
fi
