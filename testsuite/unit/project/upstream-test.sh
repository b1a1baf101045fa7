#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The patches of contrib/upstream find their place where lines have moved, and are refused
# where there is none.
set -u
src=$(cd "${srcdir:-.}" && pwd)
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "$src/testsuite/report.sh"

command -v patch >/dev/null || {
	echo "SKIP: no patch"
	exit 77
}

mapping=$src/contrib/upstream/mpich-5.0.1-process-mapping.patch
file=$tmp/src/util/mpir_pmi.c
mkdir -p "$tmp/src/util"

# LINES of other things, each different, around the PLACE.
make_file() { # LINES_BEFORE PLACE
	{
		seq "$1" | sed 's/.*/int line_&;/'
		[ -z "$2" ] || printf '%s\n    goto fn_exit;\n#endif\n' "$2"
		seq 500 999 | sed 's/.*/int line_&;/'
	} >"$file"
}

for before in 300 402 405 450; do
	make_file $before '#ifdef PMI_FROM_3RD_PARTY'
	(cd "$tmp" && patch -p1 <"$mapping") >"$out" 2>&1 || fail "$before lines before"
	sed -n "$((before + 1)),$((before + 3))p" "$file" >"$out"
	printf '%s\n' '#ifdef PMI_FROM_3RD_PARTY' \
		'    if (strcmp(key, "PMI_process_mapping") != 0)' '    goto fn_exit;' |
		cmp -s - "$out" || fail "the place, $before lines before"
done

make_file 405 ''
(cd "$tmp" && patch -p1 <"$mapping") >"$out" 2>&1 && fail "a file without the place"
[ "$failures" = 0 ]
