/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching what one rank has put, whether or not a fence has brought it. Needs a
 * server that knows it, or none: of a job of one the rank is asked itself.
 */
#pragma once

#include "call.h"
#include "libpmi/message.h"

struct job;

/* A fetch between start and finish. The caller owns it; it must not move. */
struct fetch {
	struct call call;   /* ends with the fetch */
	struct value value; /* of a job of one */
	int rank;
	char key[PMI_KEYLEN_MAX];
};

/*
 * Post it; `timeout` in ms, -1: no limit. After 0 the caller waits for f->call, then
 * finishes or drops it. -ENOTSUP: there is nobody who knows it; -EINVAL (no such rank,
 * empty key, a timeout below -1), -ENAMETOOLONG, or an error of the wire.
 */
int fetch_start(struct job *job, int rank, const char *key, int timeout,
		struct fetch *f);
/* The value, which the caller frees. 0, -ENOENT or an error of the wire. */
int fetch_finish(struct job *job, struct fetch *f, struct value *out);
void fetch_drop(struct fetch *f);
/* Fetches that are under way end with an error. */
void fetch_cancel_all(struct job *job);
