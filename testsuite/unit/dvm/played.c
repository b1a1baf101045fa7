/* SPDX-License-Identifier: BSD-3-Clause */
/* A head whose nodes and clients are played by the test: played.h. */
#include "played.h"

#include <errno.h>
#include <stdlib.h>

static struct dvm_head_ops head_ops;

/* ---- operations ---- */

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
	struct played *p = arg;
	struct dvm_msg m;
	struct cursor c;

	cursor_init(&c, data, len);
	while (cursor_left(&c)) {
		assert_int_equal(dvm_msg_unpack(&c, &m), 0);
		if (m.type == DVM_LEASE) /* in a frame of its own */
			assert_true(dvm_msg_is_lease(data, len));
		assert_int_equal(dvm_msg_for_pmi(data, len), m.type == DVM_SPAWNED);
		if (p->message)
			p->message(p, node, &m);
	}
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	((struct played *)arg)->broken[node] = true;
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct played *p = arg;
	json_t *e = json_loadb(line, len, JSON_ALLOW_NUL, NULL);

	assert_int_equal(client, CLIENT);
	if (p->event && !p->event(p, e)) {
		json_decref(e);
		return;
	}
	json_decref(p->answer);
	p->answer = e;
}

static int record(void *arg, const void *data, size_t len, enum durable_wait wait)
{
	struct played *p = arg;

	if (wait > p->wait)
		p->wait = wait;
	return p->full ? -ENOSPC : append_sealed(&p->journal, data, len);
}

static void on_end(void *arg)
{
	((struct played *)arg)->down = true;
}

/* ---- heads ---- */

static void make_head(struct played *p)
{
	assert_int_equal(dvm_head_create(&p->head, &p->options, &head_ops, p, NULL), 0);
	for (uint32_t i = 0; i < p->options.nodes; i++)
		assert_int_equal(tell_registered(p->head, i, p->cores, p->now), 0);
}

void played_start(struct played *p, const struct dvm_head_ops *ops, bool journal)
{
	head_ops = ops ? *ops : (struct dvm_head_ops){};
	head_ops.format = &dvm_json;
	head_ops.node_send = node_send;
	head_ops.node_break = node_break;
	if (!head_ops.client_send)
		head_ops.client_send = client_send;
	head_ops.record = record;
	head_ops.end = on_end;
	if (!p->now.ms)
		p->now = (struct dvm_time){ 1000000000, 1000 };
	buf_init(&p->journal, JOURNAL_MAX);
	assert_int_equal(journal_put_header(&p->journal), 0);
	make_head(p);
	if (journal)
		dvm_head_keep_journal(p->head);
	dvm_head_client_opened(p->head, CLIENT);
	turn(p);
}

void played_end(struct played *p)
{
	dvm_head_destroy(p->head);
	buf_free(&p->journal);
	json_decref(p->answer);
}

static void end_new(void *bed)
{
	played_end(bed);
	free(bed);
}

void *played_new(size_t size)
{
	return unit_at_end(end_new, calloc(1, size));
}

struct dvm_resumed played_next_head(struct played *p, size_t len, bool once, uint32_t lost)
{
	struct journal_reader in;
	struct dvm_resumed found;
	uint32_t version;
	char *copy = malloc(len);

	memcpy(copy, p->journal.data, len);
	dvm_head_destroy(p->head);
	p->down = false;
	make_head(p);
	for (uint32_t i = 0; i < lost; i++)
		dvm_head_node_lost(p->head, i, "the test has", p->now);
	assert_int_equal(journal_open(&in, copy, len, &version), 0);
	assert_int_equal(dvm_head_resume(p->head, &in, once, &found, p->now), 0);
	p->journal.len = in.cut;
	free(copy);
	dvm_head_client_opened(p->head, CLIENT);
	return found;
}

/* ---- the test's part ---- */

void turn(struct played *p)
{
	dvm_head_turn(p->head, p->now);
}

void ask(struct played *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(p->head, CLIENT, p->now, fmt, ap);
	va_end(ap);
}

json_int_t status(struct played *p, const char *key)
{
	ask(p, "{'op':'status','tag':9}");
	return json_integer_value(json_object_get(p->answer, key));
}

void say(struct played *p, uint32_t node, const struct dvm_msg *m)
{
	assert_int_equal(tell_msg(p->head, node, m, p->now), 0);
	turn(p);
}

void come(struct played *p, uint32_t node)
{
	assert_int_equal(tell_registered(p->head, node, p->cores, p->now), 0);
	turn(p);
}

void lose(struct played *p, uint32_t node, const char *why)
{
	dvm_head_node_lost(p->head, node, why, p->now);
	turn(p);
}
