/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process of a head: libdvm's head, its connections to daemons and clients, and its
 * journal. What contrib/dvm/headd*.c does of it is here in short.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <utlist.h>

#include "store.h"

#define CALL_MS (10 * SECOND)    /* until a daemon that is called has not answered */
#define WITHIN_MS (120 * SECOND) /* until all daemons are there */
#define START_RETRY_MS (5 * SECOND)
#define AUDITOR UINT32_MAX       /* the client that is the world itself */

enum state { CALLS, RUNS, DEAD };
enum kind { KIND_NODE, KIND_ADOPTS, KIND_ENDS, KIND_CLIENT };

/* A connection of the head's. */
struct peer {
	struct head_process *head;
	enum kind kind;
	struct link *link;
	uint32_t position;     /* of a node */
	struct daemon *daemon;
	uint32_t number;       /* of a client */
	bool broken;
	struct peer *prev, *next;
};

struct head_process {
	struct world *w;
	uint32_t number;
	unsigned machine;
	enum state state;
	bool ready;
	struct dvm_head *head;
	struct store *store;
	bool changed;          /* the journal has: a turn is due */
	bool superseded;
	struct peer *peers;
	struct peer *nodes[DAEMONS_MAX]; /* by position */
	struct daemon *daemons[DAEMONS_MAX];
	uint32_t nold;         /* positions of daemons of an earlier head */
	uint32_t called, adopted;
	bool unheard;          /* some of them cannot be reached */
	bool gone[DAEMONS_MAX]; /* nobody listens there */
	uint32_t next_client;
	uint64_t turn_ms;
	bool leaves;
	json_int_t busy;       /* tasks that have not ended, as it has said last */
	uint64_t asked_ms;     /* when the auditor has asked what it knows */
};

static void turn(struct head_process *h);
static void tell_to_end(struct peer *p);
static void on_node_ended(void *arg, const char *why);
static void on_client_ended(void *arg, const char *why);

static struct dvm_time now_of(const struct head_process *h)
{
	return time_of(h->w, h->machine);
}

/* ---- the end ---- */

static void forget_head(struct head_process *h)
{
	h->state = DEAD;
	h->ready = false;
	dvm_head_destroy(h->head);
	h->head = NULL;
	store_free(h->store);
	h->store = NULL;
}

/*
 * When the last head has ended another follows, on any machine that is up. If it is
 * refused because an earlier one may live, its user says that it is to take over.
 */
static void on_next_head(struct world *w, void *arg, uint64_t take_over)
{
	unsigned machine = NODES + (unsigned)draw(w, HEADS);

	if (w->over || head_lives(w->heads[w->nheads - 1]))
		return;
	if (w->machines[machine].down)
		after(w, SECOND, on_next_head, NULL, take_over);
	else
		head_start(w, machine, take_over);
}

static void start_another(struct world *w, bool take_over)
{
	after(w, draw_between(w, 3 * SECOND, 30 * SECOND), on_next_head, NULL, take_over);
}

static void head_dies(struct head_process *h, void (*leave)(struct link *l, int end))
{
	struct peer *p;

	if (h->state == DEAD)
		return;
	forget_head(h);
	DL_FOREACH(h->peers, p) {
		if (p->link && leave)
			leave(p->link, 0);
		p->link = NULL;
	}
	start_another(h->w, false);
}

void head_kill(struct head_process *h)
{
	trace(h->w, "head %u is killed", h->number);
	head_dies(h, link_reset);
}

void head_vanish(struct head_process *h)
{
	trace(h->w, "head %u is lost with its machine", h->number);
	head_dies(h, NULL);
}

static void head_fails(struct head_process *h, const char *why)
{
	static const struct dvm_msg stop = { .type = DVM_STOP, .stop.now = true };
	char room[16];
	struct peer *p;
	struct buf b;

	trace(h->w, "head %u ends: %s", h->number, why);
	buf_init_in(&b, room, sizeof(room));
	(void)dvm_msg_pack(&b, &stop);
	DL_FOREACH(h->peers, p)
		if (p->link && p->kind == KIND_NODE && (h->ready || p->position >= h->nold))
			link_send(p->link, 0, b.data, b.len);
	store_close(h->store);
	head_dies(h, link_close);
}

/* ---- operations of libdvm's head ---- */

static void on_broken(struct world *w, void *arg, uint64_t number)
{
	struct peer *p = arg;

	if (!p || !p->link)
		return;
	tell_to_end(p);
	link_close(p->link, 0);
	on_node_ended(p, "nothing was heard of it");
}

