/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the bytes that a step may make a node hold. */
#include "libutil/budget.h"

void budget_init(struct budget *b, uint64_t limit, const char *option,
		 const struct log_hook *log)
{
	*b = (struct budget){ .limit = limit, .option = option, .log = log };
}

bool budget_take(struct budget *b, uint64_t bytes)
{
	if (!b)
		return true;
	if (bytes <= b->limit && b->used <= b->limit - bytes) {
		b->used += bytes;
		return true;
	}
	if (!b->refused)
		log_error(b->log, "the data of the step on this node has reached the limit of %llu MiB: requests that need more fail; the limit is %s",
			  (unsigned long long)(b->limit >> 20), b->option);
	b->refused = true;
	return false;
}

void budget_give(struct budget *b, uint64_t bytes)
{
	if (b)
		b->used -= bytes;
}
