/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory and system calls that fail on request, for programs that are linked
 * with --wrap for them (REFUSAL_WRAP in testsuite/unit/local.mk). Only calls of
 * a thread that has armed itself count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum refusal {
	REFUSE_MEMORY, /* malloc, calloc, realloc */
	REFUSE_SYSTEM, /* what is in REFUSAL_WRAP beside them */
};

/*
 * From now on the `nth` call (from 1) of this thread fails, with ENOMEM; with
 * `for_good` all after it, too.
 */
void refusal_arm(enum refusal what, uint32_t nth, bool for_good);
/* Nothing fails any more. How many calls have counted since it was armed. */
uint32_t refusal_disarm(void);
