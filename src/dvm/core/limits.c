/* SPDX-License-Identifier: BSD-3-Clause */
/* Umask and soft limits of tasks: limits.h. */
#include "dvm/core/limits.h"

const char *const dvm_limit_names[DVM_LIMITS] = {
	[DVM_LIMIT_AS] = "AS", [DVM_LIMIT_CORE] = "CORE", [DVM_LIMIT_CPU] = "CPU",
	[DVM_LIMIT_DATA] = "DATA", [DVM_LIMIT_FSIZE] = "FSIZE",
	[DVM_LIMIT_MEMLOCK] = "MEMLOCK", [DVM_LIMIT_NOFILE] = "NOFILE",
	[DVM_LIMIT_NPROC] = "NPROC", [DVM_LIMIT_STACK] = "STACK",
};

void dvm_code_limits(struct coder *c, struct dvm_limits *l)
{
	code_u32(c, &l->umask);
	code_u32(c, &l->given);
	for (int i = 0; i < DVM_LIMITS; i++)
		code_u64(c, &l->soft[i]);
}
