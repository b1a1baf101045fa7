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

# A tree of control schedules as a star does, and its nodes are up sooner.
is_at_most "$(ttx --set width=2 "$tmp/a")" 1.001 "$one" || fail "a tree of width 2"
cat >"$tmp/up" <<'END'
[dvm]
nodes = 16384
slots = 4
[workload]
tasks = 1 ranks 16384 nodes 16384 time 1s
END
up() {
	"$sim" -q --set width="$1" "$tmp/up" | awk '/^up,/ { print $(NF - 1) }'
}
is_at_most "$(up 128)" 0.1 "$(up 0)" || fail "a tree is not up in a tenth of a star's time"

# A part costs the head `bundle`, and a frame for a relay `place`; relays work side by side.
last_exec() {
	"$sim" -q --set width=128 --set "bundle=$1" "$tmp/up" | awk '/last exec/ { print $(NF - 1) }'
}
is_at_most "$(last_exec 3us)" 1.2 0.049 || fail "a task on 16,384 nodes starts late"
is_at_most 0.098 1 "$(last_exec 6us)" || fail "a part of a task costs the head less than bundle"

# Inner nodes that are lost cost no task, also of the nodes below them.
cat "$tmp/a" - >"$tmp/lost" <<'END'
[faults]
node = 0 at 100s
node = 2 at 100s
node = 6 at 700s
END
for width in 0 2; do
	"$sim" -q --set width=$width "$tmp/lost" >"$out" || fail "lost nodes, width $width"
	grep -q "tasks that failed  *0$" "$out" || fail "tasks failed with width $width"
done

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
ends 1 "a task of the workload is refused: ranks: 1 rank of 65 cores" "$sim" -q "$tmp/c"
ends 2 "dvms: 17 are more than the nodes, 16" "$sim" -q --set dvms=17 "$tmp/a"
ends 2 "are for steps, not for DVMs" "$sim" -q --path "$tmp/a"
ends 2 "full: No space left" "$sim" -q --csv /dev/full "$tmp/a"

# A file of tasks: what --csv wrote runs as before; a bad line has its column named.
printf '[dvm]\nnodes = 16\nslots = 168\ngpus = 6\norder = large\npatience = 100000s\n[workload]\nfile = t.csv\n' >"$tmp/f"
"$sim" -q --set seed=2 --csv "$tmp/t.csv" "$tmp/a" >"$tmp/one"
"$sim" -q "$tmp/f" >"$tmp/two"
same='^TTX\|^slots\|^GPUs\|at once'
grep "$same" "$tmp/one" >"$tmp/three"
grep "$same" "$tmp/two" | cmp - "$tmp/three" || fail "a file of tasks runs differently"
bad_file() { # WORDS LINE...
	words=$1
	shift
	printf '%s\n' "$@" >"$tmp/t.csv"
	ends 2 "$words" "$sim" -q "$tmp/f"
}
bad_file "t.csv:1: core: there is no such column; allowed are ranks, cores" core,seconds 1,1
bad_file "t.csv:1: seconds: the column is missing" cores,gpus 1,1
bad_file "t.csv:1: cores: the column is there twice" cores,cores,seconds 1,1,1
bad_file "t.csv:3: cores: allowed is a number from 1" cores,seconds 1,1 0,1
bad_file "t.csv:3: seconds: allowed is a number above 0" cores,seconds 1,1 2,
bad_file "t.csv:2: seconds: allowed is a number above 0" cores,seconds 1,-1
bad_file "t.csv:2: there are more fields than the 2 columns" cores,seconds 1,1,1
bad_file "t.csv:2: there is no task" cores,seconds
printf 'seconds\n1\n' >"$tmp/t.csv"
ends 2 "f:8: file: a workload has a file, or lines" "$sim" -q --set "tasks=1 time 1s" "$tmp/f"
rm "$tmp/t.csv"
ends 2 "t.csv: No such file" "$sim" -q "$tmp/f"

# Times of a distribution.
printf '[dvm]\nslots = 1\n[workload]\ntasks = 4000 time exponential 10s\n' >"$tmp/e"
is_at_most 2400 1 "$(ttx "$tmp/e")" && is_at_most "$(ttx "$tmp/e")" 1 2700 ||
	fail "4,000 tasks of 10 s in the mean on 16 slots"
