#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pmi2x bench launch: its modules, what it refuses, and a matrix without Slurm.
set -u
src=${srcdir:-.}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "$src/testsuite/report.sh"

command -v python3 >/dev/null || {
	echo "SKIP: no python3 for pmi2x bench launch"
	exit 77
}

within 300 "the modules" python3 -B "$src/testsuite/unit/bench/startup-test.py"

# As after an installation: what runs lies in one directory.
mkdir "$tmp/programs" || exit 99
for program in contrib/bench/pmi2x-noop testsuite/fake/fake-server; do
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$PWD/$program" \
		>"$tmp/programs/${program##*/}"
done
chmod +x "$tmp"/programs/*
unset SLURM_JOB_ID
set -- python3 "$src/contrib/bench/pmi2x-bench-launch" \
	--programs "$tmp/programs" --libraries "$PWD/contrib/libpmi2x/.libs" -q

ends 2 "there is no 'tru'" "$@" --tests tru
ends 2 "is not NODESxRANKS" "$@" --configs 16
ends 2 "is not NODESxRANKS" "$@" --configs 0x4
ends 2 "more than 65536 nodes" "$@" --configs 65537x1
ends 2 "more than 1048576 ranks" "$@" --configs 65536x17
ends 2 "is not a type" "$@" --methods pmi-2
ends 2 "after ':' may be own" "$@" --methods pmi2x:mine
ends 2 "hydra has no choice of a client" "$@" --methods hydra:own
ends 2 "see pmi2x-bench-collectives" "$@" --methods floor
ends 2 "there is no 'no-such-cc'" "$@" --mpicc no-such-cc
ends 2 "not within 1 to 4096, nor auto" "$@" --private 5000
ends 2 "not within 1 to 4096, nor auto" "$@" --private many
ends 2 "not inside an allocation" "$@"
ends 2 "does not start ranks with srun" "$@" --counters --methods hydra
ends 2 "of --tests true only" "$@" --counters --tests pmi
ends 2 "has fewer nodes" "$@" --counters --private 2 --configs 4x1
ends 2 "is none of emulated" "$@" --no-slurm --beyond imagined
ends 2 "--private 4 has fewer nodes" "$@" --private 4 --configs 8x1 --beyond none
ends 2 "there is no PMI under --mpi=none" "$@" --private 4 --configs 4x1 \
	--methods none --tests pmi
ends 2 "cannot stand for pmi2" "$@" --no-slurm --methods pmi2 --tests pmi \
	--configs 2x1
ends 2 "at most 4096" "$@" --no-slurm --beyond emulated --configs 5000x1
ends 2 "No such file" "$@" --table "$tmp/none.csv"
ends 2 "is no CSV file" "$@" --table "$0"
ends 2 "sysctl\|ulimit\|memory\|echo" "$@" --private 4000 --configs 4000x256 \
	--beyond none --tests true

# Without Slurm: the agents alone.
timeout 120 "$@" --no-slurm --beyond emulated --tests true,hostname,pmi \
	--configs 2x1,3x2 --methods pmi2x,pmi2x:pmi1 --repeats 2 \
	--csv "$tmp/csv" >"$out" 2>&1 || fail "a matrix without Slurm"
# 2 configurations, 3 tests, 2 clients, 2 repeats; the head and two notes
[ "$(grep -c ',emulated,.*,ok,$' "$tmp/csv")" = 24 ] || fail "rows of times"
[ "$(wc -l <"$tmp/csv")" = 27 ] || fail "lines of the CSV file"
timeout 60 "$@" --table "$tmp/csv" >"$tmp/again" 2>&1 &&
	grep '^ *[23] ' "$out" >"$tmp/first" &&
	grep '^ *[23] ' "$tmp/again" | cmp -s - "$tmp/first" ||
	fail "--table of the CSV file"

# Who stops reading misses the rest, and no more; what cannot be written is said.
# (The table of 2,000 sizes is longer than a pipe holds.)
head -n 3 "$tmp/csv" >"$tmp/long"
awk 'BEGIN { for (n = 1; n <= 2000; n++)
	printf "true,pmi2x,own,%d,1,%d,private,1,0.5,,ok,\n", n, n }' >>"$tmp/long"
"$@" --table "$tmp/long" 2>"$out" | head -n 1 >"$tmp/first"
[ -s "$tmp/first" ] && [ ! -s "$out" ] || fail "a table that nobody reads"
ends 2 "standard output: .*No space left" sh -c '"$@" >/dev/full' sh \
	"$@" --table "$tmp/csv"
# The CSV file has room for some rows only.
ends 2 "File too large: .*/csv'; what there is so far" sh -c \
	'ulimit -f 1; "$@"' sh "$@" --no-slurm --beyond emulated --tests true \
	--configs 1x1 --methods pmi2x --repeats 30 --csv "$tmp/csv"
grep -q "the whole launch" "$out" || fail "the table of a run whose disk was full"

# A rank without a server is alone; that is left out, not measured.
sed -i 's/^exec/unset PMI_FD; exec/' "$tmp/programs/pmi2x-noop"
timeout 120 "$@" --no-slurm --beyond emulated --tests pmi --configs 2x1 \
	--methods pmi2x --csv "$tmp/csv" >"$out" 2>&1
grep -q '^SKIP pmi with pmi2x:own at 2x1: .*of one rank each' "$out" ||
	fail "ranks that are alone"
grep -q ',skipped,.*of one rank each' "$tmp/csv" || fail "its row"

# A trial that hangs is given up, and what there is besides goes on.
printf '#!/bin/sh\nexec sleep 100000\n' >"$tmp/programs/pmi2x-noop"
ends 1 "not done after" "$@" --no-slurm --beyond emulated --tests pmi,true \
	--configs 2x1 --methods pmi2x --trial-timeout 2 --csv "$tmp/csv"
grep -q '^true,.*,ok,$' "$tmp/csv" || fail "what does not hang"

# What is killed leaves what it had: the trial, one time, and then it hangs.
cat >"$tmp/programs/pmi2x-noop" <<END
#!/bin/sh
[ "\$PMI_RANK" = 0 ] && echo >>"$tmp/runs"
[ "\$(wc -l <"$tmp/runs")" -lt 3 ] || exec sleep 100
exec "$PWD/contrib/bench/pmi2x-noop" "\$@"
END
"$@" --no-slurm --beyond emulated --tests pmi --configs 1x1 --methods pmi2x \
	--csv "$tmp/csv" >"$out" 2>&1 &
pid=$!
for i in $(seq 300); do
	[ "$(cat "$tmp/runs" 2>/dev/null | wc -l)" -ge 3 ] && break
	kill -0 $pid && sleep 0.2
done
rows=$(grep -c ',emulated,1,.*,ok,$' "$tmp/csv")
kill $pid
wait $pid
[ "$rows" = 1 ] || fail "rows of a run that is killed: $rows"

[ "$failures" = 0 ]
