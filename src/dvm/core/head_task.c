/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task of the head:
 *
 *   QUEUED -- placed --> RUNNING -- all parts have ended --> ENDED
 *     ^                     |
 *     +--- a node is lost, or it failed and has tries left
 *
 * A task over several nodes of which one fails or is lost is ended on the others.
 */
#include "dvm/core/head_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* ---- lists ---- */

static struct head_task **list_of(struct dvm_head *h, enum task_state state,
				  size_t **count)
{
	switch (state) {
	case TASK_QUEUED:
		*count = &h->nqueued;
		return &h->queued;
	case TASK_RUNNING:
		*count = &h->nrunning;
		return &h->running;
	default:
		*count = &h->nended;
		return &h->ended;
	}
}

static void enlist(struct dvm_head *h, struct head_task *t, enum task_state state)
{
	size_t *count;
	struct head_task **list = list_of(h, state, &count);

	t->state = state;
	DL_APPEND(*list, t);
	++*count;
}

static void move(struct dvm_head *h, struct head_task *t, enum task_state state)
{
	size_t *count;
	struct head_task **list = list_of(h, t->state, &count);

	DL_DELETE(*list, t);
	--*count;
	enlist(h, t, state);
}

static struct head_task *task_of(struct queue_item *item)
{
	return (struct head_task *)((char *)item -
				    offsetof(struct head_task, item));
}

/* ---- life ---- */

void task_spec_free(struct task_spec *s)
{
	free(s->argv);
	free(s->input);
	free(s->path);
	free(s->error);
	free(s->name);
	free((void *)(uintptr_t)s->shape.placed);
	memset(s, 0, sizeof(*s));
}

static void result_free(struct task_result *r)
{
	free(r->why);
	free(r->out);
	free(r->err);
	memset(r, 0, sizeof(*r));
}

static void forget_watchers(struct head_task *t)
{
	struct watcher *w, *next;

	LL_FOREACH_SAFE(t->watchers, w, next)
		free(w);
	t->watchers = NULL;
}

static void task_free(struct dvm_head *h, struct head_task *t)
{
	size_t *count;
	struct head_task **list = list_of(h, t->state, &count);

	DL_DELETE(*list, t);
	--*count;
	HASH_DEL(h->tasks, t);
	task_spec_free(&t->spec);
	profile_release(h, t->profile);
	result_free(&t->result);
	forget_watchers(t);
	output_end(h, t);
	head_spawn_free(t->spawned);
	free(t->placement);
	free(t);
}

void tasks_free(struct dvm_head *h)
{
	struct head_task *t, *next;

	HASH_ITER(hh, h->tasks, t, next)
		task_free(h, t);
}

struct head_task *task_find(struct dvm_head *h, uint64_t id)
{
	struct head_task *t;

	HASH_FIND(hh, h->tasks, &id, sizeof(id), t);
	return t;
}

struct head_task *task_submit(struct dvm_head *h, struct task_spec *spec,
			      struct head_profile *profile, int *error)
{
	struct head_task *t = calloc(1, sizeof(*t));

	*error = t ? 0 : -ENOMEM;
	if (t)
		*error = queue_add(h->queue, &t->item, &spec->shape,
				   spec->priority, spec->limit_s, h->now.ms);
	if (t && spec->shape.placed)
		spec->shape.placed = NULL; /* the queue's, or freed */
	if (*error) {
		task_spec_free(spec);
		free(t);
		return NULL;
	}
	t->id = h->next_id;
	h->next_id = head_id_after(h, t->id);
	t->spec = *spec;
	t->profile = profile;
	profile->users++;
	t->submitted_ns = h->now.wall_ns;
	HASH_ADD(hh, h->tasks, id, sizeof(t->id), t);
	enlist(h, t, TASK_QUEUED);
	h->retry = true;
	return t;
}

/* ---- the end ---- */

