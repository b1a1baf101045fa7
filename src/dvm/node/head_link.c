/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvmd: the link to the head, its lease, and waiting for another head. */
#include "dvm/node/dvmd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "dvm/core/dvm_msg.h"
#include "dvm/node/tree_link.h"

#define CONNECT_MS 10000 /* for an address, until who is there has proved itself */
#define AGAIN_MS 1000    /* between two tries of all addresses */

bool dvmd_outlives_head(const struct dvmd *d)
{
	return d->welcome.orphan_s && !d->gives_up;
}

/* The head's answer comes in a frame with others. */
void dvmd_join(struct dvmd *d)
{
	d->joined = true;
	if (!d->lease.lease.length_ms)
		lease_timer_begin(&d->lease, d->welcome.lease_ms);
}

/* Asks also a head that does not know this node yet, and then does not answer. */
void dvmd_ask_for_lease(void *arg, uint64_t now_ms)
{
	const struct dvm_msg m = { .type = DVM_LEASE, .lease.sent_ms = now_ms };
	struct dvmd *d = arg;
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	if (d->head && !dvm_msg_pack(&b, &m))
		(void)dvmd_send_head(d, b.data, b.len);
	if (d->tree)
		dvmd_tree_try_another(d, now_ms);
}

int dvmd_send_head(struct dvmd *d, const void *data, size_t len)
{
	if (d->tree)
		return dvmd_tree_send(d, data, len);
	return d->head ? link_send_bytes(d->head, FRAME_CONTROL_UP, data, len) : -ENOTCONN;
}

/* False: the frame is another message. */
static bool take_lease(struct dvmd *d, const void *data, size_t len)
{
	struct dvm_msg m;
	struct cursor c;

	if (!dvm_msg_is_lease(data, len))
		return false;
	cursor_init(&c, data, len);
	if (!dvm_msg_unpack(&c, &m))
		lease_timer_answered(&d->lease, m.lease.sent_ms);
	return true;
}

static void end_politely(struct dvmd *d, const char *why);

/* Another node may get the work soon: end what runs, at last by force. */
void dvmd_lease_over(void *arg, uint64_t late_ms)
{
	struct dvmd *d = arg;

	if (!d->gives_up && d->welcome.grace_ms)
		end_politely(d, "the head does not answer");
	else if (late_ms >= d->welcome.grace_ms && d->process > 0)
		kill(d->process, SIGKILL); /* on_zygote_end kills its ranks */
}

static void on_proved(void *arg, struct link *l)
{
	struct dvmd *d = arg;
	int rc = dvmd_start_zygote(d);

	if (rc)
		dvmd_die(d, "cannot start pmi2x-dvm-zygote: %s", strerror(-rc));
}

void dvmd_head_says(struct dvmd *d, const void *data, size_t len)
{
	if (take_lease(d, data, len))
		return;
	if (dvm_msg_for_pmi(data, len)) {
		if (d->tasks)
			tasks_head_says(d->tasks, data, len);
		return;
	}
	if (d->node && dvm_node_input(d->node, data, len, dvmd_now()))
		d->leaves = true;
	dvmd_node_changed(d);
}

static int on_head_says(void *arg, struct link *l, enum frame_type type,
			struct payload *body)
{
	if (type != FRAME_CONTROL_DOWN)
		return -EPROTO;
	dvmd_head_says(arg, body->data, body->len);
	return 0;
}

/* End what runs. Then the zygote ends, and this daemon with it. */
static void end_politely(struct dvmd *d, const char *why)
{
	static const char stop[] = { DVM_STOP, false };

	fprintf(stderr, "pmi2x-dvmd on %s: the daemon stops: %s\n", d->name, why);
	d->gives_up = true;
	(void)dvm_node_input(d->node, stop, sizeof(stop), dvmd_now());
	dvmd_node_changed(d);
}

static void on_orphan(uv_timer_t *timer)
{
	end_politely(timer->data, "no other head has come");
}

/* Requests of tasks to the head fail. */
static void leave_head(struct dvmd *d)
{
	dvmd_tree_close(d);
	d->former = d->tree ? d->tree : d->former;
	d->tree = NULL;
	link_close(d->head);
	d->head = NULL;
	d->joined = false;
	tasks_head_lost(d->tasks);
}

