#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The command pmi2x: its verbs, their completion, and what check and why say, of a Slurm
# that scripts play. Run in the build directory with srcdir set.
command -v python3 >/dev/null || {
	echo "SKIP: no python3 to run pmi2x with"
	exit 77
}
status=0
for name in command completion check why; do
	python3 -B "${srcdir:-.}/testsuite/unit/tools/$name-test.py" || status=1
done
exit "$status"