static void forget_oldest(struct dvm_head *h)
{
	while (h->nended > HEAD_KEPT_MAX) {
		wait_task_forgotten(h, h->ended);
		task_free(h, h->ended);
	}
}

/* Lists show the command of a task that has ended: the first bytes are kept. */
static void cut_command(struct head_task *t)
{
	char *kept;

	if (t->spec.argv_len <= COMMAND_KEPT_MAX)
		return;
	t->spec.argv[COMMAND_KEPT_MAX - 1] = '\0';
	t->spec.argv_len = COMMAND_KEPT_MAX;
	t->argv_cut = true;
	kept = realloc(t->spec.argv, COMMAND_KEPT_MAX);
	if (kept)
		t->spec.argv = kept;
}

static void end_task(struct dvm_head *h, struct head_task *t)
{
	asks_end(h, t);
	queue_done(h->queue, &t->item);
	t->ended_ns = t->ended_ns ? t->ended_ns : h->now.wall_ns;
	t->result.cancelled = t->cancelled;
	h->done++;
	if (t->result.status || t->cancelled)
		h->failed++;
	t->waited |= t->tied || t->spawned; /* others have nothing to do with it */
	move(h, t, TASK_ENDED);
	journal_end(h, t);
	report_ended(h, t);
	forget_watchers(t);
	cut_command(t);
	forget_oldest(h);
}

void task_set_why(struct head_task *t, const char *why)
{
	free(t->result.why);
	t->result.why = strdup(why);
}

void task_end_queued(struct dvm_head *h, struct head_task *t)
{
	if (!t->held)
		queue_remove(h->queue, &t->item);
	t->held = false;
	h->retry = true; /* others may have waited behind it */
	end_task(h, t);
}

void task_undo(struct dvm_head *h, struct head_task *t)
{
	queue_remove(h->queue, &t->item);
	queue_done(h->queue, &t->item);
	h->next_id = t->id;
	task_free(h, t);
}

/* It will not run: 127 as the shell says of what it cannot start. */
static void end_unstarted(struct dvm_head *h, struct head_task *t, const char *why)
{
	t->result.not_started = true;
	t->result.status = 127 << 8;
	if (!t->result.why)
		task_set_why(t, why);
	task_end_queued(h, t);
}

void tasks_fail_impossible(struct dvm_head *h)
{
	struct queue_item *item;

	if (h->now.ms < h->hopeless_ms || (h->journal.on && head_has_lost_all(h)))
		return;
	while ((item = queue_impossible(h->queue, h->ledger)))
		end_unstarted(h, task_of(item), "all nodes that could run the task are lost");
}

/* ---- starting ---- */

static void signal_parts(struct dvm_head *h, const struct head_task *t,
			 uint32_t number)
{
	const struct dvm_msg m = {
		.type = DVM_SIGNAL,
		.signal = { t->id, t->instance, number },
	};

	for (uint32_t i = 0; t->launched && i < t->placement->count; i++)
		head_queue_msg(h, t->placement->parts[i].node, &m);
}

/* The places of a task of several nodes; of too many none, and they have no PMI. */
static void pack_places(const struct dvm_head *h, const struct head_task *t,
			struct buf *b)
{
	const struct ledger_placement *where = t->placement;
	int rc = 0;

	for (uint32_t i = 0; !rc && where->count > 1 && i < where->count; i++) {
		const struct head_node *n = &h->nodes[where->parts[i].node];
		const struct dvm_place p = {
			where->parts[i].node, where->parts[i].ranks, n->address,
			{ n->name, strlen(n->name) },
		};

		rc = dvm_place_pack(b, &p);
	}
	if (rc)
		buf_clear(b);
}

/* Each of its ranks could be one more. */
static uint32_t universe(const struct dvm_head *h, const struct head_task *t)
{
	uint32_t each = t->spec.shape.cores ? t->spec.shape.cores : 1;
	uint32_t all = ledger_all_cores(h->ledger) / each;

	return all > t->spec.shape.ranks ? all : t->spec.shape.ranks;
}

