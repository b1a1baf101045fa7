/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that have not proved themselves: strangers.h. */
#include "libio/strangers.h"

#include <errno.h>
#include <string.h>

#include <utlist.h>

void strangers_init(struct strangers *s, unsigned max, void (*drop)(void *owner),
		    const struct log_hook *log)
{
	memset(s, 0, sizeof(*s));
	s->max = max;
	s->drop = drop;
	refusals_init(&s->refused, log);
}

void strangers_join(struct strangers *s, struct stranger *one, void *owner,
		    struct link *const *link)
{
	if (s->count >= s->max)
		strangers_drop_oldest(s);
	*one = (struct stranger){ .owner = owner, .link = link };
	DL_APPEND(s->oldest, one);
	s->count++;
}

void strangers_leave(struct strangers *s, struct stranger *one)
{
	if (!one->link)
		return;
	DL_DELETE(s->oldest, one);
	s->count--;
	one->link = NULL;
}

void strangers_ended(struct strangers *s, const struct stranger *one, int error)
{
	if (one->link && *one->link)
		refusals_add(&s->refused, link_source(*one->link), error);
}

bool strangers_drop_oldest(struct strangers *s)
{
	if (!s->oldest)
		return false;
	strangers_ended(s, s->oldest, -ENOBUFS);
	s->drop(s->oldest->owner);
	return true;
}

void strangers_close(struct strangers *s)
{
	while (s->oldest)
		s->drop(s->oldest->owner);
	refusals_end(&s->refused);
}
