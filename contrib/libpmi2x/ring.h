/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring: who is left and right of this process, and what they gave. */
#pragma once

#include "call.h"

struct job;

/*
 * Collective. 0 and a place whose values the caller frees; -EMSGSIZE (value is
 * PMI_VALLEN_MAX or longer) or an error of the wire.
 */
int ring_exchange(struct job *job, const char *value, struct ring_place *out);
