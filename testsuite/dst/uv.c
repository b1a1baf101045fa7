/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of libuv that the product uses, over the simulated kernel. A turn of a loop
 * is as libuv's: timers, prepare handles, waiting, what is ready (in any order),
 * check handles, what closes.
 */
#include <errno.h>
#include <string.h>
#include <uv.h>

#include "testsuite/dst/files.h"
#include "testsuite/dst/memory.h"

#define READY_MAX 256

/* Beside each handle; it is found through the handle's reserved words. */
struct watch {
	struct watch *next, *prev;
	uv_handle_t *handle;
	struct loop_state *loop;
	bool active, closing;
	bool unref;        /* the loop ends without it */
	uv_close_cb closed;
	union {
		uv_poll_cb poll;
		uv_timer_cb timer;
		uv_prepare_cb prepare;
		uv_check_cb check;
		uv_async_cb async;
	} call;
	int fd;            /* of a poll */
	int events;
	uint64_t due;      /* of a timer, ms */
	uint64_t order;
	bool sent;         /* of an async */
};

struct loop_state {
	struct watch *first;
	uint64_t ms;       /* uv_now */
	uint64_t timers;   /* started */
	unsigned nclosing;
};

/* ---- handles ---- */

static struct loop_state *state_of(const uv_loop_t *loop)
{
	return loop->active_reqs.unused;
}

static struct watch *watch_of(const void *handle)
{
	return ((const uv_handle_t *)handle)->u.reserved[3];
}

static struct watch *open_handle(uv_loop_t *loop, void *handle,
				 uv_handle_type type)
{
	struct watch *w = __real_calloc(1, sizeof(*w));
	struct loop_state *l = state_of(loop);
	uv_handle_t *h = handle;

	h->loop = loop;
	h->type = type;
	h->u.reserved[3] = w;
	w->handle = h;
	w->loop = l;
	w->next = l->first;
	if (w->next)
		w->next->prev = w;
	l->first = w;
	return w;
}

/* The handle of a call; one that closes must not be started any more. */
static struct watch *check(const void *handle, const char *what)
{
	struct watch *w = watch_of(handle);

	if (!w || w->closing)
		failed("%s of a handle that is closed", what);
	return w;
}

static void update_time(struct loop_state *l)
{
	l->ms = now() / MS;
}

int uv_loop_init(uv_loop_t *loop)
{
	struct loop_state *l = __real_calloc(1, sizeof(*l));

	if (!fd_available()) {
		__real_free(l);
		return -EMFILE;
	}
	memset(loop, 0, sizeof(*loop));
	loop->active_reqs.unused = l;
	update_time(l);
	return 0;
}

int uv_loop_close(uv_loop_t *loop)
{
	struct loop_state *l = state_of(loop);
	struct watch *w = l->first;

	if (w)
		failed("a loop is closed with a handle of type %d",
		       w->handle->type);
	__real_free(l);
	return 0;
}

uint64_t uv_now(const uv_loop_t *loop)
{
	return state_of(loop)->ms;
}

/* No time passes in a turn. */
void uv_update_time(uv_loop_t *loop)
{
}

int uv_is_active(const uv_handle_t *handle)
{
	return watch_of(handle)->active;
}

int uv_is_closing(const uv_handle_t *handle)
{
	struct watch *w = watch_of(handle);

	return !w || w->closing;
}

void uv_unref(uv_handle_t *handle)
{
	check(handle, "uv_unref")->unref = true;
}

void uv_close(uv_handle_t *handle, uv_close_cb closed)
{
	struct watch *w = check(handle, "uv_close");

	if (!w || w->closing)
		return;
	w->closing = true;
	w->active = false;
	w->closed = closed;
	w->loop->nclosing++;
}

/* ---- polls ---- */

int uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
	struct file *f = file_find(fd);

	if (!f)
		return -EBADF;
	open_handle(loop, poll, UV_POLL)->fd = fd;
	f->nonblocking = true;
	return 0;
}

int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb call)
{
	struct watch *w = check(poll, "uv_poll_start");

	w->active = true;
	w->events = events;
	w->call.poll = call;
	return 0;
}

int uv_poll_stop(uv_poll_t *poll)
{
	check(poll, "uv_poll_stop")->active = false;
	return 0;
}

/* The events that epoll would report to libuv; 0: nothing. */
static uint32_t poll_found(const struct watch *w)
{
	uint32_t wanted = (w->events & UV_READABLE ? EPOLLIN : 0) |
			  (w->events & UV_WRITABLE ? EPOLLOUT : 0);
	struct file *f = file_find(w->fd);
	uint32_t found = f ? file_events(f) & (wanted | EPOLLERR | EPOLLHUP) : 0;

	if (!f)
		failed("descriptor %d is polled, but not open", w->fd);
	return found == EPOLLERR || found == EPOLLHUP ? found | wanted : found;
}

static void call_poll(struct watch *w)
{
	uint32_t found = poll_found(w);
	int events = (found & EPOLLIN ? UV_READABLE : 0) |
		     (found & EPOLLOUT ? UV_WRITABLE : 0);

	if (!found)
		return;
	trace("poll", w->fd, found);
	if (found & EPOLLERR) { /* so libuv ends a poll */
		w->active = false;
		w->call.poll((uv_poll_t *)w->handle, UV_EBADF, 0);
		return;
	}
	w->call.poll((uv_poll_t *)w->handle, 0, events);
}

