#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pmi2x sim run of DVMs: against a list scheduler of its own, several DVMs, invalid scenarios.
set -u
srcdir=${srcdir:-.}
sim=contrib/sim/pmi2x-sim-run
bound=$srcdir/testsuite/scale/sim-dvm-bound
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "$srcdir/testsuite/report.sh"

cat >"$tmp/a" <<'END'
[dvm]
nodes = 16
slots = 168
gpus = 6
order = large
patience = 100000s
[workload]
tasks = 461 cores 1-9 time 480s-600s
tasks = 51 cores 68-84 gpus 0-3 time 960s-1200s
END
"$sim" -q "$tmp/a" >"$out" 2>&1
grep -q "without jansson" "$out" && { echo "no jansson"; exit 77; }

# SCENARIO ARGUMENT...: the TTX that it prints, in seconds.
ttx() {
	"$sim" -q "$@" | awk '/^TTX/ { print $(NF - 1) }'
}

# IS-AT-MOST A FACTOR B: A <= FACTOR * B.
is_at_most() {
	awk -v a="$1" -v f="$2" -v b="$3" 'BEGIN { exit !(a > 0 && a <= f * b) }'
}

# One DVM schedules as a list scheduler without any cost does, but for its own costs.
for seed in 1 2; do
	"$sim" -q --set seed=$seed --csv "$tmp/csv" "$tmp/a" >"$out" || fail "seed $seed"
	least=$(/usr/bin/python3 -B "$bound" "$tmp/csv" 16 168 6)
	took=$(awk '/^TTX/ { print $(NF - 1) }' "$out")
	is_at_most "$took" 1.001 "$least" || fail "TTX $took, bound $least"
	is_at_most "$least" 1.001 "$took" || fail "TTX $took is below the bound $least"
done
[ "$(grep -c . "$tmp/csv")" = 513 ] || fail "--csv has not one line for each task"
awk -F, 'NR > 1 && !($7 <= $8 && $8 <= $9 && $9 + $6 <= $10 + 0.001) { exit 1 }' "$tmp/csv" ||
	fail "times of a task are not in order"
grep -q "tasks that failed  *0$" "$out" || fail "tasks failed"

# Several DVMs share the tasks out by slots and time.
one=$(ttx "$tmp/a")
is_at_most "$(ttx --set dvms=4 "$tmp/a")" 1.05 "$one" || fail "4 DVMs"
is_at_most "$(ttx --set dvms=16 "$tmp/a")" 1.10 "$one" || fail "16 DVMs"

# The same scenario gives the same bytes.
"$sim" -q --set dvms=4 --csv - "$tmp/a" >"$tmp/one"
"$sim" -q --set dvms=4 --csv - "$tmp/a" >"$tmp/two"
cmp "$tmp/one" "$tmp/two" || fail "two runs differ"

# Ranks on several nodes, and more nodes than one message a turn.
cat >"$tmp/b" <<'END'
[dvm]
nodes = 64
slots = 4
[workload]
tasks = 3 ranks 256 time 1s
tasks = 20 ranks 8 nodes 8 time 10ms-20ms
END
ends 0 "64 nodes of 4 slots .* 23 tasks" "$sim" -q "$tmp/b"
grep -q "ranks at once, at most  *256$" "$out" || fail "256 ranks do not run at once"

# --set means the keys of [dvm]; what cannot be is named with its line.
printf '[dvm]\nslots = 4\n[workload]\ntasks = 2 time 1s\n' >"$tmp/d"
ends 0 "32 nodes of 4 slots" "$sim" -q --set nodes=32 "$tmp/d"
ends 2 "set: slots: allowed is a number from 1 to 1024" "$sim" -q --set slots=0 "$tmp/a"
printf '[workload]\ntasks = 3 cores\n' >"$tmp/c"
ends 2 "c:2: tasks: allowed is COUNT" "$sim" -q "$tmp/c"
printf '[workload]\ntasks = 3 cores 65 time 1s\n' >"$tmp/c"
ends 1 "a task of the workload is refused: ranks: 1 ranks of 65 cores" "$sim" -q "$tmp/c"
ends 2 "dvms: 17 are more than the nodes, 16" "$sim" -q --set dvms=17 "$tmp/a"
ends 2 "are for steps, not for DVMs" "$sim" -q --path "$tmp/a"
ends 2 "full: No space left" "$sim" -q --csv /dev/full "$tmp/a"
[ "$failures" = 0 ]
