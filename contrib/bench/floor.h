/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor program: what a fence costs without PMI. One process a node, linked
 * by persistent TCP connections over loopback in a k-ary tree, and R rank
 * processes a node. In each round every rank gives a record, the records travel
 * up the tree and the whole image of all records travels down to every node.
 *
 * Everything here is single-threaded. Functions that return int return 0 or a
 * negative errno; those of the processes below the launcher end their process
 * instead, and with it the run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libcoll/tree.h"

#define FLOOR_NODES_MAX 65536u
#define FLOOR_RANKS_MAX 1048576u /* of all nodes together */
#define FLOOR_BYTES_MAX 262144u  /* as PMI2X_MAX_VALLEN */
#define FLOOR_ROUNDS_MAX 10000u
#define FLOOR_ANSWER 32u /* bytes of the answer to a rank on a socket */

/* Rounds that are not timed: the first is cold, after the last all is checked. */
#define FLOOR_UNTIMED 2u

struct floor_way;

struct floor_options {
	uint32_t nodes;
	uint32_t ranks; /* of one node, on average */
	uint32_t most;  /* of a full node when they are uneven; 0: even */
	uint32_t bytes; /* of one record */
	uint32_t width; /* of the tree */
	uint32_t rounds;
	uint32_t timeout; /* seconds */
	bool meet; /* all ranks, before each round */
	bool check_only;
	const struct floor_way *way;
};

/* CLOCK_MONOTONIC seconds at which a rank entered and left a round. */
struct floor_stamp {
	double in, out;
};

/* Memory that all processes share; `stamps` has a row of all ranks for each round. */
struct floor_run {
	struct floor_options options;
	uint32_t *first; /* rank of each node, and the number of all */
	struct floor_stamp *stamps;
	struct floor_meeting *meeting; /* of all ranks; NULL: they do not meet */
};

/* A node's process. Descriptors are its own. */
struct floor_node {
	const struct floor_run *run;
	struct tree_place place;
	uint32_t position;
	int up;    /* -1 at the root */
	int *down; /* place.children */
	unsigned char *image; /* the records of all ranks, in rank order */
	void *state;          /* of the way */
};

/* How a node and its ranks talk. All functions end the process on failure. */
struct floor_way {
	const char *name;
	bool shared; /* whether the ranks see the node's image */
	/* Called by the node before it forks its ranks. */
	void (*prepare)(struct floor_node *node);
	/* The rank's side of a round: give the record, return when released. */
	void (*enter)(struct floor_node *node, uint32_t local, uint32_t round);
	/* The node's side: all own records into the image. */
	void (*collect)(struct floor_node *node);
	/* The node's side: let all ranks leave the round. */
	void (*release)(struct floor_node *node);
};

extern const struct floor_way floor_socket, floor_shm;

/* ---- floor_node.c ---- */

/* The node process: forks its ranks, carries out the rounds, does not return. */
_Noreturn void floor_node_main(struct floor_node *node);
/* Prints "floor: ..." with errno's text if err is not 0 and ends the process. */
_Noreturn void floor_die(int err, const char *what);
/* The record of a rank of this node in the image. */
unsigned char *floor_record(const struct floor_node *node, uint32_t local);
/* Write what rank `rank` of the job gives in a round. */
void floor_fill(unsigned char *record, uint32_t bytes, uint32_t rank,
		uint32_t round);
void floor_read(int fd, void *data, size_t len);
void floor_write(int fd, const void *data, size_t len);
/* Zeroed memory that processes forked later share, or have a copy of. */
void *floor_memory(size_t len, bool shared);

/* ---- floor_layout.c ---- */

/*
 * Fill first[0..nodes]: ranks are even, or as many nodes are full as can be
 * while each node has a rank, as with pmi2x bench collectives --layout. False: they do not
 * fit, which has been said.
 */
bool floor_layout(const struct floor_options *options, uint32_t *first);

/* ---- floor_meet.c ---- */

struct floor_meeting *floor_meet_create(void);
/* Return once `size` ranks have called it; `round` counts from 0. */
void floor_meet(struct floor_meeting *meeting, uint32_t size, uint32_t round);

/* ---- floor_launch.c ---- */

/*
 * Start all processes and wait for them. When one fails or the time limit
 * passes the others are killed, -ECANCELED or -ETIMEDOUT returned.
 */
int floor_launch(const struct floor_run *run);

/* ---- floor_limits.c ---- */

/*
 * Whether this machine allows a run of this size; otherwise prints which limit
 * is too low, and the command that raises it. Raises soft limits.
 */
bool floor_limits_allow(const struct floor_options *options);

/* Ranks of the node itself. */
static inline uint32_t floor_ranks(const struct floor_node *node)
{
	const uint32_t *first = node->run->first + node->position;

	return first[1] - first[0];
}

/* Ranks of the fullest node. */
static inline uint32_t floor_most(const struct floor_options *options)
{
	return options->most ? options->most : options->ranks;
}

static inline uint32_t floor_size(const struct floor_options *options)
{
	return options->nodes * options->ranks;
}

static inline size_t floor_image_len(const struct floor_options *options)
{
	return (size_t)floor_size(options) * options->bytes;
}
