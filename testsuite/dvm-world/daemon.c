/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node's daemon: libdvm's node, and the connections to its head and its zygote. This is a
 * short form of src/dvm/node/head_link.c, node_host.c and zygote_process.c.
 */
#include "daemon_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASKED_BYTES_MAX ((size_t)1 << 20)
#define BUSY_MS 200 /* of a link with output, at most */
#define DIE_MS 2000 /* until the ranks of a daemon that was killed have been killed */

/* ---- ranks ---- */

void daemon_rank_done(struct daemon *d, uint32_t process)
{
	zygote_rank_done(d->zygote, process);
}

bool daemon_runs(const struct daemon *d, uint32_t process)
{
	return d->node && d->w->ranks[process - 1].runs && !d->w->ranks[process - 1].dies;
}

void daemon_output(struct daemon *d, uint32_t part, const void *data, size_t len)
{
	dvm_node_output(d->node, part, 1, data, len);
	daemon_turn(d);
}

static void on_limit_output(void *arg, uint32_t part, size_t bytes)
{
	struct daemon *d = arg;

	output_set_limit(d->w, d, part, bytes);
}

/* ---- its zygote ---- */

static void tell_zygote(struct daemon *d, const struct dvm_msg *m)
{
	zygote_order(d->zygote, m);
}

static void on_profile(void *arg, const struct dvm_profile_msg *profile)
{
	tell_zygote(arg, &(struct dvm_msg){ .type = DVM_PROFILE, .profile = *profile });
}

static void on_forget(void *arg, uint32_t number)
{
	tell_zygote(arg, &(struct dvm_msg){ .type = DVM_FORGET, .profile = { number } });
}

static void on_start(void *arg, const struct node_start *what)
{
	tell_zygote(arg, &(struct dvm_msg){
		.type = DVM_EXEC,
		.exec = { what->part, what->first, what->profile->number,
			  node_wants_pmi(what->launch), what->message },
	});
}

static void on_give_up(void *arg, uint32_t part)
{
	tell_zygote(arg, &(struct dvm_msg){ .type = DVM_GIVE_UP, .give_up = part });
}

static void on_signal(void *arg, uint32_t part, int number)
{
	struct daemon *d = arg;

	tell_zygote(d, &(struct dvm_msg){
		.type = DVM_KILL, .kill = { part, (uint32_t)number } });
	zygote_kill_soon(d->zygote, part, number);
}

static void take_started(struct daemon *d, const struct dvm_processes *m)
{
	uint64_t numbers[64];

	memcpy(numbers, m->numbers.data, m->numbers.len);
	dvm_node_started(d->node, m->part, numbers,
			 (uint32_t)(m->numbers.len / sizeof(*numbers)), m->error,
			 time_of(d->w, d->machine));
}

static void take_exited(struct daemon *d, const struct dvm_exited *m)
{
	const struct node_end end = {
		.status = m->status, .lacks = m->lacks,
		.why = m->why.len ? "cannot execute" : NULL,
	};

	if (!dvm_node_ended(d->node, m->part, m->slot, &end, time_of(d->w, d->machine)))
		failed(d->w, "%s does not know a rank of part %u that has ended", d->name,
		       m->part);
}

static void register_node(struct daemon *d, const struct ledger_resources *has)
{
	const struct dvm_register r = {
		.version = DVM_VERSION, .has = *has, .name = { d->name, strlen(d->name) },
	};

	dvm_node_register(d->node, &r);
}

void daemon_zygote_says(struct daemon *d, const void *data, size_t len)
{
	struct dvm_msg m;
	struct cursor c;

	if (!d->node)
		return;
	cursor_init(&c, data, len);
	if (dvm_msg_unpack(&c, &m))
		abort();
	if (m.type == DVM_RESOURCES)
		register_node(d, &m.resources);
	else if (m.type == DVM_PROCESSES)
		take_started(d, &m.processes);
	else
		take_exited(d, &m.exited);
	daemon_turn(d);
}

