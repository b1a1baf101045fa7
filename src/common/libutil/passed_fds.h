/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that travel with a byte over a unix socket (SCM_RIGHTS). */
#pragma once

#define PASSED_FDS_MAX 3 /* with one byte */

struct passed_fds {
	unsigned count;
	int fds[PASSED_FDS_MAX];
};