static void on_node_send(void *arg, uint32_t position, const void *data, size_t len)
{
	struct head_process *h = arg;

	if (h->nodes[position])
		link_send(h->nodes[position]->link, 0, data, len);
}

/* In a moment, as a link ends. */
static void on_node_break(void *arg, uint32_t position, const char *why)
{
	struct head_process *h = arg;

	if (!strcmp(why, "nothing was heard of it"))
		after(h->w, 0, on_broken, h->nodes[position], 0);
	else
		failed(h->w, "head %u cannot read what node %u says: %s", h->number, position,
		       why);
}

static struct peer *client_of(struct head_process *h, uint32_t number)
{
	struct peer *p;

	DL_FOREACH(h->peers, p)
		if (p->kind == KIND_CLIENT && p->link && p->number == number)
			return p;
	return NULL;
}

/* To the world itself: what the head knows, of which some has not ended. */
static void take_report(struct head_process *h, const char *line, size_t len)
{
	json_t *report = json_loadb(line, len, 0, NULL);

	h->busy = json_integer_value(json_object_get(report, "running")) +
		  json_integer_value(json_object_get(report, "queued"));
	if (json_is_array(json_object_get(report, "tasks")))
		promises_check_report(h->w, h->number, report, h->asked_ms);
	json_decref(report);
}

static void on_client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct head_process *h = arg;
	struct peer *p;

	if (client == AUDITOR) {
		take_report(h, line, len);
		return;
	}
	p = client_of(h, client);
	if (p)
		link_send(p->link, 0, line, len);
}

static void on_client_broken(struct world *w, void *arg, uint64_t number)
{
	struct peer *p = arg;

	link_close(p->link, 0);
	on_client_ended(p, "it does not read");
}

static void on_client_break(void *arg, uint32_t client)
{
	struct head_process *h = arg;
	struct peer *p = client_of(h, client);

	if (p)
		after(h->w, 0, on_client_broken, p, 0);
}

static int on_record(void *arg, const void *data, size_t len, enum durable_wait wait)
{
	struct head_process *h = arg;

	return store_record(h->store, data, len, wait);
}

static void on_end(void *arg)
{
	((struct head_process *)arg)->leaves = true;
}

static const struct dvm_head_ops head_ops = {
	.node_send = on_node_send, .node_break = on_node_break,
	.client_send = on_client_send, .client_break = on_client_break, .record = on_record, .end = on_end,
};

/* ---- its journal ---- */

static void on_superseded(void *arg)
{
	((struct head_process *)arg)->superseded = true;
}

static void on_journal_turn(struct world *w, void *arg, uint64_t number)
{
	struct head_process *h = arg;

	if (h->state == RUNS)
		turn(h);
}

/* Not from within what has called it. */
static void on_journal_changed(void *arg)
{
	struct head_process *h = arg;

	if (!h->changed)
		after(h->w, 0, on_journal_turn, h, 0);
	h->changed = true;
}

static const struct store_ops store_ops = {
	.changed = on_journal_changed, .superseded = on_superseded,
};

/* ---- turns ---- */

static void on_turn(struct world *w, void *arg, uint64_t number)
{
	struct head_process *h = arg;

	if (h->state == RUNS && h->turn_ms == w->ms)
		turn(h);
}

static void turn_at(struct head_process *h, uint64_t ms)
{
	uint64_t now = now_of(h).ms;

	if (ms == UINT64_MAX)
		return;
	ms = h->w->ms + (ms > now ? ms - now : 1);
	if (ms >= h->turn_ms)
		return;
	h->turn_ms = ms;
	after(h->w, ms - h->w->ms, on_turn, h, 0);
}

/* Does it know what was promised? It answers when what it says is safe. */
static void audit(struct head_process *h)
{
	static const char request[] = "{\"op\":\"ps\",\"ended\":true}";

	h->asked_ms = h->w->ms;
	dvm_head_client_opened(h->head, AUDITOR);
	dvm_head_client_input(h->head, AUDITOR, request, strlen(request), now_of(h));
}

