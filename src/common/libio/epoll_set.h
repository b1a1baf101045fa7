/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many descriptors behind one of the loop's, told of when something *changes*
 * (EPOLLET), which libuv does not offer. So what has been seen can stay in a
 * socket without being reported again, and a burst of requests of many ranks is
 * one event of the loop.
 *
 * All calls and callbacks are in the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct epoll_set;

/* A descriptor that is watched; part of its owner's object. */
struct watched_fd {
	int fd;
	/*
	 * UV_READABLE, UV_WRITABLE, and with the former UV_DISCONNECT when the
	 * input has an end. `failed`: nothing can be written either.
	 */
	void (*event)(struct watched_fd *e, int events, bool failed);
	/* After it, when all of the same burst have been told. May be NULL. */
	void (*settle)(struct watched_fd *e);
};

/* 0 or a negative errno. */
int epoll_set_open(struct epoll_set **out, uv_loop_t *loop);
/* All descriptors have been removed. Freed in a later turn. */
void epoll_set_close(struct epoll_set *set);

/* Watch for UV_READABLE, UV_WRITABLE; nothing is watched before. 0 or -errno. */
int epoll_set_add(struct epoll_set *set, struct watched_fd *e, int events);
/* Events that have happened already are reported, too. */
void epoll_set_change(struct epoll_set *set, struct watched_fd *e, int events);
/* The object must live to the next turn of the loop. */
void epoll_set_remove(struct epoll_set *set, struct watched_fd *e);
