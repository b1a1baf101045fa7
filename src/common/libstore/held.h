/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests at the root that are held until copies have been recalled: definitions that recall.c
 * and held.c share.
 */
#pragma once

#include "libstore/store_private.h"

/* A recall under way. */
struct recalling {
	UT_hash_handle hh;     /* in recall.active, by number */
	UT_hash_handle by_key; /* in recall.keys */
	uint64_t number;
	enum store_space space;
	uint32_t owed;     /* children that have not answered */
	struct held *held; /* requests that wait for its end, in order; the first changes the key */
	char *key;         /* behind `owes` */
	bool owes[];       /* by child: it has not answered */
};

/* ---- recall.c ---- */

/* NULL: the key is not recalled. */
struct recalling *recall_of(const struct recall *r, enum store_space space,
			    const struct store_bytes *key);
/*
 * Recall the copies of the key that the request changes. 0, and the recall, or NULL if none is
 * needed; or -ENOMEM.
 */
int recall_for(struct store *s, enum store_space space, const struct store_request *rq,
	       struct recalling **out);

/* ---- held.c ---- */

/* The recall has ended: carry out what waits for it. */
void held_go_on(struct store *s, struct recalling *x);
void held_free(struct held_source *source);
