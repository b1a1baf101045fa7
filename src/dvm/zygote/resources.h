/* SPDX-License-Identifier: BSD-3-Clause */
/* The resources of a node that tasks may have: slots, GPUs, memory. */
#pragma once

#include <sched.h>

#include "dvm/common/pmix_offer.h"
#include "dvm/core/ledger.h"
#include "dvm/zygote/gpus.h"

/* The unit that counts as one slot. */
enum slot_kind {
	SLOTS_CORES,   /* a core, all its hardware threads */
	SLOTS_THREADS, /* a hardware thread */
	SLOTS_NUMBER,  /* no hardware: ranks are not bound */
};

struct resources_options {
	enum slot_kind slots;
	uint32_t number; /* of slots, with SLOTS_NUMBER */
	uint32_t gpus;   /* RESOURCES_GPUS_FOUND: those of the environment */
};

#define RESOURCES_GPUS_FOUND UINT32_MAX

struct resources {
	const char *node;              /* name of the node */
	const char *dvm;               /* name of the DVM */
	struct pmix_offer pmix;        /* the PMIx server of the node */
	struct ledger_resources has;
	bool bound;                    /* ranks are bound to their slots */
	cpu_set_t cpus[DVM_CORES_MAX]; /* by slot */
	struct gpus gpus;              /* names NULL: GPUs have numbers only */
	struct warm *warm;             /* the interpreter of --preload (warm.h), or NULL */
};

/*
 * Find the resources that this process may use: its affinity, the GPUs that Slurm or the
 * user has named (gpus.h), Slurm's limit of memory or all memory. 0 or a negative errno. *r
 * lives as long as the process.
 */
int resources_find(struct resources *out, const struct resources_options *options);

/* The processors of these slots. False: ranks are not bound to any. */
bool resources_cpus(const struct resources *r, const struct dvm_cores *slots, cpu_set_t *out);

/* Parse "core", "thread" or a number of slots. False: none of these. */
bool resources_parse_slots(struct resources_options *o, const char *text);
