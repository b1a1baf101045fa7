#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pmi2x trace on traces made by hand: numbers, names, and what is missing.
set -u
trace=${srcdir:-.}/src/tools/pmi2x-trace
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "${srcdir:-.}/testsuite/report.sh"

command -v python3 >/dev/null || {
	echo "SKIP: no python3 for pmi2x trace"
	exit 77
}

show() { # STATUS ARGUMENT...
	want=$1
	shift
	timeout 60 python3 "$trace" "$@" >"$out" 2>&1 </dev/null
	[ $? = "$want" ] || fail "status of $*"
}

says() {
	tr -s ' ' <"$out" | grep -qF -e "$1" || fail "'$1' is not in the table"
}

ms=000000
# The second host has been up for another time; on both, srun began at 1000 ms.
head='{"pmi2x-trace":1,"step":"7.0","realtime":5000'$ms',"monotonic":1000'$ms'}'
n1='{"node":"n1","position":0,"realtime":5000'$ms',"monotonic":1000'$ms',
"agent":[1010'$ms',1020'$ms',1021'$ms',1035'$ms',1030'$ms',1040'$ms',1090'$ms'],
"dropped":0,"collectives":[["fence",0,1041'$ms',1043'$ms',1044'$ms',1050'$ms',1051'$ms',2,300]],
"ranks":[[0,1030'$ms',0,1041'$ms',1060'$ms',1028'$ms',1031'$ms',0,1041'$ms',1051'$ms',0,0,1060'$ms'],
[1,1040'$ms',0,1043'$ms',1060'$ms',1028'$ms',1041'$ms',0,1043'$ms',1051'$ms',0,0,1060'$ms']]}'
n2='{"node":"n2","position":1,"realtime":5020'$ms',"monotonic":20'$ms',
"agent":[10'$ms',20'$ms',22'$ms',31'$ms',30'$ms',0,90'$ms'],
"dropped":0,"collectives":[],
"ranks":[[2,30'$ms',0,0,0,0,0,0,0,0,0,0,0],[3,0,0,0,0,0,0,0,0,0,0,0,0]]}'
end='{"end":true,"nodes":3,"received":2,"monotonic":1100'$ms'}'
line() { printf '%s\n' "$1" | tr -d '\n'; echo; }
{
	line "$head"
	line "$n2"
	line "$n1"
	echo '{"node":"n3","posi'
	line "$end"
} >"$tmp/pmi2x-trace.7.0.jsonl"

show 2 4711.0
says "no file 4711.0: for a running step use --live 4711.0"
show 0 --chrome "$tmp/chrome" "$tmp"
says "step 7.0: 2 nodes, 4 ranks"
says "note: line 4 is damaged"
says "note: 1 of 3 nodes have sent no record"
says "note: never started PMI: rank 3"
says "no stamps of their own, as of ranks that did not finalize or use another PMI library: rank 2"
says "100 ms srun had heard of all"
show 0 --all "$tmp"
says "prefork 2 1.000 ms 1.500 ms 2.000 ms n2 2.000 ms, n1 1.000 ms"
says "init, in the rank 2 3.000 ms 8.000 ms 13 ms rank 1 (n1) 13 ms, rank 0 (n1) 3.000 ms"
says "fence 0: up and down the tree 1 6.000 ms 6.000 ms 6.000 ms n1 6.000 ms"
python3 -c '
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
bars = [e for e in events if e["ph"] == "X"]
(prefork,) = [e for e in bars if e["pid"] == 1 and e["name"] == "prefork"]
assert prefork["ts"] == 20000 and prefork["dur"] == 2000, prefork
' "$tmp/chrome" >"$out" 2>&1 || fail "the time line"

