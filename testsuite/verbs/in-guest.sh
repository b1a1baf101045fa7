#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What verbs-test.sh runs in the guest: in-guest.sh BUILD SOURCE. Node i of a
# step has device rxe(i modulo 4), so neighbours are on different devices.
# At a path that every user can enter, whoever may enter that of the clone.
mkdir "/tmp/the build" && mount --bind "$1" "/tmp/the build" &&
	cd "/tmp/the build" || exit 99
tree=$(pwd) source=$2
cd testsuite/fake || exit 99
. "$source/testsuite/report.sh"
. "$source/testsuite/fake/ring-steps.sh"
export LD_LIBRARY_PATH=$tree/contrib/libpmi2x/.libs:$tree/contrib/allgather/.libs
examples=$tree/contrib/allgather/examples

cp "$source/testsuite/verbs/on-device" /tmp/on-device || exit 99

# At the third rank of a step; nobody else uses these devices. Its own device may fail
# what is under way before it says that its port is down.
port_down() {
	export FIRST_DEVICE=4 RING_FAULT="ip link set roce6 down"
	told "a port goes down" 4 \
		"rank 2 on node .*(port 1 of rxe6 is down|local QP operation error)|neighbour rank 2 on node .*no answer" \
		-N4 -n4 -- ./ring-exercise command 2
}

# As a user to whom limits apply.
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
little='[ "$PMI_RANK" != 1 ] || ulimit -l 64; exec ./ring-exercise "$@"'

memory_limit() {
	told "a limit of locked memory is named" 2 \
		"rank 1 on node .*RLIMIT_MEMLOCK is 64 KiB" -N2 -n2 -- \
		$user sh -c "$little" sh cut 99
	export PMI2X_ALLGATHER_TRANSPORT=verbs,tcp RING_EXPECT=tcp
	good "one rank that may not lock memory: all use TCP" -N2 -n2 -- \
		$user sh -c "$little" sh
}

# Where some have no device, all take the next best, also those that have one.
some_without() {
	unset PMI2X_ALLGATHER_TRANSPORT
	export RING_EXPECT=tcp RING_RUN=
	good "one node without verbs" -N3 -n6 -- sh -c \
		'[ $PMI_RANK -ge 2 ] || export PMI2X_ALLGATHER_VERBS_DEVICE=none; exec ./ring-exercise'
}

# slurmd wants a cgroup tree; the plugin's directory may hold nothing else.
slurm() {
	mount -t tmpfs cgroup /sys/fs/cgroup &&
		mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/freezer /tmp/plugin &&
		mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd &&
		mount -t cgroup -o freezer freezer /sys/fs/cgroup/freezer &&
		cp "$tree/.libs/mpi_pmi2x.so" /tmp/plugin || return
	# Where the plugin looks for its other files.
	for file in .libs/libpmi2x-srun.so src/agent/pmi2x-agent; do
		at=$(grep -ao "/[[:print:]]*/${file##*/}" /tmp/plugin/*.so | head -n 1)
		[ -e "$at" ] || {
			mkdir -p "${at%/*}" && cp "$tree/$file" "$at"
		} || return
	done
	cat >/tmp/both <<BOTH
#!/bin/sh
/tmp/on-device "$tree/testsuite/fake/ring-exercise" &&
	/tmp/on-device "$examples/rc-bootstrap" --device
BOTH
	chmod +x /tmp/both
	timeout 1500 "$source/contrib/cluster/pmi2x-cluster" run -N 2 \
		--dir /tmp/cluster --plugindir /tmp/plugin --timeout 1200 \
		srun --mpi=pmi2x -N2 --ntasks-per-node=4 /tmp/both
}

many_ranks() {
	good "64 ranks on as many nodes" -N64 -n64 -- "$examples/ring-hello"
	good "connections between 2 ranks" -N2 -n2 -- "$examples/rc-bootstrap" --device
	good "connections between 16 ranks" -N4 -n16 -- "$examples/rc-bootstrap" --device
	if [ -e "$tree/.libs/mpi_pmi2x.so" ]; then
		slurm >"$out" 2>&1
		report $? "the ring and the example under Slurm on 2 nodes"
	else
		echo "skipped: under Slurm: built without the plugin"
	fi
}

cd "$tree" && within 1500 "verbs between devices, and its faults" \
	./testsuite/verbs/verbs-test
cd testsuite/fake || exit 99
objects=$(rdma resource show)

export RING_RUN=/tmp/on-device RING_SLOW=8
RING_TRANSPORTS=verbs srcdir=$source bash -c \
	'cd "$1" && exec "$srcdir/testsuite/fake/ring-test.sh"' - "$tree"
[ $? = 0 ] || failures=$((failures + 1))

slow=$RING_SLOW
export PMI2X_ALLGATHER_TIMEOUT=200 PMI2X_ALLGATHER_CONNECT_TIMEOUT=200
export PMI2X_ALLGATHER_TRANSPORT=verbs RING_EXPECT=verbs
side_by_side many_ranks port_down memory_limit some_without

# Whatever has happened to the ranks, the kernel has no queue pair of theirs.
rdma resource show >"$out"
[ "$(cat "$out")" = "$objects" ]
report $? "nothing is left on the devices"
[ "$failures" = 0 ]
