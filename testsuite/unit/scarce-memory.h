/* SPDX-License-Identifier: BSD-3-Clause */
/* A test whose memory comes to an end. */
#ifndef PMI2X_SCARCE_MEMORY_H
#define PMI2X_SCARCE_MEMORY_H

#include "wrap-memory.h"

static int allowed = -1; /* allocations until one fails; -1: none does */

static bool is_refused(void)
{
	return allowed >= 0 && allowed-- == 0;
}

#endif