bool daemon_runs_any(const struct daemon *d)
{
	for (uint32_t i = 0; i < d->w->nranks; i++)
		if (d->w->ranks[i].daemon == d && d->w->ranks[i].runs)
			return true;
	return false;
}

/* The machine is full: the daemon may get no descriptors. */
static int draw_descriptors(struct daemon *d)
{
	return machine_is_full(d->w, d->machine) && draw_once_in(d->w, 4) ?
		       draw_lack(d->w) : 0;
}

/* The daemon is no more: so are its ranks, at once or, where it was killed, soon. */
static void ranks_die(struct daemon *d, uint64_t ms)
{
	for (uint32_t i = 0; i < d->w->nranks; i++) {
		struct rank_process *p = &d->w->ranks[i];

		if (p->daemon != d || !p->runs || p->dies)
			continue;
		p->dies = ms;
		if (ms)
			zygote_kill_rank(d->zygote, i + 1, draw(d->w, ms));
		else
			p->runs = false;
	}
}

/* ---- the node ---- */

static void wait_for_head(struct daemon *d);
static void begin_lease(struct daemon *d);

static void send_head(struct daemon *d, const void *data, size_t len)
{
	if (d->tree)
		daemon_tree_send(d, data, len);
	else if (d->head)
		link_send(d->head, d->end, data, len);
}

static void on_send(void *arg, const void *data, size_t len)
{
	struct daemon *d = arg;

	if (d->asked) {
		(void)buf_append(d->asked, data, len);
		return;
	}
	if (!d->joined && *(const uint8_t *)data != DVM_REGISTER)
		return; /* the message was for another head */
	if (!d->joined)
		begin_lease(d);
	d->joined = true;
	send_head(d, data, len);
}

static void on_drained(struct world *w, void *arg, uint64_t number)
{
	struct daemon *d = arg;

	if (d->node)
		daemon_turn(d);
}

/* After each frame of output the link has none to spare for a while. */
static bool on_takes_output(void *arg)
{
	struct daemon *d = arg;

	if (d->tree && !daemon_tree_is_attached(d))
		return false;
	if (!output_world(d->w))
		return true;
	if (d->busy_ms > d->w->ms)
		return false;
	d->busy_ms = d->w->ms + draw(d->w, BUSY_MS);
	if (d->busy_ms > d->w->ms)
		after(d->w, d->busy_ms - d->w->ms, on_drained, d, 0);
	return true;
}

static int on_open_output(void *arg, uint32_t part)
{
	return draw_descriptors(arg);
}

static void on_part(void *arg, uint32_t part)
{
}

static int on_open_pmi(void *arg, uint32_t part, const struct dvm_launch *launch)
{
	return draw_descriptors(arg);
}

static void on_pmi_rank_ended(void *arg, uint32_t part, uint32_t slot, int32_t status)
{
}

static void on_close_pmi(void *arg, uint32_t part)
{
	struct daemon *d = arg;

	starts_add_over(&d->owed, part);
}

static void on_leave(void *arg)
{
	struct daemon *d = arg;

	trace(d->w, "%s leaves", d->name);
	d->gives_up = true; /* the turn that is under way ends it */
	d->turn_ms = 0;
}

static const struct dvm_node_ops node_ops = {
	.send = on_send, .takes_output = on_takes_output,
	.open_output = on_open_output, .limit_output = on_limit_output, .close_output = on_part,
	.profile = on_profile, .forget = on_forget,
	.open_pmi = on_open_pmi, .pmi_rank_ended = on_pmi_rank_ended,
	.close_pmi = on_close_pmi, .all_started = on_part, .give_up = on_give_up,
	.start = on_start, .signal = on_signal,
	.leave = on_leave,
};

/* The process of the node is no more; ranks have `ms` until they are not. */
static void end(struct daemon *d, uint64_t ms)
{
	if (!d->node)
		return;
	trace(d->w, "%s ends", d->name);
	if (d->zygote)
		zygote_end(d->zygote);
	ranks_die(d, ms);
	dvm_node_destroy(d->node);
	d->node = NULL;
}

