/* SPDX-License-Identifier: BSD-3-Clause */
/* The way "socket": a rank writes its record to its node and reads an answer. */
#include "floor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* A socket pair for each rank: [0] the node's end, [1] the rank's. */
static int (*pairs_of(const struct floor_node *node))[2]
{
	return node->state;
}

static void prepare(struct floor_node *node)
{
	uint32_t ranks = floor_ranks(node);
	int (*pairs)[2] = calloc(ranks, sizeof(*pairs));

	if (!pairs)
		floor_die(ENOMEM, "socket pairs");
	for (uint32_t i = 0; i < ranks; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]))
			floor_die(errno, "socketpair");
	}
	node->state = pairs;
}

static void enter(struct floor_node *node, uint32_t local, uint32_t round)
{
	const struct floor_options *o = &node->run->options;
	unsigned char *record = floor_record(node, local);
	char answer[FLOOR_ANSWER];
	int fd = pairs_of(node)[local][1];

	floor_fill(record, o->bytes, node->run->first[node->position] + local,
		   round);
	floor_write(fd, record, o->bytes);
	floor_read(fd, answer, sizeof(answer));
}

static void collect(struct floor_node *node)
{
	const struct floor_options *o = &node->run->options;

	for (uint32_t i = 0; i < floor_ranks(node); i++)
		floor_read(pairs_of(node)[i][0], floor_record(node, i),
			   o->bytes);
}

static void release(struct floor_node *node)
{
	static const char answer[FLOOR_ANSWER];

	for (uint32_t i = 0; i < floor_ranks(node); i++)
		floor_write(pairs_of(node)[i][0], answer, sizeof(answer));
}

const struct floor_way floor_socket = {
	.name = "socket",
	.prepare = prepare,
	.enter = enter,
	.collect = collect,
	.release = release,
};
