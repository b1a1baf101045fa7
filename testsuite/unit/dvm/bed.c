/* SPDX-License-Identifier: BSD-3-Clause */
/* Head and nodes of a DVM in one process: dvm-bed.h. */
#include "bed.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "idle.h"

/* ---- bytes under way ---- */

static void push(struct queue_of_bytes *q, const void *data, size_t len)
{
	if (q->first + q->count == q->cap) {
		q->cap = q->cap ? 2 * q->cap : 64;
		q->items = realloc(q->items, q->cap * sizeof(*q->items));
		q->lens = realloc(q->lens, q->cap * sizeof(*q->lens));
	}
	q->items[q->first + q->count] = malloc(len);
	memcpy(q->items[q->first + q->count], data, len);
	q->lens[q->first + q->count++] = len;
}

/* The next, to be freed; NULL: none. */
static char *pop(struct queue_of_bytes *q, size_t *len)
{
	if (!q->count)
		return NULL;
	q->count--;
	*len = q->lens[q->first];
	return q->items[q->first++];
}

static void queue_free(struct queue_of_bytes *q)
{
	size_t len;
	char *data;

	while ((data = pop(q, &len)))
		free(data);
	free(q->items);
	free(q->lens);
}

/* ---- operations ---- */

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
	struct bed *b = arg;

	push(&b->nodes[node].down, data, len);
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	fail_msg("node %u is broken off: %s", node, why);
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct bed *b = arg;
	json_t *event = json_loadb(line, len, 0, NULL);

	assert_non_null(event);
	if (client == OTHER_CLIENT) {
		json_decref(event);
		return;
	}
	assert_int_equal(client, CLIENT);
	json_array_append_new(b->events, event);
	b->unread += b->reads ? 0 : len;
}

static size_t client_unread(void *arg, uint32_t client)
{
	return ((struct bed *)arg)->unread;
}

static void on_end(void *arg)
{
	((struct bed *)arg)->ended = true;
}

static void head_send(void *arg, const void *data, size_t len)
{
	struct fake_node *n = arg;

	push(&n->up, data, len);
}

static void node_leave(void *arg)
{
	((struct fake_node *)arg)->left = true;
}

static bool takes_output(void *arg)
{
	return !((struct fake_node *)arg)->busy;
}

static void look(void *arg, uint64_t process, struct dvm_rank *out)
{
	out->state = 'S';
}

static void limit_output(void *arg, uint32_t part, size_t bytes)
{
	((struct fake_node *)arg)->limit = bytes;
}

static int keep_output(void *arg, uint32_t part, const struct node_keep *what)
{
	struct fake_node *n = arg;

	assert_string_equal(what->dir, "/outputs");
	snprintf(n->name, sizeof(n->name), "%s", what->name);
	return n->no_files ? -EAGAIN : 0;
}

static void write_output(void *arg, uint32_t part, int fd, const void *data, size_t len)
{
	struct fake_node *n = arg;
	size_t *at = &n->written_len[fd - 1];

	assert_true(*at + len <= sizeof(n->written[0]));
	memcpy(n->written[fd - 1] + *at, data, len);
	*at += len;
}

static void end_output(void *arg, uint32_t part)
{
	((struct fake_node *)arg)->ending = part;
}

static uint32_t output_stall_ms(void *arg, uint32_t part)
{
	return ((struct fake_node *)arg)->stall_ms;
}

static int open_pmi(void *arg, uint32_t part, const struct dvm_launch *launch)
{
	struct fake_node *n = arg;

	assert_true(launch->ranks > 1);
	n->bed->pmi_node = n;
	n->bed->pmi_part = part;
	n->bed->pmis++;
	return 0;
}

static void pmi_rank_ended(void *arg, uint32_t part, uint32_t slot, int32_t status)
{
	((struct fake_node *)arg)->bed->pmi_ends++;
}

void say_to_node(struct fake_node *n, const struct dvm_msg *m)
{
	struct buf out;

	buf_init(&out, 4096);
	assert_int_equal(dvm_msg_pack(&out, m), 0);
	push(&n->down, out.data, out.len);
	buf_free(&out);
}

void say_pmi_over(struct fake_node *n, uint32_t part)
{
	starts_add_over(&n->starts, part);
}

static void close_pmi(void *arg, uint32_t part)
{
	struct fake_node *n = arg;

	assert_true(n->bed->pmis > 0);
	n->bed->pmis--;
	if (!n->bed->pmi_is_slow)
		say_pmi_over(n, part);
}

