#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pmi2x bench dvm: what it makes of values that were measured, and what it refuses. The
# system tests have it measure.
set -u
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "${srcdir:-.}/testsuite/report.sh"

command -v python3 >/dev/null || {
	echo "SKIP: no python3 for pmi2x bench dvm"
	exit 77
}
set -- python3 "${srcdir:-.}/contrib/bench/pmi2x-bench-dvm"
cat >"$tmp/good.csv" <<'END'
# machine: one
row,what,round,nodes,value,unit
bulk,pmi2x-dvm,1,16,2000.0,tasks/s
bulk,pmi2x-dvm,2,16,3000.0,tasks/s
bulk,pmi2x-dvm,3,16,9000.0,tasks/s
bulk,srun,1,16,50.0,tasks/s
run,pmi2x-dvm,1,4,0.002,s
run,srun,1,4,0.05,s
head,"head, a task",1,,0.00005,CPU s
END
sed -e 's/,0.002,/,0.005,/' -e 's/,0.00005,/,0.00006,/' "$tmp/good.csv" >"$tmp/slow.csv"
sed 's/^bulk/heap/' "$tmp/good.csv" >"$tmp/other.csv"

ends 0 '^srun  *50 tasks/s  *60\.00x  *50x  *ok$' "$@" --table "$tmp/good.csv"
ends 0 '^| srun | 50 ms | 25\.00x | 15x | ok |$' \
	"$@" --table "$tmp/good.csv" --markdown
ends 0 '^head, a task  *50 us  *at most 50 us  ok$' "$@" --table "$tmp/good.csv"
ends 1 'missed: run: srun, head: head, a task$' "$@" --table "$tmp/slow.csv"
ends 0 '^fence ' "$@" --list
refuses "there is no row heap" "$@" --table "$tmp/other.csv"
refuses "there is no row 'heap'" "$@" heap
refuses "is no CSV file" "$@" --table "$0"
refuses "No such file" "$@" --table "$tmp/none.csv"
refuses "not within 1 to 100" "$@" --rounds 0

[ $failures = 0 ]
