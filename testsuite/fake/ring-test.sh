#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# libpmi2x-allgather in real jobs on the fake server: every layout, over each
# transport that this machine has, and everything that can go wrong. For one
# transport only: RING_TRANSPORTS=verbs.
srcdir=$(cd "${srcdir:-.}" && pwd)
cd testsuite/fake || exit 99
libs=../../contrib/libpmi2x/.libs:../../contrib/allgather/.libs
export LD_LIBRARY_PATH="$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PMI2X_ALLGATHER_TIMEOUT=60 PMI2X_ALLGATHER_CONNECT_TIMEOUT=30
out=ring-test.out
failures=0

report() { # STATUS NAME
	if [ "$1" = 0 ]; then
		echo "ok: $2"
	else
		echo "FAILED: $2"
		sed 's/^/    /' "$out"
		failures=$((failures + 1))
	fi
}

good() { # NAME ARG...
	name=$1
	shift
	timeout 300 ./fake-server -p 24000-27999 "$@" >"$out" 2>&1
	report $? "$name"
}

# All ranks but one are told, within the time, with what matches.
told() { # NAME COUNT PATTERN ARG...
	name=$1 count=$2 pattern=$3
	shift 3
	timeout 120 ./fake-server -p 24000-27999 "$@" >"$out" 2>&1
	[ $? != 124 ] && ! grep -q '^ring-exercise:' "$out" &&
		[ "$(grep -cE "was told: .*($pattern)" "$out")" -ge "$count" ]
	report $? "$name"
}

# What this transport must do in every layout.
layouts() {
	for n in 2 3 4 7; do
		good "$via: $n ranks on as many nodes" -N$n -n$n ./ring-exercise
	done
	good "$via: 23 ranks on 6 nodes" -N6 -n23 ./ring-exercise
	good "$via: cyclic" -N5 -n17 -m cyclic ./ring-exercise
	good "$via: plane of 3" -N4 -n19 -m plane=3 ./ring-exercise
	good "$via: arbitrary" -N3 -n6 -m list=2,0,0,1,2,1 ./ring-exercise
	good "$via: no shared memory" -N3 -n7 env PMI2X_ALLGATHER_NOSHM=1 \
		./ring-exercise
	[ -n "$FAKE_TEST_SMALL" ] ||
		good "$via: 64 ranks on 16 nodes" -N16 -n64 ./ring-exercise
}

faults() {
	left="left the ring|connection closed|reset|broken|error|no answer"
	told "$via: a leader is killed" 7 "rank 2 on node .*($left)" \
		-N4 -n8 ./ring-exercise kill 2
	told "$via: a member is killed" 7 "rank 3 on node .*has exited" \
		-N4 -n8 ./ring-exercise kill 3
	told "$via: an element is killed" 4 "rank 3 on node .*($left)" \
		-N5 -n5 ./ring-exercise kill 3
	told "$via: one of two is killed" 1 "rank 1 on node .*($left)" \
		-N2 -n2 ./ring-exercise kill 1
	told "$via: a rank destroys its ring" 4 "rank 2 on node" \
		-N5 -n5 ./ring-exercise destroy 2
	PMI2X_ALLGATHER_TIMEOUT=2
	told "$via: a rank does not call" 7 "rank 5 .*has not entered" \
		-N4 -n8 ./ring-exercise absent 5
	told "$via: an element does not call" 4 "rank 3 .*has not entered" \
		-N5 -n5 ./ring-exercise absent 3
	PMI2X_ALLGATHER_CONNECT_TIMEOUT=3
	for what in cut lie; do
		told "$via: a rank's neighbour has a wrong value ($what)" 5 \
			"rank . on node .* neighbour rank" \
			-N5 -n5 ./ring-exercise $what 4
		told "$via: the same inside a node ($what)" 8 "neighbour" \
			-N4 -n8 ./ring-exercise $what 4
	done
	PMI2X_ALLGATHER_TIMEOUT=60 PMI2X_ALLGATHER_CONNECT_TIMEOUT=30
}

# Does this machine have it?
usable() {
	PMI2X_ALLGATHER_TRANSPORT=$via ../unit/transport-test >"$out" 2>&1
	[ $? != 77 ]
}

for n in 1 2 3 16; do
	want=shm
	[ $n != 1 ] || want=self
	good "$want: $n ranks on one node" -N1 -n$n env RING_EXPECT=$want \
		./ring-exercise
