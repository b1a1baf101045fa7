/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of this process and of ranks.
 *
 * This process has at least two descriptors for each task, and all processes of tasks: it
 * raises its soft limits. A rank has the limits of the client that submitted the task. Some
 * descriptors are reserved for ranks between fork and exec: without a free descriptor the
 * start fails in this process, which can try again, and not in the rank.
 */
#include <sys/stat.h>

#include "dvm/common/rlimits.h"
#include "dvm/zygote/zygote.h"

#define FOR_RANKS 16 /* descriptors */

static struct rlimit own[DVM_LIMITS]; /* before zygote_limits_init */
static struct rlimit now[DVM_LIMITS]; /* a rank has these after the fork */

void zygote_limits_init(void)
{
	for (int i = 0; i < DVM_LIMITS; i++) {
		getrlimit(rlimits_numbers[i], &own[i]);
		now[i] = own[i];
	}
	now[DVM_LIMIT_NPROC].rlim_cur = own[DVM_LIMIT_NPROC].rlim_max;
	now[DVM_LIMIT_NOFILE].rlim_cur = own[DVM_LIMIT_NOFILE].rlim_max - FOR_RANKS;
	if (own[DVM_LIMIT_NOFILE].rlim_max <= 4 * FOR_RANKS)
		now[DVM_LIMIT_NOFILE] = own[DVM_LIMIT_NOFILE];
	setrlimit(RLIMIT_NPROC, &now[DVM_LIMIT_NPROC]);
	setrlimit(RLIMIT_NOFILE, &now[DVM_LIMIT_NOFILE]);
}

void zygote_limits_begin(const struct dvm_limits *limits)
{
	struct rlimit all = own[DVM_LIMIT_NOFILE];

	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
	if (limits->umask)
		umask(limits->umask & 0777);
}

struct rlimit zygote_limits_of(const struct dvm_limits *limits, int i)
{
	struct rlimit limit = own[i];

	if (limits->given >> i & 1)
		limit.rlim_cur = limits->soft[i] == DVM_LIMIT_NONE ? RLIM_INFINITY :
								     (rlim_t)limits->soft[i];
	if (limit.rlim_cur > limit.rlim_max) /* RLIM_INFINITY is the largest */
		limit.rlim_cur = limit.rlim_max;
	return limit;
}

void zygote_limits_set(const struct dvm_limits *limits)
{
	for (int i = 0; i < DVM_LIMITS; i++) {
		const struct rlimit limit = zygote_limits_of(limits, i);

		if (limit.rlim_cur != now[i].rlim_cur || i == DVM_LIMIT_NOFILE)
			setrlimit(rlimits_numbers[i], &limit);
	}
}

bool zygote_limits_bound_memory(void)
{
	struct rlimit as, data;

	getrlimit(RLIMIT_AS, &as);
	getrlimit(RLIMIT_DATA, &data);
	return as.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}
