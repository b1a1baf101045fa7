#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# README and doc/ are readable, and their links lead somewhere; see docs-test.py.
command -v python3 >/dev/null || {
	echo "SKIP: no python3 to read documents with"
	exit 77
}
exec python3 -B "${srcdir:-.}/testsuite/unit/docs-test.py"