void dvmd_wait_for_head(struct dvmd *d)
{
	uint64_t ms = d->welcome.orphan_s * UINT64_C(1000), left = lease_timer_left(&d->lease);

	leave_head(d);
	dvm_node_alone(d->node);
	fprintf(stderr, "pmi2x-dvmd on %s: the head is lost: waiting %u s for another\n",
		d->name, d->welcome.orphan_s);
	uv_timer_start(&d->orphan, on_orphan, left < ms ? left : ms, 0);
}

void dvmd_lose_head(struct dvmd *d, int error)
{
	if (!d->channel)
		dvmd_die(d, "cannot reach the head of the DVM: %s", link_strerror(error));
	else if (dvmd_outlives_head(d))
		dvmd_wait_for_head(d);
	else if (error)
		dvmd_die(d, "the head is lost: %s", link_strerror(error));
	else
		dvmd_finish(d, 0);
}

static void on_head_end(void *arg, struct link *l, int error)
{
	struct dvmd *d = arg;

	link_close(l);
	d->head = NULL;
	if (d->ended)
		dvmd_finish(d, 0);
	else if (!d->channel)
		dvmd_connect_next(d, error);
	else
		dvmd_lose_head(d, error);
}

void dvmd_link_drained(void *arg, struct link *l)
{
	dvmd_node_changed(arg);
}

static const struct link_ops head_ops = {
	.proved = on_proved, .frame = on_head_says, .end = on_head_end,
	.drained = dvmd_link_drained,
};

static void on_try_again(uv_timer_t *timer)
{
	struct dvmd *d = timer->data;

	d->next_head = 0;
	if (d->tree)
		dvmd_tree_connect(d);
	else
		dvmd_connect_next(d, 0);
}

/* A living head may be out of reach, or have too many callers, for a moment. */
static bool may_answer_yet(int error)
{
	return error == -ETIMEDOUT || error == -ECONNRESET || error == -EPIPE ||
	       error == -EHOSTUNREACH || error == -ENETUNREACH || error == -ECONNABORTED;
}

/* All addresses have been tried. */
static void wait_to_try_again(struct dvmd *d, int error)
{
	uint64_t tried = uv_now(loop_uv(d->loop)) - d->begun_ms;

	if (d->try_again && tried < d->welcome.within_ms)
		uv_timer_start(&d->orphan, on_try_again, AGAIN_MS, 0);
	else
		dvmd_lose_head(d, error);
}

int dvmd_dial(struct dvmd *d, struct link **out, uint32_t position,
	      const struct sockaddr_storage *to, const struct link_ops *ops)
{
	const struct link_options options = {
		.handshake_ms = CONNECT_MS, .dead_peer_ms = d->welcome.peer_ms,
	};

	return link_connect(out, loop_uv(d->loop), &d->self, position, to, &options, ops, d);
}

/* 0, or the error of the last address. */
static int dial_head(struct dvmd *d, int error)
{
	while (d->next_head < d->welcome.nheads) {
		error = dvmd_dial(d, &d->head, HANDSHAKE_SRUN,
				  &d->welcome.heads[d->next_head++], &head_ops);
		if (!error)
			return 0;
		d->try_again |= may_answer_yet(error);
	}
	return error;
}

void dvmd_connect_next(struct dvmd *d, int error)
{
	d->try_again |= may_answer_yet(error);
	error = d->tree ? dvmd_tree_dial(d, error) : dial_head(d, error);
	if (!error || (d->tree && (d->head || d->leaves || d->ended)))
		return; /* in a tree, an older link goes on, or none is needed */
	wait_to_try_again(d, error);
}

void dvmd_hand_link_on(const struct dvmd *d)
{
	const struct passed_fds fds = { .count = 1, .fds = { link_fd(d->head) } };
	static const char message = DVM_HEAD_LINK;

	(void)channel_send_fds(d->channel, &message, 1, &fds);
}

/* Another head goes on after one was lost, which this side may not have noticed yet. */
void dvmd_other_head(void *arg, struct link *l)
{
	struct dvmd *d = arg;

	if (!d->channel || !dvmd_outlives_head(d)) {
		link_close(l);
		return;
	}
	leave_head(d);
	d->head = l;
	link_hand_over(l, &head_ops, d);
	dvmd_hand_link_on(d);
	uv_timer_stop(&d->orphan);
}
