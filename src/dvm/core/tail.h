/* SPDX-License-Identifier: BSD-3-Clause */
/* The last bytes of what came. Pure. */
#pragma once

#include <stddef.h>

#include "dvm/core/dvm_msg.h"

struct tail {
	char *bytes; /* DVM_TAIL_MAX, or NULL: nothing came; free() it */
	size_t len;
};

/* Without memory it keeps what it has. */
void tail_add(struct tail *t, const char *data, size_t len);

static inline struct dvm_bytes tail_bytes(const struct tail *t)
{
	return (struct dvm_bytes){ t->bytes, t->len };
}
