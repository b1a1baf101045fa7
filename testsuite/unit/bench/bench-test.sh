#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The floor program measures, checks and leaves nothing; pmi2x bench collectives refuses
# what cannot be measured and says why. Nothing here needs Slurm.
set -u
floor=contrib/bench/floor
bench=${srcdir:-.}/contrib/bench/pmi2x-bench-collectives
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "${srcdir:-.}/testsuite/report.sh"

# The last size does not fit into a socket buffer.
for mode in socket shm; do
	for size in "-N1 -r1 -b1" "-N7 -r3 -k2" "-N20 -r2 -k3 -b4000" \
		"-N3 -r2 -b262144"; do
		timeout 60 "$floor" $size -m $mode -i2 -t50 \
			>"$out" 2>&1 </dev/null &&
			grep -q '^result .* clock=span times=[0-9.]*,[0-9.]* ' \
				"$out" || fail "floor $size -m $mode"
	done
done
timeout 60 "$floor" -N5 -r4 -u16 -k2 -i2 -s >"$out" 2>&1 &&
	grep -q ' ranks=20 ' "$out" || fail "uneven floor"
refuses "do not hold" "$floor" -N4 -r4 -u3
refuses "not within" "$floor" -N0
refuses "unknown mode" "$floor" -m pipe
refuses "not within" "$floor" -b 99999999999999999999
refuses "sysctl\|ulimit\|memory" "$floor" -N 65536 -r 16 -b 262144 -c

command -v python3 >/dev/null || {
	echo "SKIP: no python3 for pmi2x bench collectives"
	exit $((failures ? 1 : 77))
}
unset SLURM_JOB_ID
set -- python3 "$bench" --programs "$PWD/contrib/bench" \
	--libraries "$PWD/contrib/libpmi2x/.libs" -q
timeout 60 "$@" --mpi floor --nodes 2 --repeats 2 --csv "$tmp/csv" \
	>"$out" 2>&1 || fail "pmi2x bench collectives with the floor alone"
# 2 modes, 2 repeats, 6 rounds, the head and two notes
[ "$(wc -l <"$tmp/csv")" = 27 ] || fail "lines of the CSV file"
timeout 60 "$@" --table "$tmp/csv" >"$tmp/again" 2>&1 &&
	grep -q '^ *2 .* floor:shm ' "$tmp/again" || fail "--table of the CSV file"
# What is killed leaves what it had, and --table takes it: one step, and then it
# hangs.
mkdir "$tmp/programs" || exit 99
cat >"$tmp/programs/floor" <<END
#!/bin/sh
case " \$* " in *" -c "*) ;; *) echo >>"$tmp/runs" ;; esac
[ "\$(cat "$tmp/runs" 2>/dev/null | wc -l)" -lt 2 ] || exec sleep 100
exec "$PWD/$floor" "\$@"
END
chmod +x "$tmp/programs/floor"
"$@" --mpi floor:shm --nodes 2 --programs "$tmp/programs" --csv "$tmp/killed" \
	>"$tmp/out" 2>&1 &
pid=$!
for i in $(seq 300); do
	[ "$(cat "$tmp/runs" 2>/dev/null | wc -l)" -ge 2 ] && break
	kill -0 $pid && sleep 0.2
done
cp "$tmp/killed" "$tmp/left"
kill $pid
wait $pid
timeout 60 "$@" --table "$tmp/left" >"$tmp/out" 2>&1 &&
	grep -q '^ *2 .* floor:shm ' "$tmp/out" ||
	fail "the table of a run that is killed"
refuses "do not fit into --private" "$@" --mpi pmi2x --private 2 --nodes 4
refuses "not inside an allocation" "$@" --mpi pmi2x
refuses "there is no 'fnce'" "$@" --mpi floor --op fnce
refuses "e.g. --mpi pmi2x:own" "$@" --mpi pmi2 --op iallgather
refuses "is none of block" "$@" --mpi floor --layout plane
refuses "do not hold 2 x 4" "$@" --mpi floor --nodes 2 --layout uneven=3
refuses "without PMI" "$@" --mpi pmi2,pmi2x --op true
refuses "is no CSV file" "$@" --table "$0"
refuses "No such file" "$@" --table "$tmp/none.csv"
refuses "not within 1 to 1023" "$@" --mpi floor --bytes 1024
refuses "sysctl\|ulimit\|memory\|echo" "$@" --mpi pmi2x --private 4096 \
	--nodes 4096 --ranks-per-node 256

[ $failures = 0 ]
