/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of each operation, and limits of a request. */
#include "libstore/request.h"

#define ONE 1, 1
#define SOME 1, STORE_REQUEST_KEYS_MAX
#define NO 0, 0

static const struct {
	uint32_t least, most; /* keys */
	bool waits, reads, changes;
} operations[STORE_OPS] = {
	[STORE_SET] = { ONE, .changes = true },
	[STORE_GET] = { SOME, .reads = true },
	[STORE_COMPARE_SET] = { ONE, .changes = true },
	[STORE_ADD] = { ONE, .changes = true },
	[STORE_APPEND] = { ONE, .changes = true },
	[STORE_CHECK] = { SOME, .reads = true },
	[STORE_WAIT] = { SOME, .waits = true, .reads = true },
	[STORE_FETCH] = { SOME, .waits = true, .reads = true },
	[STORE_DELETE] = { ONE, .changes = true },
	[STORE_COUNT] = { NO, .reads = true },
	[STORE_MEET] = { ONE, .waits = true },
	[STORE_MISSING] = { ONE },
};

/* Every number in a text below is one of store.h. */
_Static_assert(STORE_KEY_MAX == 8 << 10 && STORE_VALUE_MAX == 8 << 20 &&
	       STORE_REQUEST_KEYS_MAX == 128 << 10 && STORE_REQUEST_NAMES_MAX == 16 << 20,
	       "texts");

const char *request_check(const struct store_request *rq)
{
	uint64_t bytes = 0;

	if ((unsigned)rq->op >= STORE_OPS)
		return "the request is unknown";
	if (rq->nkeys < operations[rq->op].least || rq->nkeys > operations[rq->op].most)
		return "the request has a wrong number of keys (128 Ki at most)";
	for (uint32_t i = 0; i < rq->nkeys; i++) {
		if (rq->keys[i].len > STORE_KEY_MAX)
			return "a key or name has more than 8 KiB";
		bytes += rq->keys[i].len;
	}
	if (rq->value.len > STORE_VALUE_MAX || rq->expected.len > STORE_VALUE_MAX)
		return "a value has more than 8 MiB";
	return bytes > STORE_REQUEST_NAMES_MAX ?
		       "the keys of a request have more than 16 MiB" : NULL;
}

bool request_waits(const struct store_request *rq)
{
	return operations[rq->op].waits;
}

bool request_reads(const struct store_request *rq)
{
	return operations[rq->op].reads;
}

bool request_reads_key(const struct store_request *rq)
{
	return request_reads(rq) && rq->nkeys == 1;
}

bool request_changes(const struct store_request *rq)
{
	return operations[rq->op].changes;
}
