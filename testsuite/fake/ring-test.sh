#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# libpmi2x-allgather in real jobs on the fake server: every layout, over each
# transport that this machine has, and everything that can go wrong. With
# RING_TRANSPORTS="NAME ..." only what is special to these transports.
srcdir=$(cd "${srcdir:-.}" && pwd)
cd testsuite/fake || exit 99
. "$srcdir/testsuite/report.sh"
. "$srcdir/testsuite/fake/ring-steps.sh"
export PMI2X_ALLGATHER_TIMEOUT=$((60 * slow))
export PMI2X_ALLGATHER_CONNECT_TIMEOUT=$((30 * slow))

# What a transport must do in every layout; in a few where a step takes long.
layouts() {
	good "$via: 2 ranks on 2 nodes" -N2 -n2 -- ./ring-exercise
	good "$via: 8 ranks on 8 nodes" -N8 -n8 -- ./ring-exercise
	good "$via: cyclic" -N5 -n17 -m cyclic -- ./ring-exercise
	[ "$slow" = 1 ] || return
	for n in 3 4 7; do
		good "$via: $n ranks on as many nodes" -N$n -n$n -- ./ring-exercise
	done
	good "$via: 23 ranks on 6 nodes" -N6 -n23 -- ./ring-exercise
	good "$via: plane of 3" -N4 -n19 -m plane=3 -- ./ring-exercise
	good "$via: arbitrary" -N3 -n6 -m list=2,0,0,1,2,1 -- ./ring-exercise
	good "$via: no shared memory" -N3 -n7 -- env PMI2X_ALLGATHER_NOSHM=1 \
		./ring-exercise
	[ -n "$FAKE_TEST_SMALL" ] ||
		good "$via: 64 ranks on 16 nodes" -N16 -n64 -- ./ring-exercise
}

patient=
[ "$slow" = 1 ] || patient=PMI2X_ALLGATHER_VERBS_TIMEOUT=20
left="left the ring|connection closed|reset|[Bb]roken|error|no answer"

# With little patience, for those who do not come.
hurried() { # COMMAND...
	PMI2X_ALLGATHER_TIMEOUT=$((3 * slow))
	"$@"
	PMI2X_ALLGATHER_TIMEOUT=$((60 * slow))
}

# While blocks travel.
deaths() {
	told "$via: a leader is killed" 7 "rank 2 on node .*($left)" \
		-N4 -n8 -- ./ring-exercise kill 2
	told "$via: a member is killed" 7 "rank 3 on node .*has exited" \
		-N4 -n8 -- ./ring-exercise kill 3
	told "$via: an element is killed" 4 "rank 3 on node .*($left)" \
		-N5 -n5 -- ./ring-exercise kill 3
	told "$via: one of two is killed" 1 "rank 1 on node .*($left)" \
		-N2 -n2 -- ./ring-exercise kill 1
	# Where one processor does the work of all adapters, acknowledgements are late.
	told "$via: one is killed while large blocks travel" 6 \
		"neighbour rank 3 on node .*($left)" \
		-N7 -n7 -- env $patient ./ring-exercise busy 3
	[ "$slow" = 1 ] || return
	for who in 2 3; do
		told "$via: rank $who is killed between call and wait" 7 \
			"rank $who on node .*($left|has exited)" \
			-N4 -n8 -- ./ring-exercise between $who
	done
}

# While the ring is formed: a leader, a member.
joining() {
	PMI2X_ALLGATHER_CONNECT_TIMEOUT=3
	for call in $(seq 1 16); do
		for who in 2 3; do
			told "$via: rank $who is killed in PMI's use $call" 7 \
				"rank $who[ ,].*" -N4 -n8 -- \
				env RING_CALL=$call ./ring-exercise joining $who
		done
	done
	told "$via: rank 2 is killed when it has its links" 7 "rank 2 on node" \
		-N4 -n8 -- ./ring-exercise linked 2
}

