/* SPDX-License-Identifier: BSD-3-Clause */
/* The libpmix of this node, without loading it. */
#pragma once

#include <limits.h>

struct pmix_library {
	char path[PATH_MAX]; /* without links; "": there is none */
	unsigned int release; /* 4, 5, ...: of OpenPMIx; 0: the name does not say */
};

/*
 * Look at `wanted`, a path; "": in the directories of libraries. 0; -ENOENT: there is
 * none; -EPROTONOSUPPORT: its release is older than 4.2.
 */
int pmix_library_find(struct pmix_library *l, const char *wanted);