line "$head" >"$tmp/cut"
show 0 "$tmp/cut"
says "note: srun did not write the end"
show 2 "$tmp/none"
echo '{"pmi2x-trace":9}' >"$tmp/later"
show 2 "$tmp/later"
says "not a trace of this version"
show 2 run
show 0 run true
says "the command left no trace"
show 2 /etc/passwd
says "/etc/passwd is no trace of pmi2x: line 1 is not JSON"
show 1 run false
says "the command failed (exit status 1), and left no trace"
show 7 run sh -c "cp '$tmp/pmi2x-trace.7.0.jsonl' \"\$PMI2X_TRACE\"; exit 7"
says "step 7.0: 2 nodes, 4 ranks"
tail -n 1 "$out" | grep -qx 'pmi2x trace: the command failed (exit status 7)' ||
	fail "a command that fails after a trace"
show 137 run sh -c 'kill -9 $$'
says "the command failed (signal 9), and left no trace"
says "left no trace"

# The division: two ranks of two nodes and one that never spoke; each has 110 ms. The
# second enters last, for it took longest to load.
head='{"pmi2x-trace":1,"step":"8.0","realtime":5000'$ms',"monotonic":1000'$ms',"start":990'$ms'}'
n1='{"node":"n1","position":0,"realtime":5000'$ms',"monotonic":1000'$ms',
"agent":[1010'$ms',1020'$ms',1021'$ms',1035'$ms',1034'$ms',0,1090'$ms'],
"dropped":0,"collectives":[["fence",0,1041'$ms',1041'$ms',1044'$ms',1050'$ms',1051'$ms',2,300]],
"ranks":[[0,1034'$ms',0,1041'$ms',1080'$ms',0,0,0,0,0,0,0,0],[2,0,0,0,0,0,0,0,0,0,0,0,0]],
"wanted":1030'$ms',"rests":[[1022'$ms',1025'$ms',1,1036'$ms',1037'$ms',1040'$ms',6,500000],
[1022'$ms',1025'$ms',0,0,0,0,0,0]],"entered":[[0,-1]]}'
n2='{"node":"n2","position":1,"realtime":5020'$ms',"monotonic":20'$ms',
"agent":[10'$ms',20'$ms',22'$ms',31'$ms',44'$ms',44'$ms',90'$ms'],
"dropped":0,"collectives":[["fence",0,46'$ms',46'$ms',47'$ms',50'$ms',52'$ms',2,300]],
"ranks":[[1,44'$ms',0,46'$ms',80'$ms',0,0,0,0,0,0,0,0]],
"wanted":40'$ms',"rests":[[20'$ms',26'$ms',0,0,0,0,5,0]],"entered":[[0]]}'
end='{"end":true,"nodes":2,"received":2,"monotonic":1100'$ms'}'
{
	line "$head"
	line "$n1"
	line "$n2"
	line "$end"
} >"$tmp/divided"

show 0 --chrome "$tmp/chrome" "$tmp/divided"
head -n 1 "$out" | grep -qFx "step 8.0 took 110 ms, 10 ms of it before srun launched it; of the \
other 100 ms, 25% went to rank (without PMI); rank 1 (n2) was last in fence 0, 2.500 ms \
after the median" || fail "the conclusion is not the first line"
grep -q "min *median" "$out" && fail "a table of phases without --all"
says "after the launch 100.0% 100 ms"
says "srun, until it launches the step 10 ms"
says "topology 1.3% 1.333 ms"
says "answered, until the rank's next request 1.0% 1.000 ms 1 rank 0 (n1) 3.000 ms"
says "the agent starts 1.3% 1.333 ms 1 rank 0 (n1) 4.000 ms"
says "exec, libraries, the program until its first request 7.7% 7.667 ms 2 rank 1 (n2) 18 ms, rank 0 (n1) 5.000 ms"
says "fence 0: for its last rank 1.7% 1.667 ms 1 rank 0 (n1) 5.000 ms"
says "without PMI 25.0% 25 ms 1 rank 2 (n1) 75 ms"
says "fence 0: 2 ranks waited 2.500 ms on average, last was rank 1 (n2), 2.500 ms after the median; longer there: loading (exec, libraries, the program until its first request), 6.500 ms"
show 0 --json "$tmp/divided"
python3 -c '
import json, sys
shown = json.load(open(sys.argv[1]))
parts = {(p["name"], p["part"]): p for p in shown["division"]}
total = sum(p["mean"] for p in parts.values())
assert abs(total - shown["whole"]) < 1 and shown["whole"] == 110_000_000, total
own = {k: ns for (_, k), p in parts.items() for r, _, ns in p["longest"]
       if p["name"] == "rank" and r == 0}
