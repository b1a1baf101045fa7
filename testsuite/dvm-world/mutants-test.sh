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
build() { # NAME FILE EDIT
	sed "$3" "$srcdir/src/dvm/core/$2" >"$work/$1.c" || return 1
	! cmp -s "$work/$1.c" "$srcdir/src/dvm/core/$2" || return 1
	$compile -w -c -o "$work/$1.o" "$work/$1.c" &&
		$link -o "$work/$1" $objects "$work/$1.o" $libraries
}

check() { # NAME FILE EDIT
	build "$@" || fail "$1 cannot be made: does src/dvm/core/$2 have the line still?"
	"$work/$1" --seeds 1:10000 --quiet --must-fail >"$work/$1.log" ||
		fail "$1 is not found in 10,000 worlds"
	echo "$1: $(sed -n 's/.*--seed/--seed/p' "$work/$1.log")"
}

rm -rf "$work"
mkdir -p "$work"
grep -v '^#' "$table" | {
	while IFS='|' read -r name file edit rest; do
		[ -z "$rest" ] || edit="$edit|$rest"
		check "$name" "$file" "$edit" || exit 1
	done
} || exit 1
rm -rf "$work"