done
for via in ${RING_TRANSPORTS-tcp verbs}; do
	usable || { echo "skipped: $via: not on this machine"; continue; }
	export PMI2X_ALLGATHER_TRANSPORT=$via RING_EXPECT=$via
	layouts
	faults
	unset PMI2X_ALLGATHER_TRANSPORT RING_EXPECT
done

export PMI2X_ALLGATHER_TRANSPORT=pmi RING_EXPECT=pmi
good "over PMI" -N3 -n7 ./ring-exercise
good "over PMI without the extension" -N2 -n3 env PMI2X_DISABLE=1 \
	./ring-exercise
unset PMI2X_ALLGATHER_TRANSPORT
# One rank may not use what the others would: all go over PMI.
good "one rank without a transport" -N4 -n4 sh -c \
	'[ "$PMI_RANK" != 2 ] || export PMI2X_ALLGATHER_TRANSPORT=pmi; exec ./ring-exercise'
unset RING_EXPECT
PMI2X_ALLGATHER_CONNECT_TIMEOUT=3
good "a wrong value, and PMI as the way out" -N4 -n4 env RING_EXPECT=pmi \
	./ring-exercise cut 1
PMI2X_ALLGATHER_TRANSPORT=none
export PMI2X_ALLGATHER_TRANSPORT
told "a transport that is not there" 3 "not among the transports" \
	-N3 -n3 ./ring-exercise cut 99
unset PMI2X_ALLGATHER_TRANSPORT
PMI2X_ALLGATHER_TIMEOUT=3
told "a rank that never joins" 1 "rank 1 on node .*has not joined within 3 s" \
	-N2 -n4 ./ring-exercise stranger 1

# The preloadable form, under a program that knows nothing of rings.
preload=$(pwd)/../../contrib/allgather/.libs/libpmi2x-allgather-preload.so
used() { # NAME PATTERN ARG...
	name=$1 pattern=$2
	shift 2
	timeout 120 ./fake-server -p 24000-27999 "$@" >"$out" 2>&1 &&
		grep -qE "$pattern" "$out"
	report $? "$name"
}
PMI2X_ALLGATHER_TIMEOUT=60 PMI2X_ALLGATHER_CONNECT_TIMEOUT=30
export PMI2X_ALLGATHER_DEBUG=1
if [ -z "$FAKE_TEST_SMALL" ]; then
	used "preloaded" "3 elements: tcp" -N3 -n7 env LD_PRELOAD="$preload" \
		PMI2X_ALLGATHER_TRANSPORT=tcp PMI2X_ALLGATHER_MIN=1 ./exercise
	used "preloaded, on one node" "1 elements: shm" -N1 -n5 \
		env LD_PRELOAD="$preload" PMI2X_ALLGATHER_TRANSPORT=tcp \
		PMI2X_ALLGATHER_MIN=1 ./exercise
	used "preloaded, without a fabric" "over PMI|elements: verbs" -N3 -n7 \
		env LD_PRELOAD="$preload" PMI2X_ALLGATHER_MIN=1 ./exercise
	good "preloaded, and not worth while" -N3 -n7 env LD_PRELOAD="$preload" \
		PMI2X_ALLGATHER_TRANSPORT=tcp PMI2X_ALLGATHER_MIN=1000000000 \
		./exercise
	grep -q elements "$out"
	report $((! $?)) "then no ring is made"
fi
unset PMI2X_ALLGATHER_DEBUG

# What the ring has counted is what the model in doc/allgather.md rests on.
model=$srcdir/contrib/bench/ring-model
costs() { # NAME ARG...
	name=$1
	shift
	PMI2X_ALLGATHER_TRANSPORT=tcp timeout 120 ./fake-server -p 24000-27999 \
		"$@" ../../contrib/bench/pmi2x-ring-bench 2 64 4096 70000 \
		>"$out" 2>&1 && "$model" --check "$out" >>"$out" 2>&1
	report $? "$name"
}
if [ -x ../../contrib/bench/pmi2x-ring-bench ]; then
	costs "steps and bytes, an even number of nodes" -N4 -n8
	costs "steps and bytes, an odd number of nodes" -N5 -n15
fi

rm -f "$out"
[ "$failures" = 0 ]
