/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to a neighbour that wait until it has released earlier ones. */
#include "libstore/window.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "libstore/store_msg.h"

#define CREDIT_BYTES (STORE_WINDOW / 2) /* released ones, in one message */

struct parcel {
	struct parcel *prev, *next;
	struct payload_vec message;
	struct debt *debt;
};

void window_init(struct window *w, const struct store_ops *ops, uint32_t position)
{
	*w = (struct window){ .ops = ops, .position = position };
}

static void free_parcel(struct window *w, struct parcel *p)
{
	DL_DELETE(w->queue, p);
	payload_vec_clear(&p->message);
	debt_unref(p->debt);
	free(p);
}

void window_close(struct window *w)
{
	w->closed = true;
	while (w->queue)
		free_parcel(w, w->queue);
}

/* ---- sending ---- */

static void send_now(struct window *w, const struct payload_vec *message)
{
	w->sent += message->bytes;
	w->ops->send(w->ops->arg, w->position, message);
}

/* False: no memory. */
static bool enqueue(struct window *w, const struct payload_vec *message, struct debt *debt)
{
	struct parcel *p = calloc(1, sizeof(*p));

	if (!p)
		return false;
	payload_vec_init(&p->message);
	if (payload_vec_add_all(&p->message, message)) {
		payload_vec_clear(&p->message);
		free(p);
		return false;
	}
	p->debt = debt;
	if (debt)
		debt->refs++;
	DL_APPEND(w->queue, p);
	return true;
}

static void send_queued(struct window *w, uint64_t most)
{
	while (w->queue && w->sent < most) {
		send_now(w, &w->queue->message);
		free_parcel(w, w->queue);
	}
}

void window_send(struct window *w, const struct payload_vec *message, struct debt *debt)
{
	if (w->closed)
		return;
	if (!w->queue && w->sent < STORE_WINDOW) {
		send_now(w, message);
	} else if (!enqueue(w, message, debt)) { /* no message is lost or overtakes another */
		send_queued(w, UINT64_MAX);
		send_now(w, message);
	}
}

int window_credit(struct window *w, uint64_t bytes)
{
	if (bytes > w->sent)
		return -EPROTO;
	w->sent -= bytes;
	send_queued(w, STORE_WINDOW);
	return 0;
}

/* ---- releasing ---- */

static void send_credit(struct window *w)
{
	const struct store_msg m = { .type = STORE_MSG_CREDIT, .number = w->due };
	struct payload *bytes = store_msg_make(&m, NULL);
	const struct payload_vec v = { &bytes, 1, 1, bytes ? bytes->len : 0 };

	if (!bytes) /* later */
		return;
	w->due = 0;
	w->ops->send(w->ops->arg, w->position, &v);
	payload_unref(bytes);
}

static void release(struct window *w, uint64_t bytes)
{
	w->due += bytes;
	if (w->due >= CREDIT_BYTES && !w->closed)
		send_credit(w);
}

struct debt *debt_begin(struct window *w, uint64_t bytes)
{
	struct debt *d = malloc(sizeof(*d));

	if (d)
		*d = (struct debt){ w, bytes, 1 };
	else
		release(w, bytes);
	return d;
}

void debt_unref(struct debt *d)
{
	if (!d || --d->refs)
		return;
	release(d->to, d->bytes);
	free(d);
}
