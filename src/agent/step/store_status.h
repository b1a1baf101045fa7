/* SPDX-License-Identifier: BSD-3-Clause */
/* The waits for keys of the store, for srun: libpmi/status.h. */
#pragma once

#include "agent/step/service_internal.h"
#include "libutil/buf.h"

/*
 * Add the waits of a status: `wait` is a line or empty. `seconds`: how long this node's oldest wait
 * has lasted; it is left out where `key_counts` is false. 0 or a negative errno.
 */
int store_status_pack(const struct service *s, const char *wait, bool key_counts, uint32_t seconds,
		      struct buf *out);
