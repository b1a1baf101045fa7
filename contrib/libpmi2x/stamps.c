/* SPDX-License-Identifier: BSD-3-Clause */
/* Time stamps of a process for a trace. */
#include "stamps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000ull
#define STAMP_DIGITS 21 /* of a 64-bit number, and a comma */

void stamps_init(struct stamps *t)
{
	const char *text = getenv(EXT_ENV_STAMPS);

	t->wanted = text && strcmp(text, "1") == 0;
}

void stamps_take(struct stamps *t, enum ext_stamp what)
{
	uint64_t never = 0;
	struct timespec now;

	if (atomic_load(&t->at[what]))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_compare_exchange_strong(&t->at[what], &never,
				       now.tv_sec * NS_PER_S + now.tv_nsec);
}

void stamps_write(const struct stamps *t, struct pmi_writer *w)
{
	char text[EXT_STAMPS * STAMP_DIGITS + 1];
	size_t used = 0;

	if (!t->wanted)
		return;
	for (int i = 0; i < EXT_STAMPS; i++)
		used += snprintf(text + used, sizeof(text) - used,
				 "%s%" PRIu64, i ? "," : "",
				 atomic_load(&t->at[i]));
	pmi_write_str(w, EXT_KEY_STAMPS, text);
}
