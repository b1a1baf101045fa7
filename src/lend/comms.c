/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator's members on this node, and its group of arrivals. */
#include "lend/comms.h"

#include <stdlib.h>
#include <string.h>

#define COMMS_MAX 64

static struct comm comms[COMMS_MAX];
static uint32_t ncomms;

static int slot_of(const struct lender *l, uint32_t rank)
{
	for (uint32_t i = 0; i < l->ranks; i++)
		if (atomic_load(&l->table->entries[i].ready) == 1 &&
		    l->table->entries[i].facts.rank == rank)
			return (int)i;
	return -1;
}

/* Ranks in MPI_COMM_WORLD of the members; malloc'ed. */
static int *world_ranks(struct hooks *h, lend_arg handle, int *size)
{
	lend_arg group = 0, world = 0; /* a short handle fills the lower half */
	int *ranks, *all;

	MPI(h, Comm_size)(handle, size);
	MPI(h, Comm_group)(handle, &group);
	MPI(h, Comm_group)(h->abi.comm_world, &world);
	ranks = calloc((size_t)*size, sizeof(*ranks));
	all = calloc((size_t)*size, sizeof(*all));
	for (int i = 0; ranks && i < *size; i++)
		ranks[i] = i;
	if (ranks && all)
		MPI(h, Group_translate_ranks)(group, (lend_arg)*size, ranks, world, all);
	MPI(h, Group_free)((lend_arg)&group);
	MPI(h, Group_free)((lend_arg)&world);
	free(ranks);
	return all;
}

static void learn(struct hooks *h, struct comm *c, lend_arg handle)
{
	int size, slot, inter = 0, *ranks;

	c->handle = handle;
	c->group = ARRIVALS_NONE;
	MPI(h, Comm_test_inter)(handle, &inter);
	ranks = inter ? NULL : world_ranks(h, handle, &size);
	if (!ranks)
		return;
	c->slots = calloc((size_t)size, sizeof(*c->slots));
	c->ranks = calloc((size_t)size, sizeof(*c->ranks));
	for (int i = 0; c->slots && c->ranks && i < size; i++) {
		slot = slot_of(h->lender, (uint32_t)ranks[i]);
		if (slot < 0)
			continue;
		c->slots[c->n] = (uint32_t)slot;
		c->ranks[c->n++] = (uint32_t)i;
	}
	if (c->n > 1)
		c->group = arrivals_group(&h->lender->arrivals,
					  arrivals_key((uint32_t *)ranks, (uint32_t)size));
	free(ranks);
}

/* A handle that MPI finds wrong is left to MPI's own call. */
struct comm *comms_find(struct hooks *h, lend_arg handle)
{
	int size;

	handle = lend_abi_handle(&h->abi, handle);
	for (uint32_t i = 0; i < ncomms; i++)
		if (comms[i].handle == handle)
			return comms[i].group == ARRIVALS_NONE ? NULL : &comms[i];
	if (!handle || handle == h->abi.comm_null || ncomms == COMMS_MAX ||
	    MPI(h, Comm_size)(handle, &size))
		return NULL;
	learn(h, &comms[ncomms], handle);
	return comms[ncomms++].group == ARRIVALS_NONE ? NULL : &comms[ncomms - 1];
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

const uint32_t *comms_slot(const struct comm *c, lend_arg rank)
{
	uint32_t wanted = (uint32_t)rank, *found;

	found = bsearch(&wanted, c->ranks, c->n, sizeof(*c->ranks), compare);
	return found ? &c->slots[found - c->ranks] : NULL;
}

void comms_forget(struct hooks *h, const void *handle)
{
	for (uint32_t i = 0; handle && i < ncomms; i++)
		if (comms[i].handle == lend_abi_handle_at(&h->abi, handle)) {
			free(comms[i].slots);
			free(comms[i].ranks);
			comms[i] = comms[--ncomms];
			memset(&comms[ncomms], 0, sizeof(comms[ncomms]));
			return;
		}
}
