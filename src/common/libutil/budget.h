/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many bytes a step may make a node hold: what its ranks have put, requests,
 * contributions on their way, what links owe. Buffers and payloads that are given a
 * budget count against it from when their memory is asked for until it is freed,
 * however many hold a reference; what lies in the results region does not, which has a
 * size of its own. Beyond the limit they get no memory, and whoever needed it fails
 * as without memory, by name.
 *
 * Counts only: whoever makes it owns it, and it outlives what counts against it. One
 * thread at a time. Every function takes NULL for no budget.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libutil/log.h"

#define BUDGET_DEFAULT ((uint64_t)1 << 30) /* bytes */

struct budget {
	uint64_t limit; /* bytes */
	uint64_t used;
	bool refused;   /* something was, and `log` has been told */
	const char *option; /* the option that raises the limit, for messages */
	const struct log_hook *log;
};

void budget_init(struct budget *b, uint64_t limit, const char *option,
		 const struct log_hook *log);
/* False: that would be over the limit, nothing was taken; said once in the log. */
bool budget_take(struct budget *b, uint64_t bytes);
void budget_give(struct budget *b, uint64_t bytes);
