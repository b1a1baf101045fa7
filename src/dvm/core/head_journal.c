/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head's journal (journal.h): what is written when. head_resume.c reads it.
 * Records gather in h->journal.out, and are given to the host before anybody is told of
 * what they say. While the host cannot write, nothing is placed and nobody is told.
 *
 * A position is a number of bytes of all records. Clients hear of submits and ends, and
 * nodes of DONE, when the host has said that the journal is safe up to there.
 */
#include "dvm/core/head_private.h"

#include <string.h>

#define OUT_MAX ((size_t)1 << 30) /* bytes of records that are not written */

/* ---- writing ---- */

void journal_init(struct dvm_head *h)
{
	buf_init(&h->journal.out, OUT_MAX);
}

void journal_free(struct dvm_head *h)
{
	buf_free(&h->journal.out);
}

static int put(struct dvm_head *h, const struct journal_record *r,
	       enum durable_wait wait)
{
	int rc;

	if (!h->journal.on)
		return 0;
	rc = journal_put(&h->journal.out, r);
	if (wait > h->journal.wait && !h->options.fast)
		h->journal.wait = wait;
	if (rc)
		log_error(h->log, "a record of the journal is lost: %s",
			  strerror(-rc));
	return rc;
}

/* Behind what has been put. */
static uint64_t position(const struct dvm_head *h)
{
	return h->journal.written + h->journal.out.len;
}

static int put_profile(struct dvm_head *h, struct head_profile *p)
{
	const struct journal_record r = {
		.type = JOURNAL_PROFILE,
		.profile = {
			.number = p->number,
			.id = { p->id, strlen(p->id) },
			.cwd = { p->cwd, strlen(p->cwd) },
			.env = { p->env.data, p->env.len },
			.limits = p->limits,
			.outputs = { p->outputs, p->outputs ? strlen(p->outputs) : 0 },
			.input = { p->input.data, p->input.len },
		},
	};
	int rc = p->recorded ? 0 : put(h, &r, DURABLE_NOW);

	if (!rc && !p->recorded)
		p->recorded = h->journal.request;
	return rc;
}

int journal_submit(struct dvm_head *h, const struct head_task *t,
		   const struct dvm_bytes *text)
{
	const struct journal_record r = {
		.type = JOURNAL_SUBMIT,
		.submit = {
			.task = t->id,
			.submitted_ns = t->submitted_ns,
			.profile = t->profile->number,
			.tied = t->tied || t->spawned,
			.line = t->line,
			.json = *text,
		},
	};
	int rc = h->journal.on ? put_profile(h, t->profile) : 0;

	return rc ? rc : put(h, &r, DURABLE_NOW);
}

static uint32_t slots_of(const struct ledger_placement *p)
{
	uint32_t slots = 0;

	for (uint32_t i = 0; i < p->count; i++)
		slots += cores_count(&p->parts[i].cores);
	return slots;
}

static uint32_t gpus_of(const struct ledger_placement *p)
{
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < p->count; i++)
		gpus += (uint32_t)__builtin_popcountll(p->parts[i].gpus);
	return gpus;
}

void journal_start(struct dvm_head *h, struct head_task *t)
{
	const struct journal_record r = {
		.type = JOURNAL_START,
		.start = { t->id, t->instance, t->retries, t->run->placed_ns,
			   slots_of(t->run->placement), gpus_of(t->run->placement) },
	};

	(void)put(h, &r, h->options.once ? DURABLE_NOW : DURABLE_LATER);
	t->run->start_at = position(h);
}

void journal_nodes(struct dvm_head *h, bool begins)
{
	struct journal_record r = {
		.type = JOURNAL_NODES,
		.nodes = { .since_ns = h->now.wall_ns, .begins = begins,
			   .stay = begins && h->options.adopts,
			   .simulated = begins && h->options.simulated,
			   .from_ns = begins ? h->options.began_ns : 0 },
	};

	for (uint32_t i = 0; i < h->options.nodes; i++) {
		if (h->nodes[i].lost)
			continue;
		r.nodes.nodes++;
		r.nodes.slots += h->nodes[i].has.cores;
		r.nodes.gpus += h->nodes[i].has.gpus;
	}
	(void)put(h, &r, DURABLE_LATER);
}

void journal_left(struct dvm_head *h)
{
	const struct journal_record r = {
		.type = JOURNAL_NODES,
		.nodes = { .since_ns = h->now.wall_ns, .left = true,
			   .from_ns = h->ending_ns },
	};

	if (!h->unheard_ms) /* ranks of an earlier head may still run */
		(void)put(h, &r, DURABLE_LATER);
}

void journal_cancel(struct dvm_head *h, const struct head_task *t)
{
	const struct journal_record r = {
		.type = JOURNAL_CANCEL, .cancelled = t->id,
	};

	(void)put(h, &r, DURABLE_LATER);
}

static struct dvm_bytes node_of_rank(const struct dvm_head *h, const struct head_task *t)
{
	const struct ledger_placement *where = task_run(t)->placement;

