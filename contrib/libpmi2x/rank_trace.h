/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times at which this process did things first, for pmi2x trace: sent to the agent in
 * finalize. Off unless the agent asks for it (EXT_ENV_RANK_TRACE).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libpmi/extension.h"
#include "libpmi/message.h"

struct rank_trace {
	bool wanted;
	_Atomic uint64_t at[RANK_TRACE_EVENTS]; /* CLOCK_MONOTONIC in ns; 0: not yet */
};

/* Read the environment; the rest is 0. */
void rank_trace_init(struct rank_trace *t);
void rank_trace_take(struct rank_trace *t, enum rank_trace_event what);
/* Add the field to a finalize message, when wanted. */
void rank_trace_write(const struct rank_trace *t, struct pmi_writer *w);

/* Any thread. */
static inline void rank_trace_note(struct rank_trace *t, enum rank_trace_event what)
{
	if (t->wanted)
		rank_trace_take(t, what);
}
