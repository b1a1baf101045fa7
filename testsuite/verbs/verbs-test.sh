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
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
out=$place/out

# What others read, where none but root may enter the clone.
mkdir "$place/verbs" || exit 99
cp "$here/soft-roce-guest" "$here/guest-init" "$here/guest-run" "$place/verbs" ||
	exit 99
kernel=
if [ -n "${PMI2X_GUEST_KERNEL-}" ]; then
	kernel=$place/kernel
	cp -r "$PMI2X_GUEST_KERNEL" "$kernel" || exit 99
fi
chmod -R a+rX "$place/verbs"
[ -z "$kernel" ] || chmod -R a+rX "$kernel"

# A guest that hangs is ended, and its console shown.
given_up() {
	"$here/soft-roce-guest" --silence 2 -- sleep 1000 >"$out" 2>&1
	[ $? = 125 ] && grep -q "has said nothing for 2" "$out" &&
		grep -q "console" "$out"
	report $? "a silent guest is given up"
}

# Once it runs: it has asked for the signal before.
qemu_below() { # PID
	child=$(awk -v parent="$1" '$1 == "Pid:" { pid = $2 }
		$1 == "PPid:" && $2 == parent { print pid; exit }' \
		/proc/[0-9]*/status 2>/dev/null)
	case $(readlink "/proc/$child/exe") in
	*qemu*) echo "$child" ;;
	esac
}

# Nobody is left to clean up: the kernel does, as soon as it comes to it.
ends_with_script() {
	"$here/soft-roce-guest" -- sleep 1000000 >"$out" 2>&1 &
	script=$!
	qemu=
	while [ -z "$qemu" ] && [ -e "/proc/$script/exe" ]; do
		qemu=$(qemu_below "$script")
	done
	kill -9 "$script"
	wait "$script" 2>/dev/null
	[ -n "$qemu" ] && timeout 600 sh -c \
		'while [ -e "/proc/$1/exe" ]; do sleep 0.1; done' sh "$qemu"
	report $? "a guest ends with its script"
	[ ! -e "/proc/$qemu/exe" ] || kill -9 "$qemu"
}

# Nothing of this needs root.
ordinary_user() {
	user=
	[ "$(id -u)" != 0 ] ||
		user='setpriv --reuid=65534 --regid=65534 --clear-groups'
	(cd "$place" && $user ./verbs/soft-roce-guest --kernel "$kernel" \
		--nodes 1 -- sh -c 'pwd; rdma link show') >"$out" 2>&1
	[ $? = 0 ] && grep -qxF "$place" "$out" &&
		grep -q "rxe0/1 state ACTIVE" "$out"
	report $? "a guest of an ordinary user"
}

given_up
ends_with_script
ordinary_user
"$here/soft-roce-guest" --nodes 8 --memory 3072 -- \
	"$here/in-guest.sh" "$tree" "$(cd "$here/../.." && pwd)"
report $? "the suite in the guest"
[ "$failures" = 0 ]
