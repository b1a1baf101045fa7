#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The executors of the Python client, with stubs of a head and of engines (executors-test.py).
python3 -c 'import sys; sys.exit(sys.version_info < (3, 7))' 2>/dev/null || {
	echo "SKIP: no python3 of 3.7 or later"
	exit 77
}
here=${srcdir:-.}/testsuite/unit/dvm
PYTHONPATH="${srcdir:-.}/src/dvm/python:$here" exec python3 -B "$here/executors-test.py"
