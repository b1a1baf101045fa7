#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The modules of the Python client that need no DVM (python-test.py).
command -v python3 >/dev/null || {
	echo "SKIP: no python3"
	exit 77
}
PYTHONPATH="${srcdir:-.}/src/dvm/python" exec python3 -B "${srcdir:-.}/testsuite/unit/dvm/python-test.py"