static struct dvm_bytes spawned_about(const struct head_task *t)
{
	return t->spawned ? (struct dvm_bytes){ t->spawned->about, t->spawned->about_len } :
			    (struct dvm_bytes){ NULL, 0 };
}

static void launch_part(struct dvm_head *h, struct head_task *t, uint32_t i,
			const struct buf *places)
{
	const struct ledger_part *p = &t->placement->parts[i];
	const char *path = t->spec.path ? t->spec.path : "";
	struct dvm_msg m = {
		.type = DVM_LAUNCH,
		.launch = {
			.task = t->id,
			.instance = t->instance,
			.profile = t->profile->number,
			.ranks = t->spec.shape.ranks,
			.nodes = t->placement->count,
			.node = i,
			.first_rank = p->first_rank,
			.ranks_here = p->ranks,
			.cores = p->cores,
			.gpus = p->gpus,
			.limit_s = t->spec.limit_s,
			.grace_ms = h->options.grace_ms,
			.universe = universe(h, t),
			.pmi = t->spec.pmi,
			.keep = h->options.keeps,
			.output = t->spec.output,
			.argv = { t->spec.argv, t->spec.argv_len },
			.path = { path, strlen(path) + 1 },
			.error = { t->spec.error, t->spec.error ? strlen(t->spec.error) + 1 : 0 },
			.append = t->spec.append,
			.places = { places->data, places->len },
			.spawned = spawned_about(t),
			.input = { t->spec.input, p->first_rank ? 0 : t->spec.input_len },
		},
	};

	if (m.launch.output == DVM_OUTPUT_FORWARD)
		m.launch.window = output_begin(h, t, p->node);
	profile_send(h, t->profile, p->node);
	head_queue_msg(h, p->node, &m);
}

static void place(struct dvm_head *h, struct head_task *t)
{
	move(h, t, TASK_RUNNING);
	t->placed_ns = h->now.wall_ns;
	t->started_ns = 0;
	t->parts_left = t->placement->count;
	t->launched = false;
	journal_start(h, t);
}

void tasks_place(struct dvm_head *h)
{
	struct ledger_placement *placement;
	struct queue_item *item;

	if (!h->retry || h->options.paused || !head_is_ready(h))
		return;
	h->retry = false;
	while (!queue_place(h->queue, h->ledger, h->now.ms, &item, &placement)) {
		struct head_task *t = task_of(item);

		t->placement = placement;
		place(h, t);
	}
}

static void launch(struct dvm_head *h, struct head_task *t)
{
	struct buf places;

	buf_init(&places, DVM_PLACES_MAX);
	pack_places(h, t, &places);
	t->launched = true;
	for (uint32_t i = 0; i < t->placement->count; i++)
		launch_part(h, t, i, &places);
	buf_free(&places);
	if (t->cancelled || t->lost) /* since it was placed */
		signal_parts(h, t, 0);
}

/* They are the last of those that run, in the order of their starts. */
void tasks_launch(struct dvm_head *h)
{
	struct head_task *t = h->running ? h->running->prev : NULL;

	while (t && !t->launched && t != h->running && !t->prev->launched)
		t = t->prev;
	for (; t && !t->launched; t = t->next) {
		if (h->options.once && !journal_is_safe(h, t->start_at))
			break;
		launch(h, t);
	}
}

void task_started(struct dvm_head *h, const struct dvm_started *m)
{
	struct head_task *t = task_find(h, m->task);

	if (t && t->state == TASK_RUNNING && t->instance == m->instance &&
	    !t->started_ns)
		t->started_ns = h->now.wall_ns;
}

void task_output(struct dvm_head *h, uint32_t node, const struct dvm_output_msg *m)
{
	struct head_task *t = task_find(h, m->task);

	if (t && t->state == TASK_RUNNING)
		output_take(h, t, node, m);
}

