/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that travel with a byte over a unix socket (SCM_RIGHTS). */
#ifndef PMI2X_PASSED_FDS_H
#define PMI2X_PASSED_FDS_H

#define PASSED_FDS_MAX 3 /* with one byte */

struct passed_fds {
	unsigned count;
	int fds[PASSED_FDS_MAX];
};

#endif
