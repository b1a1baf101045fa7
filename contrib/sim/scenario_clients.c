/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that ranks can carry out the operations in the protocol that they use. */
#include "libpmi/message.h"
#include "libshm/records.h"
#include "scenario.h"

/* The limit of values that are not put: two of a ring go into one message. */
#define VALUE_MAX 65536

/* By enum scenario_clients. */
static const struct {
	bool ring, gather, nonblocking;
	uint32_t key_max, put_max; /* bytes */
	const char *allowed;
} protocols[] = {
	[CLIENTS_PMI1] = {
		.key_max = PMI_KEYLEN_MAX - 1, .put_max = PMI_VALLEN_MAX - 1,
		.allowed = "fence, keys of up to 63 bytes, values of up to 1023",
	},
	[CLIENTS_PMI2] = {
		.ring = true,
		.key_max = PMI_KEYLEN_MAX - 1, .put_max = PMI_VALLEN_MAX - 1,
		.allowed = "fence, keys of up to 63 bytes, values of up to 1023; ring, values of up to 64KiB",
	},
	[CLIENTS_PMI2X] = {
		.ring = true, .gather = true, .nonblocking = true,
		.key_max = RECORD_KEY_MAX, .put_max = VALUE_MAX,
		.allowed = "every operation, values of up to 64KiB",
	},
};

static bool is_able(const struct scenario *s, enum scenario_clients clients,
		    const struct scenario_op *op)
{
	if (op->nonblocking && !protocols[clients].nonblocking)
		return false;
	switch (op->kind) {
	case OP_FENCE:
		return s->key_bytes <= protocols[clients].key_max &&
		       op->bytes <= protocols[clients].put_max;
	case OP_ALLGATHER:
		return protocols[clients].gather && op->bytes <= VALUE_MAX;
	case OP_GROUP:
		return false;
	case OP_RING:
		return protocols[clients].ring && op->bytes <= VALUE_MAX;
	default:
		return true;
	}
}

const struct scenario_op *scenario_unable(const struct scenario *s,
					  enum scenario_clients clients,
					  const char **allowed)
{
	if (clients == CLIENTS_MIXED)
		clients = CLIENTS_PMI2X; /* they can do all that others can */
	*allowed = protocols[clients].allowed;
	for (uint32_t i = 0; i < s->nops; i++)
		if (!is_able(s, clients, &s->ops[i]))
			return &s->ops[i];
	return NULL;
}
