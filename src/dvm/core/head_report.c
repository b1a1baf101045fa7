/* SPDX-License-Identifier: BSD-3-Clause */
/* Events for clients: about tasks that have ended, and about nodes. */
#include "dvm/core/head_private.h"

#include <string.h>

#include <utlist.h>

#define ENDED_BYTES ((size_t)1 << 20) /* of results in an event, about */
#define ENDED_KEPT ((size_t)64 << 10) /* bytes of memory that a client keeps for the next turn */

/* ---- tasks that have ended ---- */

/* 0 or a negative errno. */
static int add_result(const struct dvm_head *h, struct head_client *c, const struct head_task *t)
{
	bool first = !c->ended.len, full = c->ended.len - c->ended_last >= ENDED_BYTES;
	int rc = full ? h->ops.format->close_results(&c->ended) : 0;

	if (full)
		c->ended_last = c->ended.len;
	return rc ? rc : h->ops.format->write_result(h, t, first || full, &c->ended);
}

void report_ended_to(struct dvm_head *h, struct head_task *t, uint32_t client)
{
	struct head_client *c = client_find(h, client);

	if (!c)
		return;
	if (add_result(h, c, t))
		client_cut_off(h, c);
	t->told = client;
	if (t->end_at > c->ended_at)
		c->ended_at = t->end_at;
}

void report_ended(struct dvm_head *h, struct head_task *t)
{
	FOR_EACH_WATCHER(t, w)
		report_ended_to(h, t, w.client);
}

/* Each event is a line. */
static void send_ended(struct dvm_head *h, struct head_client *c)
{
	const char *line = c->ended.data, *end = line + c->ended.len, *next;

	for (; line < end; line = next) {
		next = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1;
		client_send_at(h, c, line, (size_t)(next - line), c->ended_at);
	}
}

void report_turn(struct dvm_head *h)
{
	struct head_client *c, *next;

	HASH_ITER(hh, h->clients, c, next) {
		if (!c->ended.len)
			continue;
		if (h->ops.format->close_results(&c->ended))
			client_cut_off(h, c);
		else
			send_ended(h, c);
		buf_clear(&c->ended);
		if (c->ended.cap > ENDED_KEPT)
			buf_free(&c->ended);
		c->ended_at = c->ended_last = 0;
	}
}

/* ---- nodes ---- */

void report_node(struct dvm_head *h, uint32_t node, const char *state, const char *why,
		 uint32_t tasks)
{
	const struct head_event e = {
		.type = EVENT_NODE, .node = { h->nodes[node].name, state, why, tasks },
	};
	struct head_client *c, *next;

	HASH_ITER(hh, h->clients, c, next)
		if (c->watches)
			client_tell(h, c->number, &e);
}
