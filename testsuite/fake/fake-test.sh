#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Real client programs over real sockets against the fake server: 1 to 512
# ranks, every layout, with and without shared memory, and failures.
# FAKE_TEST_SMALL=1 leaves out what sanitizer builds cannot do: many ranks, and
# little memory or address space. There it is set anyway.
. "${srcdir:-.}/testsuite/report.sh"
cd testsuite/fake || exit 99
[ -z "$SANITIZE" ] || FAKE_TEST_SMALL=1
many=16 # ranks of a node
[ -z "$FAKE_TEST_SMALL" ] || many=4
libs=../../contrib/libpmi2x/.libs
export LD_LIBRARY_PATH="$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
out=fake-test.out

# Expect exit code 0 of a step.
good() { # NAME ARG...
	name=$1
	shift
	within 120 "$name" ./fake-server "$@"
}

# Expect a failure within the time limit, and a message that matches.
bad() { # NAME PATTERN ARG...
	name=$1 pattern=$2
	shift 2
	timeout 60 ./fake-server "$@" >"$out" 2>&1
	code=$?
	[ $code != 0 ] && [ $code != 124 ] && grep -qE "$pattern" "$out"
	report $? "$name (exit code $code)"
}

export EXERCISE_BLOCK=1
for n in 1 2 3 7; do
	good "$n ranks on one node" -N1 -n$n ./exercise
done
good "one rank on each of 5 nodes" -N5 ./exercise
good "23 ranks on 6 nodes, binary tree" -N6 -n23 -k2 ./exercise
good "without shared memory" -N4 -n9 --no-shm ./exercise
unset EXERCISE_BLOCK
good "cyclic" -N5 -n17 -m cyclic -k3 ./exercise
good "plane of 3" -N4 -n19 -m plane=3 ./exercise
good "arbitrary" -N3 -n6 -m list=2,0,0,1,2,1 ./exercise
good "a parent that starts late" -N5 -n10 -k2 --late 0:700 ./exercise
good "a client that is told to use plain PMI-2" -N3 -n7 \
	env PMI2X_DISABLE=1 ./exercise
good "a client that enters over its socket" -N3 -n7 env PMI2X_NOSLOTS=1 ./exercise
good "slots, sockets and no shared memory in one step" -N3 -n14 sh -c \
	'case $((PMI_RANK % 3)) in 0) export PMI2X_NOSLOTS=1 ;; 1) export PMI2X_NOSHM=1 ;; esac; exec ./exercise'
good "both kinds in one step" -N3 -n9 env EXERCISE_PMI2=1 sh -c \
	'[ $((PMI_RANK % 2)) = 0 ] || export PMI2X_DISABLE=1; exec ./exercise'
good "two programs on one PMI_FD" -N2 -n4 sh -c './exercise && ./exercise'
if [ -z "$FAKE_TEST_SMALL" ]; then
	good "a client that cannot map" -N3 -n7 sh -c 'ulimit -v 400000; exec ./exercise'
	good "the memory of an agent with 4,096 entries" -N2 -n16 \
		./agent-memory 4096 4096
	good "the same, its ranks with plain PMI-2" -N2 -n16 \
		env PMI2X_DISABLE=1 ./agent-memory 4096 4096
	good "128 ranks on 32 nodes" -N32 -n128 -k4 ./exercise
	good "512 ranks on 8 nodes" -N8 -n512 ./exercise
fi

export EXERCISE_LARGE=1024
good "1 KiB from each of many ranks, binary tree" -N16 -n$((16 * many)) -k2 ./exercise
export EXERCISE_LARGE=20000
good "several pieces from every node" -N7 -n21 -k3 ./exercise
good "2 nodes, cyclic" -N2 -n7 -m cyclic ./exercise
good "13 nodes, no shared memory" -N13 -n20 --no-shm ./exercise
good "several pieces without shared memory" -N4 -n16 -m cyclic --no-shm ./exercise
unset EXERCISE_LARGE

bad "a rank that never starts PMI" "rank 3 \(node n2\) exited .*without" \
	-N4 -n8 sh -c '[ "$PMI_RANK" = 3 ] || exec ./exercise'
bad "a rank that is killed" "rank 5 \(node n3\)" \
	-N4 -n8 sh -c 'if [ "$PMI_RANK" = 5 ]; then kill -9 $$; fi; exec ./exercise'
bad "a rank that is killed while others wait in their slots" "rank 5 \(node n2\)" \
	-N4 -n12 sh -c 'if [ "$PMI_RANK" = 5 ]; then exec ./exercise 3; fi; exec ./exercise'
bad "garbage on PMI_FD" "rank 2 \(node n2\)" -N2 -n4 sh -c \
	'if [ "$PMI_RANK" = 2 ]; then echo "garbage" >&"$PMI_FD"; exit 0; fi; exec ./exercise'
bad "a program that does not exist" "No such file" -N2 -n2 ./no-such-program

rm -f "$out"
[ "$failures" = 0 ]
