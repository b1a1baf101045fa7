/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of processes of a DVM: rlimits.h. */
#include "dvm/common/rlimits.h"

#include <string.h>
#include <sys/stat.h>

const int rlimits_numbers[DVM_LIMITS] = {
	[DVM_LIMIT_AS] = RLIMIT_AS, [DVM_LIMIT_CORE] = RLIMIT_CORE,
	[DVM_LIMIT_CPU] = RLIMIT_CPU, [DVM_LIMIT_DATA] = RLIMIT_DATA,
	[DVM_LIMIT_FSIZE] = RLIMIT_FSIZE, [DVM_LIMIT_MEMLOCK] = RLIMIT_MEMLOCK,
	[DVM_LIMIT_NOFILE] = RLIMIT_NOFILE, [DVM_LIMIT_NPROC] = RLIMIT_NPROC,
	[DVM_LIMIT_STACK] = RLIMIT_STACK,
};

void rlimits_get(struct dvm_limits *out)
{
	mode_t mask = umask(0);
	struct rlimit limit;

	umask(mask);
	memset(out, 0, sizeof(*out));
	out->umask = (uint32_t)mask | DVM_UMASK_GIVEN;
	for (int i = 0; i < DVM_LIMITS; i++) {
		if (getrlimit(rlimits_numbers[i], &limit))
			continue;
		out->given |= 1u << i;
		out->soft[i] = limit.rlim_cur == RLIM_INFINITY ? DVM_LIMIT_NONE :
							 limit.rlim_cur;
	}
}

void rlimits_raise(struct rlimit *as_it_was)
{
	struct rlimit raised;

	getrlimit(RLIMIT_NOFILE, as_it_was);
	raised = *as_it_was;
	raised.rlim_cur = raised.rlim_max;
	setrlimit(RLIMIT_NOFILE, &raised);
}
