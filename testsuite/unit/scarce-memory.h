/* SPDX-License-Identifier: BSD-3-Clause */
/* A test whose memory comes to an end. */
#pragma once

#include "wrap-memory.h"

static int allowed = -1; /* allocations until one fails; -1: none does */

static bool is_refused(void)
{
	return allowed >= 0 && allowed-- == 0;
}
