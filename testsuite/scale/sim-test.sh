#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pmi2x sim run: what it counts, what it refuses, its examples, its plots.
set -u
srcdir=${srcdir:-.}
sim=contrib/sim/pmi2x-sim-run
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "$srcdir/testsuite/report.sh"

# STATUS WORDS ARGUMENT...: it says the words and ends with the status.
says() {
	status=$1 words=$2
	shift 2
	ends "$status" "$words" "$sim" -q "$@"
}

printf '[step]\nnodes = 64\nranks_per_node = 4\n[operations]\nrun = fence 64\nrun = ring 8\n' >"$tmp/a"
says 0 "1 fence 64 .* 256 " "$tmp/a"
says 0 "critical\|ended by a chain" --path "$tmp/a"
says 0 "^\"$tmp/a\",pmi2x,64,256,4,block,8,none" --csv - "$tmp/a"
says 0 "radix-64" --set protocol=radix-64 "$tmp/a"
says 0 "\[network\] latency" --keys
says 2 "one SCENARIO" --path
says 2 "none: No such file" "$tmp/none"
says 2 "Is a directory" "$tmp"
says 2 "cannot go to one file" --csv - --details - "$tmp/a"
says 2 "unrecognized option .*--cvs" --cvs x "$tmp/a"
says 2 "set: nodes: allowed is a number" --set nodes=none "$tmp/a"
says 2 "does not begin with a key" --set nothing=1 "$tmp/a"
says 2 "only protocol = pmi2x" --set protocol=hydra-star --set "rank=1 at 1us" "$tmp/a"
says 2 "a:6: run: protocol = mpi-pmi2 has no model of a ring" --set protocol=mpi-pmi2 "$tmp/a"
printf '[operations]\nrun = fence 64\n' >"$tmp/f"
says 0 "^\"$tmp/f\",mpi-pmi2,64,64,1,block,50," --csv - --set nodes=64 \
	--set protocol=mpi-pmi2 --set tree_width=50 "$tmp/f"
says 2 "nodes 3 and 60 have no link" --set "link=3-60 at 1us" "$tmp/a"
says 0 "rank 1 (node 0) was killed" --set "rank=1 in 2" "$tmp/a"

# libengine's servers: what srun would say, what ranks cannot say, what is too much.
says 0 "srun would say: ring 0 failed: rank 1 (node n0) exited without" \
	--set clients=pmi2 --set "rank=1 in 2" "$tmp/a"
says 0 "clients mixed" --set clients=mixed "$tmp/a"
says 2 "a:6: run: clients = pmi1 cannot carry out ring 8" --set clients=pmi1 "$tmp/a"
says 2 "clients: allowed is none" --set clients=pmi1 --set protocol=radix-64 "$tmp/a"
says 2 "would hold .* each of results; allowed is 16.0 GiB" \
	--set clients=mixed --set nodes=65536 "$tmp/a"
says 2 "payload: .* nodes would hold .* each of results; allowed is 16.0 GiB" \
	--set payload=bytes --set nodes=65536 "$tmp/a"

# The store: every rank gets the value of each key.
says 0 "store, tree width 8.*" --set protocol=store --set "run=share 8 keys 3" "$tmp/a"
says 0 "1 share 8 .* 256 *0 " --set protocol=store --set "run=share 8 keys 3" "$tmp/a"
says 2 "only protocol = pmi2x" --set protocol=store --set "run=share 8" --set "rank=1 at 1us" "$tmp/a"

# Of nodes and links one by one, and these add up.
"$sim" -q --csv "$tmp/one" --details "$tmp/all" \
	--set clients=pmi2x "$tmp/a" >/dev/null || fail "--details"
awk -F, 'NR == FNR {
		if ($1 == 1) { sent[$3] += $6; bytes[$3] += $7 }
		next
	}
	FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
	FNR == 2 {
		for (what in sent)
			if (sent[what] != $column["messages"] ||
			    bytes[what] != $column["bytes"])
				exit 1
		exit !("node" in sent && "link" in sent)
	}' "$tmp/all" "$tmp/one" >"$out" || fail "--details do not add up"

# What cannot be written: known before the simulation, or at its end.
says 2 "x: No such file" --csv "$tmp/none/x" "$tmp/a"
grep -q simulated "$out" && fail "a simulation whose result cannot be written"
says 2 "full: No space left" --csv /dev/full "$tmp/a"
says 2 "full: No space left" --details /dev/full "$tmp/a"
ends 2 "standard output: No space left" sh -c '"$@" >/dev/full' sh \
	"$sim" -q --csv "$tmp/one" "$tmp/a"
[ "$(wc -l <"$tmp/one")" = 4 ] || fail "the file of a run whose table is lost"

