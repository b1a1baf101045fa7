/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client of simulated DVMs: it submits the tasks of the workload in requests of a
 * scenario's `batch`, and hears how they have ended. Several DVMs share the tasks out as
 * pmi2x-dvm does (share.h).
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm_ends.h"
#include "dvm_sim.h"
#include "libutil/array.h"

#define LIMIT_MORE_S 60 /* --time of a task, beyond what it runs for */

/* ---- submitting ---- */

static double limit_of(const struct workload_task *t)
{
	return ceil(units_seconds(t->time)) + LIMIT_MORE_S;
}

/* Seconds as sleep takes them, without zeros at the end. */
static const char *seconds_text(char out[48], sim_time t)
{
	int n = snprintf(out, 48, "%lld.%012lld", (long long)(t / SIM_S), (long long)(t % SIM_S));

	while (out[n - 1] == '0')
		n--;
	out[out[n - 1] == '.' ? n - 1 : n] = '\0';
	return out;
}

static void put_task(struct dvm_sim *s, const struct workload_task *t, bool first)
{
	char seconds[48];
	int rc = buf_printf(&s->text, "%s{\"argv\":[\"/bin/sleep\",\"%s\"],\"ranks\":%u,\"cores\":%u,\"gpus\":%u,\"nodes\":%u,\"time\":%lld}",
			    first ? "" : ",", seconds_text(seconds, t->time), t->ranks,
			    t->cores, t->gpus, t->nodes, (long long)limit_of(t));

	if (rc)
		dvm_sim_fail(s, "a request is too large: allowed is a smaller batch");
}

static void add_row(struct dvm_sim *s, struct sim_head *h, const struct workload_task *t)
{
	if (!s->want_rows)
		return;
	if (array_grow(&s->rows, s->nrows, &s->rows_cap, sizeof(*s->rows)) ||
	    array_grow(&h->rows, h->nrows, &h->rows_cap, sizeof(*h->rows))) {
		dvm_sim_fail(s, "not enough memory");
		return;
	}
	h->rows[h->nrows++] = (uint32_t)s->nrows;
	s->rows[s->nrows++] = (struct dvm_row){ *t, h->number, NAN, NAN, NAN, NAN };
}

/* The tasks of the next requests, and the head for each. */
struct batch {
	struct workload_task *tasks;
	struct share_task *shares;
	size_t *to;
	size_t count;
};

static void batch_free(struct batch *b)
{
	free(b->tasks);
	free(b->shares);
	free(b->to);
}

/* 0, or -1 when there is no memory. */
static int draw_batch(struct dvm_sim *s, struct batch *b)
{
	uint64_t max = s->scenario->dvm.batch;

	*b = (struct batch){
		.tasks = calloc(max, sizeof(*b->tasks)),
		.shares = calloc(max, sizeof(*b->shares)),
		.to = calloc(max, sizeof(*b->to)),
	};
	if (!b->tasks || !b->shares || !b->to)
		return -1;
	while (b->count < max && workload_next(&s->workload, &b->tasks[b->count])) {
		const struct workload_task *t = &b->tasks[b->count];

		b->shares[b->count++] = (struct share_task){
			.slots = (double)t->ranks * t->cores, .seconds = limit_of(t),
			.nodes = t->nodes, .member = SHARE_ANY,
		};
	}
	return share_out(s->members, s->nheads, b->shares, b->count, b->to);
}

/* The head's share of a batch is one request; nothing is sent when it has none. */
static void send_request(struct dvm_sim *s, struct sim_head *h)
{
	dvm_sim_send(s, s->now + s->scenario->dvm.latency, EVENT_DVM_TO_HEAD,
		     dvm_frame_new(s, h->number, DVM_FROM_CLIENT, s->text.data, s->text.len));
}

/*
 * The head's share of a batch is one request. Nothing is sent when it has none, unless the
 * head must know that a submit of several requests goes on, or is complete.
 */
