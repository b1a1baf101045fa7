/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When things happened at a node while a step started and ran: kept in memory,
 * told to srun at the end, where one file of the step is made of it. The format
 * is described in pmi2x-trace(1).
 *
 * Without a trace there is no object, and the engine has no event operation.
 */
#pragma once

#include "agent/step/service_internal.h"

struct registration;

#define TRACE_COLLECTIVES_MAX 64 /* kept of a step, the first; others count */
#define TRACE_ENTERED_MAX 16 /* of these it is kept when each rank entered */
#define TRACE_GROUPS_MAX 64 /* barriers of some ranks: the first at the node */
#define TRACE_LINE_MAX ((size_t)4 << 20) /* bytes of a node's record */

/* With options.trace: make the object, and fill in the two operations of the engine that
   it needs. 0 or -ENOMEM. */
int trace_open(struct service *s);
void trace_free(struct service *s);

/* A rank registers: whatever it says, its message may be nonsense. */
void trace_registered(struct service *s, const struct registration *reg);
/* A link has come up. */
void trace_link(struct service *s);
/* A message of libcoll goes to another node: `bytes` of head and body. */
void trace_sent(struct service *s, const struct coll_msg *msg,
		uint64_t bytes);
/* The node's ranks have ended: tell srun. */
void trace_send(struct service *s);
