# SPDX-License-Identifier: BSD-3-Clause
# For the scripts that test libpmi2x-allgather in jobs on the fake server, which
# source it after report.sh, in the build's testsuite/fake. From the environment:
#   RING_RUN      a program before the ranks' program, for instance to set a device
#   RING_SLOW     how many times slower than usual the machine is (1)
slow=${RING_SLOW:-1}
libs=../../contrib/libpmi2x/.libs:../../contrib/allgather/.libs
export LD_LIBRARY_PATH="$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
out=${TMPDIR:-.}/ring-steps.$$.out

# How a step of the fake server ends, and how many seconds it takes.
ring_step() { # SECONDS FAKE-SERVER-ARGUMENT... -- PROGRAM...
	limit=$1 layout=
	shift
	while [ "$1" != -- ]; do
		layout="$layout $1"
		shift
	done
	shift
	took=$(date +%s)
	timeout $((limit * slow)) ./fake-server -p 24000-27999 -s "$slow" $layout $RING_RUN "$@" \
		>"$out" 2>&1
	status=$?
	took=$(($(date +%s) - took))
}

# All ranks succeed.
good() { # NAME FAKE-SERVER-ARGUMENT... -- PROGRAM...
	name=$1
	shift
	ring_step 300 "$@"
	report "$status" "$name, $took s"
}

# At least `count` ranks are told, within the time, with what matches.
told() { # NAME COUNT PATTERN FAKE-SERVER-ARGUMENT... -- PROGRAM...
	name=$1 count=$2 pattern=$3
	shift 3
	ring_step 120 "$@"
	[ "$status" != 124 ] && ! grep -q '^ring-exercise:' "$out" &&
		[ "$(grep -cE "was told: .*($pattern)" "$out")" -ge "$count" ]
	report $? "$name, $took s"
}
