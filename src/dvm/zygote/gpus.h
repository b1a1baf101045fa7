/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs of a node: those that a DVM may use, and the variable that programs read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dvm/core/ledger.h"

struct gpus {
	uint32_t count;
	char *names[LEDGER_GPUS_MAX]; /* as in the variable: indices, UUIDs, tiles */
	const char *variable;         /* for tasks: that of the vendor */
};

/*
 * Find the vendor by its device files below `dev` (/dev), for Slurm may set the variables
 * of all vendors to one list. Then take the GPUs of the first of the vendor's variables
 * that is set. Without device files the variable that is set tells the vendor. 0 or
 * -ENOMEM; the names live as long as the process.
 */
int gpus_find(struct gpus *out, const char *dev);

/*
 * True: the variable ("NAME=VALUE") selects GPUs. A task has gpus.variable alone: HIP
 * applies its own variables to the GPUs that ROCR_VISIBLE_DEVICES leaves.
 */
bool gpus_is_variable(const char *variable);
