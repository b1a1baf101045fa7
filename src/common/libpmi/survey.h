/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A survey of a step: the states of its nodes, as they come in, and what they
 * say together: which collective waits for whom. Used by srun's server for the
 * stall report and for pmi2x-trace --live. One thread at a time.
 */
#ifndef PMI2X_SURVEY_H
#define PMI2X_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include "libpmi/state.h"

#define SURVEY_NODES_MAX (1u << 20)
#define SURVEY_MS 5000 /* then nodes that have not answered are silent */
#define SURVEY_TEXT_MAX 1024 /* bytes of a report, NUL included */
#define SURVEY_JSON_MAX ((size_t)256 << 20)

struct survey;

/* The name of the node at a position; valid while the survey is. */
typedef const char *(*survey_name_fn)(void *arg, uint32_t position);

/* Of a step of so many nodes. 0, -EINVAL or -ENOMEM. */
int survey_create(struct survey **out, uint32_t nodes, survey_name_fn name,
		  void *arg);
void survey_destroy(struct survey *s);

/* The packed state of a node. 0; -EPROTO, -EEXIST or -ENOMEM: left out. */
int survey_add(struct survey *s, uint32_t position, const void *data,
	       size_t len);
bool survey_complete(const struct survey *s); /* every node has answered */

/* A collective that has been entered and has not ended everywhere. */
struct stalled {
	enum coll_kind kind;
	uint32_t seq;
	uint32_t age_ms;  /* of the node that has waited longest */
	uint32_t missing; /* ranks; 0: all are in, or their nodes are silent */
};

/* The oldest of a kind that has not ended; false: there is none. */
bool survey_stalled(const struct survey *s, enum coll_kind kind,
		    struct stalled *out);
/*
 * "fence 3: 12 s, waiting for 3 of 4096 ranks: 17, 1024-1025 (nodes n2, n65)".
 * What does not fit is counted. Returns `out`.
 */
const char *survey_text(const struct survey *s, const struct stalled *what,
			char out[SURVEY_TEXT_MAX]);

/* All that is known, for tools: an object, described in pmi2x-trace(1). */
int survey_json(const struct survey *s, const char *step, struct buf *out);

#endif