breaks() {
	told "$via: a rank destroys its ring" 4 "rank 2 on node" \
		-N5 -n5 -- ./ring-exercise destroy 2
	breaker=./ring-exercise
	[ "$via" != verbs ] || breaker=../verbs/ring-exercise
	told "$via: the links of a rank break" 5 \
		"rank 2 on node .*($left)" -N5 -n5 -- $breaker break 2
}

# Somebody does not call, or has not even joined.
absences() {
	hurried told "$via: a rank does not call" 7 "rank 5 .*has not entered" \
		-N4 -n8 -- ./ring-exercise absent 5
	hurried told "$via: an element does not call" 4 \
		"rank 3 .*has not entered" -N5 -n5 -- ./ring-exercise absent 3
	hurried told "$via: a rank never joins" 7 \
		"rank 5 on node .*has not joined within $((3 * slow)) s" \
		-N4 -n8 -- ./ring-exercise stranger 5
	hurried told "$via: an element never joins" 4 \
		"rank 3, .*has not joined within $((3 * slow)) s" \
		-N5 -n5 -- ./ring-exercise stranger 3
}

wrong_values() {
	PMI2X_ALLGATHER_CONNECT_TIMEOUT=$((3 * slow))
	for what in cut lie; do
		told "$via: a rank's neighbour has a wrong value ($what)" 5 \
			"rank . on node .* neighbour" \
			-N5 -n5 -- ./ring-exercise $what 4
		[ "$slow" != 1 ] ||
			told "$via: the same inside a node ($what)" 8 \
				"neighbour" -N4 -n8 -- ./ring-exercise $what 4
	done
}

# On one node there are no links.
one_node() {
	good "shm: not by a rank that may write small files only" -N1 -n4 -- \
		env PMI2X_ALLGATHER_TRANSPORT=tcp RING_EXPECT=tcp sh -c \
		'[ "$PMI_RANK" != 2 ] || ulimit -f 100; exec ./ring-exercise'
	for n in 1 2 3 16; do
		want=shm
		[ $n != 1 ] || want=self
		good "$want: $n ranks on one node" -N1 -n$n -- \
			env RING_EXPECT=$want ./ring-exercise
	done
	told "shm: a rank is killed" 3 "rank 2 on node .*has exited" \
		-N1 -n4 -- ./ring-exercise kill 2
	told "shm: the leader is killed" 3 "rank 0 on node .*has exited" \
		-N1 -n4 -- ./ring-exercise kill 0
	told "shm: a rank destroys its ring" 3 "rank 2 on node .*left the ring" \
		-N1 -n4 -- ./ring-exercise destroy 2
	hurried told "shm: a rank does not call" 3 \
		"rank 2 on node .*has not entered" -N1 -n4 -- ./ring-exercise absent 2
	hurried told "shm: a rank never joins" 3 "rank 2 on node .*has not joined" \
		-N1 -n4 -- ./ring-exercise stranger 2
}

# With a variable that rank 1 has another value of.
one_has='v=$3
	[ "$PMI_RANK" != 1 ] || v=$2
	[ -z "$v" ] || export "PMI2X_ALLGATHER_$1=$v"
	exec ./ring-exercise cut 99'

# Without a transport of its own.
over_pmi() {
	export PMI2X_ALLGATHER_TRANSPORT=pmi RING_EXPECT=pmi
	good "pmi: 7 ranks on 3 nodes" -N3 -n7 -- ./ring-exercise
	good "pmi: without the extension" -N2 -n3 -- env PMI2X_DISABLE=1 \
		./ring-exercise
	told "pmi: a rank is killed" 5 "over PMI failed: .*rank 3 .node .*exited" \
		-N3 -n6 -- ./ring-exercise kill 3
	unset PMI2X_ALLGATHER_TRANSPORT
	# One rank may not use what the others would: all go over PMI.
	good "one rank without a transport" -N4 -n4 -- sh -c \
		'[ "$PMI_RANK" != 2 ] || export PMI2X_ALLGATHER_TRANSPORT=pmi; exec ./ring-exercise'
	unset RING_EXPECT
	PMI2X_ALLGATHER_CONNECT_TIMEOUT=$((3 * slow))
	good "a wrong value, and PMI as the way out" -N4 -n4 -- \
		env RING_EXPECT=pmi ./ring-exercise cut 1
	PMI2X_ALLGATHER_CONNECT_TIMEOUT=$((30 * slow))
	told "no transport that all may use" 3 "not among the transports" \
		-N3 -n3 -- sh -c "$one_has" sh TRANSPORT pmi tcp
}