printf '[workload]\ntasks = 1 time exponential\n' >"$tmp/c"
ends 2 "c:2: tasks: allowed is COUNT" "$sim" -q "$tmp/c"
printf '[workload]\ntasks = 1 time normal 1s 2s ranks 2\n' >"$tmp/c"
ends 2 "c:2: tasks: allowed is COUNT" "$sim" -q "$tmp/c"

# A node that is lost: its tasks run again. A slow node: they take longer.
cat >"$tmp/g" <<'END'
[dvm]
nodes = 4
slots = 2
[workload]
tasks = 80 time 10s
END
is_at_most "$(ttx "$tmp/g")" 1.01 100 || fail "80 tasks of 10 s on 8 slots"
ends 0 "tasks that ran again  *2$" "$sim" -q --set "node=3 at 25s" "$tmp/g"
grep -q "tasks that failed  *0$" "$out" || fail "tasks of a lost node failed"
is_at_most 130 1 "$(ttx --set "node=3 at 25s" "$tmp/g")" || fail "TTX without a node"
is_at_most "$(ttx --set "node=3 at 25s" "$tmp/g")" 1 141 || fail "TTX without a node"
is_at_most 110 1 "$(ttx --set "slow_node=0 factor 2" "$tmp/g")" || fail "TTX with a slow node"

# A head that is lost: without a journal with its tasks, with one another head follows.
ends 0 "tasks that were lost with a head  *64$" "$sim" -q --set "head=1 at 25s" "$tmp/g"
ends 0 "tasks that were lost with a head  *0$" "$sim" -q --set journal=yes \
	--set "head=1 at 25s resume 7s" "$tmp/g"
grep -q "tasks that ran again  *8$" "$out" && grep -q ", 80 tasks$" "$out" ||
	fail "a head with a journal"
is_at_most "$(awk '/^TTX/ { print $(NF - 1) }' "$out")" 1.01 112 || fail "TTX with a lost head"
ends 0 "tasks that were lost with a head  *0$" "$sim" -q --set journal=yes --set dvms=2 \
	--set "node=1 at 15s" --set "head=1 at 25s resume 7s" --set "head=1 at 45s resume 1s" \
	--set "head=2 at 20s resume 7s" --set "node=2 at 21s" "$tmp/g"
grep -q ", 80 tasks$" "$out" || fail "two heads with a journal"
ends 0 "tasks that no head was left to take  *60$" "$sim" -q --set "head=1 at 25s" \
	--set batch=20 --set max_queued=20 "$tmp/g"
ends 2 "head: resume needs journal = yes" "$sim" -q --set "head=1 at 25s resume 7s" "$tmp/g"
ends 2 "head: there is no DVM 2, allowed is 1 to 1" "$sim" -q --set "head=2 at 1s" "$tmp/g"
ends 2 "node: there is no node 4, allowed is 0 to 3" "$sim" -q --set "node=4 at 1s" "$tmp/g"
ends 2 "rank: with a \[workload\], allowed are node and head" \
	"$sim" -q --set "rank=1 at 1s" "$tmp/g"
ends 2 "slow_link: with a \[workload\]" "$sim" -q --set "slow_link=1-2 factor 2" "$tmp/g"
ends 0 "simulated" "$sim" -q "$srcdir/contrib/sim/examples/dvm-faults.scenario"

# Journals that pmi2x-dvm report reads, also of a head that was lost.
"$sim" -q --journal "$tmp/journal" "$tmp/g" >"$out" || fail "--journal"
ends 0 "80 done, 0 failed, 0 cancelled, 0 running, 0 queued" src/dvm/pmi2x-dvm report "$tmp/journal"
"$sim" -q --journal "$tmp/journals" --set dvms=2 --set "head=2 at 25s" "$tmp/g" >"$out" ||
	fail "--journal of two DVMs"
ends 0 "40 done, 0 failed" src/dvm/pmi2x-dvm report "$tmp/journals/1"
ends 0 "8 done, 0 failed, 0 cancelled, 4 running, 28 queued" \
	src/dvm/pmi2x-dvm report "$tmp/journals/2"
