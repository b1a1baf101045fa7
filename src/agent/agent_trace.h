/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When things happened at a node while a step started and ran: kept in memory,
 * told to srun at the end, where one file of the step is made of it. The format
 * is described in pmi2x-trace(1).
 *
 * Without a trace there is no object, and the engine has no event operation.
 */
#ifndef PMI2X_AGENT_TRACE_H
#define PMI2X_AGENT_TRACE_H

#include <stdint.h>

#include "libpmi/server.h"
#include "libutil/buf.h"

#define TRACE_COLLECTIVES_MAX 64 /* kept of a step, the first; others count */
#define TRACE_LINE_MAX ((size_t)4 << 20) /* bytes of a node's record */

struct agent;

/* CLOCK_MONOTONIC in ns. */
int64_t trace_now(void);

/* With options.trace: make the object, and fill in ops->event and rank_trace. */
int agent_trace_open(struct agent *a, struct pmi_host_ops *ops);
void agent_trace_free(struct agent *a);

/* A link has come up or is lost. */
void agent_trace_link(struct agent *a);
/* A message of libcoll goes to another node: so many bytes of head and body. */
void agent_trace_sent(struct agent *a, const struct coll_msg *msg,
		      uint64_t bytes);
/* The node's ranks have ended: tell srun. */
void agent_trace_send(struct agent *a);

#endif
