/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that outlive their head: dvm-orphan-bed.h. */
#include "orphan-bed.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "idle.h"
#include "sealed.h"

/* ---- operations ---- */

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
	struct bed *b = arg;

	assert_int_equal(buf_append(&b->nodes[node].down, data, len), 0);
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	fail_msg("node %u is broken off: %s", node, why);
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct bed *b = arg;
	json_t *e = json_loadb(line, len, 0, NULL);

	if (json_object_get(e, "tasks") && json_is_array(json_object_get(e, "tasks"))) {
		json_decref(e);
		return;
	}
	json_decref(b->answer);
	b->answer = e;
}

static int record(void *arg, const void *data, size_t len, enum durable_wait wait)
{
	struct bed *b = arg;

	return b->full ? -28 : append_sealed(&b->journal, data, len);
}

static void head_send(void *arg, const void *data, size_t len)
{
	struct fake_node *n = arg;

	assert_int_equal(buf_append(&n->up, data, len), 0);
}

static void close_pmi(void *arg, uint32_t part)
{
	struct fake_node *n = arg;

	starts_add_over(&n->starts, part);
}

/* A rank never runs twice at once. */
static void start_rank(struct fake_node *n, const struct node_start *what, uint32_t slot)
{
	struct bed *b = n->bed;
	struct process p = {
		.node = n->number, .task = what->launch->task, .runs = true,
		.rank = what->launch->first_rank + slot, .part = what->part, .slot = slot,
	};

	snprintf(p.cwd, sizeof(p.cwd), "%s", (const char *)what->profile->cwd.data);
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].runs && !b->processes[i].killed)
			assert_false(b->processes[i].task == p.task &&
				     b->processes[i].rank == p.rank);
	assert_true(b->nprocesses + 1 < PROCESSES);
	b->processes[++b->nprocesses] = p;
}

static void start(void *arg, const struct node_start *what)
{
	struct fake_node *n = arg;
	struct start s = { .part = what->part, .first = (uint64_t)n->bed->nprocesses + 1 };

	s.error = n->lacks ? -EAGAIN : 0;
	for (; !n->lacks && what->first + s.count < what->launch->ranks_here; s.count++)
		start_rank(n, what, what->first + s.count);
	starts_add(&n->starts, s);
}

static void signal_part(void *arg, uint32_t part, int number)
{
	struct fake_node *n = arg;

	for (int64_t i = 1; i <= n->bed->nprocesses; i++) {
		struct process *p = &n->bed->processes[i];

		if (p->node != n->number || p->part != part || !p->runs)
			continue;
		p->killed = p->killed || number == SIGKILL;
		p->polite = p->polite || number == SIGTERM;
	}
}

static void leave(void *arg)
{
	((struct fake_node *)arg)->left = true;
}

/* ---- heads ---- */

static void head_ends(void *arg)
{
	((struct bed *)arg)->down = true;
}

void make_head(struct bed *b, bool adopts)
{
	static const struct dvm_head_ops ops = {
		.node_send = node_send, .node_break = node_break,
		.format = &dvm_json, .client_send = client_send, .record = record, .end = head_ends,
	};
	struct dvm_head_options options = usual_options(NODES);

	options.max_waiting = TASKS;
	options.keeps = true;
	options.adopts = adopts;
	options.once = b->once;
	options.away_ms = b->away_ms;
	assert_int_equal(dvm_head_create(&b->head, &options, &ops, b, NULL), 0);
}

void tell_node(struct fake_node *n, struct buf *what)
{
	struct buf in = *what;

	buf_init(what, QUEUE_MAX);
	starts_tell(&n->starts, n->node, n->bed->now);
	if (in.len && !n->gone)
		assert_int_equal(dvm_node_input(n->node, in.data, in.len,
						n->bed->now), 0);
	dvm_node_turn(n->node, n->bed->now);
	buf_free(&in);
}

void deliver_down(struct fake_node *n)
{
	tell_node(n, &n->down);
}

void deliver_up(struct fake_node *n)
{
	struct buf in = n->up;

	buf_init(&n->up, QUEUE_MAX);
	if (in.len && !n->gone)
		dvm_head_node_input(n->bed->head, n->number, in.data, in.len,
				    n->bed->now);
	dvm_head_turn(n->bed->head, n->bed->now);
	buf_free(&in);
}

