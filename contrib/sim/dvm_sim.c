/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulated DVMs: making them, and the loop. */
#include "dvm_sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_S 1000000000 /* seconds since 1970, of simulated time 0 */
#define LINE_MAX_BYTES ((size_t)64 << 20)

int dvm_sim_fail(struct dvm_sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->error[0])
		return -1;
	va_start(ap, fmt);
	vsnprintf(s->error, sizeof(s->error), fmt, ap);
	va_end(ap);
	return -1;
}

struct dvm_time dvm_sim_time(sim_time at)
{
	return (struct dvm_time){
		(uint64_t)BEGIN_S * 1000000000 + (uint64_t)(at / SIM_NS),
		1000 + (uint64_t)(at / SIM_MS),
	};
}

/* ---- messages ---- */

struct dvm_frame *dvm_frame_new(struct dvm_sim *s, uint32_t to, uint32_t from,
				const void *data, size_t len)
{
	struct dvm_frame *f = malloc(sizeof(*f) + len + 1);

	if (!f) {
		dvm_sim_fail(s, "not enough memory");
		return NULL;
	}
	*f = (struct dvm_frame){ .to = to, .from = from, .len = len };
	if (len)
		memcpy(f->data, data, len);
	f->data[len] = '\0';
	return f;
}

void dvm_frames_add(struct dvm_frames *list, struct dvm_frame *f)
{
	if (!f)
		return;
	f->next = NULL;
	if (list->first)
		list->last->next = f;
	else
		list->first = f;
	list->last = f;
}

struct dvm_frame *dvm_frames_take(struct dvm_frames *list)
{
	struct dvm_frame *f = list->first;

	if (f)
		list->first = f->next;
	return f;
}

static void add_event(struct dvm_sim *s, struct event e)
{
	if (!events_add(&s->events, e))
		dvm_sim_fail(s, "not enough memory");
}

void dvm_sim_add(struct dvm_sim *s, sim_time at, enum event_type type, uint32_t a)
{
	add_event(s, (struct event){ .at = at, .type = type, .a = a });
}

static uint32_t life_of(const struct dvm_sim *s, enum event_type type, uint32_t to)
{
	return type == EVENT_DVM_TO_NODE || type == EVENT_DVM_STARTED ? s->nodes[to].life :
									s->heads[to].life;
}

void dvm_sim_send(struct dvm_sim *s, sim_time at, enum event_type type,
		  struct dvm_frame *f)
{
	if (!f)
		return;
	f->life = life_of(s, type, f->to);
	add_event(s, (struct event){ .at = at, .type = type, .frame = f });
}

/* ---- processors ---- */

/* The core that is free first. */
static sim_time *first_core(const struct dvm_sim *s, sim_time *cores)
{
	sim_time *core = cores;

	for (uint64_t i = 1; i < s->scenario->dvm.cores; i++)
		if (cores[i] < *core)
			core = &cores[i];
	return core;
}

sim_time dvm_sim_core_free(const struct dvm_sim *s)
{
	sim_time at = s->urgent_free ? *first_core(s, s->urgent_free) : 0;

	return at > s->now ? at : s->now;
}

/* The end of the work. Others may use the core until `from`. */
static sim_time use_core(struct dvm_sim *s, sim_time *core, sim_time from, sim_time cost)
{
	sim_time begin;

	if (*core < s->now)
		*core = s->now;
	begin = *core > from ? *core : from;
	*core += cost;
	return begin + cost;
}

/*
 * A head or daemon that wakes up waits for a share of the work of processes that was there
 * before. first: the end if it waits for none; last: if it waits for all.
 */
static sim_time woken(const struct dvm_sim *s, sim_time first, sim_time last)
{
	sim_time more = last > first ? last - first : 0;

	return first + more / 100 * (sim_time)s->scenario->dvm.behind;
}

sim_time dvm_sim_spend(struct dvm_sim *s, sim_time from, sim_time cost, bool urgent)
{
	sim_time end;

	if (!s->core_free || !cost)
		return from + cost;
	end = use_core(s, first_core(s, s->core_free), from, cost);
	return urgent ? woken(s, use_core(s, first_core(s, s->urgent_free), from, cost), end) : end;
}

