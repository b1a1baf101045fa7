/* SPDX-License-Identifier: BSD-3-Clause */
/* An event loop, in a thread of its own or in the caller's. */
#include "libio/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libio/thread.h"

#define UV_DESCRIPTORS 8 /* more than a loop begins with */

struct loop {
	uv_loop_t uv;
	pthread_t thread;
};

/* libuv ends the process when it cannot have those that it needs. */
static int check_descriptors(void)
{
	int fds[UV_DESCRIPTORS], count = 0, rc = 0;

	while (!rc && count < UV_DESCRIPTORS) {
		int fd = eventfd(0, EFD_CLOEXEC);

		if (fd < 0)
			rc = -errno;
		else
			fds[count++] = fd;
	}
	while (count)
		close(fds[--count]);
	return rc;
}

int loop_create(struct loop **out)
{
	struct loop *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	rc = check_descriptors();
	rc = rc ? rc : uv_loop_init(&l->uv);
	if (rc)
		free(l);
	else
		*out = l;
	return rc;
}

void loop_destroy(struct loop *l)
{
	if (!l)
		return;
	loop_run(l); /* callbacks of closing handles */
	uv_loop_close(&l->uv);
	free(l);
}

uv_loop_t *loop_uv(struct loop *l)
{
	return &l->uv;
}

void loop_run(struct loop *l)
{
	uv_run(&l->uv, UV_RUN_DEFAULT);
}

static void *loop_main(void *arg)
{
	loop_run(arg);
	return NULL;
}

int loop_start(struct loop *l)
{
	return thread_start(&l->thread, loop_main, l);
}

void loop_join(struct loop *l)
{
	pthread_join(l->thread, NULL);
}