/* The last that the head hears: no rank is left. */
static void on_gone(struct world *w, void *arg, uint64_t number)
{
	static const char gone = DVM_GONE;
	struct daemon *d = arg;

	if (d->head)
		link_send(d->head, d->end, &gone, 1);
	link_close(d->head, d->end);
	d->head = NULL;
}

static void leave(struct world *w, void *arg, uint64_t number)
{
	struct daemon *d = arg;

	if (d->tree)
		daemon_tree_leave(d);
	else
		on_gone(w, d, 0);
}

/* The daemon leaves in order: its messages arrive. */
static void finish(struct daemon *d)
{
	dvm_node_send_rest(d->node);
	end(d, 0);
	leave(d->w, d, 0);
}

/* The process that starts its ranks is killed, and they with it. */
static void kill_ranks(struct daemon *d)
{
	if (d->node)
		dvm_node_send_rest(d->node);
	end(d, DIE_MS);
	after(d->w, DIE_MS, leave, d, 0);
}

static void on_turn(struct world *w, void *arg, uint64_t number)
{
	struct daemon *d = arg;

	if (d->node && d->turn_ms == w->ms)
		daemon_turn(d);
}

void daemon_turn(struct daemon *d)
{
	int ms;

	d->turn_ms = NEVER;
	starts_tell(&d->owed, d->node, time_of(d->w, d->machine));
	ms = dvm_node_turn(d->node, time_of(d->w, d->machine));
	if (d->turn_ms == 0) {
		finish(d);
		return;
	}
	if (ms < 0)
		return;
	d->turn_ms = d->w->ms + (uint64_t)(ms ? ms : 1);
	after(d->w, d->turn_ms - d->w->ms, on_turn, d, 0);
}

/* ---- its lease ---- */

/* With what runs. */
static void end_politely(struct daemon *d)
{
	static const struct dvm_msg stop = { .type = DVM_STOP };
	char room[16];
	struct buf b;

	d->gives_up = true;
	buf_init_in(&b, room, sizeof(room));
	(void)dvm_msg_pack(&b, &stop);
	(void)dvm_node_input(d->node, b.data, b.len, time_of(d->w, d->machine));
	daemon_turn(d);
}

static void lease_is_over(struct daemon *d, uint64_t late_ms)
{
	if (!d->gives_up)
		trace(d->w, "%s: its lease is over", d->name);
	if (!d->gives_up && d->w->plan.grace_ms)
		end_politely(d);
	else if (late_ms >= d->w->plan.grace_ms)
		kill_ranks(d);
}

static void ask_head(struct daemon *d, uint64_t now)
{
	const struct dvm_msg m = { .type = DVM_LEASE, .lease.sent_ms = now };
	char room[32];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	(void)dvm_msg_pack(&b, &m);
	if (d->head)
		send_head(d, b.data, b.len);
	if (d->tree)
		daemon_tree_try_another(d, now);
}

static void on_lease(struct world *w, void *arg, uint64_t number)
{
	struct daemon *d = arg;
	uint64_t now = time_of(w, d->machine).ms, over;

	if (!d->node)
		return;
	over = lease_end(&d->lease);
	if (lease_ask(&d->lease, now))
		ask_head(d, now);
	if (now >= over)
		lease_is_over(d, now - over);
	after(w, lease_tick(&d->lease), on_lease, d, 0);
}

/* The lease goes on when another head comes. */
static void begin_lease(struct daemon *d)
{
	if (d->lease.length_ms)
		return;
	lease_begin(&d->lease, d->w->plan.lease_ms, time_of(d->w, d->machine).ms);
	after(d->w, 0, on_lease, d, 0);
}

/* True: the frame is an answer of the head to LEASE, and nothing else. */
static bool take_lease(struct daemon *d, const void *data, size_t len)
{
	struct dvm_msg m;
	struct cursor c;

	if (!dvm_msg_is_lease(data, len))
		return false;
	cursor_init(&c, data, len);
	if (!dvm_msg_unpack(&c, &m))
		lease_answered(&d->lease, m.lease.sent_ms, time_of(d->w, d->machine).ms);
	return true;
}

