#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Some simulated runs: always the same, and with CI=true 2,000 that nobody has seen.
simulate=testsuite/dst/simulate
$simulate --seed 1 --count 1000 --quiet || exit 1
# ... that a fault is noticed, and that a seed is one run.
$simulate --break --count 100 --quiet >/dev/null || {
	echo "bytes are lost, and no run fails"
	exit 1
}
$simulate --seed 1 --count 100 --twice --quiet || exit 1
[ "${CI-}" = true ] || exit 0
first=$(date +%s)000
echo "new seeds from $first on"
$simulate --seed "$first" --count 2000 --quiet
