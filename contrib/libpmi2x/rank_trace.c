/* SPDX-License-Identifier: BSD-3-Clause */
/* Time stamps of a process for a trace. */
#include "rank_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000ull
#define STAMP_DIGITS 21 /* of a 64-bit number, and a comma */

void rank_trace_init(struct rank_trace *t)
{
	const char *text = getenv(EXT_ENV_RANK_TRACE);

	t->wanted = text && strcmp(text, "1") == 0;
}

void rank_trace_take(struct rank_trace *t, enum rank_trace_event what)
{
	uint64_t never = 0;
	struct timespec now;

	if (atomic_load(&t->at[what]))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_compare_exchange_strong(&t->at[what], &never,
				       now.tv_sec * NS_PER_S + now.tv_nsec);
}

void rank_trace_write(const struct rank_trace *t, struct pmi_writer *w)
{
	char text[RANK_TRACE_EVENTS * STAMP_DIGITS + 1];
	size_t used = 0;

	if (!t->wanted)
		return;
	for (int i = 0; i < RANK_TRACE_EVENTS; i++)
		used += snprintf(text + used, sizeof(text) - used,
				 "%s%" PRIu64, i ? "," : "",
				 atomic_load(&t->at[i]));
	pmi_write_str(w, EXT_KEY_RANK_TRACE, text);
}
