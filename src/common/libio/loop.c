/* SPDX-License-Identifier: BSD-3-Clause */
/* An event loop in a thread: start, posting to it, end. */
#include "libio/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "libio/thread.h"

struct post {
	struct post *next;
	void (*fn)(void *arg);
	void *arg;
};

struct loop {
	uv_loop_t uv;
	uv_async_t wake;
	pthread_t thread;
	pthread_mutex_t lock; /* of the members below */
	struct post *first;
	struct post **last;
	bool ended;
};

static struct post *take_posts(struct loop *l)
{
	struct post *first;

	pthread_mutex_lock(&l->lock);
	first = l->first;
	l->first = NULL;
	l->last = &l->first;
	pthread_mutex_unlock(&l->lock);
	return first;
}

static void run_posts(struct loop *l)
{
	struct post *p, *next;

	while ((p = take_posts(l))) {
		for (; p; p = next) {
			next = p->next;
			p->fn(p->arg);
			free(p);
		}
	}
}

static void on_wake(uv_async_t *wake)
{
	run_posts(wake->data);
}

int loop_create(struct loop **out)
{
	struct loop *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	l->last = &l->first;
	rc = uv_loop_init(&l->uv);
	if (rc)
		goto free_loop;
	rc = uv_async_init(&l->uv, &l->wake, on_wake);
	if (rc)
		goto close_uv;
	rc = -pthread_mutex_init(&l->lock, NULL);
	if (rc)
		goto close_wake;
	l->wake.data = l;
	*out = l;
	return 0;

close_wake:
	uv_close((uv_handle_t *)&l->wake, NULL);
	uv_run(&l->uv, UV_RUN_DEFAULT);
close_uv:
	uv_loop_close(&l->uv);
free_loop:
	free(l);
	return rc;
}

void loop_destroy(struct loop *l)
{
	if (!l)
		return;
	if (!l->ended)
		loop_end(l);
	uv_run(&l->uv, UV_RUN_DEFAULT); /* the callbacks of closing handles */
	uv_loop_close(&l->uv);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

uv_loop_t *loop_uv(struct loop *l)
{
	return &l->uv;
}

static void *loop_main(void *arg)
{
	struct loop *l = arg;

	uv_run(&l->uv, UV_RUN_DEFAULT);
	return NULL;
}

int loop_start(struct loop *l)
{
	return thread_start(&l->thread, loop_main, l);
}

static bool append_post(struct loop *l, struct post *p)
{
	bool open;

	pthread_mutex_lock(&l->lock);
	open = !l->ended;
	if (open) {
		*l->last = p;
		l->last = &p->next;
		uv_async_send(&l->wake);
	}
	pthread_mutex_unlock(&l->lock);
	return open;
}

int loop_post(struct loop *l, void (*fn)(void *arg), void *arg)
{
	struct post *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->fn = fn;
	p->arg = arg;
	if (append_post(l, p))
		return 0;
	free(p);
	return -ESHUTDOWN;
}

void loop_end(struct loop *l)
{
	pthread_mutex_lock(&l->lock);
	l->ended = true;
	pthread_mutex_unlock(&l->lock);
	run_posts(l);
	uv_close((uv_handle_t *)&l->wake, NULL);
}

int loop_join(struct loop *l, uint32_t timeout_ms)
{
	return thread_join(l->thread, timeout_ms);
}