/* ---- its head ---- */

static bool outlives_head(const struct daemon *d)
{
	return d->w->plan.orphan && !d->gives_up;
}

static void on_no_head(struct world *w, void *arg, uint64_t number)
{
	struct daemon *d = arg;

	if (!d->node || d->head || d->waits != number)
		return;
	trace(w, "%s: no other head has come", d->name);
	end_politely(d);
}

static void wait_for_head(struct daemon *d)
{
	uint64_t ms = d->w->plan.orphan_s * SECOND, now = time_of(d->w, d->machine).ms;
	uint64_t over = lease_end(&d->lease), left = over > now ? over - now : 0;

	trace(d->w, "%s waits for another head", d->name);
	daemon_tree_close(d, link_close);
	link_close(d->head, d->end);
	d->head = NULL;
	d->joined = false;
	dvm_node_alone(d->node);
	after(d->w, left < ms ? left : ms, on_no_head, d, ++d->waits);
}

void daemon_loses_head(struct daemon *d, const char *why)
{
	trace(d->w, "%s: the head is lost: %s", d->name, why);
	if (d->zygote && outlives_head(d)) {
		wait_for_head(d);
		return;
	}
	daemon_tree_close(d, link_close);
	end(d, 0); /* when its ranks have */
}

static void on_head_ended(void *arg, const char *why)
{
	struct daemon *d = arg;

	if (d->tree) {
		daemon_tree_ended(d, why);
		return;
	}
	d->head = NULL;
	if (d->node) /* else it has sent GONE, or will not */
		daemon_loses_head(d, why);
}

bool daemon_takes(struct daemon *d, const void *data, size_t len)
{
	int rc;

	if (take_lease(d, data, len))
		return false;
	output_head_says(d->w, d, data, len);
	rc = dvm_node_input(d->node, data, len, time_of(d->w, d->machine));
	if (rc)
		failed(d->w, "%s cannot read what its head says: %s", d->name, strerror(-rc));
	return !rc;
}

static void on_head_says(void *arg, const void *data, size_t len)
{
	struct daemon *d = arg;

	if (d->tree)
		daemon_tree_says(d, data, len);
	else if (d->node && daemon_takes(d, data, len))
		daemon_turn(d);
}

struct link_end daemon_end(struct daemon *d)
{
	return (struct link_end){
		d->machine, on_head_says, on_head_ended, d,
	};
}

/* As node/mesh.c: a head that was taken over may call before it knows that. */
bool daemon_takes_head(struct daemon *d, uint32_t head)
{
	return d->node && outlives_head(d) && head >= d->epoch;
}

void daemon_join(struct daemon *d, struct link *l, uint32_t head)
{
	promise_head(d->w, d, d->epoch, head);
	d->epoch = head;
	daemon_tree_close(d, link_close);
	link_close(d->head, d->end);
	d->waits++;
	d->joined = false;
	d->head = l;
	d->end = 1;
}

void daemon_start_ranks(struct daemon *d)
{
	static const struct ledger_resources has = { CORES, 0, 1000 };

	if (!d->zygote)
		d->zygote = zygote_start(d->w, d, d->machine, &has);
}

static void on_connect(struct world *w, void *arg, uint64_t number)
{
	struct daemon *d = arg;
	struct head_process *h = w->heads[number >> 32];
	uint32_t position = (uint32_t)number;

	if (!d->node)
		return;
	if (!head_serves(h) || !is_reachable(w, d->machine, head_machine(h))) {
		trace(w, "%s cannot reach its head", d->name);
		end(d, 0);
		return;
	}
	if (head_relays(h)) {
		daemon_tree_open(d, h, position);
		return;
	}
	d->head = head_take_daemon(h, d, position);
	d->end = 1;
	if (!d->head) {
		end(d, 0);
		return;
	}
	daemon_start_ranks(d);
}