static void get_ready(struct head_process *h)
{
	struct dvm_resumed found;

	int rc = store_begin(h->store, h->head, &found);

	if (rc) {
		promise_unreadable(h->w, rc);
		head_fails(h, strerror(-rc));
		return;
	}
	h->ready = true;
	h->w->published = h;
	trace(h->w, "head %u is ready: %llu tasks have ended, %llu wait, %llu again, %llu lost, %llu run",
	      h->number, (unsigned long long)found.ended, (unsigned long long)found.queued,
	      (unsigned long long)found.again, (unsigned long long)found.lost,
	      (unsigned long long)found.adopted);
	promises_check_damage(h->w, h->number);
	audit(h);
	h->w->nknown = dvm_head_registered(h->head);
	for (uint32_t i = 0; i < h->w->nknown; i++)
		h->w->known[i] = h->daemons[i];
}

static void turn(struct head_process *h)
{
	h->turn_ms = NEVER;
	if (h->state == RUNS && !h->ready &&
	    dvm_head_registered(h->head) == dvm_head_positions(h->head))
		get_ready(h);
	if (h->state != RUNS)
		return;
	do {
		h->changed = false;
		dvm_head_turn(h->head, now_of(h));
		if (h->ready)
			store_turn(h->store);
	} while (h->changed && !h->superseded);
	if (h->superseded) {
		head_fails(h, "another head has the journal");
	} else if (h->leaves) {
		trace(h->w, "head %u leaves", h->number);
		store_close(h->store);
		head_dies(h, link_close);
	} else {
		turn_at(h, dvm_head_deadline(h->head));
		turn_at(h, store_deadline(h->store));
	}
}

/* ---- peers ---- */

static struct peer *add_peer(struct head_process *h, enum kind kind)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->head = h;
	p->kind = kind;
	DL_APPEND(h->peers, p);
	return p;
}

static void tell_to_end(struct peer *p)
{
	static const struct dvm_msg stop = { .type = DVM_STOP, .stop.now = true };
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	(void)dvm_msg_pack(&b, &stop);
	link_send(p->link, 0, b.data, b.len);
}

static void call(struct head_process *h, uint32_t position, enum kind kind);

/* What else it says is for the last head. */
static void take_gone(struct peer *p, const void *data)
{
	struct head_process *h = p->head;

	if (*(const uint8_t *)data != DVM_GONE)
		return;
	dvm_head_node_gone(h->head, p->position, now_of(h));
	turn(h);
}

static void on_node_input(void *arg, const void *data, size_t len)
{
	struct peer *p = arg;
	struct head_process *h = p->head;

	if (h->state != RUNS || !p->link)
		return; /* it is for the last head */
	if (p->kind == KIND_ENDS) {
		take_gone(p, data);
		return;
	}
	dvm_head_node_input(h->head, p->position, data, len, now_of(h));
	turn(h);
}

static void call_again(struct peer *p);

static void on_node_ended(void *arg, const char *why)
{
	struct peer *p = arg;
	struct head_process *h = p->head;

	p->link = NULL;
	if (h->state == RUNS && p->kind == KIND_ENDS)
		call_again(p);
	if (h->state == DEAD || h->nodes[p->position] != p)
		return;
	h->nodes[p->position] = NULL;
	if (h->state == CALLS) {
		h->adopted--;
		return;
	}
	trace(h->w, "head %u: node %u is lost: %s", h->number, p->position, why);
	if (p->position < h->nold)
		dvm_head_node_absent(h->head, p->position, daemon_name(p->daemon));
	dvm_head_node_lost(h->head, p->position, why, now_of(h));
	if (h->w->plan.orphan && h->ready && dvm_head_node_may_run(h->head, p->position))
		call(h, p->position, KIND_ENDS);
	turn(h);
}

static struct link_end node_end(struct peer *p)
{
	return (struct link_end){ p->head->machine, on_node_input, on_node_ended, p };
}

struct link *head_take_daemon(struct head_process *h, struct daemon *d, uint32_t position)
{
	const struct link_end its = daemon_end(d);
	struct link_end mine;
	struct peer *p;

	if (position >= dvm_head_positions(h->head) || h->nodes[position])
		return NULL;
	p = add_peer(h, KIND_NODE);
	p->position = position;
	p->daemon = d;
	mine = node_end(p);
	p->link = link_new(h->w, &mine, &its);
	h->nodes[position] = p;
	return p->link;
}

/* ---- daemons that wait ---- */

static void begin(struct head_process *h);

static void answered(struct head_process *h)
{
	if (!--h->called)
		begin(h);
}

