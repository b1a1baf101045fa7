/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks over several heads, and what the test knows of them: resume-bed.h. */
#include "resume-bed.h"

#include <stdlib.h>

static void launched(struct bed *b, uint32_t node, const struct dvm_launch *m)
{
	struct known *k = &b->known[m->task];

	b->parts[b->nparts++] = (struct part){ m->task, m->instance, node };
	if (m->node)
		return;
	if (k->launches++)
		assert_true(m->instance > k->instance);
	k->instance = m->instance;
}

static void note_ended(struct bed *b, json_t *tasks)
{
	json_t *t;
	size_t i;

	json_array_foreach(tasks, i, t)
		b->known[json_integer_value(json_object_get(t, "id"))].told++;
}

static bool on_event(void *arg, json_t *e)
{
	struct bed *b = arg;

	note_ended(b, json_object_get(e, "tasks"));
	if (!strcmp(json_string_value(json_object_get(e, "ev")), "submitted")) {
		b->submitted += (int)json_array_size(json_object_get(e, "ids"));
		b->refused += (int)json_array_size(json_object_get(e, "refused"));
	}
	return true;
}

static void on_message(void *bed, uint32_t node, const struct dvm_msg *m)
{
	if (m->type == DVM_LAUNCH)
		launched(bed, node, &m->launch);
}

struct bed *bed_create_as(bool once)
{
	struct bed *b = played_new(sizeof(*b));

	b->p.options = usual_options(NODES);
	b->p.options.max_waiting = TASKS;
	b->p.options.once = once;
	b->p.cores = CORES;
	b->p.message = on_message;
	b->p.event = on_event;
	played_start(&b->p, NULL, true);
	return b;
}

struct bed *bed_create(void)
{
	return bed_create_as(false);
}

struct dvm_resumed another_head(struct bed *b, size_t len, bool once)
{
	b->nparts = 0;
	b->p.options.unheard = b->p.options.away_ms;
	return played_next_head(&b->p, len, once, b->lost);
}

struct dvm_resumed next_head(struct bed *b)
{
	struct dvm_resumed found = another_head(b, b->p.journal.len, false);

	turn(&b->p);
	return found;
}

void make_smaller(struct bed *b)
{
	struct journal_record r;
	struct journal_reader in;
	struct buf old = b->p.journal;
	uint32_t version;

	buf_init(&b->p.journal, JOURNAL_MAX);
	assert_int_equal(journal_put_header(&b->p.journal), 0);
	assert_int_equal(journal_open(&in, old.data, old.len, &version), 0);
	while (journal_next(&in, &r))
		if (dvm_head_knows(b->p.head, &r))
			assert_int_equal(put_sealed(&b->p.journal, &r), 0);
	r.type = JOURNAL_COUNTS;
	dvm_head_forgotten(b->p.head, &r.counts);
	assert_int_equal(put_sealed(&b->p.journal, &r), 0);
	buf_free(&old);
}

json_int_t number(struct bed *b, const char *key)
{
	return json_integer_value(json_object_get(b->p.answer, key));
}

void assert_refused(struct bed *b, const char *why)
{
	const char *said = json_string_value(json_object_get(b->p.answer, "why"));

	if (!said || !strstr(said, why))
		fail_msg("\"%s\" does not say %s", said ? said : "", why);
}

void end_rank(struct bed *b, size_t i, uint32_t rank, int32_t code)
{
	const struct part p = b->parts[i];
	const struct dvm_msg m = {
		.type = DVM_ENDED,
		.ended = { .task = p.task, .instance = p.instance,
			   .status = code << 8, .rank = rank, .started_ns = b->p.now.wall_ns,
			   .ended_ns = b->p.now.wall_ns },
	};

	b->parts[i] = b->parts[--b->nparts];
	say(&b->p, p.node, &m);
}

void end_part(struct bed *b, size_t i, int32_t code)
{
	end_rank(b, i, 0, code);
}

void end_task(struct bed *b, uint64_t task, int32_t code)
{
	size_t i = 0;

	while (i < b->nparts && b->parts[i].task != task)
		i++;
	assert_true(i < b->nparts);
	end_part(b, i, code);
}

void end_all(struct bed *b)
{
	while (b->nparts)
		end_part(b, 0, 0);
}

void assert_each_has_ended_once(struct bed *b)
{
	uint32_t submits[TASKS] = { 0 }, ends[TASKS] = { 0 }, version;
	struct journal_reader in;
	struct journal_record r;

	assert_int_equal(journal_open(&in, b->p.journal.data, b->p.journal.len,
				      &version), 0);
	while (journal_next(&in, &r)) {
		if (r.type == JOURNAL_SUBMIT)
			submits[r.submit.task]++;
		else if (r.type == JOURNAL_END)
			ends[r.end.task]++;
	}
	for (int i = 1; i <= b->submitted; i++) {
		assert_int_equal(submits[i], 1);
		assert_int_equal(ends[i], 1);
		assert_true(b->known[i].told <= 1);
	}
}
