/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many descriptors behind one of the loop's, told of when something *changes*
 * (EPOLLET), which libuv does not offer. So what has been seen can stay in a
 * socket without being reported again, and a burst of requests of many ranks is
 * one event of the loop.
 *
 * All calls and callbacks are in the loop's thread.
 */
#ifndef PMI2X_EDGES_H
#define PMI2X_EDGES_H

#include <stdbool.h>
#include <uv.h>

struct edges;

/* A descriptor that is watched; part of its owner's object. */
struct edge {
	int fd;
	/*
	 * UV_READABLE, UV_WRITABLE, and with the former UV_DISCONNECT when the
	 * input has an end. `failed`: nothing can be written either.
	 */
	void (*event)(struct edge *e, int events, bool failed);
};

/* 0 or a negative errno. */
int edges_open(struct edges **out, uv_loop_t *loop);
/* All descriptors have been removed. Freed in a later turn. */
void edges_close(struct edges *set);

/* Watch for UV_READABLE, UV_WRITABLE; nothing is watched before. 0 or -errno. */
int edges_add(struct edges *set, struct edge *e, int events);
/* Also tells of what is there already. */
void edges_change(struct edges *set, struct edge *e, int events);
/* The object must live to the next turn of the loop. */
void edges_remove(struct edges *set, struct edge *e);

#endif