/* A daemon that was given up is called for as long as its ranks may run. */
static bool is_worth_it(const struct peer *p, uint64_t tries)
{
	const struct head_process *h = p->head;

	return p->kind == KIND_ENDS ? dvm_head_node_may_run(h->head, p->position) :
				      tries < CALL_MS / SECOND;
}

static void on_call(struct world *w, void *arg, uint64_t tries)
{
	struct peer *p = arg;
	struct head_process *h = p->head;
	bool reached = is_reachable(w, h->machine, daemon_machine(p->daemon));
	struct link_end mine, its;

	if (h->state == DEAD || p->link)
		return;
	if (!reached && is_worth_it(p, tries)) {
		after(w, SECOND, on_call, p, tries + 1);
		return;
	}
	if (reached && daemon_takes_head(p->daemon)) {
		mine = node_end(p);
		its = daemon_end(p->daemon);
		p->link = link_new(w, &mine, &its);
		daemon_join(p->daemon, p->link);
		if (p->kind == KIND_ENDS) {
			tell_to_end(p); /* it says GONE, and ends */
			return;
		}
		h->nodes[p->position] = p;
		h->adopted++;
	}
	if (p->kind != KIND_ADOPTS)
		return;
	h->gone[p->position] = reached && !daemon_lives(p->daemon);
	h->unheard = h->unheard || (!p->link && !h->gone[p->position]);
	answered(h);
}

static void call_again(struct peer *p)
{
	if (is_worth_it(p, 0))
		after(p->head->w, SECOND, on_call, p, 0);
}

static void call(struct head_process *h, uint32_t position, enum kind kind)
{
	struct peer *p = add_peer(h, kind);

	p->position = position;
	p->daemon = h->daemons[position];
	after(h->w, draw(h->w, 4 * h->w->plan.latency_ms + 1), on_call, p, 0);
}

/* ---- beginning ---- */

/* A daemon ends after its ranks, and no other starts before (contrib/dvm/claim.h). */
static bool is_free(const struct head_process *h, unsigned machine)
{
	const struct world *w = h->w;

	for (uint32_t i = 0; i < w->nranks; i++)
		if (w->ranks[i].runs && w->ranks[i].machine == machine)
			return false;
	for (uint32_t i = h->nold; i < DAEMONS_MAX; i++) /* a step of Slurm has a node once */
		if (h->daemons[i] && daemon_machine(h->daemons[i]) == machine)
			return false;
	return is_reachable(w, h->machine, machine) && !daemon_on(h->w, machine);
}

/* As Slurm does it: on any node where none is. */
static void on_start_daemon(struct world *w, void *arg, uint64_t position)
{
	struct head_process *h = arg;
	unsigned first = (unsigned)draw(w, NODES);

	if (h->state != RUNS)
		return;
	for (unsigned i = 0; i < NODES; i++) {
		unsigned machine = (first + i) % NODES;

		if (!is_free(h, machine))
			continue;
		h->daemons[position] = daemon_start(w, machine, h, (uint32_t)position);
		return;
	}
	after(w, START_RETRY_MS, on_start_daemon, h, position);
}

static void on_late(struct world *w, void *arg, uint64_t number)
{
	struct head_process *h = arg;

	if (h->state == RUNS && !h->ready)
		head_fails(h, "not all nodes have come");
}

static void be_without(struct head_process *h, uint32_t position)
{
	dvm_head_node_absent(h->head, position, daemon_name(h->daemons[position]));
	if (h->gone[position])
		dvm_head_node_gone(h->head, position, now_of(h));
}

static void adopt(struct head_process *h)
{
	static const struct dvm_msg msg = { .type = DVM_ADOPT };
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	(void)dvm_msg_pack(&b, &msg);
	for (uint32_t i = 0; i < h->nold; i++)
		if (h->nodes[i])
			link_send(h->nodes[i]->link, 0, b.data, b.len);
		else
			be_without(h, i);
}

