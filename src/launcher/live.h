/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's questions to a running step: a survey of all nodes, for the stall
 * report, and for pmi2x-trace --live, which comes over an abstract unix socket
 * of srun's host, "pmi2x-live/<jobid>/<pid>": whoever connects and has srun's
 * uid, or is root, is sent the survey as JSON, and the end of file.
 *
 * One survey at a time; who asks while one runs gets its result. All in the
 * server's thread.
 */
#ifndef PMI2X_LIVE_H
#define PMI2X_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "libcoll/coll.h"
#include "libutil/log.h"

#define LIVE_CLIENTS_MAX 8
#define LIVE_NAME "pmi2x-live"

struct live;

struct live_ops {
	/* How many nodes the step has, and what they are called. */
	uint32_t (*nodes)(void *arg);
	const char *(*node_name)(void *arg, uint32_t position);
	/* Send CONTROL_QUERY with this id to every agent that is connected. */
	void (*ask)(void *arg, uint32_t query);
	/* Send CONTROL_EXPIRE to the agents that are connected. */
	void (*expire)(void *arg, enum coll_kind kind, uint32_t seq,
		       const char *why);
	/* A line for the user. */
	void (*report)(void *arg, const char *text);
};

/* Without the socket it goes on: 0 or -ENOMEM. Strings are copied. */
int live_open(struct live **out, uv_loop_t *loop, const char *jobid,
	      const struct live_ops *ops, void *arg,
	      const struct log_hook *log);
/* Close handles at once; freed in a later turn of the loop. NULL is allowed. */
void live_close(struct live *l);

/*
 * A node says that its ranks wait long: `age_s` seconds; give_up: too long. While a
 * survey is under way another one follows it, whose answers are not older than this.
 */
void live_stall(struct live *l, uint32_t age_s, bool give_up);
/* The state of a node has come. */
void live_state(struct live *l, uint32_t query, uint32_t position,
		const void *data, size_t len);
/* Is a survey under way that an agent which has just connected can answer? */
bool live_asks(const struct live *l, uint32_t *query);

#endif
