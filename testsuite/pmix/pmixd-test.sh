#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pmi2x-pmixd between a host that plays agents and slurmstepds, and unmodified clients of
# PMIx: the system's libpmix, Debian's Open MPI, and hosts and clients that mean no good.
# PMIXD_TEST_LIBRARY: another libpmix for the server.
. "${srcdir:-.}/testsuite/report.sh"
contrib=$(cd "${srcdir:-.}/contrib" && pwd)
cd testsuite/pmix || exit 99
out=pmixd-test.out

skip() {
	echo "SKIP: $*"
	exit 77
}

[ -x pmix-host ] || skip "built without the headers of libpmix (Debian: libpmix-dev)"
library=${PMIXD_TEST_LIBRARY:-$(ldd pmix-exercise |
	awk '$1 == "libpmix.so.2" { print $3 }')}
[ -r "$library" ] || skip "no libpmix.so.2 here (Debian: libpmix2)"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

good() { # NAME OPTION... PROGRAM...
	name=$1
	shift
	timeout 120 ./pmix-host -l "$library" -d "$dir" "$@" >"$out" 2>&1
	report $? "$name"
}

# It ends with that status, and says what matches.
bad() { # NAME STATUS PATTERN OPTION... PROGRAM...
	name=$1 wanted=$2 pattern=$3
	shift 3
	timeout 120 ./pmix-host -d "$dir" "$@" >"$out" 2>&1
	status=$?
	[ $status = "$wanted" ] && grep -qE "$pattern" "$out"
	report $? "$name (status $status)"
}

# Plugins of hwloc that the server does not load. ($0: its "$dir", $1: how they begin)
# shellcheck disable=SC2016
look_at_server='./pmix-exercise job || exit
for process in $(grep -lsF "$0" /proc/[0-9]*/cmdline); do
	maps=${process%cmdline}maps
	grep -qs "/libpmix[.]" "$maps" || continue
	server=found
	if grep -E "/hwloc_$1" "$maps"; then
		exit 1
	fi
done
[ "$server" = found ]'

without_plugins() { # NAME BEGIN OPTION...
	name=$1 begin=$2
	shift 2
	if [ "$(id -u)" = 0 ]; then
		good "$name" -N1 -n1 "$@" sh -c "$look_at_server" "$dir" "$begin"
	else
		echo "skipped: $name: needs root"
	fi
}

# A look-up for each of the two absent keys of a rank, and no more: all else came with
# the fences.
for collect in store demand; do
	for layout in "-N1 -n3 -L0" "-N3 -n7 -L14" "-N4 -n16 -L32 -m cyclic"; do
		good "$collect, $layout: puts, fences, gets" $layout -c $collect \
			./pmix-exercise exchange
	done
	good "$collect: data of after a fence" -N3 -n8 -c $collect \
		./pmix-exercise later
	good "$collect: data of others without a fence" -N3 -n8 -c $collect \
		./pmix-exercise direct
	good "$collect: fences of some" -N3 -n8 -m cyclic -c $collect \
		./pmix-exercise subset
done
good "what is published is found, and taken back" -N3 -n8 ./pmix-exercise names
good "processes of a job connect" -N3 -n7 -m cyclic ./pmix-exercise connect
good "who may see what is published" -N2 -n4 ./pmix-exercise ranges
good "events" -N3 -n8 ./pmix-exercise events
# About groups client and server of different releases do not understand each other.
if [ -z "${PMIXD_TEST_LIBRARY:-}" ]; then
	good "groups" -N4 -n8 ./pmix-exercise groups
	good "groups, of nodes that do not have equally many" -N3 -n7 -m cyclic \
		-c demand ./pmix-exercise groups
	bad "a member of a group dies" 1 "rank 3 killed by signal 9" \
		-l "$library" -N4 -n4 ./pmix-exercise die-in-group
fi
for gds in hash ds21; do
	good "$gds: what a job is" -N3 -n8 -m plane=2 -g $gds ./pmix-exercise job
	good "$gds: two applications" -N3 -n8 -a 3,5 -g $gds ./pmix-exercise job 3