# 3 ms and 29 ms, but what the agent took for its requests.
assert abs(sum(own.values()) - 31_500_000) < 1, own
assert abs(own["after fence 0"] - 29_000_000 * 31.5 / 32) < 1, own
(wait,) = shown["waits"]
assert (wait["last"], wait["node"], wait["tree"]) == (1, "n2", 6_000_000), wait
bars = [e for e in json.load(open(sys.argv[2]))["traceEvents"] if e["ph"] == "X"]
mine = sorted((e["ts"], e["dur"]) for e in bars if e["pid"] == 0 and e["tid"] == 1)
assert mine[0][0] == -10_000 and sum(dur for _, dur in mine) == 110_000, mine
assert all(a + b == c for (a, b), (c, _) in zip(mine, mine[1:])), mine
' "$out" "$tmp/chrome" >"$out.2" 2>&1 || fail "the division as JSON, or its time line"

# Barriers of some ranks: one of ranks 0 and 1, and one of rank 0 alone, which began first.
groups1='"groups":[[77,0,1052'$ms',1060'$ms',[0,-1]],[5,0,1050'$ms',1051'$ms',[0,-1]]],"group_sent":[1,90]'
groups2='"groups":[[77,0,59'$ms',60'$ms',[0]]],"group_sent":[1,90]'
{
	line "$head"
	line "${n1%?},$groups1}" | sed 's/,500000\]/,0]/'
	line "${n2%?},$groups2}"
	line "$end"
} >"$tmp/groups"
show 0 "$tmp/groups"
says "after the launch 100.0% 100 ms"
says "group barrier 1: for its last rank 2.3% 2.333 ms 1 rank 0 (n1) 7.000 ms"
says "group barrier 1: up and down the tree 0.7% 0.667 ms 2 rank 0 (n1) 1.000 ms, rank 1 (n2) 1.000 ms"
says "after group barrier 0 0.3% 0.333 ms 1 rank 0 (n1) 1.000 ms"
grep -q "1 ranks waited" "$out" && fail "a rank that waited for itself"
says "group barrier 1: 2 ranks waited 3.500 ms on average, last was rank 1 (n2)"
says "62 ms the first collective had ended everywhere" # of 110 ms, as above
for wrong in 's/\[5,0,1050/[5,0,/' 's/\[0,-1\]\]\]/[0]]]/' 's/\[0,-1\]\]\]/[]]]/' \
	's/\[5,0,1050'$ms',/[5,0,0,/' 's/"group_sent":\[1,90\]/"group_sent":[1]/'; do
	{
		line "$head"
		line "${n1%?},$groups1}" | sed "$wrong"
		line "${n2%?},$groups2}"
		line "$end"
	} >"$tmp/wrong"
	show 0 "$tmp/wrong"
	says "line 2 is damaged"
done

# What is not known has a line of its own.
{
	line "$head"
	line "$n1" | sed "s/\"rests\":\\[\\[1022$ms,1025$ms/\"rests\":[[0,0/"
	line "$n2"
	line "$end"
} >"$tmp/unknown"
show 0 "$tmp/unknown"
says "other 3.0% 3.000 ms"
says "launch and loading: its exec is not known 3.0% 3.000 ms 1 rank 0 (n1) 9.000 ms"
says "after the launch 100.0% 100 ms"

# A file of before has no division, and one that does not fit is left out.
show 0 "$tmp/pmi2x-trace.7.0.jsonl"
grep -q "after the launch" "$out" && fail "a division without stamps"
for wrong in 's/,"entered":.*/,"entered":[]}/' 's/"entered":\[\[0\]\]/"entered":[[0,0]]/' \
	's/"rests":\[\[/"rests":[[1,/' 's/"wanted":[0-9]*,//'; do
	{
		line "$head"
		line "$n1" | sed "$wrong"
		line "$n2" | sed "$wrong"
	} >"$tmp/wrong"
	show 0 "$tmp/wrong"
	says "is damaged; left out"
