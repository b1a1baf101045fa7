/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the processes of a job become a ring.
 *
 * 1. Each leader finds out what its node has. A leader that lacks something puts one key
 * that says so; a fence, which all enter, and a look whether anybody has put
 *    it: so all know, and have no other data to carry, what all have. A setting
 *    that is invalid, of any rank, ends it for all in the same way.
 * 2. PMIX_Ring with the value of the own element, which the ranks of a node
 *    learn from their leader through shared memory: the ranks at the edges of a
 *    node see the neighbours' values.
 * 3. The leaders connect. A leader that cannot connect puts a key, and closes what it has
 * opened, so that its neighbours need not wait for it; another fence, another look. When
 *    anybody has put it, all go back to 2 without what did not work. The reason
 *    that all give is that of one of them, or nearer to the cause: of the
 *    neighbour that it blames, while that one has put a reason too.
 *
 * So no process goes on with a ring that another one has given up. Without any
 * transport that all have, blocks go over PMI.
 */
#pragma once

#include "pmi2.h"
#include "ring.h"

#define JOIN_CONNECT_S 30 /* PMI2X_ALLGATHER_CONNECT_TIMEOUT */
#define JOIN_PMI "pmi"    /* in PMI2X_ALLGATHER_TRANSPORT: no transport */

/* How far this process has said that it is in a fence. */
enum join_said { SAID_NOTHING, SAID_NODE, SAID_JOB };

struct join {
	struct pmi2x_ring *ring;
	char *why;             /* PMI2X_RING_ERROR_MAX bytes */
	const char *allowed;   /* transports, separated by commas; NULL: all */
	int64_t connect_ms;
	char wrong[TRANSPORT_REASON_MAX]; /* a setting, and why; or empty */
	int nodes;             /* 0: it is not known who shares a node */
	bool grouped;          /* ranks of a node are one element */
	char mapping[PMI2_MAX_ATTRVALUE]; /* of ranks to nodes, if grouped */
	enum join_said said;
	unsigned char nonce[TRANSPORT_NONCE_LEN];
	struct transport *open[TRANSPORT_NAMES_MAX]; /* by transport_names */
	uint32_t round;        /* of connecting, from 1 */
	char bad[PMI2X_RING_ERROR_MAX]; /* the error of this element; "": none */
	bool bad_group;        /* ... of the shared memory, not of the links */
	int blamed;            /* ... the neighbour it lies with; -1: none */
	bool late;             /* ... and no more is known than the time */
};

/* Members, transport, neighbours. 0, or a code of pmi2.h and `why`. */
int join_ring(struct join *j);
/* Returns the code, with the reason in j->why. */
int join_fail(struct join *j, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- join_settings.c ---- */

/* Read all but those of the transports; what is wrong is in j->wrong. */
void join_settings(struct join *j);
/* The list names it, or there is no list. */
bool join_allows(const struct join *j, const char *name);

/* ---- join_meet.c ---- */

/*
 * A fence of the job in bounded time. 0, or a code of pmi2.h and j->why, which
 * names a rank that has not come, the same one everywhere.
 */
int join_meet(struct join *j);
/* As above, for another collective of PMI that has failed with an error. */
int join_blame(struct join *j, int error);

/* ---- join_round.c ---- */

/*
 * One round: form the ring over PMI, and connections over transport `name` (NULL: one
 * element, no links). All elements take part to the end, also after an error, which is in
 * j->bad. -EIO: PMI has failed.
 */
int join_round(struct join *j, const char *name);

/* Note what does not work here; the first counts. */
void join_bad(struct join *j, bool group, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Open a transport. 0, or an errno and `why` (TRANSPORT_REASON_MAX bytes); -EINVAL:
 * one of its settings is invalid.
 */
int join_open(struct join *j, int index, char *why);
/* Close all, but not transport `keep` (-1: none). */
void join_close(struct join *j, int keep);

/* ---- neighbours.c ---- */

/* The text that an element passes to its neighbours over PMIX_Ring. */
struct element_value {
	char transport[16];
	int rank;              /* of its leader */
	char node[NODE_NAME_MAX];
	unsigned char nonce[TRANSPORT_NONCE_LEN];
	char address[TRANSPORT_ADDRESS_MAX];
};

/* `out` has GROUP_VALUE_MAX bytes. */
void value_print(const struct element_value *v, char *out);
/* The value of an element that cannot join; its ranks say why. */
void value_print_absent(int rank, char *out);
/*
 * 0, or `why` (TRANSPORT_REASON_MAX bytes): -ENOTCONN for an element that cannot
 * join, of which only the rank is known; -EPROTO, and rank -1, for what is no value.
 */
int value_parse(struct element_value *v, const char *text, char *why);
