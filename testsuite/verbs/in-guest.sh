#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What verbs-test.sh runs in the guest: in-guest.sh BUILD SOURCE. Node i of a
# step has device rxe(i modulo 4), so neighbours are on different devices.
cd "$1" || exit 99
source=$2
failures=0
out=/tmp/in-guest.out
tree=$(pwd)
export LD_LIBRARY_PATH=$tree/contrib/libpmi2x/.libs:$tree/contrib/allgather/.libs
server=$tree/testsuite/fake/fake-server
exercise=$tree/testsuite/fake/ring-exercise
bootstrap=$tree/contrib/allgather/examples/rc-bootstrap

report() { # STATUS NAME
	if [ "$1" = 0 ]; then
		echo "ok: $2"
	else
		echo "FAILED: $2"
		sed 's/^/    /' "$out"
		failures=$((failures + 1))
	fi
}

# Run a command in bounded time, and show what it says when it fails.
good() { # NAME SECONDS COMMAND...
	name=$1 seconds=$2
	shift 2
	timeout "$seconds" "$@" >"$out" 2>&1
	report $? "$name"
}

# A program on the device of its node; also under Slurm.
cat >/tmp/on-device <<'DEVICE'
#!/bin/sh
: "${PER_NODE:=$SLURM_NTASKS_PER_NODE}"
device=rxe$((PMI_RANK / PER_NODE % 4))
export PMI2X_ALLGATHER_VERBS_DEVICE="$device"
program=$1
shift
[ "${1-}" != --device ] || { shift; set -- "$device" 1 "$@"; }
exec "$program" "$@"
DEVICE
chmod +x /tmp/on-device

# A step without Slurm.
step() { # NODES PER_NODE PROGRAM...
	nodes=$1 per_node=$2
	shift 2
	PER_NODE=$per_node timeout 240 "$server" -p 24000-27999 -N "$nodes" \
		-n $((nodes * per_node)) /tmp/on-device "$@" >"$out" 2>&1
}

# What is open on each device.
objects() { rdma resource show; }

ring() { # NODES PER_NODE PROGRAM...
	step "$@"
	report $? "$(basename "$3"): $(($1 * $2)) ranks on $1 nodes"
}

# All ranks but the one are told who is to blame, and nothing is left open.
told() { # NAME PATTERN NODES PER_NODE FAULT RANK
	name=$1 pattern=$2
	shift 2
	before=$(objects)
	step "$1" "$2" "$exercise" "$3" "$4"
	[ $? != 124 ] && ! grep -q "^ring-exercise:" "$out" &&
		[ "$(grep -cE "was told: .*($pattern)" "$out")" -ge \
			$(($1 * $2 - 1)) ] && [ "$(objects)" = "$before" ]
	report $? "$name"
}

# slurmd wants a cgroup tree; the plugin's directory may hold nothing else.
slurm() {
	mount -t tmpfs cgroup /sys/fs/cgroup &&
		mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/freezer /tmp/plugin &&
		mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd &&
		mount -t cgroup -o freezer freezer /sys/fs/cgroup/freezer &&
		cp .libs/mpi_pmi2x.so /tmp/plugin || return
	timeout 300 "$source/contrib/cluster/pmi2x-cluster" run -N 2 \
		--dir /tmp/cluster --plugindir /tmp/plugin --timeout 240 \
		srun --mpi=pmi2x -N2 --ntasks-per-node=4 sh -c \
		"/tmp/on-device $exercise && /tmp/on-device $bootstrap --device"
}

good "what every transport must do, over verbs" 300 \
	env PMI2X_ALLGATHER_TRANSPORT=verbs ./testsuite/unit/transport-test
good "verbs between devices, and its faults" 300 ./testsuite/verbs/verbs-test

export PMI2X_ALLGATHER_TRANSPORT=verbs RING_EXPECT=verbs
export PMI2X_ALLGATHER_VERBS_TIMEOUT=14
export PMI2X_ALLGATHER_TIMEOUT=60 PMI2X_ALLGATHER_CONNECT_TIMEOUT=60
ring 2 1 "$exercise"
ring 4 2 "$exercise"
ring 7 1 "$exercise"
# 32 processes of an emulated machine take their time to start.
PMI2X_ALLGATHER_TIMEOUT=200 PMI2X_ALLGATHER_CONNECT_TIMEOUT=200 \
	ring 8 4 "$tree/contrib/allgather/examples/ring-hello"
ring 2 1 "$bootstrap" --device
ring 4 4 "$bootstrap" --device
told "a leader is killed" "rank 2 on node" 4 2 kill 2
told "an element is killed" "rank 3 on node" 5 1 kill 3
told "a rank destroys its ring" "rank 2 on node" 4 1 destroy 2
# Where some have no device, all take the next best, also those that have one.
export RING_EXPECT=tcp
unset PMI2X_ALLGATHER_TRANSPORT
good "one node without verbs" 240 "$server" -N3 -n6 sh -c \
	"[ \$PMI_RANK -ge 2 ] || export PMI2X_ALLGATHER_VERBS_DEVICE=none; exec $exercise"
export PMI2X_ALLGATHER_TRANSPORT=verbs RING_EXPECT=verbs
if [ -e .libs/mpi_pmi2x.so ]; then
	slurm >"$out" 2>&1
	report $? "the ring and the example under Slurm on 2 nodes"
else
	echo "skipped: under Slurm: built without the plugin"
fi

[ "$failures" = 0 ]
