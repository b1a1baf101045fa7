/* SPDX-License-Identifier: BSD-3-Clause */
/* An event loop in a thread: start, posting to it, end. */
#include "libio/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libio/thread.h"

#define UV_DESCRIPTORS 8 /* more than a loop begins with */

struct post {
	struct post *next;
	void (*fn)(void *arg);
	void *arg;
};

struct loop {
	uv_loop_t uv;
	uv_poll_t wake; /* of wake_fd */
	int wake_fd;    /* an eventfd, not empty while there are posts */
	bool opened;
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

static void on_wake(uv_poll_t *wake, int status, int events)
{
	struct loop *l = wake->data;
	eventfd_t count;

	(void)eventfd_read(l->wake_fd, &count);
	run_posts(l);
}

int loop_create(struct loop **out)
{
	struct loop *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	l->last = &l->first;
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake_fd < 0) {
		rc = -errno;
		goto free_loop;
	}
	rc = -pthread_mutex_init(&l->lock, NULL);
	if (rc)
		goto close_wake;
	*out = l;
	return 0;

close_wake:
	close(l->wake_fd);
free_loop:
	free(l);
	return rc;
}

/* libuv ends the process when it cannot have those that it needs. */
static int check_descriptors(int any)
{
	int fds[UV_DESCRIPTORS], count = 0, rc = 0;

	while (!rc && count < UV_DESCRIPTORS) {
		int fd = fcntl(any, F_DUPFD_CLOEXEC, 0);

		if (fd < 0)
			rc = -errno;
		else
			fds[count++] = fd;
	}
	while (count)
		close(fds[--count]);
	return rc;
}

int loop_open(struct loop *l)
{
	int rc = check_descriptors(l->wake_fd);

	rc = rc ? rc : uv_loop_init(&l->uv);
	if (rc)
		return rc;
	rc = uv_poll_init(&l->uv, &l->wake, l->wake_fd);
	if (rc) {
		uv_loop_close(&l->uv);
		return rc;
	}
	l->wake.data = l;
	l->opened = true;
	return uv_poll_start(&l->wake, UV_READABLE, on_wake);
}

static void forget_posts(struct loop *l)
{
	struct post *p, *next;

	for (p = take_posts(l); p; p = next) {
		next = p->next;
		free(p);
	}
}

void loop_destroy(struct loop *l)
{
	if (!l)
		return;
	if (!l->opened) {
		forget_posts(l);
	} else {
		if (!l->ended)
			loop_end(l);
		uv_run(&l->uv, UV_RUN_DEFAULT); /* callbacks of closing handles */
		uv_loop_close(&l->uv);
	}
	close(l->wake_fd);
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

void loop_run(struct loop *l)
{
	uv_run(&l->uv, UV_RUN_DEFAULT);
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
		(void)eventfd_write(l->wake_fd, 1);
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
	if (!l->opened)
		return;
	run_posts(l);
	uv_close((uv_handle_t *)&l->wake, NULL);
}

int loop_join(struct loop *l, uint32_t timeout_ms)
{
	return thread_join(l->thread, timeout_ms);
}