# The same scenario gives the same bytes.
"$sim" -q --csv "$tmp/one" --set "skew=exponential 1ms" "$tmp/a" >/dev/null
"$sim" -q --csv "$tmp/two" --set "skew=exponential 1ms" "$tmp/a" >/dev/null
cmp "$tmp/one" "$tmp/two" || fail "two runs differ"

# Times differ from run to run as the deviation of the work says; costs may come from a file.
width_of() {
	"$sim" --runs 200 "$@" | awk '/^1 / { print $(NF - 1) }'
}
printf '[network]\nlatency = 1ns\n[node]\ndrift = 10\n' >"$tmp/costs"
width=$(width_of --calibration "$tmp/costs" --nodes 64 "$tmp/a")
[ "$width" -ge 18 ] && [ "$width" -le 32 ] || fail "a drift of 10 % gives $width %, not 26 %"
[ "$(width_of --nodes 64 "$tmp/a")" = 0 ] || fail "runs without a deviation differ"
some=$(width_of --set spread=50 --nodes 4 "$tmp/a")
many=$(width_of --set spread=50 --nodes 1024 "$tmp/a")
[ "$many" -gt 0 ] && [ "$some" -gt "$many" ] || fail "the spread gives $some %, with more nodes $many %"
"$sim" --runs 20 --set drift=30 "$tmp/a" >"$tmp/runs"
"$sim" --runs 20 --set drift=30 "$tmp/a" >"$tmp/again"
cmp "$tmp/runs" "$tmp/again" || fail "two series of runs differ"
printf '[node]\nwake = 9us\n' >"$tmp/costs"
says 0 "^operation" --calibration "$tmp/costs" --set wake=1us "$tmp/a"
printf '[operations]\nrun = ring 8\n' >"$tmp/costs"
says 2 "costs:2: run: a calibration has keys of" --calibration "$tmp/costs" "$tmp/a"
printf '[node]\nwake = 9us\n[step]\nnodes = 9\n' >"$tmp/costs"
says 2 "costs:4: nodes: a calibration has keys of" --calibration "$tmp/costs" "$tmp/a"
printf '# nothing\n[node]\n' >"$tmp/costs"
says 2 "costs: no costs are in it" --calibration "$tmp/costs" "$tmp/a"
printf '[node]\nwake = soon\n' >"$tmp/costs"
says 2 "costs:2: wake: allowed is a time" --calibration "$tmp/costs" "$tmp/a"
says 2 "none: No such file" --calibration "$tmp/none" "$tmp/a"
says 2 "runs: allowed is a number from 2 to 10000" --runs 1 "$tmp/a"
says 2 "runs prints a table only" --runs 2 --csv - "$tmp/a"
printf '[workload]\ntasks = 2 time 1s\n' >"$tmp/tasks"
says 2 "runs is for steps" --runs 2 "$tmp/tasks"

for example in "$srcdir"/contrib/sim/examples/*.scenario; do
	# All of them are for larger steps than a test has time for. sim-dvm-test.sh has DVMs.
	grep -q '^\[workload\]' "$example" && continue
	says 0 "simulated" --set nodes=512 --set ranks_per_node=2 "$example"
done

command -v python3 >/dev/null || {
	echo "SKIP: no python3"
	exit $((failures ? 1 : 77))
}
python3 -B "$srcdir/testsuite/scale/sim-bounds" "$sim" || failures=$((failures + 1))
within 300 "pmi2x sim validate" \
	python3 -B "$srcdir/testsuite/scale/sim-validate-test.py" "$sim"
plot=$srcdir/contrib/sim/pmi2x-sim-plot
refuses "none of .svg" python3 -B "$plot" "$tmp/one" "$tmp/two"
refuses "No such file" python3 -B "$plot" "$tmp/plot.svg" "$tmp/none"
refuses "all was not written by pmi2x sim run --csv" \
	python3 -B "$plot" "$tmp/plot.svg" "$tmp/all"
refuses "pmi2x-sim-run was not written by" python3 -B "$plot" "$tmp/plot.svg" "$sim"
refuses "no ifence is in" \
	python3 -B "$plot" --operation ifence "$tmp/plot.svg" "$tmp/one"
if python3 -c 'import matplotlib' 2>/dev/null; then
	python3 -B "$plot" "$tmp/plot.svg" "$tmp/one" >"$out" 2>&1 &&
		grep -q '<svg' "$tmp/plot.svg" || fail "pmi2x sim plot"
	ln -s /dev/full "$tmp/full.svg"
	refuses "'protocol' is no column of numbers" \
		python3 -B "$plot" --y protocol "$tmp/plot.svg" "$tmp/one"
	refuses "No space left" python3 -B "$plot" "$tmp/full.svg" "$tmp/one"
else
	echo "not checked: plots of pmi2x sim plot, this python3 has no matplotlib"
fi
[ "$failures" = 0 ]