/* ---- timers ---- */

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
	open_handle(loop, timer, UV_TIMER);
	return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb call, uint64_t ms,
		   uint64_t repeat)
{
	struct watch *w = check(timer, "uv_timer_start");

	if (repeat)
		failed("timers that repeat are not known");
	if (w->closing)
		return UV_EINVAL;
	w->active = true;
	w->due = w->loop->ms + ms;
	w->order = w->loop->timers++;
	w->call.timer = call;
	return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
	if (watch_of(timer))
		watch_of(timer)->active = false;
	return 0;
}

uint64_t uv_timer_get_due_in(const uv_timer_t *timer)
{
	const struct watch *w = watch_of(timer);

	return w->due > w->loop->ms ? w->due - w->loop->ms : 0;
}

static struct watch *first_timer(const struct loop_state *l)
{
	struct watch *first = NULL;

	for (struct watch *w = l->first; w; w = w->next) {
		if (!w->active || w->handle->type != UV_TIMER)
			continue;
		if (!first || w->due < first->due ||
		    (w->due == first->due && w->order < first->order))
			first = w;
	}
	return first;
}

/* Runs timers that are due now; one started meanwhile has its turn later. */
static void run_timers(struct loop_state *l)
{
	uint64_t last = l->timers;
	struct watch *w;

	while ((w = first_timer(l)) && w->due <= l->ms && w->order < last) {
		w->active = false;
		trace("timer", w->due, 0);
		w->call.timer((uv_timer_t *)w->handle);
	}
}

/* ---- the others ---- */

int uv_prepare_init(uv_loop_t *loop, uv_prepare_t *prepare)
{
	open_handle(loop, prepare, UV_PREPARE);
	return 0;
}

int uv_prepare_start(uv_prepare_t *prepare, uv_prepare_cb call)
{
	struct watch *w = check(prepare, "uv_prepare_start");

	w->active = true;
	w->call.prepare = call;
	return 0;
}

int uv_prepare_stop(uv_prepare_t *prepare)
{
	check(prepare, "uv_prepare_stop")->active = false;
	return 0;
}

int uv_check_init(uv_loop_t *loop, uv_check_t *handle)
{
	open_handle(loop, handle, UV_CHECK);
	return 0;
}

int uv_check_start(uv_check_t *handle, uv_check_cb call)
{
	struct watch *w = check(handle, "uv_check_start");

	w->active = true;
	w->call.check = call;
	return 0;
}

int uv_check_stop(uv_check_t *handle)
{
	watch_of(handle)->active = false;
	return 0;
}

int uv_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb call)
{
	struct watch *w = open_handle(loop, async, UV_ASYNC);

	w->active = true;
	w->call.async = call;
	return 0;
}

int uv_async_send(uv_async_t *async)
{
	check(async, "uv_async_send")->sent = true;
	return 0;
}

static void run_each(struct loop_state *l, uv_handle_type type)
{
	struct watch *list[READY_MAX];
	int n = 0;

	for (struct watch *w = l->first; w && n < READY_MAX; w = w->next)
		if (w->active && w->handle->type == type)
			list[n++] = w;
	for (int i = 0; i < n; i++) {
		if (!list[i]->active)
			continue;
		if (type == UV_PREPARE)
			list[i]->call.prepare((uv_prepare_t *)list[i]->handle);
		else
			list[i]->call.check((uv_check_t *)list[i]->handle);
	}
}

/* ---- a turn ---- */

static bool is_ready(const struct watch *w)
{
	if (!w->active)
		return false;
	if (w->handle->type == UV_POLL)
		return poll_found(w);
	return w->handle->type == UV_ASYNC && w->sent;
}

static bool any_ready(void *arg)
{
	const struct loop_state *l = arg;

	for (const struct watch *w = l->first; w; w = w->next)
		if (is_ready(w))
			return true;
	return false;
}

static void run_ready(struct loop_state *l)
{
	struct watch *list[READY_MAX];
	int n = 0;

	for (struct watch *w = l->first; w && n < READY_MAX; w = w->next)
		if (is_ready(w))
			list[n++] = w;
	while (n) {
		int i = draw_below(n);
		struct watch *w = list[i];

		list[i] = list[--n];
		if (!w->active)
			continue;
		if (w->handle->type == UV_POLL) {
			call_poll(w);
		} else if (w->sent) {
			w->sent = false;
			w->call.async((uv_async_t *)w->handle);
		}
	}
}

static void run_closing(struct loop_state *l)
{
	struct watch *w, *next;

	for (w = l->nclosing ? l->first : NULL; w; w = next) {
		next = w->next;
		if (!w->closing)
			continue;
		if (w->prev)
			w->prev->next = w->next;
		else
			l->first = w->next;
		if (w->next)
			w->next->prev = w->prev;
		l->nclosing--;
		w->handle->u.reserved[3] = NULL;
		if (w->closed)
			w->closed(w->handle);
		__real_free(w);
	}
}

static bool is_alive(const struct loop_state *l)
{
	const struct watch *w = l->first;

	while (w && (!w->active || w->unref) && !w->closing)
		w = w->next;
	return w;
}

/* How long it may wait, as a moment. */
static uint64_t wait_until(const struct loop_state *l)
{
	const struct watch *timer = first_timer(l);

	if (l->nclosing || !is_alive(l))
		return 0;
	return timer ? timer->due * MS : NEVER;
}

int uv_run(uv_loop_t *loop, uv_run_mode mode)
{
	struct loop_state *l = state_of(loop);

	while (is_alive(l)) {
		update_time(l);
		run_timers(l);
		run_each(l, UV_PREPARE);
		if (task_current())
			task_wait(any_ready, l, wait_until(l));
		update_time(l);
		run_ready(l);
		run_each(l, UV_CHECK);
		run_closing(l);
	}
	return 0;
}
