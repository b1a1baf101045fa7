#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# configure refuses, before it looks at anything, what "make install" could not do.
set -u
src=$(cd "${srcdir:-.}" && pwd)
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "$src/testsuite/report.sh"

cd "$tmp" || exit 99
for option in prefix libdir docdir with-slurm-plugindir; do
	ends 1 "^configure: error: --$option='/tmp/a b': .*white space" \
		"$src/configure" "--$option=/tmp/a b"
	! grep -q "checking for gcc" "$out" || fail "--$option: not at once"
done

[ "$failures" = 0 ]