void deliver_all(struct bed *b)
{
	for (int i = 0; i < 4 * NODES; i++) {
		deliver_down(&b->nodes[i % NODES]);
		deliver_up(&b->nodes[i % NODES]);
	}
}

static void bed_destroy(void *bed)
{
	struct bed *b = bed;

	dvm_head_destroy(b->head);
	for (uint32_t i = 0; i < NODES; i++) {
		dvm_node_destroy(b->nodes[i].node);
		buf_free(&b->nodes[i].down);
		buf_free(&b->nodes[i].up);
	}
	buf_free(&b->journal);
	json_decref(b->answer);
	free(b);
}

struct bed *bed_create(void)
{
	static const struct dvm_node_ops node_ops = {
		.send = head_send, .open_output = idle_open_output,
		.close_output = idle_part, .open_pmi = idle_open_pmi,
		.pmi_rank_ended = idle_rank_ended, .close_pmi = close_pmi,
		.profile = idle_profile, .forget = idle_part,
		.all_started = idle_part, .give_up = idle_part,
		.start = start, .signal = signal_part, .leave = leave,
	};
	struct bed *b = calloc(1, sizeof(*b));

	b->now = (struct dvm_time){ 1000000000, 1000 };
	buf_init(&b->journal, JOURNAL_MAX);
	assert_int_equal(journal_put_header(&b->journal), 0);
	make_head(b, false);
	for (uint32_t i = 0; i < NODES; i++) {
		struct fake_node *n = &b->nodes[i];
		const struct dvm_register r = {
			.version = DVM_VERSION, .has = { CORES, 0, 1000 },
			.name = { n->name, (size_t)snprintf(n->name, sizeof(n->name),
							    "n%u", i) },
		};

		*n = (struct fake_node){ .bed = b, .number = i };
		snprintf(n->name, sizeof(n->name), "n%u", i);
		buf_init(&n->down, QUEUE_MAX);
		buf_init(&n->up, QUEUE_MAX);
		assert_int_equal(dvm_node_create(&n->node, &node_ops, n), 0);
		dvm_node_register(n->node, &r);
		dvm_node_turn(n->node, b->now);
		deliver_up(n);
	}
	dvm_head_keep_journal(b->head);
	dvm_head_client_opened(b->head, CLIENT);
	return unit_at_end(bed_destroy, b);
}

void lose_head(struct bed *b)
{
	dvm_head_destroy(b->head);
	b->head = NULL;
	for (uint32_t i = 0; i < NODES; i++) {
		deliver_down(&b->nodes[i]);
		buf_clear(&b->nodes[i].up);
	}
}

static void call_node(struct bed *b, uint32_t i)
{
	static const struct dvm_msg adopt = { .type = DVM_ADOPT };
	const struct dvm_address where = { .port = (uint16_t)(7000 + i) };
	struct fake_node *n = &b->nodes[i];

	if (n->gone) {
		dvm_head_node_absent(b->head, i, n->name, &where);
		if (b->gone_for_sure)
			dvm_head_node_gone(b->head, i, b->now);
		return;
	}
	assert_int_equal(dvm_msg_pack(&n->down, &adopt), 0);
	deliver_down(n);
	deliver_up(n);
}

struct dvm_resumed next_head(struct bed *b, bool once)
{
	struct journal_reader in;
	struct dvm_resumed found;
	size_t len = b->journal.len;
	char *copy = malloc(len);
	uint32_t version;

	memcpy(copy, b->journal.data, len);
	make_head(b, true);
	for (uint32_t i = 0; i < NODES; i++)
		call_node(b, i);
	assert_int_equal(dvm_head_registered(b->head), NODES);
	assert_int_equal(journal_open(&in, copy, len, &version), 0);
	assert_int_equal(dvm_head_resume(b->head, &in, once, &found, b->now), 0);
	free(copy);
	dvm_head_client_opened(b->head, CLIENT);
	dvm_head_turn(b->head, b->now);
	return found;
}

struct dvm_resumed change_head(struct bed *b, bool once)
{
	lose_head(b);
	return next_head(b, once);
}

