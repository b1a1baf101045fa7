/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts that peers and services share: which node this is, how it proves that, the
 * loop, and what is around them. The owner fills it in before it makes them; it
 * outlives them. The loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/host.h"
#include "agent/setup.h"
#include "libio/link.h"
#include "libio/loop.h"
#include "libutil/log.h"

#define NODE_WHY_MAX 512 /* bytes of a reason */

struct node {
	struct loop *loop;
	const struct log_hook *log;
	const struct agent_options *options;
	const struct agent_host *host;
	const struct layout *layout;   /* of the nodes that have links */
	const char *const *names;      /* by node id */
	struct handshake_self self;    /* its position, too */
	struct link_options link_options;
	const struct known_address *known; /* all nodes, with agent_options.knows_nodes */
	uint32_t nknown;
	uint16_t port;                 /* where it listens for neighbours */
	bool met_other_settings;       /* the same of agent_options.settings */
	bool met_other_build;          /* and the log has the line about it */
	/* See node_give_up. */
	void (*give_up)(void *arg, const char *what, int error);
	void *give_up_arg;
};

/* The names of the node at a position, and of this one, for messages. */
const char *node_name(const struct node *n, uint32_t position);
const char *node_own_name(const struct node *n);

/* The time of the loop, ms. */
uint64_t node_now(const struct node *n);

/* The other end of a link is proved; when its build is another one, say so once. */
void node_met(struct node *n, const char *who, const struct link *l);

/*
 * The step cannot go on with this node, because something is lacking: say so and
 * have it ended, from the loop's next turn on. `what` follows the node's name. Only
 * the first counts.
 */
void node_give_up(const struct node *n, const char *what, int error);

/* End the step through the host, because srun cannot be reached. */
void node_kill_step(const struct node *n, const char *why);

/* Close a handle that is part of a longer-lived object; idempotent. */
void node_close_handle(void *handle);
