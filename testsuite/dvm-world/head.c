/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process of a head: libdvm's head, its connections to daemons and clients, and its
 * journal. This is a short form of src/dvm/head.
 */
#include "head_private.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <utlist.h>

static void on_node_ended(void *arg, const char *why);
static void on_client_ended(void *arg, const char *why);

struct dvm_time head_now_of(const struct head_process *h)
{
	return time_of(h->w, h->machine);
}

/* ---- the end ---- */

void head_forget(struct head_process *h)
{
	h->state = DEAD;
	h->ready = false;
	head_tree_free(h);
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

void head_start_another(struct world *w, bool take_over)
{
	after(w, draw_between(w, 3 * SECOND, 30 * SECOND), on_next_head, NULL, take_over);
}

static void head_dies(struct head_process *h, void (*leave)(struct link *l, int end))
{
	struct peer *p;

	if (h->state == DEAD)
		return;
	head_forget(h);
	DL_FOREACH(h->peers, p) {
		if (p->link && leave)
			leave(p->link, 0);
		p->link = NULL;
	}
	head_start_another(h->w, false);
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

void head_fails(struct head_process *h, const char *why)
{
	static const struct dvm_msg stop = { .type = DVM_STOP, .stop.now = true };
	char room[16];
	struct peer *p;
	struct buf b;

	trace(h->w, "head %u ends: %s", h->number, why);
	buf_init_in(&b, room, sizeof(room));
	(void)dvm_msg_pack(&b, &stop);
	if (h->tree)
		head_tree_end_all(h);
	DL_FOREACH(h->peers, p)
		if (p->link && p->kind == KIND_NODE && !h->tree && (h->ready || p->position >= h->nold))
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
	head_tell_to_end(p);
	link_close(p->link, 0);
	on_node_ended(p, "no message from the daemon");
}

static void on_node_send(void *arg, uint32_t position, const void *data, size_t len)
{
	struct head_process *h = arg;

	if (h->tree)
		head_tree_send(h, position, data, len);
	else if (h->nodes[position])
		link_send(h->nodes[position]->link, 0, data, len);
}

/*
 * In a moment, as a link ends. When the disk has lost the start of a task, two nodes may
 * hold one part.
 */
static void on_node_break(void *arg, uint32_t position, const char *why)
{
	struct head_process *h = arg;

	if (strcmp(why, "no message from the daemon") && !h->w->damaged)
		failed(h->w, "head %u cannot read what node %u says: %s", h->number, position,
		       why);
	else if (h->tree)
		head_tree_end(h, position, why);
	else
		after(h->w, 0, on_broken, h->nodes[position], 0);
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
	const char *ev = json_string_value(json_object_get(report, "ev"));

	if (strcmp(ev, "ps") && strcmp(ev, "status")) {
		json_decref(report);
		return;
	}
	h->busy = json_integer_value(json_object_get(report, "running")) +
		  json_integer_value(json_object_get(report, "queued"));
	if (json_is_array(json_object_get(report, "tasks")))
		promises_check_report(h->w, h->number, report, h->asked_ms);
	json_decref(report);
}

static void take_reports(struct head_process *h, const char *lines, size_t len)
{
	const char *end = lines + len, *next;

	for (; lines < end; lines = next) {
		next = (const char *)memchr(lines, '\n', (size_t)(end - lines)) + 1;
		take_report(h, lines, (size_t)(next - lines));
	}
}

static void on_client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct head_process *h = arg;
	struct peer *p;

	if (client == AUDITOR) {
		take_reports(h, line, len);
		return;
	}
	p = client_of(h, client);
	if (p)
		link_send(p->link, 0, line, len);
}

static size_t on_client_unread(void *arg, uint32_t client)
{
	const struct peer *p = client_of(arg, client);

	return p ? link_unread(p->link, 0) : 0;
}

void head_client_reads(struct head_process *h)
{
	if (h->state == RUNS)
		head_turn(h);
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

const struct dvm_head_ops world_head_ops = {
	.node_send = on_node_send, .node_break = on_node_break,
	.format = &dvm_json, .client_send = on_client_send, .client_unread = on_client_unread, .client_break = on_client_break, .record = on_record, .end = on_end,
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
		head_turn(h);
}

/* Not from within what has called it. */
static void on_journal_changed(void *arg)
{
	struct head_process *h = arg;

	if (!h->changed)
		after(h->w, 0, on_journal_turn, h, 0);
	h->changed = true;
}

const struct store_ops world_store_ops = {
	.changed = on_journal_changed, .superseded = on_superseded,
};

/* ---- turns ---- */

static void on_turn(struct world *w, void *arg, uint64_t number)
{
	struct head_process *h = arg;

	if (h->state == RUNS && h->turn_ms == w->ms)
		head_turn(h);
}

static void turn_at(struct head_process *h, uint64_t ms)
{
	uint64_t now = head_now_of(h).ms;

	if (ms == UINT64_MAX)
		return;
	ms = h->w->ms + (ms > now ? ms - now : 1);
	if (ms >= h->turn_ms)
		return;
	h->turn_ms = ms;
	after(h->w, ms - h->w->ms, on_turn, h, 0);
}

/* The head knows all that was promised: it answers only what is safe. */
static void audit(struct head_process *h)
{
	static const char request[] = "{\"op\":\"ps\",\"ended\":true}";

	h->asked_ms = h->w->ms;
	dvm_head_client_opened(h->head, AUDITOR);
	dvm_json_request(h->head, AUDITOR, request, strlen(request), head_now_of(h));
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
	h->w->known_epoch = h->number;
}

bool head_has_node(const struct head_process *h, uint32_t position)
{
	return h->tree ? tree_head_has(h->tree, position) :
			 h->nodes[position] && h->nodes[position]->link;
}

static void note_alone(struct head_process *h)
{
	for (uint32_t i = 0; i < DAEMONS_MAX; i++)
		if (head_has_node(h, i)) {
			h->alone_ms = 0;
			return;
		}
	h->alone_ms = h->alone_ms ? h->alone_ms : h->w->ms;
}

void head_turn(struct head_process *h)
{
	h->turn_ms = NEVER;
	note_alone(h);
	if (h->state == RUNS && !h->ready &&
	    dvm_head_registered(h->head) == dvm_head_positions(h->head))
		get_ready(h);
	if (h->state != RUNS)
		return;
	if (h->tree)
		head_tree_turn(h);
	do {
		h->changed = false;
		dvm_head_turn(h->head, head_now_of(h));
		if (h->ready)
			store_turn(h->store);
		if (h->w->published == h) /* as head/orphans.c notes it */
			h->w->known_unheard = dvm_head_is_unheard(h->head);
	} while (h->changed && !h->superseded);
	if (h->tree)
		head_tree_flush(h);
	if (h->superseded) {
		head_fails(h, "another head has the journal");
	} else if (h->leaves) {
		trace(h->w, "head %u leaves", h->number);
		store_close(h->store);
		head_dies(h, link_close);
	} else {
		turn_at(h, dvm_head_deadline(h->head));
		turn_at(h, store_deadline(h->store));
		turn_at(h, head_tree_deadline(h));
	}
}

/* ---- peers ---- */

struct peer *head_add_peer(struct head_process *h, enum kind kind)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->head = h;
	p->kind = kind;
	DL_APPEND(h->peers, p);
	return p;
}

void head_tell_to_end(struct peer *p)
{
	static const struct dvm_msg stop = { .type = DVM_STOP, .stop.now = true };
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	(void)dvm_msg_pack(&b, &stop);
	link_send(p->link, 0, b.data, b.len);
}

/* All but GONE is for the last head. */
static void take_gone(struct peer *p, const void *data)
{
	struct head_process *h = p->head;

	if (*(const uint8_t *)data != DVM_GONE)
		return;
	dvm_head_node_gone(h->head, p->position, head_now_of(h));
	head_turn(h);
}

static void on_node_input(void *arg, const void *data, size_t len)
{
	struct peer *p = arg;
	struct head_process *h = p->head;

	if (h->state != RUNS || !p->link)
		return; /* meant for the last head */
	if (p->kind == KIND_ENDS) {
		take_gone(p, data);
		return;
	}
	if (h->tree)
		head_tree_frame(h, p->position, data, len);
	else
		dvm_head_node_input(h->head, p->position, data, len, head_now_of(h));
	head_turn(h);
}

static void on_node_ended(void *arg, const char *why)
{
	static const struct dvm_address nowhere;
	struct peer *p = arg;
	struct head_process *h = p->head;

	p->link = NULL;
	if (h->state == RUNS && p->kind == KIND_ENDS)
		head_call_again(p);
	if (h->state == DEAD || h->nodes[p->position] != p)
		return;
	h->nodes[p->position] = NULL;
	if (h->state == CALLS) {
		h->adopted--;
		h->unheard = true;
		return;
	}
	if (h->tree) {
		head_tree_link_lost(h, p->position, why);
		head_turn(h);
		return;
	}
	trace(h->w, "head %u: node %u is lost: %s", h->number, p->position, why);
	if (p->position < h->nold)
		dvm_head_node_absent(h->head, p->position, daemon_name(p->daemon), &nowhere);
	dvm_head_node_lost(h->head, p->position, why, head_now_of(h));
	head_call_to_end(h, p->position);
	head_turn(h);
}

void head_call_to_end(struct head_process *h, uint32_t position)
{
	if (h->w->plan.orphan && h->ready && dvm_head_node_may_run(h->head, position))
		head_call(h, position, KIND_ENDS);
}

struct link_end head_node_end(struct peer *p)
{
	return (struct link_end){ p->head->machine, on_node_input, on_node_ended, p };
}

/* The daemon has another link to this head. */
static void replace(struct peer *old)
{
	head_tree_link_lost(old->head, old->position, "the daemon has connected again");
	link_close(old->link, 0);
	old->link = NULL;
}

struct link *head_take_daemon(struct head_process *h, struct daemon *d, uint32_t position)
{
	const struct link_end its = daemon_end(d);
	struct link_end mine;
	struct peer *p;

	if (position >= dvm_head_positions(h->head) || (h->nodes[position] && !h->tree))
		return NULL;
	if (h->nodes[position])
		replace(h->nodes[position]);
	p = head_add_peer(h, KIND_NODE);
	p->position = position;
	p->daemon = d;
	mine = head_node_end(p);
	p->link = link_new(h->w, &mine, &its);
	h->nodes[position] = p;
	if (h->tree)
		head_tree_link(h, position);
	return p->link;
}

/* ---- clients ---- */

static void on_client_input(void *arg, const void *data, size_t len)
{
	struct peer *p = arg;
	struct head_process *h = p->head;

	if (h->state != RUNS || !p->link)
		return;
	dvm_json_request(h->head, p->number, data, len, head_now_of(h));
	head_turn(h);
}

static void on_client_ended(void *arg, const char *why)
{
	struct peer *p = arg;
	struct head_process *h = p->head;

	p->link = NULL;
	if (h->state != RUNS)
		return;
	dvm_head_client_closed(h->head, p->number, head_now_of(h));
	head_turn(h);
}

struct link *head_take_client(struct head_process *h, const struct link_end *its)
{
	struct peer *p = head_add_peer(h, KIND_CLIENT);
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

bool head_was_alone(const struct head_process *h, uint64_t ms)
{
	return h->alone_ms && h->alone_ms < ms;
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
	dvm_json_request(h->head, AUDITOR, request, strlen(request), head_now_of(h));
	return !h->busy;
}

static void undrain(struct head_process *h, unsigned machine)
{
	char request[64];

	for (uint32_t i = 0; head_takes_clients(h) && i < DAEMONS_MAX; i++) {
		if (!head_has_node(h, i) || daemon_machine(h->daemons[i]) != machine)
			continue;
		snprintf(request, sizeof(request), "{\"op\":\"undrain\",\"node\":\"%s\"}",
			 daemon_name(h->daemons[i]));
		dvm_json_request(h->head, AUDITOR, request, strlen(request), head_now_of(h));
		head_turn(h);
	}
}

void heads_undrain(struct world *w, unsigned machine)
{
	for (uint32_t i = 0; i < w->nheads; i++)
		undrain(w->heads[i], machine);
}

bool head_has(const struct head_process *h, const struct daemon *d)
{
	for (uint32_t i = 0; h && h->state == RUNS && i < DAEMONS_MAX; i++)
		if (head_has_node(h, i) && h->daemons[i] == d)
			return true;
	return false;
}

uint32_t head_relays(const struct head_process *h)
{
	return h->relays;
}

bool head_has_told(const struct head_process *h)
{
	return h->told;
}

struct daemon *head_daemon(const struct head_process *h, uint32_t position)
{
	return h->daemons[position];
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

		head_forget(h);
		DL_FOREACH_SAFE(h->peers, p, next)
			free(p);
		free(h);
	}
}
