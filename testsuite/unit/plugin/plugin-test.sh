#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The built plugin: it exports what Slurm looks up and nothing else, Slurm's
# library has every symbol that it leaves open, and all that it has of this library
# is in slurm_calls.h, whose types configure has checked.
set -u
plugin=.libs/mpi_pmi2x.so
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

[ -f "$plugin" ] || { echo "SKIP: the plugin was not built"; exit 77; }

LC_ALL=C sort >"$tmp/wanted" <<WANTED
fini
init
mpi_p_client_fini
mpi_p_client_prelaunch
mpi_p_conf_get
mpi_p_conf_get_printable
mpi_p_conf_options
mpi_p_conf_set
mpi_p_slurmstepd_prefork
mpi_p_slurmstepd_task
plugin_id
plugin_name
plugin_type
plugin_version
WANTED
nm -D --defined-only "$plugin" | awk '{ print $NF }' | LC_ALL=C sort \
	>"$tmp/exported"
if ! diff "$tmp/wanted" "$tmp/exported"; then
	echo "FAIL: < is what Slurm looks up, > what the plugin exports"
	exit 1
fi

# By which pmi2x-probe --nodes tells for which Slurm it is.
if ! LC_ALL=C tr -c '[:print:]' '\n' <"$plugin" | grep -qx 'pmi2x slurm 0x[0-9a-f]*'; then
	echo "FAIL: the plugin does not say for which Slurm it is"
	exit 1
fi

# What no library that the plugin names has must come from Slurm.
[ -n "${SLURMFULL:-}" ] || { echo "SKIP: no libslurmfull.so here"; exit 77; }
ldd -r "$plugin" 2>/dev/null | sed -n 's/^undefined symbol: \([^ 	]*\).*/\1/p' |
	LC_ALL=C sort -u >"$tmp/open"
nm -D --defined-only "$SLURMFULL" | awk '{ print $NF }' | LC_ALL=C sort -u \
	>"$tmp/slurm"
missing=$(LC_ALL=C comm -23 "$tmp/open" "$tmp/slurm")
if [ -n "$missing" ]; then
	echo "FAIL: nothing has these symbols of the plugin:" $missing
	exit 1
fi

# A name that the C library has as well, like error, would be bound to whichever
# comes first in a daemon: the plugin must ask for slurm_error.
nm -D --undefined-only "$plugin" | awk '{ print $NF }' | sed 's/@.*//' |
	LC_ALL=C sort -u | LC_ALL=C comm -12 - "$tmp/slurm" >"$tmp/called"
printf '%s\n' ${SLURM_CALLS:-} | LC_ALL=C sort >"$tmp/listed"
if ! diff "$tmp/listed" "$tmp/called"; then
	echo "FAIL: < is in src/plugins/mpi/pmi2x/slurm_calls.h alone, > is called" \
		"by the plugin alone"
	exit 1
fi
