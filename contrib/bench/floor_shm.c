/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way "shm": ranks put their records into the image that they share with
 * their node; the last one in wakes the node by an eventfd, and the node wakes
 * all of them by one futex call.
 */
#include "floor.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

struct meeting {
	_Alignas(64) atomic_uint entered; /* of all rounds together */
	_Alignas(64) atomic_uint released; /* rounds; the futex */
};

struct state {
	struct meeting *meeting;
	int wake; /* eventfd */
};

static void prepare(struct floor_node *node)
{
	struct state *state = malloc(sizeof(*state));

	if (!state)
		floor_die(ENOMEM, "state of a node");
	state->meeting = floor_memory(sizeof(*state->meeting), true);
	state->wake = eventfd(0, EFD_CLOEXEC);
	if (state->wake < 0)
		floor_die(errno, "eventfd");
	node->state = state;
}

static void wait_for_release(struct meeting *meeting, uint32_t round)
{
	while (atomic_load(&meeting->released) == round)
		syscall(SYS_futex, &meeting->released, FUTEX_WAIT, round, NULL,
			NULL, 0);
}

static void enter(struct floor_node *node, uint32_t local, uint32_t round)
{
	const struct floor_options *o = &node->run->options;
	struct state *state = node->state;
	uint64_t one = 1;

	floor_fill(floor_record(node, local), o->bytes,
		   node->run->first[node->position] + local, round);
	/* unsigned arithmetic wraps on both sides alike */
	if (atomic_fetch_add(&state->meeting->entered, 1) + 1 ==
	    (round + 1) * floor_ranks(node))
		floor_write(state->wake, &one, sizeof(one));
	wait_for_release(state->meeting, round);
}

static void collect(struct floor_node *node)
{
	const struct state *state = node->state;
	uint64_t count;

	floor_read(state->wake, &count, sizeof(count));
}

static void release(struct floor_node *node)
{
	const struct state *state = node->state;

	atomic_fetch_add(&state->meeting->released, 1);
	syscall(SYS_futex, &state->meeting->released, FUTEX_WAKE, INT_MAX, NULL,
		NULL, 0);
}

const struct floor_way floor_shm = {
	.name = "shm",
	.shared = true,
	.prepare = prepare,
	.enter = enter,
	.collect = collect,
	.release = release,
};
