/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects the pieces of a message in their order. */
#include "helpers/pmixd/pieces.h"

#include <errno.h>

void pieces_init(struct pieces *p, size_t limit)
{
	payload_vec_init(&p->list);
	buf_init(&p->last, limit);
}

void pieces_free(struct pieces *p)
{
	payload_vec_clear(&p->list);
	buf_free(&p->last);
}

int pieces_end(struct pieces *p)
{
	struct payload *fields;
	int rc;

	if (!p->last.len)
		return 0;
	fields = payload_take(&p->last);
	if (!fields)
		return -ENOMEM;
	rc = payload_vec_add(&p->list, fields);
	payload_unref(fields);
	return rc;
}

int pieces_add(struct pieces *p, struct payload *data)
{
	int rc = pieces_end(p);

	return rc ? rc : payload_vec_add(&p->list, data);
}
