/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the description of a task: see head_submit.c for the request. */
#ifndef PMI2X_DVM_HEAD_SPEC_H
#define PMI2X_DVM_HEAD_SPEC_H

#include "dvm/core/head_private.h"

/* A task that is being read. */
struct spec_reading {
	struct dvm_head *h;
	json_t *json;
	struct task_spec spec;
	const char *profile; /* its id, or NULL: the request's */
	uint64_t line;       /* see journal_submit */
	struct head_spawn *spawned; /* NULL: a client wants it */
	bool may_not_fit;    /* nodes that it needs are lost: it waits */
	const char *key;     /* what is wrong, NULL: nothing is */
	bool full;           /* only that the queue has no room now */
	char why[256];
};

/* A key is wrong: the first that is counts. */
void spec_wrong(struct spec_reading *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* In one of its texts, at any depth. */
bool spec_has_nul(json_t *v);
/* Read `json` into `spec`, which is to be freed by the caller also when a key is wrong. */
void spec_read(struct spec_reading *r);

#endif