static uint32_t count_running(const struct bed *b, uint32_t node)
{
	uint32_t n = 0;

	for (int64_t i = 1; i <= b->nprocesses; i++)
		n += b->processes[i].runs && b->processes[i].node == node;
	return n;
}

/* 0 or a negative errno. */
static int start_rank(struct fake_node *n, const struct node_start *what, uint32_t slot)
{
	struct bed *b = n->bed;

	if (!strcmp(what->launch->argv.data, "unstartable"))
		return -EACCES;
	if (b->is_full[n->number] && count_running(b, n->number) >= b->room[n->number])
		return -EMFILE;
	assert_true(b->nprocesses + 1 < PROCESSES);
	b->processes[++b->nprocesses] = (struct process){
		.node = n->number, .part = what->part, .slot = slot, .runs = true };
	return 0;
}

static void start(void *arg, const struct node_start *what)
{
	struct fake_node *n = arg;
	struct start s = { what->part, 0, (uint64_t)n->bed->nprocesses + 1, 0 };

	assert_true(what->first < what->launch->ranks_here);
	while (!s.error && what->first + s.count < what->launch->ranks_here) {
		s.error = start_rank(n, what, what->first + s.count);
		s.count += !s.error;
	}
	starts_add(&n->starts, s);
}

static void tell_starts(struct fake_node *n)
{
	if (!n->still)
		starts_tell(&n->starts, n->node, n->bed->now);
}

static void signal_part(void *arg, uint32_t part, int number)
{
	struct fake_node *n = arg;

	for (int64_t i = 1; i <= n->bed->nprocesses; i++) {
		struct process *p = &n->bed->processes[i];

		if (p->node != n->number || p->part != part || !p->runs)
			continue;
		p->told = p->told || number == SIGTERM;
		p->killed = p->killed || number == SIGKILL;
	}
}

/* ---- the bed ---- */

static void say_hello(struct fake_node *n)
{
	const struct dvm_register r = {
		.version = DVM_VERSION,
		.has = { .cores = CORES, .memory = 1000 },
		.port = (uint16_t)(1000 + n->number),
		.name = { n->node_name, (size_t)sprintf(n->node_name, "n%u", n->number) },
		.build = { "test", 4 },
	};

	dvm_node_register(n->node, &r);
}

static void bed_destroy(void *bed)
{
	struct bed *b = bed;

	dvm_head_destroy(b->head);
	for (uint32_t i = 0; i < NODES; i++) {
		dvm_node_destroy(b->nodes[i].node);
		queue_free(&b->nodes[i].down);
		queue_free(&b->nodes[i].up);
	}
	json_decref(b->events);
	free(b);
}

struct bed *bed_create_member(size_t max_waiting, uint32_t member, uint32_t members)
{
	static const struct dvm_head_ops head_ops = {
		.node_send = node_send, .node_break = node_break,
		.format = &dvm_json, .client_send = client_send, .client_unread = client_unread, .end = on_end,
	};
	static const struct dvm_node_ops node_ops = {
		.send = head_send, .takes_output = takes_output, .open_output = idle_open_output,
		.limit_output = limit_output, .close_output = idle_part,
		.keep_output = keep_output, .write_output = write_output,
		.end_output = end_output, .output_stall_ms = output_stall_ms, .open_pmi = open_pmi,
		.pmi_rank_ended = pmi_rank_ended, .close_pmi = close_pmi,
		.profile = idle_profile, .forget = idle_part,
		.all_started = idle_part, .give_up = idle_part,
		.start = start, .look = look, .signal = signal_part, .leave = node_leave,
	};
	struct dvm_head_options options = usual_options(NODES);
	struct bed *b = calloc(1, sizeof(*b));

	options.max_waiting = max_waiting;
	options.member = member;
	options.members = members;
	b->events = json_array();
	b->reads = true;
	b->now = (struct dvm_time){ 1000000000, 1000 };
	assert_int_equal(dvm_head_create(&b->head, &options, &head_ops, b, NULL), 0);
	for (uint32_t i = 0; i < NODES; i++) {
		b->nodes[i] = (struct fake_node){ .bed = b, .number = i };
		assert_int_equal(dvm_node_create(&b->nodes[i].node, &node_ops,
						 &b->nodes[i]), 0);
		say_hello(&b->nodes[i]);
	}
	dvm_head_client_opened(b->head, CLIENT);
	deliver_all(b);
	return unit_at_end(bed_destroy, b);
}

struct bed *bed_create(size_t max_waiting)
{
	return bed_create_member(max_waiting, 0, 0);
}

