/* SPDX-License-Identifier: BSD-3-Clause */
/* The key that connections of PyTorch wait for, in the last line of a step without srun. */
#pragma once

#include "agent/step/service_internal.h"

/*
 * Copy the reason. Where no srun stays with the step, and so adds the ranks, add the key and the
 * number of connections to this node that wait for it.
 */
void store_failure_explain(const struct service *s, const char *why, char out[NODE_WHY_MAX]);
