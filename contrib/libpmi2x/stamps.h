/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When this process did what for the first time, for pmi2x-trace: told to the
 * agent in finalize. Off unless the agent asks for it (EXT_ENV_STAMPS).
 */
#ifndef PMI2X_STAMPS_H
#define PMI2X_STAMPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libpmi/extension.h"
#include "libpmi/message.h"

struct stamps {
	bool wanted;
	_Atomic uint64_t at[EXT_STAMPS]; /* CLOCK_MONOTONIC in ns; 0: not yet */
};

/* Read the environment; the rest is 0. */
void stamps_init(struct stamps *t);
void stamps_take(struct stamps *t, enum ext_stamp what);
/* Add the field to a finalize message, when wanted. */
void stamps_write(const struct stamps *t, struct pmi_writer *w);

/* Any thread. */
static inline void stamp(struct stamps *t, enum ext_stamp what)
{
	if (t->wanted)
		stamps_take(t, what);
}

#endif