done
good "shared memory, as far as this libpmix has it" -N2 -n8 -g auto \
	./pmix-exercise exchange
for collect in store demand; do
	good "shared memory of libpmix 4, $collect" -N3 -n7 -m cyclic -g ds21 \
		-c $collect ./pmix-exercise exchange
done
good "what is not offered is refused" -N2 -n4 ./pmix-exercise refused
good "old clients have a port of their own" -N2 -n4 -o ./pmix-exercise exchange
good "connections that are no clients" -N2 -n4 -x noise ./pmix-exercise exchange

if [ "$(id -u)" = 0 ]; then
	good "connections of another user" -N2 -n4 -x strangers ./pmix-exercise exchange
	grep -q "refused a PMIx connection of a process of user 65534" "$out" || fail "nobody tells of strangers"
else
	echo "skipped: connections of another user: needs root"
fi
without_plugins "no plugin of hwloc that opens GPUs" "(cuda|gl|nvml|opencl|rsmi)"
if [ -x ../../src/helpers/topology/pmi2x-topology ]; then
	../../src/helpers/topology/pmi2x-topology --export >"$dir/topology.xml"
	good "the node's topology from a file" -N2 -n4 -T "$dir/topology.xml" \
		./pmix-exercise job
	without_plugins "then hwloc's plugins are of no use" "" -T "$dir/topology.xml"
	echo garbage >"$dir/topology.xml"
	bad "a topology that is none" 3 "refused: libpmix .* cannot start" \
		-l "$library" -T "$dir/topology.xml" ./pmix-exercise job
fi

bad "a rank aborts" 7 "rank 7 aborts with 7: I do not want to" -l "$library" \
	-N3 -n8 ./pmix-exercise abort
bad "a rank dies among others" 1 "rank 7 killed by signal 9" -l "$library" \
	-N3 -n8 ./pmix-exercise die
bad "others are told of a death" 1 "^outlived" -l "$library" -N3 -n8 \
	./pmix-exercise outlive
bad "a node's only rank dies" 1 "rank 2 killed by signal 9" -l "$library" \
	-N3 -n3 ./pmix-exercise die

bad "no library" 3 "gives up: cannot load .*no-such.*Debian: libpmix2" \
	-l /no-such/libpmix.so.2 ./pmix-exercise job
bad "a library that is another" 3 "gives up: .*is not libpmix" \
	-l "$(ldd ./pmix-exercise | awk '$1 == "libc.so.6" { print $3 }')" \
	./pmix-exercise job
bad "a library that is too old" 3 "gives up: .*libpmix 3.2.1, too old" \
	-l "$PWD/.libs/old-libpmix.so" ./pmix-exercise job
bad "an agent that sends garbage" 3 "gives up: .*an invalid message" -l "$library" \
	-x garbage ./pmix-exercise job
bad "an agent that sends no namespace" 3 "gives up: .*an invalid message" \
	-l "$library" -x nspace ./pmix-exercise job
bad "an agent that ends" 4 "has ended" -l "$library" -x agent-ends \
	./pmix-exercise job
bad "a host that ends" 4 "has ended" -l "$library" -x host-ends \
	./pmix-exercise job

open_mpi() { # OPTION...
	good "Open MPI, $*" -N4 -n16 "$@" "$dir/mpi-hello"
	grep -q "^size 16 " "$out" || fail "they are not 16"
}

# The nodes are one machine, and may have no network.
export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_pml=ob1
export OMPI_MCA_hwloc_base_binding_policy=none
if command -v mpicc.openmpi >/dev/null; then
	mpicc.openmpi -o "$dir/mpi-hello" "$contrib/cluster/mpi-hello.c" ||
		fail "mpicc.openmpi"
	open_mpi -c store
	open_mpi -m cyclic -c demand
else
	echo "skipped: Open MPI: no mpicc.openmpi (Debian: libopenmpi-dev)"
fi

rm -f "$out"
[ "$failures" = 0 ]
