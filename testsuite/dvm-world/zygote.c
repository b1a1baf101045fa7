/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node's fork server, which starts and reaps ranks. Ranks are numbers here. It speaks the
 * protocol of pmi2x-dvm-zygote (dvm_msg.h) in bytes, over a channel that keeps their order.
 * It may stand still: then it reads no order and reports no end. A machine that is full
 * starts nothing, or a process that cannot execute its program.
 */
#include "world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define CHANNEL_MS 4      /* of a message on the channel, at most */
#define UNREAD_MS SECOND  /* then the daemon signals ranks itself: direct_kill.c */
#define STUBBORN 8        /* one rank in this number ignores SIGTERM */
#define STILL_MS (40 * SECOND)
#define MESSAGE_MAX ((size_t)1 << 20)
#define PART_RANKS_MAX 16
#define IDLE_TRIES_MAX 40 /* starts in a row that failed while nothing ran */

struct message {
	struct message *next;
	size_t len;
	unsigned char data[];
};

struct profile {
	uint32_t number;
	struct profile *prev, *next;
};

/* As struct part of src/dvm/zygote/parts.c. */
struct part {
	uint32_t number, count;
	uint32_t left;          /* ranks that have not ended */
	int ends_by;            /* a signal that ends its ranks has come; 0: none */
	bool started[PART_RANKS_MAX];
	uint32_t ranks[PART_RANKS_MAX]; /* processes that have not been reaped; 0: none */
	struct part *prev, *next;
};

struct zygote {
	struct world *w;
	struct daemon *daemon;
	unsigned machine;
	bool dead;
	uint32_t idle_tries;
	uint64_t still_until;   /* reads and reports nothing until then */
	struct message *orders, *answers;
	struct profile *profiles;
	struct part *parts;
};

/* ---- the channel ---- */

static struct message *message_of(const void *data, size_t len)
{
	struct message *m = malloc(sizeof(*m) + len);

	if (!m)
		abort();
	m->len = len;
	memcpy(m->data, data, len);
	return m;
}

static void take_order(struct zygote *z, const struct dvm_msg *m);

/* Messages come in order: each event takes the first. False: none is left. */
static struct message *first_of(struct message **list)
{
	struct message *m = *list;

	if (m)
		LL_DELETE(*list, m);
	return m;
}

static void on_order(struct world *w, void *arg, uint64_t number)
{
	struct zygote *z = arg;
	struct message *m;
	struct dvm_msg order;
	struct cursor c;

	if (!z->dead && w->ms < z->still_until) {
		after(w, z->still_until - w->ms, on_order, z, 0);
		return;
	}
	m = first_of(&z->orders);
	cursor_init(&c, m->data, m->len);
	if (!z->dead && dvm_msg_unpack(&c, &order))
		failed(w, "%s: the zygote cannot read an order", daemon_name(z->daemon));
	else if (!z->dead)
		take_order(z, &order);
	free(m);
}

static void on_answer(struct world *w, void *arg, uint64_t number)
{
	struct zygote *z = arg;
	struct message *m = first_of(&z->answers);

	daemon_zygote_says(z->daemon, m->data, m->len);
	free(m);
}

static void put(struct zygote *z, struct message **list, const struct dvm_msg *m,
		event_fn arrives)
{
	struct message *bytes;
	struct buf b;

	buf_init(&b, MESSAGE_MAX);
	if (dvm_msg_pack(&b, m))
		abort();
	bytes = message_of(b.data, b.len);
	LL_APPEND(*list, bytes);
	after(z->w, draw(z->w, CHANNEL_MS), arrives, z, 0);
	buf_free(&b);
}

void zygote_order(struct zygote *z, const struct dvm_msg *m)
{
	put(z, &z->orders, m, on_order);
}

static void answer(struct zygote *z, const struct dvm_msg *m)
{
	put(z, &z->answers, m, on_answer);
}

/* ---- parts ---- */

static struct part *find(const struct zygote *z, uint32_t number)
{
	struct part *p;

	DL_SEARCH_SCALAR(z->parts, p, number, number);
	return p;
}

