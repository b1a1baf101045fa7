/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that are kept until they have been received: session.h. */
#include "dvm/core/session.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define OWED_MAX 32
#define OWED_BYTES_MAX ((size_t)256 << 10)

struct session_message {
	uint64_t number;
	size_t len;
	struct session_message *prev, *next;
	char data[];
};

static void drop(struct session *s, struct session_message *m)
{
	DL_DELETE(s->kept, m);
	s->kept_bytes -= m->len;
	free(m);
}

void session_free(struct session *s)
{
	while (s->kept)
		drop(s, s->kept);
}

uint64_t session_keep(struct session *s, const void *data, size_t len)
{
	struct session_message *m = malloc(sizeof(*m) + len);

	if (!m)
		return 0;
	m->number = ++s->sent;
	m->len = len;
	memcpy(m->data, data, len);
	DL_APPEND(s->kept, m);
	s->kept_bytes += len;
	return m->number;
}

bool session_take(struct session *s, const struct bundle_item *i)
{
	if (i->seq != s->received + 1)
		return false;
	s->received++;
	s->unacked++;
	s->unacked_bytes += i->data.len;
	return true;
}

void session_acked(struct session *s, uint64_t number)
{
	while (s->kept && s->kept->number <= number)
		drop(s, s->kept);
}

uint64_t session_ack(struct session *s)
{
	s->unacked = 0;
	s->unacked_bytes = 0;
	return s->received;
}

bool session_owes_ack(const struct session *s)
{
	return s->unacked >= OWED_MAX || s->unacked_bytes >= OWED_BYTES_MAX;
}

void session_each(const struct session *s,
		  void (*fn)(void *arg, uint64_t number, const struct dvm_bytes *data), void *arg)
{
	struct session_message *m;

	DL_FOREACH(s->kept, m)
		fn(arg, m->number, &(struct dvm_bytes){ m->data, m->len });
}
