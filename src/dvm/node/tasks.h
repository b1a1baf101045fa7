/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI for the parts of a node (dvm/core/node.h) that have several ranks: an agent
 * (agent/agent.h) for each, from its start until all its ranks have been reaped. All calls
 * and callbacks are in the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "dvm/core/node.h"
#include "dvm/node/mesh.h"
#include "libio/loop.h"
#include "libutil/log.h"

struct tasks;

struct tasks_options {
	const char *dvm;  /* name of the DVM; outlives the tasks, as node does */
	const char *node; /* name of the node */
};

struct tasks_ops {
	/*
	 * See dvm_node_pmi_failed, dvm_node_failed_late, dvm_node_pmi_over. May be called
	 * during the calls below. Must not call back.
	 */
	void (*failed)(void *arg, uint32_t part, const struct node_failure *f);
	void (*failed_late)(void *arg, uint64_t task, uint32_t instance,
			    const struct node_failure *f);
	void (*over)(void *arg, uint32_t part);
	/*
	 * Send a message (dvm_msg.h) to the head. 0, or a negative errno: there is no head.
	 */
	int (*say_head)(void *arg, const void *data, size_t len);
	/* See dvm_node_name. */
	bool (*name)(void *arg, uint32_t node, char out[DVM_TEXT_MAX]);
	/* See pool_send; address NULL: only if there is a link already. */
	int (*send)(void *arg, uint32_t node, const struct dvm_address *address,
		    const struct pool_frame *f, const struct payload_vec *body);
	/* See pmix_hub_send, pmix_hub_drop. NULL: PMIx is not offered. */
	void (*pmix_send)(void *arg, uint32_t part, const void *head, size_t len,
			  struct payload *data);
	void (*pmix_drop)(void *arg, uint32_t part);
};

/* Create the tasks of a node; `log` outlives them. 0 or a negative errno. */
int tasks_open(struct tasks **out, struct loop *loop, const struct tasks_options *options,
	       const struct tasks_ops *ops, void *arg, const struct log_hook *log);
/* See struct dvm_node_ops, open_pmi. `registration` is taken over, also on failure. */
int tasks_begin(struct tasks *t, uint32_t part, const struct dvm_launch *l, int registration);
/* See struct dvm_node_ops. The part has begun; tasks_over is the last call for it. */
void tasks_rank_ended(struct tasks *t, uint32_t part, uint32_t slot, int32_t status);
void tasks_over(struct tasks *t, uint32_t part);
void tasks_status(struct tasks *t, uint32_t part, struct buf *out);
/*
 * A frame of the daemon at a node; a frame for an unknown task waits a while. 0 or a
 * negative errno: too much waits.
 */
int tasks_frame(struct tasks *t, uint32_t node, const struct pool_frame *f,
		struct payload *body);
/* A frame of the head for which dvm_msg_for_pmi is true. */
void tasks_head_says(struct tasks *t, const void *data, size_t len);
/* The head is lost; another may come. */
void tasks_head_lost(struct tasks *t);
/* The daemon of this node cannot be reached any more. */
void tasks_node_lost(struct tasks *t, uint32_t node, const char *why);
/* See struct pmix_hub_ops. */
bool tasks_pmix_find(const struct tasks *t, uint32_t address, uint32_t *part);
int tasks_pmix_message(struct tasks *t, uint32_t part, struct payload *message);
void tasks_pmix_lost(struct tasks *t, uint32_t part, const char *why);
/* Leave all tasks alone; no callback follows. NULL is allowed. */
void tasks_close(struct tasks *t);
/* Free them, after the loop has ended. NULL is allowed. */
void tasks_destroy(struct tasks *t);
