#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The man pages say what commands, libraries and plugin do; see man-test.py.
command -v python3 >/dev/null || {
	echo "SKIP: no python3 to read man pages with"
	exit 77
}
exec python3 -B "${srcdir:-.}/testsuite/unit/project/man-test.py"