void lose_head_and_node(struct bed *b, uint32_t node)
{
	lose_head(b);
	b->nodes[node].gone = true;
}

void pass(struct bed *b, uint64_t ms)
{
	b->now.ms += ms;
	deliver_all(b);
}

/* ---- requests ---- */

void ask(struct bed *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->head, CLIENT, b->now, fmt, ap);
	va_end(ap);
}

void run(struct bed *b, const char *tasks)
{
	ask(b, SUBMIT "%s]}", tasks);
	deliver_all(b);
}

json_int_t status(struct bed *b, const char *key)
{
	ask(b, "{'op':'status'}");
	return json_integer_value(json_object_get(b->answer, key));
}

json_t *task(struct bed *b, int id)
{
	ask(b, "{'op':'show','id':%d}", id);
	return json_object_get(b->answer, "task");
}

const char *shown_state(struct bed *b, int id)
{
	return json_string_value(json_object_get(task(b, id), "state"));
}

json_int_t instance(struct bed *b, int id)
{
	return json_integer_value(json_object_get(task(b, id), "instance"));
}

/* ---- processes ---- */

void end_process(struct bed *b, int64_t i, int32_t status)
{
	struct process *p = &b->processes[i];
	const struct node_end end = { .status = status };
	struct fake_node *n = &b->nodes[p->node];

	p->runs = false;
	if (n->gone)
		return;
	starts_tell(&n->starts, n->node, b->now); /* that comes first */
	assert_true(dvm_node_ended(n->node, p->part, p->slot, &end, b->now));
	dvm_node_turn(n->node, b->now);
}

void end_killed(struct bed *b)
{
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].runs &&
		    (b->processes[i].killed || b->processes[i].polite))
			end_process(b, i, b->processes[i].killed ? SIGKILL : SIGTERM);
}

void end_now(struct bed *b, int64_t i, int32_t status)
{
	end_process(b, i, status);
	deliver_all(b);
}

void reap(struct bed *b)
{
	end_killed(b);
	deliver_all(b);
}

void end_all(struct bed *b, int32_t status)
{
	for (int64_t i = 1; i <= b->nprocesses; i++)
		if (b->processes[i].runs)
			end_process(b, i, status);
}

void finish(struct bed *b)
{
	for (int i = 0; i < 4 * TASKS; i++) {
		deliver_all(b);
		end_killed(b);
		end_all(b, 0);
	}
	deliver_all(b);
}

int64_t process_of(const struct bed *b, uint64_t task)
{
	for (int64_t i = b->nprocesses; i; i--)
		if (b->processes[i].task == task)
			return i;
	return 0;
}

unsigned starts(const struct bed *b, uint64_t task)
{
	unsigned n = 0;

	for (int64_t i = 1; i <= b->nprocesses; i++)
		n += b->processes[i].task == task;
	return n;
}

unsigned ends(const struct bed *b, uint64_t task)
{
	struct journal_reader in;
	struct journal_record r;
	uint32_t version;
	unsigned n = 0;

	assert_int_equal(journal_open(&in, b->journal.data, b->journal.len,
				      &version), 0);
	while (journal_next(&in, &r))
		n += r.type == JOURNAL_END && r.end.task == task;
	return n;
}

void assert_nothing_is_kept(struct bed *b)
{
	struct dvm_resumed found;

	lose_head(b);
	for (uint32_t i = 0; i < NODES; i++) {
		static const struct dvm_msg adopt = { .type = DVM_ADOPT };
		struct cursor c;
		struct dvm_msg m;

		if (b->nodes[i].gone)
			continue;
		assert_int_equal(dvm_msg_pack(&b->nodes[i].down, &adopt), 0);
		deliver_down(&b->nodes[i]);
		cursor_init(&c, b->nodes[i].up.data, b->nodes[i].up.len);
		assert_int_equal(dvm_msg_unpack(&c, &m), 0);
		assert_int_equal(m.type, DVM_REGISTER);
		assert_int_equal(cursor_left(&c), 0);
		buf_clear(&b->nodes[i].up);
	}
	found = next_head(b, false);
	assert_int_equal(found.adopted + found.again + found.queued, 0);
}