static struct part *open_part(struct zygote *z, uint32_t number, uint32_t count)
{
	struct part *p = calloc(1, sizeof(*p));

	if (!p || count > PART_RANKS_MAX)
		abort();
	p->number = number;
	p->count = p->left = count;
	DL_APPEND(z->parts, p);
	return p;
}

static void drop_part(struct zygote *z, struct part *p)
{
	DL_DELETE(z->parts, p);
	free(p);
}

static void take_give_up(struct zygote *z, uint32_t number)
{
	struct part *p = find(z, number);

	if (!p)
		return;
	p->left = 0;
	for (uint32_t i = 0; i < p->count; i++)
		p->left += p->ranks[i] != 0;
	if (!p->left)
		drop_part(z, p);
}

/* ---- ends of ranks ---- */

static void end_later(struct zygote *z, uint32_t process, uint64_t ms, int32_t status);

/* When the process stands still, it reaps later. */
static void on_reap(struct world *w, void *arg, uint64_t number)
{
	struct zygote *z = arg;
	const uint32_t process = (uint32_t)(number >> 32);
	const struct rank_process *r = &w->ranks[process - 1];
	struct part *p = find(z, r->part);
	struct dvm_msg m = {
		.type = DVM_EXITED,
		.exited = { .part = r->part, .slot = r->slot,
			    .status = (int32_t)(uint32_t)number, .lacks = r->lacks },
	};

	if (z->dead)
		return;
	if (w->ms < z->still_until) {
		after(w, z->still_until - w->ms, on_reap, z, number);
		return;
	}
	if (r->lacks || r->unstartable)
		m.exited.why = (struct dvm_bytes){ "cannot execute", 14 };
	p->ranks[r->slot] = 0;
	if (!--p->left)
		drop_part(z, p);
	answer(z, &m);
}

static void on_rank_ends(struct world *w, void *arg, uint64_t number)
{
	struct zygote *z = arg;
	struct rank_process *r = &w->ranks[(number >> 32) - 1];

	if (!r->runs)
		return;
	r->runs = false;
	trace(w, "rank %u of k%u ends on %s, %d", r->rank, r->task, daemon_name(r->daemon),
	      (int32_t)(uint32_t)number);
	on_reap(w, z, number);
}

static void end_later(struct zygote *z, uint32_t process, uint64_t ms, int32_t status)
{
	after(z->w, ms, on_rank_ends, z, (uint64_t)process << 32 | (uint32_t)status);
}

static uint64_t draw_duration(struct world *w)
{
	switch (draw(w, 4)) {
	case 0: return draw(w, 20);
	case 1: return draw(w, 3 * SECOND);
	case 2: return draw(w, 30 * SECOND);
	default: return draw(w, 200 * SECOND);
	}
}

void zygote_rank_done(struct zygote *z, uint32_t process)
{
	end_later(z, process, draw_duration(z->w), 0);
}

void zygote_kill_rank(struct zygote *z, uint32_t process, uint64_t ms)
{
	end_later(z, process, ms, SIGKILL);
}

static void signal_rank(struct zygote *z, uint32_t process, int number)
{
	struct rank_process *r = &z->w->ranks[process - 1];

	if (number == SIGKILL && !r->killed)
		end_later(z, process, draw(z->w, 50), SIGKILL);
	else if (number == SIGTERM && !draw_once_in(z->w, STUBBORN))
		end_later(z, process, draw(z->w, SECOND), SIGTERM);
	r->killed = r->killed || number == SIGKILL;
}

static void signal_part(struct zygote *z, uint32_t number, int signal)
{
	struct part *p = find(z, number);

	for (uint32_t i = 0; p && i < p->count; i++)
		if (p->ranks[i] && z->w->ranks[p->ranks[i] - 1].runs)
			signal_rank(z, p->ranks[i], signal);
}

static void take_kill(struct zygote *z, const struct dvm_kill *k)
{
	struct part *p = find(z, k->part);

	if (p && (k->number == SIGTERM || k->number == SIGKILL))
		p->ends_by = (int)k->number;
	signal_part(z, k->part, (int)k->number);
}

