/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A checker of histories: was there an order of all operations, each between its request and its
 * answer, in which one store without nodes would have given the same answers? If so for each key,
 * then the store is linearizable. Operations of a client that do not wait keep their order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libstore/store.h"

#define HISTORY_MAX 64   /* operations */
#define HISTORY_NONE (-1) /* the value of a key that does not exist */

struct history_op {
	enum store_op op; /* SET, GET, ADD, COMPARE_SET, DELETE or FETCH */
	uint32_t client, key;
	int64_t value, expected; /* of the request, over 0 */
	int64_t result;          /* of the answer */
	uint32_t asked, answered; /* times; 0: not yet */
};

struct history {
	struct history_op ops[HISTORY_MAX]; /* in the order in which they were asked */
	uint32_t n, time;
};

/*
 * True: there is such an order for the operations on each key that have been answered, and some of
 * the others.
 */
bool history_is_linearizable(const struct history *h);
/*
 * True: each client has had the answers of its operations that do not wait in the order in which
 * it has asked, whatever their keys.
 */
bool history_is_in_order(const struct history *h);

