/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a node and the memory that they share: each writes its block into
 * its slot, the leader (member 0) builds the result there, all read it. The
 * memory is an unnamed file, gone with the last process that has it.
 *
 * An operation is a generation: every member posts once, then the leader
 * finishes it. Nobody may post the next one before it has read the result of
 * the last, so one set of slots and one result are enough. A member holds a
 * record lock on its byte of the file while it lives, so that its death is seen
 * without its parent's help and across PID name spaces.
 *
 * Each rank checks the data of the others before it uses them. Errors are negative errno;
 * waits end after some hundred milliseconds at the latest, for the caller to look around.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmi2x_allgather.h"

#define GROUP_MEMBERS_MAX 4096
#define GROUP_VALUE_MAX 1024 /* of what travels over PMI, its NUL included */
#define GROUP_TOKEN_MAX 64   /* of a token, its NUL included */
#define GROUP_LOOK_MS 200    /* longest wait */

struct group;

/* ---- life ---- */

/* Before all else, each member: 0, or an errno and `why` it cannot take part. */
int group_check(char *why, size_t size);
/* The leader's part. 0, or an errno and `why`. */
int group_create(struct group **out, uint32_t members, char *why, size_t size);
/* By which the members find it; `out` has GROUP_TOKEN_MAX bytes. */
void group_token(const struct group *g, char *out);
/* Member `index` (1 and up) attaches. 0, or an errno and `why`. */
int group_attach(struct group **out, const char *token, uint32_t members,
		 uint32_t index, char *why, size_t size);
void group_close(struct group *g); /* NULL is allowed */

/* ---- joining ---- */

/* A neighbour as PMIX_Ring gave it to a member of this node; NULL: the node itself. */
struct group_edges {
	const char *left, *right;
};

/*
 * The leader gives the value by which the node is known in a round (1 and up)
 * of joining; the members wait for it: -EAGAIN until it is there.
 */
void group_give_value(struct group *g, uint32_t round, const char *value);
int group_wait_value(struct group *g, uint32_t round, char *value);
/* A member (the leader as well) has seen its neighbours in the ring. */
void group_join(struct group *g, const struct group_edges *edges);
/* The leader waits for all members: 0, or -EAGAIN. */
int group_wait_joined(struct group *g, uint32_t round);
/*
 * After that: the values of the nodes to the left and right; NULL unless the members of
 * this node follow each other in the ring.
 */
const char *group_left(const struct group *g);
const char *group_right(const struct group *g);

/* ---- operations ---- */

/* Give a block to the next generation. */
int group_post(struct group *g, const void *block, size_t len);
/* All members have posted. Waits while they have not, when told to. */
bool group_entered(struct group *g, bool wait);
/* For messages: a member that has not posted; -1: all have. */
int group_missing(struct group *g);
/* After that, for the leader: the length of a member's block, and the block. */
size_t group_block_len(const struct group *g, uint32_t member);
int group_read_block(struct group *g, uint32_t member, void *out);

/* The leader's memory for a result: at least `size` bytes, or NULL. */
void *group_memory(struct group *g, size_t size);
/* The result is its first `len` bytes. Ends the generation. */
void group_finish(struct group *g, size_t len);
/* The generation has ended. Waits while it has not, when told to. */
bool group_finished(struct group *g, bool wait);
/*
 * After that: the result, until the next post; NULL: the leader has written an invalid one.
 */
const void *group_result(struct group *g, size_t *len);

/* ---- failure ---- */

/* Tell all members; the first text counts. */
void group_fail(struct group *g, const char *text);
/* The text (PMI2X_RING_ERROR_MAX bytes), when somebody has told. */
bool group_failed(const struct group *g, char *text);
/* A member that attached and has died or left; -1: none. */
int group_dead(const struct group *g);
/* As above, among those that have not posted. */
int group_dead_missing(const struct group *g);
bool group_leader_dead(const struct group *g);