	for (uint32_t i = 0; where && i < where->count; i++) {
		const struct ledger_part *p = &where->parts[i];
		const char *name = head_node_name(h, p->node);

		if (t->rank - p->first_rank < p->ranks)
			return (struct dvm_bytes){ name, strlen(name) };
	}
	return (struct dvm_bytes){ 0 };
}

static void set_output(struct journal_end *r, const struct task_run *e)
{
	const char *unkept = e->files ? e->files->unkept : NULL;

	r->output = e->output_lost ? JOURNAL_OUTPUT_LOST :
		    e->out || e->err || e->files ? JOURNAL_OUTPUT : JOURNAL_NO_OUTPUT;
	r->out = (struct dvm_bytes){ e->out, e->out_len };
	r->err = (struct dvm_bytes){ e->err, e->err_len };
	if (e->files)
		r->files = (struct dvm_bytes){ e->files->names, e->files->len };
	r->unkept = (struct dvm_bytes){ unkept, unkept ? strlen(unkept) : 0 };
}

/* The end of a task that is lost with its client or head may be reported at once. */
void journal_end(struct dvm_head *h, struct head_task *t)
{
	const struct task_run *run = task_run(t);
	struct journal_record r = {
		.type = JOURNAL_END,
		.end = {
			.task = t->id,
			.instance = t->instance,
			.status = t->status,
			.rank = t->rank,
			.not_started = t->not_started,
			.too_long = t->too_long,
			.cancelled = t->cancelled,
			.started_ns = run->started_ns,
			.ended_ns = t->ended_ns,
			.user_us = run->user_us,
			.system_us = run->system_us,
			.peak_kib = run->peak_kib,
			.why = { t->why, t->why ? strlen(t->why) : 0 },
			.node = node_of_rank(h, t),
			.told_ns = h->now.wall_ns,
		},
	};

	set_output(&r.end, run);
	(void)put(h, &r, t->watcher && !t->tied ? DURABLE_SOON : DURABLE_LATER);
	if (!t->tied)
		t->end_at = h->journal.end_at = position(h);
}

void journal_waited(struct dvm_head *h, const struct journal_waited *w)
{
	const struct journal_record r = { .type = JOURNAL_WAITED, .waited = *w };

	(void)put(h, &r, DURABLE_LATER);
}

/* ---- giving it to the host ---- */

int journal_failure(const struct dvm_head *h)
{
	return h->journal.error ? h->journal.error : h->journal.unsafe;
}

static void note_failure(struct dvm_head *h, int error)
{
	const bool begins = error && !h->journal.error;

	if (begins)
		log_error(h->log, "the journal cannot be written: %s: tasks are neither accepted nor started until it can",
			  strerror(-error));
	else if (!error && h->journal.error)
		log_error(h->log, "the journal can be written again");
	h->journal.error = error;
	if (begins)
		clients_tell_unsafe(h);
}

static int flush(struct dvm_head *h)
{
	struct head_journal *j = &h->journal;
	int rc;

	/* Whether it can be written is seen when it is. */
	if (!j->out.len && j->wait == DURABLE_LATER)
		return 0;
	rc = h->ops.record(h->arg, j->out.data, j->out.len, j->wait);
	if (!rc) {
		j->written += j->out.len;
		j->wait = DURABLE_LATER;
		buf_clear(&j->out);
	}
	note_failure(h, rc);
	return rc;
}

bool journal_flush(struct dvm_head *h)
{
	return !flush(h);
}

bool journal_ready(struct dvm_head *h)
{
	return !h->journal.unsafe && (!h->journal.error || journal_flush(h));
}

/* ---- what is safe ---- */

bool journal_is_safe(const struct dvm_head *h, uint64_t position)
{
	return position <= (h->options.fast ? h->journal.written : h->journal.safe);
}

void journal_hurry(struct dvm_head *h)
{
	if (h->journal.on && h->journal.wait == DURABLE_LATER &&
	    !journal_is_safe(h, position(h)))
		h->journal.wait = DURABLE_SOON;
}

void dvm_head_journal_failed(struct dvm_head *h, int error)
{
	if (error)
		log_error(h->log, "the journal is not safe on its disk: %s: tasks are neither accepted nor started until it is",
			  strerror(-error));
	else
		log_error(h->log, "the journal is safe on its disk again");
	h->journal.unsafe = error;
	if (error)
		clients_tell_unsafe(h);
	h->retry = true;
}

/* ---- requests ---- */

int journal_begin_request(struct dvm_head *h)
{
	h->journal.request++;
	return h->journal.unsafe ? h->journal.unsafe : flush(h);
}

int journal_end_request(struct dvm_head *h, uint64_t *at)
{
	struct head_profile *p, *next;
	int rc = flush(h);

	*at = h->journal.written;
	if (!rc)
		return 0;
	h->journal.wait = DURABLE_LATER;
	buf_clear(&h->journal.out); /* it had this request's records only */
	HASH_ITER(hh, h->profiles, p, next)
		if (p->recorded == h->journal.request)
			p->recorded = 0;
	return rc;
}
