/* SPDX-License-Identifier: BSD-3-Clause */
/* The resources of a node that tasks may have: slots, GPUs, memory. */
#ifndef PMI2X_DVM_RESOURCES_H
#define PMI2X_DVM_RESOURCES_H

#include <sched.h>

#include "dvm/common/pmix_offer.h"
#include "dvm/core/ledger.h"
#include "dvm/zygote/gpus.h"

/* The unit that counts as one slot. */
enum slot_kind {
	SLOTS_CORES,   /* a core, all its hardware threads */
	SLOTS_THREADS, /* a hardware thread */
	SLOTS_NUMBER,  /* nothing of the machine: ranks are not bound */
};

struct resources_options {
	enum slot_kind slots;
	uint32_t number; /* of slots, with SLOTS_NUMBER */
	uint32_t gpus;   /* RESOURCES_GPUS_FOUND: those of the environment */
};

#define RESOURCES_GPUS_FOUND UINT32_MAX

struct resources {
	const char *node;              /* its name */
	const char *dvm;               /* whose it is */
	struct pmix_offer pmix;        /* its PMIx server */
	struct ledger_resources has;
	bool bound;                    /* ranks are bound to their slots */
	cpu_set_t cpus[DVM_CORES_MAX]; /* by slot */
	struct gpus gpus;              /* names NULL: their numbers */
};

/*
 * Find out what this process may use: its affinity, the GPUs that Slurm or the user has
 * named (gpus.h), Slurm's limit of memory or all of it. 0 or a negative errno. For the life of the process.
 */
int resources_find(struct resources *out, const struct resources_options *options);

/* "core", "thread" or a number of slots. False: it is none of these. */
bool resources_parse_slots(struct resources_options *o, const char *text);

#endif
