#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# configure takes a Slurm that it is told from there alone, and names a function that
# Slurm declares with another type than the one that the plugin calls.
set -u
src=$(cd "${srcdir:-.}" && pwd)
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "$src/testsuite/report.sh"
eval "set -- $CONFIGURE_SLURM"

mkdir "$tmp/build" "$tmp/empty"
cd "$tmp/build" || exit 99
ends 1 "^configure: error: $tmp/empty/include/slurm/slurm_version.h not found" \
	"$src/configure" "$@" --with-slurm="$tmp/empty"

# Its headers come first, as those of another version would.
mkdir -p "$tmp/other/src/common"
header=src/common/slurm_protocol_api.h
sed 's/slurm_forward_data(/slurm_forward_data(bool wait,/' \
	"$SLURM_TREE/$header" >"$tmp/other/$header"
cmp -s "$SLURM_TREE/$header" "$tmp/other/$header" &&
	fail "no slurm_forward_data( in $header"
ends 1 "^configure: error: Slurm .* calls as slurm_forward_data (see" \
	"$src/configure" "$@" CPPFLAGS="-iquote $tmp/other"

[ "$failures" = 0 ]
