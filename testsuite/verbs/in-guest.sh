#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What verbs-test.sh runs in the guest: in-guest.sh BUILD SOURCE
cd "$1" || exit 99
failures=0
out=/tmp/in-guest.out

# Run a command in bounded time, and show what it says when it fails.
good() { # NAME SECONDS COMMAND...
	name=$1 seconds=$2
	shift 2
	if timeout "$seconds" "$@" >"$out" 2>&1; then
		echo "ok: $name"
	else
		echo "FAILED ($?): $name"
		sed 's/^/    /' "$out"
		failures=$((failures + 1))
	fi
}

good "what every transport must do, over verbs" 300 \
	env PMI2X_ALLGATHER_TRANSPORT=verbs ./testsuite/unit/transport-test
good "verbs between devices, and its faults" 300 ./testsuite/verbs/verbs-test

[ "$failures" = 0 ]
