/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a ring: finding PMI, joining, and giving everything back. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "join.h"
#include "pmi_library.h"
#include "pmi2.h"
#include "pmi_gather.h"
#include "settings.h"

/* Slurm's name of the node, or the host's; only what fits into a value. */
static void name_node(char *out)
{
	const char *name = setting_text("SLURMD_NODENAME");

	if (!name) {
		if (gethostname(out, NODE_NAME_MAX))
			snprintf(out, NODE_NAME_MAX, "unknown");
	} else {
		snprintf(out, NODE_NAME_MAX, "%s", name);
	}
	out[NODE_NAME_MAX - 1] = '\0';
	for (char *c = out; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
			*c = '_';
}

static int find_pmi(struct pmi2x_ring *r, const pmi2x_ring_pmi *pmi, char *why)
{
	if (pmi) {
		r->pmi = *pmi;
		if (pmi_complete(pmi))
			return PMI2_SUCCESS;
		snprintf(why, PMI2X_RING_ERROR_MAX, "the table of PMI "
			 "functions is not complete");
		return PMI2_ERR_INVALID_ARG;
	}
	return pmi_find(&r->pmi, why, PMI2X_RING_ERROR_MAX) ? PMI2_SUCCESS
							    : PMI2_ERR_INIT;
}

static int find_place(struct pmi2x_ring *r, char *why)
{
	int code = r->pmi.get_rank(&r->rank);

	if (!code)
		code = r->pmi.get_size(&r->size);
	if (!code && (r->size < 1 || r->rank < 0 || r->rank >= r->size))
		code = PMI2_FAIL;
	if (code)
		snprintf(why, PMI2X_RING_ERROR_MAX, "PMI does not know rank "
			 "and size (error %d): has PMI2_Init been called?",
			 code);
	return code;
}

static int join(struct pmi2x_ring *r, char *why)
{
	struct join j = { .ring = r, .why = why, .blamed = -1 };
	int code;

	if (getrandom(j.nonce, sizeof(j.nonce), 0) != sizeof(j.nonce)) {
		snprintf(why, PMI2X_RING_ERROR_MAX, "no random numbers");
		return PMI2_FAIL;
	}
	join_settings(&j);
	code = join_ring(&j);
	if (code)
		join_close(&j, -1);
	return code;
}

static void release(struct pmi2x_ring *r)
{
	while (r->first) {
		struct op *op = r->first;

		r->first = op->next;
		pmi_gather_free(op);
		free(op);
	}
	flow_free(&r->flow);
	store_free(&r->store);
	group_close(r->group);
	free(r->ranks);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int ring_create(struct pmi2x_ring **out, const struct ring_use *use,
		const pmi2x_ring_pmi *pmi, char *why)
{
	struct pmi2x_ring *r = calloc(1, sizeof(*r));
	int code;

	snprintf(why, PMI2X_RING_ERROR_MAX, "no memory");
	if (!r)
		return PMI2_ERR_NOMEM;
	pthread_mutex_init(&r->lock, NULL);
	r->use = *use;
	name_node(r->node);
	code = find_pmi(r, pmi, why);
	if (!code)
		code = find_place(r, why);
	if (!code)
		code = join(r, why);
	if (code) {
		release(r);
		return code;
	}
	store_init(&r->store, r->group);
	r->counters.elements = r->elements;
	r->counters.members = r->members;
	*out = r;
	return PMI2_SUCCESS;
}

int pmi2x_ring_destroy(pmi2x_ring *r)
{
	bool busy;

	if (!r)
		return PMI2_SUCCESS;
	pthread_mutex_lock(&r->lock);
	busy = false;
	for (struct op *op = r->first; op; op = op->next)
		busy |= op->phase != OP_COMPLETE;
	if (busy)
		ring_fail(r, "rank %d on node %s has destroyed the ring before "
			  "an allgather was complete", r->rank, r->node);
	if (r->transport)
		r->ops->close(r->transport);
	r->transport = NULL;
	pthread_mutex_unlock(&r->lock);
	release(r);
	return PMI2_SUCCESS;
}