void task_adopt(struct dvm_head *h, struct head_task *t,
		struct ledger_placement *placement, uint64_t started_ns)
{
	queue_remove(h->queue, &t->item);
	move(h, t, TASK_RUNNING);
	t->placement = placement;
	t->parts_left = placement->count;
	t->placed_ns = t->placed_ns ? t->placed_ns : started_ns;
	t->started_ns = started_ns;
	t->launched = true;
	journal_start(h, t);
	if (t->cancelled)
		signal_parts(h, t, 0);
}

void task_lose_rest(struct dvm_head *h, struct head_task *t, bool once)
{
	t->losses = once ? HEAD_INSTANCES_MAX : t->losses + 1;
	t->lost = true;
	t->result.status = SIGKILL;
	task_set_why(t, "the task was on nodes that were lost with the head");
	signal_parts(h, t, SIGKILL);
}

/* ---- ending ---- */

void task_signal(struct dvm_head *h, struct head_task *t, uint32_t number)
{
	if (t->state == TASK_RUNNING)
		signal_parts(h, t, number);
}

void task_cancel(struct dvm_head *h, struct head_task *t)
{
	if (t->state == TASK_ENDED || t->cancelled)
		return;
	t->cancelled = true;
	asks_cancel(h, t);
	if (t->state == TASK_RUNNING || t->held)
		journal_cancel(h, t);
	if (t->state == TASK_RUNNING) {
		signal_parts(h, t, 0);
	} else if (!t->held) {
		end_unstarted(h, t, "the task was cancelled before it started");
	}
}

void task_hold(struct dvm_head *h, struct head_task *t)
{
	t->held = true;
	queue_remove(h->queue, &t->item);
}

void task_end_lost(struct dvm_head *h, struct head_task *t, int32_t status, const char *why)
{
	t->result.status = status;
	task_set_why(t, why);
	task_end_queued(h, t);
}

/* One that is not run again still has the time of its start. */
static void release(struct dvm_head *h, struct head_task *t)
{
	if (t->result.why) {
		task_end_queued(h, t);
	} else if (t->cancelled) {
		task_end_lost(h, t, SIGTERM, "the task was cancelled, or its client was lost with the head");
	} else if (t->placed_ns) {
		task_end_lost(h, t, SIGKILL, "the task was running when the head was lost, and --once allows no second start");
	} else {
		t->held = false;
		queue_put_back(h->queue, &t->item);
		h->retry = true;
	}
}

/* Tasks that waited first come first: the last is put before all others first. */
bool tasks_release(struct dvm_head *h, bool cancelled)
{
	struct head_task *t = h->queued ? h->queued->prev : NULL, *before;
	bool any = false;

	for (; t; t = before) {
		before = t == h->queued ? NULL : t->prev;
		if (!t->held || (cancelled && !t->cancelled))
			continue;
		release(h, t);
		any = true;
	}
	tasks_fail_impossible(h);
	return any;
}

static void run_again(struct dvm_head *h, struct head_task *t)
{
	asks_end(h, t);
	t->instance++;
	t->lost = t->unstarted = false;
	t->placed_ns = t->started_ns = t->ended_ns = 0;
	result_free(&t->result);
	queue_put_back(h->queue, &t->item);
	move(h, t, TASK_QUEUED);
	if (h->unheard_ms)
		task_hold(h, t);
}

static bool has_tries(const struct dvm_head *h, const struct head_task *t)
{
	if (t->cancelled || t->spawned) /* who has spawned it does not hear of another */
		return false;
	if (t->lost)
		return (t->unstarted || !h->options.once) && t->losses < HEAD_INSTANCES_MAX;
	return t->result.status && !t->result.not_started &&
	       !t->result.too_long && t->spec.retries > 0;
}

