/* SPDX-License-Identifier: BSD-3-Clause */
/* Upcalls of a link: what has come, and that nothing more will. */
#include "delivery.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

bool delivery_offer(struct delivery *d, enum ring_side side,
		    const struct transport_events *events, const void *data,
		    size_t len)
{
	int rc = events->message(events->arg, side, data, len);

	d->kept = rc == -EAGAIN;
	if (rc && !d->kept) {
		d->told = true;
		delivery_end(d, "not usable");
	}
	return !d->kept;
}

void delivery_end(struct delivery *d, const char *fmt, ...)
{
	va_list args;

	if (d->ended)
		return;
	d->ended = true;
	va_start(args, fmt);
	vsnprintf(d->reason, sizeof(d->reason), fmt, args);
	va_end(args);
}

int delivery_tell_end(struct delivery *d, enum ring_side side,
		      const struct transport_events *events)
{
	if (!d->ended || d->told || d->kept)
		return 0;
	d->told = true;
	events->broken(events->arg, side, d->reason);
	return 1;
}
