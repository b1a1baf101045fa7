#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The look-up study measures by every method, and refuses what it cannot do.
# The study leaves its store to the end of the process: no leaks are looked for.
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
set -u
lookup=contrib/bench/lookup
study=${srcdir:-.}/contrib/bench/pmi2x-bench-lookup
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "${srcdir:-.}/testsuite/report.sh"

# Many updates of large values of few keys: the readers are there all the time.
for method in rwlock 2n none pmi2x; do
	timeout 60 "$lookup" -m $method -r 3 -k 2 -b 4096 -w 20000 -t 200 \
		>"$out" 2>&1 </dev/null &&
		grep -q "^result method=$method readers=3 .* cpu_ns=[0-9]" \
			"$out" || fail "$method"
	[ $method = none ] || grep -q " torn=0 updates=[1-9]" "$out" ||
		fail "$method: torn values, or no updates"
done
refuses "unknown method" "$lookup" -m seqlock
refuses "not within" "$lookup" -r 0
refuses "multiple of 8" "$lookup" -b 12

command -v python3 >/dev/null || {
	echo "SKIP: no python3 for pmi2x bench lookup"
	exit $((failures ? 1 : 77))
}
set -- python3 -B "$study" --programs "$PWD/contrib/bench" -q
timeout 60 "$@" --readers 1,2 --rates 0,100 --ms 5 --repeats 2 \
	--csv "$tmp/csv" >"$out" 2>&1 || fail "pmi2x bench lookup"
# 4 methods, 2 counts of readers, 2 rates, 2 repeats; the head and two notes
[ "$(wc -l <"$tmp/csv")" = 35 ] || fail "lines of the CSV file"
refuses "no 'seqlock'" "$@" --methods seqlock
refuses "not within" "$@" --readers 0
refuses "memory" "$@" --readers 1 --keys 1048576 --bytes 65536
refuses "No such file" "$@" --csv "$tmp/none/csv"
exit $((failures > 0))