done

# An srun that answers what --live asks, in numbers: n1 waits for ranks 1 and 2, of
# which the one is stopped; n2, whose name would steer a terminal, is silent.
cat >"$tmp/srun" <<'EOF'
import os, socket, struct, subprocess, sys

sys.path.insert(0, os.path.dirname(sys.argv[-1]))
from pmi2x_trace import status

def text(value):
    return struct.pack("<I", len(value)) + value

def run(first, last, phase, stopped, entered):
    return struct.pack("<IIBB4I", first, last, phase, stopped, entered, 0, 0, 0)

node = struct.pack("<6I", 2500, 1, 3, 0, 0, 0) + struct.pack("<I", 3)
node += run(0, 0, 3, 0, 4) + run(1, 1, 3, 1, 3) + run(2, 2, 1, 0, 0)
node += struct.pack("<I", 2) + struct.pack("<IBBQ", 1, 0, 3, 0)
node += struct.pack("<IBBQ", 7, 1, 1, 77)
head = text(b"7.0") + struct.pack("<I", 2) + text(b"n1") + text(b"n\x1b2")
head += struct.pack("<I", 1) + text(b"fence 3: 2 s, waiting")
head = text(b"pmi2x-status 3") + head
answer = head + struct.pack("<I", 0) + text(node)
forms = {
    "whole": answer,
    "cut": answer[:-1],
    "later": answer.replace(b"status 3", b"status 9"),
    "wrong": answer + struct.pack("<I", 2) + text(node),
    "more": head + struct.pack("<I", 0) + text(node + b"x"),
    "many": head + struct.pack("<I", 0) + text(
        bytes(24) + struct.pack("<I", 1) + run(0, 1 << 31, 3, 0, 0) + bytes(4)
    ),
}
for size in range(len(answer)):
    try:
        status.decode(answer[:size])
    except (ValueError, struct.error):
        continue
    assert size == len(head), f"the first {size} bytes are taken for an answer"
step = f"7.{os.getpid()}"
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
    listener.bind(f"\0pmi2x-status/{step}/{os.getpid()}")
    listener.listen()
    options = [sys.argv[-1], *sys.argv[2:-1], "--live", step]
    tool = subprocess.Popen([sys.executable, *options])
    with listener.accept()[0] as connection:
        connection.sendall(forms[sys.argv[1]])
    sys.exit(tool.wait())
EOF

asks() { # STATUS ANSWER OPTION...
	want=$1 answer=$2
	shift 2
	timeout 60 python3 -B "$tmp/srun" "$answer" "$@" "$trace" \
		>"$out" 2>&1 </dev/null
	[ $? = "$want" ] || fail "status of --live with the answer $answer"
}

asks 0 whole
says "step 7.0: 2 nodes, 3 ranks"
says "fence 3: 2 s, waiting"
says "no answer from 1 node: n?2"
says "n1: fence 3 for 2.5 s: waits for ranks 1-2; rank 1 stopped; rank 2 before init; 1 of 2 links up, 77 bytes queued; link to child n?2: lost; 1 request without an answer"
asks 0 whole --json
python3 -c '
import json, sys
answer = json.load(open(sys.argv[1]))
n1, n2 = answer["nodes"]
assert n1["answered"] and not n2["answered"], answer
assert n1["ranks"][1]["entered"] == [3, 0, 0, 0] and n1["ended"] == [3, 0, 0, 0], n1
assert n1["links"][1] == {"to": "?", "parent": True, "state": "up", "queued": 77}
' "$out" >"$out.2" 2>&1 || fail "the answer as JSON"
asks 2 later
says "answer is pmi2x-status 9, this command reads pmi2x-status 3"
for answer in cut wrong more many; do
	asks 2 "$answer"
	says "does not answer"
done
exit $((failures > 0))
