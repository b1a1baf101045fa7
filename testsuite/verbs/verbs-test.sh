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
failures=0
report() { # NAME STATUS
	if [ "$2" = 0 ]; then
		echo "ok: $1"
	else
		echo "FAILED: $1"
		failures=$((failures + 1))
	fi
}

# A guest that hangs: ends in time, with what its console said.
said=$("$here/soft-roce-guest" --timeout 2 -- sleep 1000 2>&1)
[ $? = 125 ] && echo "$said" | grep -q "did not end within 2" &&
	echo "$said" | grep -q "console"
report "a guest is given up after its time" $?

# Nobody is left to clean up: the kernel does. Each loop ends by itself.
"$here/soft-roce-guest" --timeout 60 -- sleep 1000 >/dev/null 2>&1 &
script=$!
until qemu=$(pgrep -P "$script" -f qemu-system) || [ ! -d "/proc/$script" ]; do
	:
done
kill -9 "$script"
wait "$script" 2>/dev/null
left=100000
while [ -e "/proc/$qemu/exe" ] && [ "$left" -gt 0 ]; do
	left=$((left - 1))
done
[ -n "$qemu" ] && [ ! -e "/proc/$qemu/exe" ]
report "a guest ends with its script" $?

"$here/soft-roce-guest" --nodes 4 --memory 3072 --timeout 1200 -- \
	"$here/in-guest.sh" "$tree" "$(cd "$here/../.." && pwd)"
report "the suite in the guest" $?
[ "$failures" = 0 ]