# At one rank, also one that leads no node: all are told, at once, and nobody goes
# another way.
wrong() { # NAME COUNT PATTERN VARIABLE WRONG-VALUE FAKE-SERVER-ARGUMENT...
	name=$1 count=$2 pattern=$3 variable=$4 value=$5
	shift 5
	told "$name" "$count" "rank 1 on node .*: PMI2X_ALLGATHER_$pattern" \
		"$@" -- sh -c "$one_has" sh "$variable" "$value" ""
}

wrong_settings() {
	list="one or more of verbs,tcp,pmi is expected"
	wrong "a transport of no known name" 3 "TRANSPORT=tcp,ib: $list" \
		TRANSPORT tcp,ib -N3 -n3
	wrong "the same on one node" 4 "TRANSPORT=shm: $list" \
		TRANSPORT shm -N1 -n4
	wrong "a setting that is no number" 4 "TIMEOUT=soon: a number from 1" \
		TIMEOUT soon -N2 -n4
	wrong "a setting of a transport" 3 "TCP_TIMEOUT=0: a number from 1 to 36" \
		TCP_TIMEOUT 0 -N3 -n3
	export PMI2X_DISABLE=1
	wrong "the same over stock PMI" 3 "TCP_PORTS=x: FIRST-LAST" \
		TCP_PORTS x -N3 -n3
	unset PMI2X_DISABLE
	told "a wrong setting of the only rank" 1 "TRANSPORT=x: $list" \
		-N1 -n1 -- env PMI2X_ALLGATHER_TRANSPORT=x ./ring-exercise cut 99
}

# Before any transport matters.
nobody_comes() {
	told "a rank is gone before it joins" 7 "rank 5 .node .*exited" \
		-N4 -n8 -- ./ring-exercise gone 5
	told "a rank is gone, and PMI does not say which" 7 \
		"rank 5 on node .*has not joined" \
		-N4 -n8 -- ./ring-exercise gone-wordless 5
	hurried told "the first rank never joins" 4 \
		"rank 0, .*has not joined within $((3 * slow)) s" \
		-N5 -n5 -- ./ring-exercise stranger 0
}

# Does this machine have it?
usable() {
	PMI2X_ALLGATHER_TRANSPORT=$via timeout 300 ../unit/allgather/transport-test \
		>"$out" 2>&1
	status=$?
	[ $status = 77 ] || report $status "$via: what every transport must do"
	[ $status != 77 ]
}

# Under a program that knows nothing of rings. By its name alone, as LD_PRELOAD takes
# a space in a path for its end.
preload=libpmi2x-allgather-preload.so
case $SANITIZE in # its run-time library wants to be the first
*address*) preload=$(gcc -print-file-name=libasan.so):$preload ;;
esac
used() { # NAME PATTERN FAKE-SERVER-ARGUMENT... -- PROGRAM...
	name=$1 pattern=$2
	shift 2
	ring_step 120 "$@"
	[ $status = 0 ] && grep -qE "$pattern" "$out"
	report $? "$name, $took s"
}