/* Parts of it may run on a node that this head has never heard of. */
static void end_or_hold(struct dvm_head *h, struct head_task *t)
{
	if (!t->lost || !h->unheard_ms) {
		end_task(h, t);
		return;
	}
	move(h, t, TASK_QUEUED);
	t->held = true;
}

/* All its parts have. */
static void ended(struct dvm_head *h, struct head_task *t)
{
	ledger_release(h->ledger, queue_shape(&t->item), t->placement);
	output_end(h, t);
	adopt_done(h, t);
	h->retry = true;
	if (!has_tries(h, t)) {
		end_or_hold(h, t);
		return;
	}
	if (!t->lost)
		t->spec.retries--;
	free(t->placement);
	t->placement = NULL;
	run_again(h, t);
	tasks_fail_impossible(h);
}

static char *text_of(const struct dvm_bytes *b)
{
	return b->len ? strndup(b->data, b->len) : NULL;
}

static void *copy_of(const struct dvm_bytes *b)
{
	void *copy = b->len ? malloc(b->len) : NULL;

	return copy ? memcpy(copy, b->data, b->len) : NULL;
}

/* The task's part on the node, or NULL. */
static struct ledger_part *part_on(const struct head_task *t, uint32_t node)
{
	for (uint32_t i = 0; i < t->placement->count; i++)
		if (t->placement->parts[i].node == node)
			return &t->placement->parts[i];
	return NULL;
}

static void take_tails(struct task_result *r, const struct dvm_ended *m)
{
	free(r->out);
	free(r->err);
	r->out = copy_of(&m->out);
	r->out_len = r->out ? m->out.len : 0;
	r->err = copy_of(&m->err);
	r->err_len = r->err ? m->err.len : 0;
}

static void add_usage(struct head_task *t, const struct dvm_ended *m)
{
	struct task_result *r = &t->result;

	r->user_us += m->user_us;
	r->system_us += m->system_us;
	if (m->peak_kib > r->peak_kib)
		r->peak_kib = m->peak_kib;
	if (!t->started_ns || m->started_ns < t->started_ns)
		t->started_ns = m->started_ns;
	if (m->ended_ns > t->ended_ns)
		t->ended_ns = m->ended_ns;
}

/* The first part that failed by itself says how the task ended, and any why. */
static void take_result(struct head_task *t, const struct dvm_ended *m)
{
	struct task_result *r = &t->result;
	bool is_cause = r->told && m->status && !m->told;

	add_usage(t, m);
	if (!r->why || (is_cause && m->why.len)) {
		free(r->why);
		r->why = text_of(&m->why);
	}
	if ((r->status && !is_cause) || (!m->status && r->out))
		return;
	r->status = m->status;
	r->rank = m->rank;
	r->not_started = m->not_started;
	r->too_long = m->too_long;
	r->told = m->told;
	take_tails(r, m);
}

/* The node lacked something: the task runs again, and not there if nothing can. */
static void take_lack(struct dvm_head *h, struct head_task *t, uint32_t node,
		      const struct dvm_ended *m)
{
	char why[DVM_TEXT_MAX];

	snprintf(why, sizeof(why), "%.*s", (int)m->why.len, (const char *)m->why.data);
	if (m->lack == DVM_LACK_IDLE)
		head_drain_node(h, node, why);
	if (t->lost || t->cancelled)
		return;
	t->lost = true;
	t->unstarted = t->placement->count == 1 && !m->any_started;
	t->losses += !t->unstarted || m->lack == DVM_LACK_CHILD;
	if (t->parts_left > 1)
		signal_parts(h, t, 0);
}

void task_part_ended(struct dvm_head *h, uint32_t node, const struct dvm_ended *m)
{
	struct head_task *t = task_find(h, m->task);
	struct ledger_part *part;

	if (!t || t->state != TASK_RUNNING || t->instance != m->instance)
		return;
	part = part_on(t, node);
	if (!part || part->ended)
		return;
	part->ended = true;
	if (!t->lost)
		take_result(t, m);
	if (m->lack)
		take_lack(h, t, node, m);
	if (!--t->parts_left)
		ended(h, t);
	else if (m->status && !t->lost)
		signal_parts(h, t, 0); /* those of a part that failed at once */
}