"$sim" -q --journal "$tmp/journal" --set "head=1 at 25s resume 7s" "$tmp/g" >"$out"
ends 0 "heads  *2, .*" src/dvm/pmi2x-dvm report "$tmp/journal"
grep -q "80 done, 0 failed" "$out" || fail "a journal of two heads"

"$sim" -q --journal "$tmp/two-j" --set dvms=2 --set gpus=1 --set "tasks=80 gpus 1 time 10s" \
	"$tmp/g" >"$out"
"$sim" -q --journal "$tmp/empty" --set "head=1 at 5s" "$tmp/g" >"$out"

# Journals of several DVMs are joined; one that is missing or torn is named.
"$sim" -q --journal "$tmp/four" --set dvms=4 --set gpus=1 --set "tasks=80 gpus 1 time 10s" \
	"$tmp/g" >"$out" || fail "--journal of four DVMs"
ends 0 "heads  *4, simulated, of 4 DVMs, with up to 4 nodes, 8 slots, 4 GPUs" src/dvm/pmi2x-dvm report "$tmp/four"
grep -q " 80 done" "$out" || fail "tasks of four DVMs"
grep -q "at most 4 tasks ran" "$out" || fail "tasks at once of four DVMs"
grep -q "used  *50.0 % of the slots, 100.0 % of the GPUs" "$out" || fail "use of slots and GPUs"
ends 0 "^$tmp/four .*simulated  *4  *4  *1 .*80 .*200\.0" src/dvm/pmi2x-dvm report --tables "$tmp/four" "$tmp/journal"
[ "$(src/dvm/pmi2x-dvm report --csv "$tmp/four" | grep -c '/bin/sleep')" = 80 ] || fail "--csv of four"
mv "$tmp/four/2/journal" "$tmp/four/2/j" && head -c 3000 "$tmp/four/3/journal" >"$tmp/torn" &&
	cp "$tmp/torn" "$tmp/four/3/journal" && echo no >"$tmp/four/4/journal"
ends 1 "there is no journal in $tmp/four/2" src/dvm/pmi2x-dvm report "$tmp/four"
grep -q "four/4 cannot be read: its first bytes" "$out" || fail "a journal that is none"
grep -q "journal 3: cut off at offset" "$out" || fail "a torn journal of several"
grep -q "heads  *2, simulated, of 2 DVMs" "$out" || fail "journals that can be read"
rm "$tmp"/four/?/journal
ends fails "none of the 4 journals" src/dvm/pmi2x-dvm report "$tmp/four"
ends 2 "/dev/full/journal: Not a directory" "$sim" -q --journal /dev/full "$tmp/g"
ends 2 "journal is for scenarios with a" "$sim" -q --journal "$tmp/journal" \
	"$srcdir/contrib/sim/examples/cluster.scenario"

# Plots, also of several runs; what cannot be plotted is named.
plot="/usr/bin/python3 -B $srcdir/contrib/bench/pmi2x-dvm-plot --dvm-program src/dvm/pmi2x-dvm"
refuses "give --svg DIR or --png DIR" $plot "$tmp/journal"
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
	ends 0 "written: $tmp/plots/stages.svg" $plot --svg "$tmp/plots" "$tmp/journal" "two=$tmp/two-j"
	for figure in setup setup-times phases use stages; do
		grep -q '<svg' "$tmp/plots/$figure.svg" || fail "plot $figure"
		grep -q simulated "$tmp/plots/$figure.svg" || fail "plot $figure does not say simulated"
	done
	refuses "there is no journal in $tmp/none" $plot --svg "$tmp/plots" "$tmp/none"
	refuses "no task has started and ended" $plot --svg "$tmp/plots" "$tmp/empty"
else
	refuses "matplotlib" $plot --svg "$tmp/plots" "$tmp/journal"
fi

/usr/bin/python3 -B "$srcdir/testsuite/scale/sim-dvm-scenarios" "$sim" || fail "scenarios"
within 100 "pmi2x sim validate --dvm" /usr/bin/python3 -B \
	"$srcdir/testsuite/scale/sim-dvm-validate-test.py" "$sim" src/dvm/pmi2x-dvm
[ "$failures" = 0 ]
