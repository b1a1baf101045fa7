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

# A command that must end with a status ("fails": any but 0), and say what matches.
ends() { # STATUS WORDS COMMAND...
	wanted=$1 words=$2
	shift 2
	timeout 120 "$@" >"$out" 2>&1 </dev/null
	status=$?
	[ "$wanted" != fails ] || [ "$status" = 0 ] || wanted=$status
	if [ "$status" != "$wanted" ]; then
		fail "status $status of: $*"
	elif ! grep -q -e "$words" "$out"; then
		fail "'$words' is not in what was said by: $*"
	fi
}

# A command that must fail, with a message that matches.
refuses() { # WORDS COMMAND...
	ends fails "$@"
}

# Groups of cases that mostly wait, each in a shell of its own with its own `out`.
side_by_side() { # FUNCTION...
	for group in "$@"; do
		(
			failures=0 out=$out.$group
			"$group"
			rm -f "$out"
			[ "$failures" = 0 ]
		) >"$out.$group.log" 2>&1 &
		eval "pid_$group=$!"
	done
	for group in "$@"; do
		eval "wait \$pid_$group" || failures=$((failures + 1))
		cat "$out.$group.log"
		rm "$out.$group.log"
	done
}