void task_failing(struct dvm_head *h, const struct dvm_started *m)
{
	struct head_task *t = task_find(h, m->task);

	if (t && t->state == TASK_RUNNING && t->instance == m->instance &&
	    t->parts_left > 1)
		signal_parts(h, t, 0);
}

void task_failed(struct dvm_head *h, const struct dvm_failed *m)
{
	struct head_task *t = task_find(h, m->task);

	if (!t || t->state != TASK_RUNNING || t->instance != m->instance ||
	    t->lost || t->cancelled ||
	    (t->result.status && (t->result.why || !m->asked)))
		return;
	if (!t->result.status) {
		t->result.status = m->status;
		t->result.rank = m->rank;
	}
	free(t->result.why);
	t->result.why = text_of(&m->why);
	signal_parts(h, t, 0);
}

/* Ranks of it run on the node, as far as is known. NULL: they do not. */
static struct ledger_part *running_part(const struct head_task *t, uint32_t node)
{
	struct ledger_part *part = part_on(t, node);

	return part && !part->ended ? part : NULL;
}

bool tasks_lose_node(struct dvm_head *h, uint32_t node, const char *why)
{
	const struct ledger_part *part;
	char text[DVM_TEXT_MAX];
	struct head_task *t;
	bool any = false;

	snprintf(text, sizeof(text), "node %.200s was lost: %.600s",
		 head_node_name(h, node), why);
	DL_FOREACH(h->running, t) {
		part = running_part(t, node);
		if (!part)
			continue;
		any = true;
		t->losses += !t->lost;
		t->lost = true;
		t->result.status = SIGKILL;
		t->result.rank = part->first_rank;
		task_set_why(t, text);
		signal_parts(h, t, SIGKILL);
	}
	return any;
}

void tasks_leave_node(struct dvm_head *h, uint32_t node)
{
	struct ledger_part *part;
	struct head_task *t, *next;

	DL_FOREACH_SAFE(h->running, t, next) {
		part = running_part(t, node);
		if (!part)
			continue;
		part->ended = true;
		if (!--t->parts_left)
			ended(h, t);
	}
}

bool *tasks_end_on(const struct dvm_head *h)
{
	bool *on = calloc(h->options.nodes, sizeof(*on));
	const struct head_task *t;

	if (!on)
		return NULL;
	DL_FOREACH(h->running, t)
		for (uint32_t i = 0; (t->cancelled || h->stop_ms) && i < t->placement->count; i++)
			on[t->placement->parts[i].node] |= !t->placement->parts[i].ended;
	return on;
}

void tasks_move_away(struct dvm_head *h, uint32_t node)
{
	struct head_task *t, *next;

	DL_FOREACH_SAFE(h->running, t, next) {
		if (t->lost || !part_on(t, node))
			continue;
		t->lost = true;
		signal_parts(h, t, 0);
	}
}

/* ---- who wants to know ---- */

int task_watch(struct dvm_head *h, struct head_task *t, uint32_t client)
{
	struct watcher *w;

	if (t->state == TASK_ENDED) {
		report_ended_to(h, t, client);
		return 0;
	}
	LL_FOREACH(t->watchers, w)
		if (w->client == client)
			return 0;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->client = client;
	LL_PREPEND(t->watchers, w);
	return 0;
}

void tasks_lose_client(struct dvm_head *h, uint32_t client)
{
	struct head_task *t, *next;

	DL_FOREACH_SAFE(h->queued, t, next)
		if (t->tied == client)
			task_cancel(h, t);
	DL_FOREACH_SAFE(h->running, t, next)
		if (t->tied == client)
			task_cancel(h, t);
}