static void submit_to(struct dvm_sim *s, struct sim_head *h, const struct batch *b, bool more)
{
	uint64_t n = 0;

	buf_clear(&s->text);
	(void)buf_printf(&s->text, "{\"op\":\"submit\",\"profile\":{\"id\":\"p\",\"cwd\":\"/\",\"env\":{}},\"tasks\":[");
	for (size_t i = 0; i < b->count; i++)
		if (b->to[i] == h->number) {
			put_task(s, &b->tasks[i], !n++);
			add_row(s, h, &b->tasks[i]);
		}
	(void)buf_printf(&s->text, "],\"more\":%s}", more ? "true" : "false");
	if (!n && !more && !s->incomplete)
		return;
	s->submitted += n;
	h->submitted += n;
	s->asked++;
	h->asked = true;
	send_request(s, h);
}

/* True: another request follows those of `submitted` tasks at once. */
static bool has_room(const struct dvm_sim *s, uint64_t submitted)
{
	return s->workload.all && submitted - s->ended + s->scenario->dvm.batch <=
					  s->scenario->dvm.max_waiting;
}

/* As much as may wait, when the requests before have been answered. */
static void submit_more(struct dvm_sim *s)
{
	struct batch b;
	bool more;

	if (s->asked || !has_room(s, s->submitted))
		return;
	if (draw_batch(s, &b))
		dvm_sim_fail(s, "not enough memory");
	more = has_room(s, s->submitted + b.count);
	for (uint32_t i = 0; !s->error[0] && i < s->nheads; i++)
		submit_to(s, &s->heads[i], &b, more);
	s->incomplete = more;
	batch_free(&b);
}

/* ---- heads ---- */

static int make_members(struct dvm_sim *s)
{
	s->members = calloc(s->nheads, sizeof(*s->members));
	if (!s->members)
		return dvm_sim_fail(s, "not enough memory");
	for (uint32_t i = 0; i < s->nheads; i++)
		s->members[i] = (struct share_member){
			.up = !s->heads[i].given_up, .nodes = s->heads[i].nodes,
			.slots = (double)s->heads[i].nodes * (double)s->scenario->dvm.slots,
		};
	return 0;
}

/* No head is left to take the rest of the workload. */
static void end_workload(struct dvm_sim *s)
{
	for (uint32_t i = 0; i < s->nheads; i++)
		if (!s->heads[i].given_up)
			return;
	s->unsubmitted = s->workload.all;
	s->workload.all = 0;
}

/* All heads are there, or will never be. */
static void begin(struct dvm_sim *s)
{
	if (s->awaited || s->begun)
		return;
	s->begun = true;
	s->up_at = s->begin_at = s->now;
	sim_heads_traffic(s, &s->before);
	if (!make_members(s))
		submit_more(s);
}

static void note_heard(struct dvm_sim *s, struct sim_head *h)
{
	s->awaited -= !h->heard;
	h->heard = true;
	begin(s);
}

void sim_client_ready(struct dvm_sim *s, uint32_t head)
{
	struct sim_head *h = &s->heads[head];

	if (h->heard && h->head) { /* it follows another one: what has become of the tasks? */
		buf_clear(&s->text);
		(void)buf_printf(&s->text, "{\"op\":\"wait\",\"unwaited\":true}");
		send_request(s, h);
	}
	note_heard(s, h);
}

void sim_client_give_up(struct dvm_sim *s, struct sim_head *h)
{
	h->given_up = true;
	s->lost += h->submitted - h->ended;
	s->ended += h->submitted - h->ended;
	h->ended = h->submitted;
	s->asked -= h->asked;
	h->asked = false;
	if (s->members)
		s->members[h->number].up = false;
	end_workload(s);
	note_heard(s, h);
	submit_more(s);
}

/* ---- answers ---- */

