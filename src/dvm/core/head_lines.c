/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines to clients. A line of which the journal must have something first is held until
 * that is safe, and so are all lines behind it.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
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

/* One that would not get all of it gets nothing more, and the end. */
static void send_or_hold(struct dvm_head *h, struct head_client *c, const char *line,
			 size_t len, uint64_t at)
{
	if (c->broken)
		return;
	if (!c->held && journal_is_safe(h, at)) {
		give(h, c, line, len);
	} else if (hold(c, line, len, at)) {
		c->broken = true;
		client_drop_held(c);
		client_break_off(h, c->number);
	}
}

void client_tell_at(struct dvm_head *h, uint32_t client, json_t *event, uint64_t at)
{
	char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
	struct head_client *c = client_find(h, client);
	size_t len = text ? strlen(text) : 0;

	if (text && c) {
		text[len] = '\n'; /* in place of its NUL */
		send_or_hold(h, c, text, len + 1, at);
	} else if (c && !c->broken) {
		c->broken = true; /* no memory: it would wait forever */
		client_break_off(h, client);
	}
	free(text);
	json_decref(event);
}

void client_tell(struct dvm_head *h, uint32_t client, json_t *event)
{
	client_tell_at(h, client, event, 0);
}

void dvm_head_safe(struct dvm_head *h, uint64_t position, struct dvm_time now)
{
	struct head_client *c, *next;

	h->now = now;
	h->journal.safe = position;
	HASH_ITER(hh, h->clients, c, next)
		send_safe(h, c);
}

/* The answer belongs to the request of this tag. */
void client_answer_at(struct dvm_head *h, const struct head_client *c,
		      json_t *request, json_t *event, uint64_t at)
{
	json_t *tag = json_object_get(request, "tag");

	if (event && tag)
		json_object_set(event, "tag", tag);
	client_tell_at(h, c->number, event, at);
}

void client_answer(struct dvm_head *h, const struct head_client *c, json_t *request,
		   json_t *event)
{
	client_answer_at(h, c, request, event, 0);
}

void client_refuse(struct dvm_head *h, const struct head_client *c,
		   json_t *request, const char *fmt, ...)
{
	char why[DVM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	client_answer(h, c, request, json_pack("{s:s,s:o}", "ev", "error", "why",
					       report_name(why)));
}
