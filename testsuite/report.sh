# SPDX-License-Identifier: BSD-3-Clause
# For the test scripts, which source it: how they say what has passed. A script
# sets `out`, a file for what a command says, and ends with [ "$failures" = 0 ].
failures=0

report() { # STATUS NAME
	if [ "$1" = 0 ]; then
		echo "ok: $2"
	else
		echo "FAILED: $2"
		sed 's/^/    /' "$out"
		failures=$((failures + 1))
	fi
}

fail() { # NAME...
	report 1 "$*"
}

# A command that must succeed in bounded time.
within() { # SECONDS NAME COMMAND...
	seconds=$1 name=$2
	shift 2
	timeout "$seconds" "$@" >"$out" 2>&1
	report $? "$name"
}

# A command that must fail, with a message that matches.
refuses() { # WORDS COMMAND...
	words=$1
	shift
	if timeout 60 "$@" >"$out" 2>&1 </dev/null; then
		fail "accepted: $*"
	elif ! grep -q -e "$words" "$out"; then
		fail "'$words' is not in what was said by: $*"
	fi
}