/* Tasks that the scenario cannot have. */
static void refused(struct dvm_sim *s, json_t *event)
{
	json_t *first = json_array_get(json_object_get(event, "refused"), 0);

	if (first)
		dvm_sim_fail(s, "a task of the workload is refused: %s: %s",
			     json_string_value(json_object_get(first, "key")),
			     json_string_value(json_object_get(first, "why")));
}

static double time_at(const struct dvm_end *e, size_t i)
{
	return e->t[i] - (double)dvm_sim_time(0).wall_ns / 1e9;
}

static void note_row(struct dvm_sim *s, struct sim_head *h, size_t i, const struct dvm_end *e)
{
	if (i < h->nrows) {
		struct dvm_row *r = &s->rows[h->rows[i]];

		r->submitted = time_at(e, 0);
		r->placed = time_at(e, 1);
		r->started = time_at(e, 2);
		r->ended = time_at(e, 3);
	}
}

/* True: the end of the head's task is new. */
static bool is_new(struct dvm_sim *s, struct sim_head *h, size_t i)
{
	uint8_t bit = (uint8_t)(1 << i % 8);
	size_t had = h->bits_cap;

	if (i / 8 >= h->bits_cap) {
		size_t cap = 2 * (i / 8) + 64;
		uint8_t *bits = realloc(h->have_ended, cap);

		if (!bits) {
			dvm_sim_fail(s, "not enough memory");
			return false;
		}
		memset(bits + had, 0, cap - had);
		h->have_ended = bits;
		h->bits_cap = cap;
	}
	if (h->have_ended[i / 8] & bit)
		return false;
	h->have_ended[i / 8] |= bit;
	return true;
}

/* A task that failed before its start has none. */
static void note_times(struct dvm_sim *s, const struct dvm_end *e)
{
	if (time_at(e, 2) < 0)
		return;
	if (array_grow(&s->starts, s->nstarts, &s->starts_cap, sizeof(*s->starts))) {
		dvm_sim_fail(s, "not enough memory");
		return;
	}
	s->starts[s->nstarts++] = (float)(e->t[2] - e->t[1]);
}

static void note_end(struct dvm_sim *s, struct sim_head *h, const struct dvm_end *e)
{
	size_t i = (size_t)(e->id - 1) / s->nheads;

	if (h->given_up || !is_new(s, h, i))
		return;
	s->ended++;
	h->ended++;
	s->failed += e->code != 0;
	s->again += e->instance > 0;
	note_times(s, e);
	if (s->want_rows)
		note_row(s, h, i, e);
}

static void note_answer(struct dvm_sim *s, struct sim_head *h)
{
	s->asked -= h->asked;
	h->asked = false;
}

static void take_event(struct dvm_sim *s, struct sim_head *h, json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "ev"));

	if (!name)
		return;
	if (!strcmp(name, "submitted")) {
		note_answer(s, h);
		refused(s, event);
	} else if (!strcmp(name, "error")) {
		dvm_sim_fail(s, "the head refuses a request: %s",
			     json_string_value(json_object_get(event, "why")));
	}
}

/* False: the line is another event. */
static bool take_ends(struct dvm_sim *s, struct sim_head *h, const char *line)
{
	struct dvm_ends ends;
	struct dvm_end end;

	if (!dvm_ends_begin(&ends, line))
		return false;
	while (dvm_ends_next(&ends, &end))
		note_end(s, h, &end);
	if (strcmp(ends.at, "]}\n") != 0)
		dvm_sim_fail(s, "the client cannot read an event: %.80s", ends.at);
	return true;
}

void sim_client_take(struct dvm_sim *s, struct dvm_frame *f)
{
	struct sim_head *h = &s->heads[f->to];

	if (!take_ends(s, h, f->data)) {
		json_t *event = json_loadb(f->data, f->len, 0, NULL);

		take_event(s, h, event);
		json_decref(event);
	}
	submit_more(s);
	free(f);
}