/* ---- starts ---- */

/* Draw whether a rank starts: 0 and its later status, or a negative errno of fork. */
static int draw_start(struct zygote *z, struct rank_process *r, int32_t *status)
{
	struct world *w = z->w;
	const bool full = machine_is_full(w, z->machine);

	*status = draw_once_in(w, 12) ? 3 << 8 : 0;
	if (full && (w->machines[z->machine].is_hard || !draw_once_in(w, 4)))
		return draw_lack(w);
	r->lacks = full && draw_once_in(w, 2);
	r->unstartable = !r->lacks && draw_once_in(w, 60);
	if (r->lacks || r->unstartable)
		*status = 126 << 8;
	return 0;
}

static bool runs_program(const struct rank_process *r)
{
	return !r->lacks && !r->unstartable;
}

/* A node on which nothing runs gives up soon: the tasks may run elsewhere. */
static void note_try(struct zygote *z, int error)
{
	if (!error || daemon_runs_any(z->daemon))
		z->idle_tries = 0;
	else if (++z->idle_tries > IDLE_TRIES_MAX)
		failed(z->w, "%s has tried %u starts in a row, and nothing runs there",
		       daemon_name(z->daemon), z->idle_tries);
}

static void run(struct zygote *z, const struct node_start *what, uint32_t process,
		int32_t status)
{
	struct world *w = z->w;
	struct rank_process *r = &w->ranks[process - 1];
	const uint64_t ms = runs_program(r) ? draw_duration(w) : 0;

	if (runs_program(r))
		promise_start(w, r);
	else
		w->tasks[r->task].hard |= r->unstartable;
	if (what->launch->output == DVM_OUTPUT_FORWARD && runs_program(r))
		output_rank_begins(w, z->daemon, what, process);
	else
		end_later(z, process, ms, status);
}

/* Its number, or a negative errno. */
static int64_t start_rank(struct zygote *z, const struct node_start *what, uint32_t slot)
{
	struct world *w = z->w;
	const struct dvm_launch *l = what->launch;
	const char *name = (const char *)l->argv.data;
	struct rank_process *r = &w->ranks[w->nranks];
	int32_t status;
	int error;

	if (w->nranks == RANKS_MAX)
		abort();
	*r = (struct rank_process){
		.task = task_of_name(name), .machine = z->machine, .daemon = z->daemon,
		.rank = l->first_rank + slot, .instance = l->instance, .part = what->part,
		.slot = slot, .runs = true,
	};
	error = draw_start(z, r, &status);
	trace(w, "rank %u of %s (task %llu.%u) %s on %s%s", r->rank, name,
	      (unsigned long long)l->task, r->instance, error ? strerror(-error) : "starts",
	      daemon_name(z->daemon), r->lacks ? ", and lacks something" : "");
	promise_id(w, r->task, l->task);
	note_try(z, error);
	if (error)
		return error;
	run(z, what, ++w->nranks, status);
	return w->nranks;
}

/* Ranks of a part start once, and none after a signal that ends the part. */
static struct part *part_to_start(struct zygote *z, const struct node_start *what)
{
	struct part *p = find(z, what->part);

	if (what->first && !p)
		failed(z->w, "%s: the rest of part %u starts, which is over",
		       daemon_name(z->daemon), what->part);
	if (p && p->ends_by)
		failed(z->w, "%s: ranks of part %u start after signal %d",
		       daemon_name(z->daemon), what->part, p->ends_by);
	return p ? p : open_part(z, what->part, what->launch->ranks_here);
}

static void start(struct zygote *z, const struct node_start *what)
{
	struct dvm_msg m = { .type = DVM_PROCESSES, .processes.part = what->part };
	uint64_t numbers[PART_RANKS_MAX];
	struct part *p = part_to_start(z, what);
	uint32_t count = 0;
	int64_t process = 0;

	for (uint32_t i = what->first; i < p->count; i++) {
		if (p->started[i])
			failed(z->w, "%s: rank %u of part %u starts twice",
			       daemon_name(z->daemon), i, what->part);
		process = start_rank(z, what, i);
		if (process < 0)
			break;
		p->started[i] = true;
		p->ranks[i] = (uint32_t)process;
		numbers[count++] = (uint64_t)process;
	}
	m.processes.error = process < 0 ? (int32_t)process : 0;
	m.processes.numbers = (struct dvm_bytes){ numbers, count * sizeof(*numbers) };
	answer(z, &m);
}

