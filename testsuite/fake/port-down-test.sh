#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The ring over TCP when the port of a node goes down. Each node of the step has a
# network of its own with one port on a bridge, all of it in namespaces that end with
# this script; an ordinary user may do that where user namespaces are allowed.
# Run by "make check" with srcdir set, in the build directory.
srcdir=$(cd "${srcdir:-.}" && pwd)

skip() {
	echo "SKIP: no networks of our own here: $*"
	exit 77
}

if [ "${1-}" != inside ]; then
	own="--net --mount"
	[ "$(id -u)" = 0 ] || own="$own --map-root-user"
	why=$(unshare $own ip link show 2>&1) || skip "$why"
	exec unshare $own "$srcdir/testsuite/fake/port-down-test.sh" inside
fi

# Names of networks are kept below /run: in memory that nobody else sees.
set_up_bridge() {
	mount -t tmpfs tmpfs /run && ip link set lo up &&
		ip link add wire type bridge && ip link set wire up
}

set_up_node() { # INDEX
	ip netns add "node$1" &&
		ip link add "wire$1" type veth peer name port netns "node$1" &&
		ip link set "wire$1" master wire up &&
		nsenter --net="/run/netns/node$1" sh -c "ip link set port up &&
			ip address add 192.168.78.$(($1 + 1))/24 dev port"
}

set_up() {
	set_up_bridge && set_up_node 0 && set_up_node 1 && set_up_node 2 &&
		set_up_node 3
}

why=$(set_up 2>&1) || skip "$why"
cat >/run/on-node <<'END'
#!/bin/sh
exec nsenter --net="/run/netns/node$SLURM_NODEID" "$@"
END
chmod +x /run/on-node

cd testsuite/fake || exit 99
. "$srcdir/testsuite/report.sh"
. "$srcdir/testsuite/fake/ring-steps.sh"
export RING_RUN=/run/on-node PMI2X_ALLGATHER_TRANSPORT=tcp RING_EXPECT=tcp
export PMI2X_ALLGATHER_TCP_TIMEOUT=$((3 * slow))

good "nodes with networks of their own" -N4 -n8 -- ./ring-exercise
# Rank 2 leads its node, and misses its neighbours; they miss it, and tell the rest.
silent="timed out|[Nn]o route|unreachable"
export RING_FAULT="ip link set port down"
told "a port goes down" 8 \
	"neighbour rank 2 on node .*($silent)|rank 2 on node .*neighbour rank .*($silent)" \
	-N4 -n8 -- ./ring-exercise command 2

rm -f "$out"
[ "$failures" = 0 ]
