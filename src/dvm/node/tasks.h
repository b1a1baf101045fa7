/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI for the tasks of a node that have several ranks: an agent (agent/agent.h) for each,
 * from when its part is started until all its ranks have been reaped. The zygote says
 * over a socket which parts there are, and how their ranks end (dvm_msg.h); what fails
 * for them it is told as DVM_FAIL.
 *
 * All calls and callbacks are in the loop's thread.
 */
#ifndef PMI2X_DVM_TASKS_H
#define PMI2X_DVM_TASKS_H

#include <stdbool.h>
#include <stddef.h>

#include "dvm/node/mesh.h"
#include "libio/loop.h"
#include "libutil/log.h"

struct tasks;

struct tasks_options {
	const char *dvm;  /* whose they are; outlives the tasks, as node does */
	const char *node; /* its name */
};

struct tasks_ops {
	/* A message (dvm_msg.h) for the zygote; copied. Must not call back. */
	void (*say)(void *arg, const void *data, size_t len);
	/* As above, for the head. 0, or a negative errno: there is none. */
	int (*say_head)(void *arg, const void *data, size_t len);
	/* See pool_send; address NULL: only if there is a link already. */
	int (*send)(void *arg, uint32_t node, const struct dvm_address *address,
		    const struct pool_frame *f, const struct payload_vec *body);
	/* See pmix_hub_send, pmix_hub_drop. NULL: PMIx is not offered. */
	void (*pmix_send)(void *arg, uint32_t part, const void *head, size_t len,
			  struct payload *data);
	void (*pmix_drop)(void *arg, uint32_t part);
};

/*
 * `fd`, a SOCK_SEQPACKET pair's end, is taken over, also on failure. `log` outlives the
 * tasks. 0 or a negative errno.
 */
int tasks_open(struct tasks **out, struct loop *loop, int fd,
	       const struct tasks_options *options, const struct tasks_ops *ops,
	       void *arg, const struct log_hook *log);
/*
 * A frame of the daemon at a node; one for a task that is not known waits a while.
 * 0 or a negative errno: too much waits.
 */
int tasks_frame(struct tasks *t, uint32_t node, const struct pool_frame *f,
		struct payload *body);
/* A frame of the head's that is dvm_msg_for_pmi. */
void tasks_head_says(struct tasks *t, const void *data, size_t len);
/* It is lost; another may come. */
void tasks_head_lost(struct tasks *t);
/* That daemon cannot be reached any more. */
void tasks_node_lost(struct tasks *t, uint32_t node, const char *why);
/* See struct pmix_hub_ops. */
bool tasks_pmix_find(const struct tasks *t, uint32_t address, uint32_t *part);
int tasks_pmix_message(struct tasks *t, uint32_t part, struct payload *message);
void tasks_pmix_lost(struct tasks *t, uint32_t part, const char *why);
/* Leave them all alone; says nothing more. NULL is allowed. */
void tasks_close(struct tasks *t);
/* After the loop has ended. NULL is allowed. */
void tasks_destroy(struct tasks *t);

#endif
