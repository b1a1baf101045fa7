/* SPDX-License-Identifier: BSD-3-Clause */
/* The last bytes of what came: tail.h. */
#include "dvm/core/tail.h"

#include <stdlib.h>
#include <string.h>

void tail_add(struct tail *t, const char *data, size_t len)
{
	size_t keep;

	if (!t->bytes)
		t->bytes = malloc(DVM_TAIL_MAX);
	if (!t->bytes)
		return;
	if (len >= DVM_TAIL_MAX) {
		memcpy(t->bytes, data + len - DVM_TAIL_MAX, DVM_TAIL_MAX);
		t->len = DVM_TAIL_MAX;
		return;
	}
	keep = t->len + len > DVM_TAIL_MAX ? DVM_TAIL_MAX - len : t->len;
	memmove(t->bytes, t->bytes + t->len - keep, keep);
	memcpy(t->bytes + keep, data, len);
	t->len = keep + len;
}
