#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The plugin compiles without warnings with the headers of the tested Slurm that is
# not the one of this machine. Gets its source: only where testsuite/run asks for it.
set -u
src=$(cd "${srcdir:-.}" && pwd)

[ -n "${PMI2X_SLURM_HEADERS:-}" ] || {
	echo "SKIP: PMI2X_SLURM_HEADERS does not say where to keep another Slurm's" \
		"source: testsuite/run does"
	exit 77
}
case $(dpkg-query -W -f '${source:Version}' libslurm-dev 2>/dev/null) in
22.05.*) version=24.11 ;;
*) version=22.05 ;;
esac
"$src/testsuite/slurm-version" --headers --keep \
	--dir "$PMI2X_SLURM_HEADERS/$version" "$version"
status=$?
[ "$status" != 77 ] || echo "SKIP: cannot get the source of Slurm $version"
exit "$status"