void deliver_down(struct fake_node *n)
{
	size_t len;
	char *data = pop(&n->down, &len);

	tell_starts(n);
	if (data)
		assert_int_equal(dvm_node_input(n->node, data, len, n->bed->now), 0);
	dvm_node_turn(n->node, n->bed->now);
	free(data);
}

void deliver_up(struct fake_node *n)
{
	size_t len;
	char *data = pop(&n->up, &len);

	if (!data)
		return;
	dvm_head_node_input(n->bed->head, n->number, data, len, n->bed->now);
	dvm_head_turn(n->bed->head, n->bed->now);
	free(data);
}

static bool is_quiet(const struct bed *b)
{
	for (uint32_t i = 0; i < NODES; i++)
		if (!b->nodes[i].lost &&
		    (b->nodes[i].down.count || b->nodes[i].up.count ||
		     ((b->nodes[i].starts.count || b->nodes[i].starts.overs) &&
		      !b->nodes[i].still)))
			return false;
	return true;
}

void deliver_all(struct bed *b)
{
	do {
		for (uint32_t i = 0; i < NODES; i++) {
			if (b->nodes[i].lost)
				continue;
			tell_starts(&b->nodes[i]);
			dvm_node_turn(b->nodes[i].node, b->now);
			deliver_down(&b->nodes[i]);
			deliver_up(&b->nodes[i]);
		}
		dvm_head_turn(b->head, b->now);
	} while (!is_quiet(b));
}

void pass(struct bed *b, uint64_t ms)
{
	b->now.ms += ms;
	deliver_all(b);
}

void lose(struct bed *b, uint32_t node)
{
	struct fake_node *n = &b->nodes[node];

	n->lost = true;
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].node == node)
			b->processes[i].runs = false;
	dvm_head_node_lost(b->head, node, "the test has", b->now);
	dvm_head_turn(b->head, b->now);
}

static void end_as(struct bed *b, int64_t process, const struct node_end *end)
{
	struct process *p = &b->processes[process];
	struct fake_node *n = &b->nodes[p->node];

	assert_true(p->runs);
	p->runs = false;
	tell_starts(n); /* that comes first */
	assert_true(dvm_node_ended(n->node, p->part, p->slot, end, b->now));
}

void end_process(struct bed *b, int64_t process, int32_t status)
{
	end_as(b, process, &(struct node_end){ .status = status, .user_us = 10 });
}

void end_now(struct bed *b, int64_t process, int32_t status)
{
	end_process(b, process, status);
	deliver_all(b);
}

void end_lacking(struct bed *b, int64_t process)
{
	end_as(b, process, &(struct node_end){
		.status = 126 << 8, .why = "no file", .lacks = true });
	deliver_all(b);
}

void ask(struct bed *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->head, CLIENT, b->now, fmt, ap);
	va_end(ap);
}

void request(struct bed *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->head, CLIENT, b->now, fmt, ap);
	va_end(ap);
	deliver_all(b);
}

void submit(struct bed *b, const char *tasks)
{
	request(b, "{'op':'submit'," PROFILE ",'tasks':[%s]}", tasks);
}

json_t *event(struct bed *b, const char *name)
{
	size_t i = json_array_size(b->events);

	while (i--) {
		json_t *e = json_array_get(b->events, i);

		if (!strcmp(json_string_value(json_object_get(e, "ev")), name))
			return e;
	}
	fail_msg("no event %s has come", name);
	return NULL;
}

json_t *end_of(struct bed *b, json_int_t id)
{
	json_t *e, *t, *found = NULL;
	size_t i, k;

	json_array_foreach(b->events, i, e)
		json_array_foreach(json_object_get(e, "tasks"), k, t) {
			if (strcmp(json_string_value(json_object_get(e, "ev")),
				   "ended") ||
			    json_integer_value(json_object_get(t, "id")) != id)
				continue;
			assert_null(found);
			found = t;
		}
	return found;
}

const char *text(json_t *o, const char *key)
{
	const char *value = json_string_value(json_object_get(o, key));

	assert_non_null(value);
	return value;
}

long long number(json_t *o, const char *key)
{
	assert_non_null(json_object_get(o, key));
	return json_integer_value(json_object_get(o, key));
}

long long status_of(struct bed *b, const char *key)
{
	ask(b, "{'op':'status'}");
	return number(event(b, "status"), key);
}

long long free_cores(struct bed *b)
{
	json_t *n;
	long long sum = 0;
	size_t i;

	ask(b, "{'op':'status'}");
	json_array_foreach(json_object_get(event(b, "status"), "nodes"), i, n)
		sum += number(n, "free");
	return sum;
}
