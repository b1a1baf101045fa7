#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every fuzz target over its corpus, without a fuzzer. Run by "make check" with
# srcdir set, in the build directory.
corpus=${srcdir:-.}/testsuite/fuzz/corpus
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
failures=0

for directory in "$corpus"/*/; do
	target=$(basename "$directory")
	# Where there is no jansson.
	case $target in dvm | journal | tree) [ -e "testsuite/fuzz/$target-fuzz" ] || continue ;; esac
	if "testsuite/fuzz/$target-fuzz" "$directory"* >"$out" 2>&1; then
		tail -n 1 "$out"
	else
		cat "$out"
		echo "$target-fuzz: FAILED"
		failures=$((failures + 1))
	fi
done
[ "$failures" = 0 ]
