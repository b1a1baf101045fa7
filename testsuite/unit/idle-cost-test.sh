#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pmi2x-idle-cost counts what strace has seen, and refuses what cannot be.
# Nothing here needs Slurm or strace.
set -u
program=${srcdir:-.}/contrib/bench/pmi2x-idle-cost
command -v python3 >/dev/null || {
	echo "SKIP: no python3"
	exit 77
}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# A daemon (10) with a thread (11), interrupted lines, and a rank (12).
cat >"$tmp/trace" <<'TRACE'
9     read(3, "x", 1) = 1
10    execve("/usr/sbin/slurmstepd", ["slurmstepd"], 0x7 /* 2 vars */) = 0
10    close(3) = 0
10    clone3({flags=CLONE_VM|CLONE_THREAD, child_tid=0x7f} <unfinished ...>
11    poll([{fd=4, events=POLLIN}], 1, -1 <unfinished ...>
10    <... clone3 resumed> => {parent_tid=[11]}, 88) = 11
10    clone(child_stack=NULL, flags=SIGCHLD) = 12
12    socketpair(AF_UNIX, SOCK_STREAM, 0, [5, 6]) = 0
12    execve("/bin/true", ["true"], 0x7 /* 3 vars */) = 0
12    brk(NULL) = 0x55
11    <... poll resumed>) = 1 ([{fd=4, revents=POLLIN}])
11    exit(0) = ?
10    +++ exited with 0 +++
TRACE
python3 -B - "$program" "$tmp/trace" <<'PYTHON' || exit 1
import importlib.machinery
import importlib.util
import sys

loader = importlib.machinery.SourceFileLoader("idle", sys.argv[1])
spec = importlib.util.spec_from_loader("idle", loader)
idle = importlib.util.module_from_spec(spec)
loader.exec_module(idle)
calls = idle.count_calls(sys.argv[2], "slurmstepd")
assert calls.daemons == 1
assert dict(calls.counts["daemon"]) == {
    "close": 1, "clone3": 1, "clone": 1, "poll": 1, "exit": 1
}, calls.counts
assert dict(calls.counts["children"]) == {
    "socketpair": 1, "execve": 1
}, calls.counts
PYTHON

if timeout 60 python3 -B "$program" --nodes 0 >"$tmp/out" 2>&1; then
	echo "FAIL: accepted --nodes 0"
	exit 1
fi
timeout 60 python3 -B "$program" --no-strace --mpi pmi2x >"$tmp/out" 2>&1
[ $? = 2 ] && grep -q -e --plugindir "$tmp/out" || {
	echo "FAIL: no word of the missing plugin"
	cat "$tmp/out"
	exit 1
}