preloaded() {
	export PMI2X_ALLGATHER_DEBUG=1
	used "preloaded" "3 elements: tcp" -N3 -n7 -- env LD_PRELOAD="$preload" \
		PMI2X_ALLGATHER_TRANSPORT=tcp PMI2X_ALLGATHER_MIN=1 ./exercise
	used "preloaded, on one node" "1 elements: shm" -N1 -n5 -- \
		env LD_PRELOAD="$preload" PMI2X_ALLGATHER_TRANSPORT=tcp \
		PMI2X_ALLGATHER_MIN=1 ./exercise
	used "preloaded, without a fabric" "over PMI|elements: verbs" -N3 -n7 -- \
		env LD_PRELOAD="$preload" PMI2X_ALLGATHER_MIN=1 ./exercise
	good "preloaded, and not worth while" -N3 -n7 -- \
		env LD_PRELOAD="$preload" PMI2X_ALLGATHER_TRANSPORT=tcp \
		PMI2X_ALLGATHER_MIN=1000000000 ./exercise
	grep -q elements "$out"
	report $((! $?)) "then no ring is made"
	once "preloaded, with a wrong size" \
		"pmi2x-allgather: PMI2X_ALLGATHER_MIN=1k: .*; 65536 is used" \
		PMI2X_ALLGATHER_MIN=1k
	once "preloaded, with a wrong transport" \
		"pmi2x-allgather: not used: rank .*PMI2X_ALLGATHER_TRANSPORT=ib: " \
		PMI2X_ALLGATHER_TRANSPORT=ib PMI2X_ALLGATHER_MIN=1
}

# The program does its work, and one line says what is wrong.
once() { # NAME PATTERN SETTING...
	name=$1 pattern=$2
	shift 2
	good "$name" -N3 -n7 -- env LD_PRELOAD="$preload" \
		PMI2X_ALLGATHER_DEBUG=0 "$@" ./exercise
	[ "$(grep -c "^pmi2x-allgather:" "$out")" = 1 ] &&
		grep -qE "^$pattern" "$out"
	report $? "and is said once"
}

# By its own choice, as there is a fabric.
preloaded_over_verbs() {
	unset PMI2X_ALLGATHER_TRANSPORT
	export PMI2X_ALLGATHER_DEBUG=1
	used "preloaded, over the fabric" "3 elements: verbs" -N3 -n7 -- \
		env LD_PRELOAD="$preload" PMI2X_ALLGATHER_MIN=1 ./exercise
}

# What the ring has counted is what the model in doc/allgather.md rests on.
cost() { # NAME FAKE-SERVER-ARGUMENT...
	name=$1
	shift
	ring_step 120 "$@" -- env PMI2X_ALLGATHER_TRANSPORT=tcp \
		../../contrib/bench/pmi2x-bench-ring 2 64 16360 70000
	[ $status = 0 ] && "$srcdir/testsuite/fake/ring-model" --check "$out" >>"$out" 2>&1
	report $? "$name"
}

# Where programs take long to start, no more than two at once.
what_works() {
	usable
	layouts
	breaks
	deaths
	[ "$via" != verbs ] || preloaded_over_verbs
}

what_fails() {
	absences
	wrong_values
}

costs() {
	cost "steps, messages and bytes, an even number of nodes" -N4 -n8
	cost "steps, messages and bytes, an odd number of nodes" -N5 -n15
	cost "steps, messages and bytes, two nodes" -N2 -n2
}

for via in ${RING_TRANSPORTS-tcp verbs}; do
	export PMI2X_ALLGATHER_TRANSPORT=$via RING_EXPECT=$via
	if [ "$slow" != 1 ]; then
		side_by_side what_works what_fails
	elif usable; then
		side_by_side layouts deaths breaks joining absences wrong_values
	else
		echo "skipped: $via: not on this machine"
	fi
	unset PMI2X_ALLGATHER_TRANSPORT RING_EXPECT
done
if [ -z "$RING_TRANSPORTS" ]; then
	side_by_side one_node over_pmi wrong_settings nobody_comes costs \
		$([ -n "$FAKE_TEST_SMALL" ] || echo preloaded)
fi

rm -f "$out"
[ "$failures" = 0 ]