static struct profile *profile_of(const struct zygote *z, uint32_t number)
{
	struct profile *p;

	DL_SEARCH_SCALAR(z->profiles, p, number, number);
	return p;
}

/* The process that starts ranks stands still in some starts. */
static void take_exec(struct zygote *z, const struct dvm_exec *e)
{
	struct node_start what = { .part = e->part, .first = e->first };
	struct dvm_msg m;
	struct cursor c;

	cursor_init(&c, e->launch.data, e->launch.len);
	if (dvm_msg_unpack(&c, &m) || m.type != DVM_LAUNCH ||
	    e->first >= m.launch.ranks_here || !profile_of(z, e->profile)) {
		failed(z->w, "%s: the order to start part %u makes no sense",
		       daemon_name(z->daemon), e->part);
		return;
	}
	what.launch = &m.launch;
	start(z, &what);
	if (draw_once_in(z->w, 16))
		zygote_stand_still(z, draw(z->w, STILL_MS));
}

static void take_profile(struct zygote *z, const struct dvm_profile_msg *m)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->number = m->number;
	DL_APPEND(z->profiles, p);
}

static void take_forget(struct zygote *z, uint32_t number)
{
	struct profile *p = profile_of(z, number);

	if (!p)
		return;
	DL_DELETE(z->profiles, p);
	free(p);
}

static void take_order(struct zygote *z, const struct dvm_msg *m)
{
	switch (m->type) {
	case DVM_PROFILE: take_profile(z, &m->profile); break;
	case DVM_FORGET: take_forget(z, m->profile.number); break;
	case DVM_EXEC: take_exec(z, &m->exec); break;
	case DVM_GIVE_UP: take_give_up(z, m->give_up); break;
	case DVM_KILL: take_kill(z, &m->kill); break;
	default: failed(z->w, "%s: order %d is unknown", daemon_name(z->daemon), m->type);
	}
}

/* ---- faults ---- */

void zygote_stand_still(struct zygote *z, uint64_t ms)
{
	if (z->w->ms + ms > z->still_until)
		z->still_until = z->w->ms + ms;
}

static void on_unread(struct world *w, void *arg, uint64_t number)
{
	struct zygote *z = arg;

	if (!z->dead && w->ms < z->still_until)
		signal_part(z, (uint32_t)(number >> 32), (int)(uint32_t)number);
}

void zygote_kill_soon(struct zygote *z, uint32_t part, int number)
{
	after(z->w, UNREAD_MS, on_unread, z, (uint64_t)part << 32 | (uint32_t)number);
}

/* ---- life ---- */

struct zygote *zygote_start(struct world *w, struct daemon *d, unsigned machine,
			    const struct ledger_resources *has)
{
	struct zygote *z = calloc(1, sizeof(*z));

	if (!z)
		abort();
	z->w = w;
	z->daemon = d;
	z->machine = machine;
	answer(z, &(struct dvm_msg){ .type = DVM_RESOURCES, .resources = *has });
	return z;
}

void zygote_end(struct zygote *z)
{
	z->dead = true;
}

bool zygote_is_idle(const struct zygote *z)
{
	return !z->orders && !z->answers;
}

void zygote_check_left(const struct zygote *z)
{
	if (z->parts)
		failed(z->w, "%s: the zygote keeps part %u", daemon_name(z->daemon),
		       z->parts->number);
}

void zygote_free(struct zygote *z)
{
	struct message *m, *next;

	if (!z)
		return;
	while (z->parts)
		drop_part(z, z->parts);
	while (z->profiles)
		take_forget(z, z->profiles->number);
	LL_FOREACH_SAFE(z->orders, m, next)
		free(m);
	LL_FOREACH_SAFE(z->answers, m, next)
		free(m);
	free(z);
}
