/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The umask and the soft limits of resources (getrlimit(2)) that tasks get: those of the
 * client that submitted them.
 */
#pragma once

#include <stdint.h>

#include "libutil/coder.h"

/* The numbers of RLIMIT_... differ between machines; these and their names do not. */
enum {
	DVM_LIMIT_AS,
	DVM_LIMIT_CORE,
	DVM_LIMIT_CPU,
	DVM_LIMIT_DATA,
	DVM_LIMIT_FSIZE,
	DVM_LIMIT_MEMLOCK,
	DVM_LIMIT_NOFILE,
	DVM_LIMIT_NPROC,
	DVM_LIMIT_STACK,
	DVM_LIMITS,
};

#define DVM_LIMIT_NONE UINT64_MAX /* unlimited */
#define DVM_UMASK_GIVEN 0x10000

struct dvm_limits {
	uint32_t umask; /* with DVM_UMASK_GIVEN; 0: that of the daemon */
	uint32_t given; /* a bit for each limit that is; others are those of the daemon */
	uint64_t soft[DVM_LIMITS];
};

/* By number: as in RLIMIT_NAME. */
extern const char *const dvm_limit_names[DVM_LIMITS];

void dvm_code_limits(struct coder *c, struct dvm_limits *l);
