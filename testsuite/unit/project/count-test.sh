#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# testsuite/count: the sum, and that CI takes a skip that nobody expects for a failure.
set -u
src=$(cd "${srcdir:-.}" && pwd)
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
. "$src/testsuite/report.sh"

[ -x /usr/bin/python3 ] || {
	echo "SKIP: no python3 for testsuite/count"
	exit 77
}

mkdir -p "$tmp/testsuite" "$tmp/build/tree/unit" || exit 99
cp "$src/testsuite/count" "$tmp/testsuite" || exit 99
printf '# names\nunit/away\tis expected\n' >"$tmp/testsuite/expected-skips"

result() { # NAME OUTCOME, and the log as input
	cat >"$tmp/build/tree/unit/$1.log"
	printf ':test-result: %s\n:recheck: no\n' "$2" \
		>"$tmp/build/tree/unit/$1.trs"
}

sums() { # CI STATUS LINE
	CI=$1 "$tmp/testsuite/count" "$tmp/build" yes "${system:-no}" >"$out" 2>&1
	[ "$?" = "$2" ] && [ "$(tail -n 1 "$out")" = "$3" ]
	report $? "$3"
}

result good PASS </dev/null
echo "SKIP: there is no such thing" | result away SKIP
sums true 0 "1 passed, 0 failed, 1 skipped"
grep -qx "== skipped: unit/away: there is no such thing" "$out" ||
	fail "the reason of a skip"

echo "SKIP: forgotten package" | result other SKIP
sums '' 0 "1 passed, 0 failed, 2 skipped"
sums true 1 "1 passed, 1 failed, 1 skipped"
grep -q "not in expected-skips: unit/other: forgotten package" "$out" ||
	fail "the name of what nobody expects"
rm "$tmp"/build/tree/unit/other.*

# A case of a program that goes on, which cmocka names twice.
result cases PASS <<'LOG'
[       OK ] first
[  SKIPPED ] second
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] second
LOG
sums '' 0 "2 passed, 0 failed, 2 skipped"
sums true 1 "2 passed, 1 failed, 1 skipped"
rm "$tmp"/build/tree/unit/cases.*

# A case, and a class, of Python's unittest.
cat >"$tmp/cases.py" <<'PYTHON'
import unittest
class Cases(unittest.TestCase):
    def test_first(self):
        """What it is for."""
        self.skipTest("no tool here")
    def test_second(self):
        pass
@unittest.skip("no such machine")
class Others(unittest.TestCase):
    def test_third(self):
        pass
unittest.main(verbosity=2)
PYTHON
/usr/bin/python3 -B "$tmp/cases.py" 2>&1 | result python PASS
sums '' 0 "2 passed, 0 failed, 3 skipped"
grep -qx "== skipped: unit/python: no tool here: not possible here" "$out" ||
	fail "the reason of a skip in Python's unittest"
rm "$tmp"/build/tree/unit/python.*
# Of all of ours: without verbosity it names none.
! grep -L 'unittest\.main(verbosity=2' "$src"/testsuite/unit/*/*-test.py | grep . ||
	fail "tests of unittest whose skips nobody would see"

cat >"$tmp/build/system-1.xml" <<'XML'
<testsuites><testsuite>
<testcase classname="test_a" name="one"/>
<testcase classname="test_a" name="two"><skipped message="no wheel"/></testcase>
</testsuite></testsuites>
XML
system=yes
sums true 1 "2 passed, 1 failed, 1 skipped"
printf 'test_a.two\tis expected\n' >>"$tmp/testsuite/expected-skips"
sums true 0 "2 passed, 0 failed, 2 skipped"
rm "$tmp/build/system-1.xml"
sums true 1 "1 passed, 1 failed, 1 skipped"

[ "$failures" = 0 ]