/* All daemons that were called have answered, or will not. */
static void begin(struct head_process *h)
{
	struct dvm_head_options options = {
		.name = "world", .build = "world", .grace_ms = 2000, .max_waiting = 1000,
		.queue = { .window = 100, .patience_ms = 60000 },
		.keeps = h->w->plan.orphan, .once = h->w->plan.once, .fast = h->w->plan.fast,
		.lease_ms = h->w->plan.lease_ms + h->w->plan.grace_ms,
		.away_ms = h->w->plan.away_ms,
	};
	uint32_t more;

	options.unheard = h->unheard;
	if (!h->adopted) {
		h->nold = 0;
		memset(h->daemons, 0, sizeof(h->daemons));
	}
	more = h->adopted < NODES ? NODES - h->adopted : 0;
	options.nodes = h->nold + more;
	options.adopts = h->adopted;
	if (options.nodes > DAEMONS_MAX || dvm_head_create(&h->head, &options, &head_ops, h, NULL))
		abort();
	h->state = RUNS;
	trace(h->w, "head %u begins with %u daemons, %u are to come", h->number, h->adopted, more);
	adopt(h);
	for (uint32_t i = 0; i < more; i++)
		after(h->w, draw(h->w, SECOND), on_start_daemon, h, h->nold + i);
	after(h->w, WITHIN_MS, on_late, h, 0);
	turn(h);
}

static void call_daemons(struct head_process *h)
{
	struct world *w = h->w;

	if (w->plan.orphan)
		h->nold = w->nknown;
	memcpy(h->daemons, w->known, h->nold * sizeof(*h->daemons));
	h->called = h->nold + 1;
	for (uint32_t i = 0; i < h->nold; i++)
		call(h, i, KIND_ADOPTS);
	answered(h);
}

void head_start(struct world *w, unsigned machine, bool take_over)
{
	struct head_process *h;

	if (w->nheads == HEADS_MAX)
		abort();
	h = calloc(1, sizeof(*h));
	if (!h)
		abort();
	h->w = w;
	h->number = w->nheads;
	h->machine = machine;
	h->turn_ms = NEVER;
	w->heads[w->nheads++] = h;
	trace(w, "head %u starts on machine %u%s", h->number, machine,
	      take_over ? ", to take over" : "");
	if (store_open(&h->store, w, machine, h->number, take_over, &store_ops, h)) {
		forget_head(h);
		start_another(w, true);
		return;
	}
	call_daemons(h);
}

/* ---- clients ---- */

static void on_client_input(void *arg, const void *data, size_t len)
{
	struct peer *p = arg;
	struct head_process *h = p->head;

	if (h->state != RUNS || !p->link)
		return;
	dvm_head_client_input(h->head, p->number, data, len, now_of(h));
	turn(h);
}

static void on_client_ended(void *arg, const char *why)
{
	struct peer *p = arg;
	struct head_process *h = p->head;

	p->link = NULL;
	if (h->state != RUNS)
		return;
	dvm_head_client_closed(h->head, p->number, now_of(h));
	turn(h);
}

struct link *head_take_client(struct head_process *h, const struct link_end *its)
{
	struct peer *p = add_peer(h, KIND_CLIENT);
	const struct link_end mine = {
		h->machine, on_client_input, on_client_ended, p,
	};

	p->number = ++h->next_client;
	p->link = link_new(h->w, &mine, its);
	dvm_head_client_opened(h->head, p->number);
	return p->link;
}

/* ---- what others ask ---- */

struct head_process *head_now(struct world *w)
{
	for (uint32_t i = w->nheads; i > 0; i--)
		if (head_lives(w->heads[i - 1]))
			return w->heads[i - 1];
	return NULL;
}

bool head_lives(const struct head_process *h)
{
	return h->state != DEAD;
}

unsigned head_machine(const struct head_process *h)
{
	return h->machine;
}

uint32_t head_number(const struct head_process *h)
{
	return h->number;
}

bool head_serves(const struct head_process *h)
{
	return h->state == RUNS;
}

bool head_is_idle(struct head_process *h)
{
	static const char request[] = "{\"op\":\"status\"}";

	if (!head_takes_clients(h))
		return false;
	h->busy = 1;
	dvm_head_client_input(h->head, AUDITOR, request, strlen(request), now_of(h));
	return !h->busy;
}

bool head_has(const struct head_process *h, const struct daemon *d)
{
	for (uint32_t i = 0; h && h->state == RUNS && i < DAEMONS_MAX; i++)
		if (h->nodes[i] && h->nodes[i]->link && h->daemons[i] == d)
			return true;
	return false;
}

bool head_takes_clients(const struct head_process *h)
{
	return h->state == RUNS && h->ready;
}

void heads_free(struct world *w)
{
	struct peer *p, *next;

	for (uint32_t i = 0; i < w->nheads; i++) {
		struct head_process *h = w->heads[i];

		forget_head(h);
		DL_FOREACH_SAFE(h->peers, p, next)
			free(p);
		free(h);
	}
}
