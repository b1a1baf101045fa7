/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines to clients. A line of which the journal must have something first is held until
 * that is safe, and so are all lines behind it.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define HELD_MAX ((size_t)256 << 20) /* bytes of lines that wait for the journal */

void client_break_off(struct dvm_head *h, uint32_t client)
{
	if (h->ops.client_break)
		h->ops.client_break(h->arg, client);
}

static void drop_first(struct head_client *c)
{
	struct held_lines *l = c->held;

	DL_DELETE(c->held, l);
	buf_free(&l->lines);
	free(l);
}

void client_drop_held(struct head_client *c)
{
	while (c->held)
		drop_first(c);
}

static void give(struct dvm_head *h, struct head_client *c, const char *lines, size_t len)
{
	c->sent += len;
	h->ops.client_send(h->arg, c->number, lines, len);
}

static void send_safe(struct dvm_head *h, struct head_client *c)
{
	struct held_lines *l;

	while ((l = c->held) && journal_is_safe(h, l->at)) {
		give(h, c, l->lines.data, l->lines.len);
		drop_first(c);
	}
}

/* 0 or a negative errno. */
static int hold(struct head_client *c, const char *line, size_t len, uint64_t at)
{
	struct held_lines *last = c->held ? c->held->prev : NULL;

	if (last && at <= last->at)
		return buf_append(&last->lines, line, len);
	last = calloc(1, sizeof(*last));
	if (!last)
		return -ENOMEM;
	last->at = at;
	buf_init(&last->lines, HELD_MAX);
	DL_APPEND(c->held, last);
	return buf_append(&last->lines, line, len);
}

void client_cut_off(struct dvm_head *h, struct head_client *c)
{
	if (!c->broken)
		client_break_off(h, c->number);
	c->broken = true;
	client_drop_held(c);
}

/* The client waits for the disk: it is told why, before all that it waits for. */
static void tell_unsafe(struct dvm_head *h, struct head_client *c)
{
	const struct head_event e = {
		.type = EVENT_UNSAFE, .unsafe = strerror(-journal_failure(h)),
	};
	struct buf line;

	buf_init(&line, HELD_MAX);
	if (h->ops.format->write_event(&e, &line))
		client_cut_off(h, c);
	else
		give(h, c, line.data, line.len);
	buf_free(&line);
}

void clients_tell_unsafe(struct dvm_head *h)
{
	struct head_client *c, *next;

	HASH_ITER(hh, h->clients, c, next)
		if (c->held)
			tell_unsafe(h, c);
}

/* A client that cannot get a whole line gets nothing more, and its connection ends. */
void client_send_at(struct dvm_head *h, struct head_client *c, const char *line, size_t len,
		    uint64_t at)
{
	if (c->broken)
		return;
	if (!c->held && journal_is_safe(h, at)) {
		give(h, c, line, len);
		return;
	}
	if (!c->held && journal_failure(h))
		tell_unsafe(h, c);
	if (!c->broken && hold(c, line, len, at))
		client_cut_off(h, c);
}

void client_tell(struct dvm_head *h, uint32_t client, const struct head_event *e)
{
	struct head_client *c = client_find(h, client);
	struct buf line;

	if (!c)
		return;
	buf_init(&line, HELD_MAX);
	if (h->ops.format->write_event(e, &line))
		client_cut_off(h, c); /* no memory: it would wait forever */
	else
		client_send_at(h, c, line.data, line.len, 0);
	buf_free(&line);
}

void dvm_head_safe(struct dvm_head *h, uint64_t position, struct dvm_time now)
{
	struct head_client *c, *next;

	h->now = now;
	h->journal.safe = position;
	HASH_ITER(hh, h->clients, c, next)
		send_safe(h, c);
}
