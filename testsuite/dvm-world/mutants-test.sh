#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Break one rule of libdvm after another (mutants): 10,000 worlds must notice each.
srcdir=${srcdir:-.}
table=$srcdir/testsuite/dvm-world/mutants
work=testsuite/dvm-world/mutants.tmp
. testsuite/dvm-world/compile

fail() {
	echo "mutants-test: $*" >&2
	exit 1
}

# In place of the file of libdvm.
build() { # FILE EDIT NAME
	sed "$2" "$srcdir/src/dvm/core/$1" >"$work/$3.c" || return 1
	! cmp -s "$work/$3.c" "$srcdir/src/dvm/core/$1" || return 1
	$compile -w -c -o "$work/$3.o" "$work/$3.c" &&
		$link -o "$work/$3" $objects "$work/$3.o" $libraries
}

# A world ends in the middle of what a mutant does wrong: what it has left is no leak. What
# AddressSanitizer says of a mutant counts as found, too.
finds() { # NAME SEEDS
	ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0:exitcode=0" \
		"$work/$1" --seeds "$2" --quiet --must-fail >"$work/$1.log"
}

check() { # FILE EDIT NAME [SEED]
	build "$@" || fail "$3 cannot be made: does src/dvm/core/$1 have the line still?"
	{ [ -n "$4" ] && finds "$3" "$4:$4"; } || finds "$3" 1:10000 ||
		fail "$3 is not found in 10,000 worlds"
	echo "$3: $(sed -n 's/.*--seed/--seed/p' "$work/$3.log")"
}

rm -rf "$work"
mkdir -p "$work"
grep -v '^#' "$table" | {
	while IFS='|' read -r name file edit rest; do
		[ -z "$rest" ] || edit="$edit|$rest"
		# shellcheck disable=SC2086
		check "$file" "$edit" $name || exit 1
	done
} || exit 1
rm -rf "$work"
