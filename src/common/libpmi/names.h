/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of PMIx clients that publish and look up, which travel from the program that
 * serves the clients (pmix_msg.h) by way of the agents (control.h) to srun, and the
 * answers. A value is what libpmix has packed: nobody between looks into it.
 *
 * Names of PMI are others: neither kind finds the other's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/buf.h"

#define NAMES_BYTES_MAX (1u << 20) /* of a packed request or answer */
#define NAMES_KEYS_MAX 4096        /* of one of them */
#define NAMES_KEY_MAX 511          /* bytes of a key, as PMIx has it */
#define NAMES_ALL_RANKS UINT32_MAX /* of a namespace that has ended */

enum names_op {
	NAMES_PUBLISH = 1,
	NAMES_UNPUBLISH, /* all that the asker has published under the keys; no key: everything */
	NAMES_LOOKUP,
	NAMES_ENDED, /* the asker publishes no more, with NAMES_ALL_RANKS as rank all
	                of its namespace; no keys */
	NAMES_OPS,
};

/*
 * The processes that may see a published name, and those whose names a look-up may
 * find: processes with the same one of these.
 */
enum names_range {
	NAMES_OF_PROCESS = 1,
	NAMES_OF_NODE,
	NAMES_OF_NAMESPACE,
	NAMES_OF_SESSION, /* the step, and all that have been spawned from it */
	NAMES_RANGES,
};

/* A process. */
struct names_proc {
	const char *nspace;
	const char *node; /* of a publisher in an answer: NULL */
	uint32_t rank;
};

struct names_item {
	const char *key;
	const void *value; /* NULL: only the key is meant */
	size_t len;
	struct names_proc from; /* of an answer: who has published it. LOOKUP: of
	                           which namespace somebody is to; NULL: of any */
	const void *ranks;      /* LOOKUP: of these of that namespace none may end
	                           before, u32 each as in pack.h; NULL: of all */
	size_t ranks_len;       /* bytes */
};

struct names_request {
	enum names_op op;
	enum names_range range;
	bool once;           /* PUBLISH: gone when it has been found */
	uint32_t wait;       /* LOOKUP: until this number is there; 0: answer at once */
	uint32_t timeout_ms; /* but not longer; 0: without limit */
	struct names_item *items;
	uint32_t count;
};

struct names_answer {
	int32_t error; /* 0 or a negative errno */
	struct names_item *items;
	uint32_t count;
};

/* Append them. 0, -EMSGSIZE (over a limit), -ENOBUFS or -ENOMEM. */
int names_pack_request(struct buf *b, const struct names_request *r);
int names_pack_answer(struct buf *b, const struct names_answer *a);
/*
 * The unpacked request or answer points into the input; `items` are the caller's to
 * free. 0, -EPROTO or -ENOMEM.
 */
int names_unpack_request(struct names_request *r, const void *data, size_t len);
int names_unpack_answer(struct names_answer *a, const void *data, size_t len);
