#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# README and doc/ are readable, their links lead somewhere (docs-test.py), and they say the
# same of each feature as the tables do (features-test.py). Each message has an entry in
# pmi2x-messages(7) (messages-test.py).
command -v python3 >/dev/null || {
	echo "SKIP: no python3 to read documents with"
	exit 77
}
status=0
for name in docs features messages; do
	python3 -B "${srcdir:-.}/testsuite/unit/project/$name-test.py" || status=1
done
exit "$status"
