#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The quick part of the exploration of libcoll, and that it can fail.
testsuite/explore/explore && testsuite/explore/explore --break