static int make_cores(struct dvm_sim *s)
{
	uint64_t n = s->scenario->dvm.cores;

	s->core_free = n ? calloc(n, sizeof(*s->core_free)) : NULL;
	s->urgent_free = n ? calloc(n, sizeof(*s->urgent_free)) : NULL;
	return !n || (s->core_free && s->urgent_free) ? 0 : dvm_sim_fail(s, "not enough memory");
}

/* ---- life ---- */

struct dvm_sim *dvm_sim_new(const struct scenario *scenario,
			    const struct workload_tasks *file, bool want_rows,
			    char error[SCENARIO_ERROR_MAX])
{
	struct dvm_sim *s = calloc(1, sizeof(*s));

	if (!s) {
		snprintf(error, SCENARIO_ERROR_MAX, "not enough memory");
		return NULL;
	}
	s->scenario = scenario;
	s->want_rows = want_rows;
	s->free_process = UINT32_MAX;
	buf_init(&s->text, LINE_MAX_BYTES);
	if (file->tasks)
		workload_begin_file(&s->workload, file);
	else
		workload_begin(&s->workload, scenario->workload, scenario->nworkload,
			       scenario->dvm.mixed, scenario->seed);
	if (make_cores(s) || sim_heads_make(s) || sim_nodes_make(s) || sim_faults_plan(s)) {
		snprintf(error, SCENARIO_ERROR_MAX, "%s", s->error);
		dvm_sim_free(s);
		return NULL;
	}
	return s;
}

static bool has_frame(const struct event *e)
{
	return e->type == EVENT_DVM_TO_HEAD || e->type == EVENT_DVM_TO_NODE ||
	       e->type == EVENT_DVM_TO_CLIENT || e->type == EVENT_DVM_STARTED;
}

void dvm_sim_free(struct dvm_sim *s)
{
	struct event e;

	if (!s)
		return;
	while (events_take(&s->events, &e))
		if (has_frame(&e))
			free(e.frame);
	events_free(&s->events);
	sim_heads_free(s);
	sim_nodes_free(s);
	buf_free(&s->text);
	free(s->members);
	free(s->core_free);
	free(s->urgent_free);
	free(s->processes);
	free(s->rows);
	free(s->starts);
	free(s);
}

/* ---- the loop ---- */

static void handle(struct dvm_sim *s, const struct event *e)
{
	switch (e->type) {
	case EVENT_DVM_TO_HEAD:
		sim_head_take(s, e->frame);
		break;
	case EVENT_DVM_TO_NODE:
		sim_node_take(s, e->frame);
		break;
	case EVENT_DVM_TO_CLIENT:
		sim_client_take(s, e->frame);
		break;
	case EVENT_DVM_STARTED:
		sim_node_started(s, e->frame);
		break;
	case EVENT_DVM_HEAD:
		sim_head_work(s, e->a);
		break;
	case EVENT_DVM_DUE:
		sim_head_due(s, e->a);
		break;
	case EVENT_DVM_READY:
		sim_client_ready(s, e->a);
		break;
	case EVENT_DVM_FAULT:
		sim_fault_happens(s, e->a);
		break;
	case EVENT_DVM_FOLLOWS:
		sim_head_follows(s, e->a);
		break;
	case EVENT_DVM_FLUSH:
		sim_tree_node_flush(s, e->a);
		break;
	case EVENT_DVM_TURN:
		sim_node_turn(s, e->a);
		break;
	case EVENT_DVM_EXIT:
		sim_process_exit(s, e->a);
		break;
	default:
		break;
	}
}

static bool is_over(const struct dvm_sim *s)
{
	return s->error[0] || (!s->awaited && !s->workload.all && !s->asked &&
			       s->ended == s->submitted);
}

int dvm_sim_run(struct dvm_sim *s)
{
	struct event e;

	while (!is_over(s) && events_take(&s->events, &e)) {
		s->now = e.at;
		s->handled++;
		handle(s, &e);
	}
	if (!is_over(s))
		dvm_sim_fail(s, "nothing happens any more, and %llu of %llu tasks have ended",
			     (unsigned long long)s->ended, (unsigned long long)s->submitted);
	s->end_at = s->now;
	return s->error[0] ? -1 : 0;
}