/* ---- life ---- */

struct daemon *daemon_start(struct world *w, unsigned machine, struct head_process *head,
			    uint32_t position)
{
	struct daemon *d;

	if (w->ndaemons == DAEMONS_MAX)
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d || dvm_node_create(&d->node, &node_ops, d))
		abort();
	d->w = w;
	d->machine = machine;
	d->number = w->ndaemons;
	d->turn_ms = NEVER;
	snprintf(d->name, sizeof(d->name), "n%u.%u", machine, d->number);
	w->daemons[w->ndaemons++] = d;
	after(w, draw(w, 2 * SECOND), on_connect, d,
	      (uint64_t)head_number(head) << 32 | position);
	return d;
}

bool daemon_is_gone(const struct daemon *d)
{
	return !d->node && !daemon_runs_any(d);
}

unsigned daemon_machine(const struct daemon *d)
{
	return d->machine;
}

const char *daemon_name(const struct daemon *d)
{
	return d->name;
}

void daemon_kill(struct daemon *d)
{
	uint64_t way = draw(d->w, d->tree ? 4 : 2);

	if (!way) {
		kill_ranks(d);
		return;
	}
	daemon_tree_close(d, link_reset);
	if (way == 1) {
		link_reset(d->head, d->end);
		d->head = NULL;
	} else {
		after(d->w, DIE_MS, on_gone, d, 0); /* its fork server has the link, too */
	}
	end(d, DIE_MS);
}

void daemon_vanish(struct daemon *d)
{
	daemon_tree_close(d, NULL);
	d->head = NULL;
	end(d, 0);
	for (uint32_t i = 0; i < d->w->nranks; i++)
		if (d->w->ranks[i].daemon == d)
			d->w->ranks[i].runs = false;
}

struct daemon *daemon_on(struct world *w, unsigned machine)
{
	for (uint32_t i = w->ndaemons; i > 0; i--)
		if (w->daemons[i - 1]->machine == machine && w->daemons[i - 1]->node)
			return w->daemons[i - 1];
	return NULL;
}

bool daemon_is_idle(const struct daemon *d)
{
	return !d->zygote || zygote_is_idle(d->zygote);
}

void daemon_stand_still(struct daemon *d, uint64_t ms)
{
	if (d->zygote)
		zygote_stand_still(d->zygote, ms);
}

/* True: the daemon keeps nothing for another head but its description. */
bool daemon_holds_nothing(struct daemon *d)
{
	static const struct dvm_msg adopt = { .type = DVM_ADOPT };
	char room[16];
	struct buf b, said;
	struct dvm_msg m;
	struct cursor c;
	bool nothing;

	if (!d->node)
		return true;
	buf_init_in(&b, room, sizeof(room));
	buf_init(&said, ASKED_BYTES_MAX);
	(void)dvm_msg_pack(&b, &adopt);
	d->asked = &said;
	(void)dvm_node_input(d->node, b.data, b.len, time_of(d->w, d->machine));
	(void)dvm_node_turn(d->node, time_of(d->w, d->machine));
	d->asked = NULL;
	cursor_init(&c, said.data, said.len);
	zygote_check_left(d->zygote);
	nothing = !dvm_msg_unpack(&c, &m) && m.type == DVM_REGISTER && !cursor_left(&c);
	while (cursor_left(&c) && !dvm_msg_unpack(&c, &m))
		if (m.type == DVM_HELD)
			trace(d->w, "%s keeps task %llu.%u", d->name,
			      (unsigned long long)m.held.task, m.held.instance);
	buf_free(&said);
	return nothing;
}

void daemons_free(struct world *w)
{
	for (uint32_t i = 0; i < w->ndaemons; i++) {
		struct daemon *d = w->daemons[i];

		if (d->node)
			dvm_node_destroy(d->node);
		daemon_tree_free(d);
		zygote_free(d->zygote);
		free(d);
	}
}
