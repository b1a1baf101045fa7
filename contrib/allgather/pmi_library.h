/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI library that the process already uses, whichever it is, and what the
 * ring needs of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmi2x_allgather.h"

/*
 * Find the functions: of the library that PMI2X_ALLGATHER_PMI names, else of the
 * one in the program's scope, else of a libpmi2x or libpmi2 that has been
 * loaded out of sight. All come from one library. False and `why` when there
 * is none.
 */
bool pmi_find(pmi2x_ring_pmi *pmi, char *why, size_t size);

/* The functions that a caller's table must have are there. */
bool pmi_complete(const pmi2x_ring_pmi *pmi);

/*
 * Collective. A fence that is given up after timeout_ms: -ETIMEDOUT. Meanwhile
 * `waiting` is called now and then with the time so far. Without ifence and test
 * it blocks, and does neither. Other errors: -EIO.
 */
int pmi_fence(const pmi2x_ring_pmi *pmi, int64_t timeout_ms,
	      void (*waiting)(void *arg, int64_t waited_ms), void *arg);

/* The value of a key: 1, or 0 when nobody has put it. */
int pmi_lookup(const pmi2x_ring_pmi *pmi, const char *key, char *value,
	       size_t size);

/*
 * After PMI has failed: the server's words, which name who is to blame. False when
 * they are not known.
 */
bool pmi_refusal(const pmi2x_ring_pmi *pmi, char *out, size_t size);
