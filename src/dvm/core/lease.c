/* SPDX-License-Identifier: BSD-3-Clause */
/* How long ranks may run without an answer of the head: lease.h. */
#include "dvm/core/lease.h"

#define ASKS 10          /* messages in a lease, at least */
#define ASK_MAX_MS 5000  /* between two */

uint32_t lease_tick(const struct lease *l)
{
	uint32_t each = l->length_ms / ASKS;

	if (!l->length_ms)
		return 0;
	return each > ASK_MAX_MS ? ASK_MAX_MS : each ? each : 1;
}

void lease_begin(struct lease *l, uint32_t length_ms, uint64_t now)
{
	l->length_ms = length_ms;
	l->answered_ms = l->ask_ms = l->looked_ms = now;
}

static void note_stop(struct lease *l, uint64_t now)
{
	if (now > l->looked_ms + 2 * lease_tick(l) && l->looked_ms < lease_end(l))
		l->woken_ms = now + lease_tick(l);
	l->looked_ms = now;
}

bool lease_ask(struct lease *l, uint64_t now)
{
	if (l->length_ms)
		note_stop(l, now);
	if (!l->length_ms || now < l->ask_ms)
		return false;
	l->ask_ms = now + lease_tick(l);
	return true;
}

void lease_answered(struct lease *l, uint64_t sent, uint64_t now)
{
	if (sent > l->answered_ms && sent <= now)
		l->answered_ms = sent;
}

uint64_t lease_end(const struct lease *l)
{
	if (l->length_ms && l->woken_ms > l->answered_ms + l->length_ms)
		return l->woken_ms;
	return l->length_ms ? l->answered_ms + l->length_ms : UINT64_MAX;
}
