#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Boot a guest with Soft-RoCE and run in-guest.sh there. Run by "make check" with
# srcdir set, in the build directory.
here=$(cd "${srcdir:-.}/testsuite/verbs" && pwd) || exit 99
tree=$(pwd)

skip() {
	echo "SKIP: $*"
	exit 77
}

[ -x testsuite/verbs/verbs-test ] ||
	skip "built without verbs or cmocka: apt-get install" \
		"libibverbs-dev libcmocka-dev, and run configure again"
# Only what is missing may skip the test: a guest that fails is a failure.
why=$("$here/soft-roce-guest" --check 2>&1) || skip "$why"
. "$here/../report.sh"

# Under a name with a space, which the guest sees as well.
place=$(mktemp -d "${TMPDIR:-/tmp}/verbs test.XXXXXX") || exit 99
trap 'rm -r "$place"' EXIT
chmod 755 "$place"
ln -s "$tree" "$place/build"
out=$place/out

# A guest that hangs: ends in time, with what its console said.
given_up() {
	"$here/soft-roce-guest" --timeout 2 -- sleep 1000 >"$out" 2>&1
	[ $? = 125 ] && grep -q "did not end within 2" "$out" &&
		grep -q "console" "$out"
	report $? "a guest is given up after its time"
}

# Nobody is left to clean up: the kernel does. Each loop ends by itself.
ends_with_script() {
	"$here/soft-roce-guest" --timeout 60 -- sleep 1000 >"$out" 2>&1 &
	script=$!
	until qemu=$(pgrep -P "$script" -f qemu-system) ||
		[ ! -d "/proc/$script" ]; do
		:
	done
	kill -9 "$script"
	wait "$script" 2>/dev/null
	left=100000
	while [ -e "/proc/$qemu/exe" ] && [ "$left" -gt 0 ]; do
		left=$((left - 1))
	done
	[ -n "$qemu" ] && [ ! -e "/proc/$qemu/exe" ]
	report $? "a guest ends with its script"
}

# Nothing of this needs root.
ordinary_user() {
	user=
	[ "$(id -u)" != 0 ] ||
		user='setpriv --reuid=65534 --regid=65534 --clear-groups'
	$user test -r "$here/soft-roce-guest" || return
	(cd "$place" && $user "$here/soft-roce-guest" --timeout 120 \
		--nodes 1 -- sh -c 'pwd; rdma link show') >"$out" 2>&1
	[ $? = 0 ] && grep -qxF "$place" "$out" &&
		grep -q "rxe0/1 state ACTIVE" "$out"
	report $? "a guest of an ordinary user"
}

given_up
ends_with_script
ordinary_user
"$here/soft-roce-guest" --nodes 8 --memory 3072 --timeout 1500 -- \
	"$here/in-guest.sh" "$place/build" "$(cd "$here/../.." && pwd)"
report $? "the suite in the guest"
[ "$failures" = 0 ]
