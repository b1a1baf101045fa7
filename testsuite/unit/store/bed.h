/* SPDX-License-Identifier: BSD-3-Clause */
/* A store on one node, and clients that keep their last answer. */
#pragma once

#include "unit.h"

#include <stdio.h>

#include "libstore/store.h"

#define BED_VALUES_MAX 64

struct bed_client {
	struct store_client *client;
	uint32_t answers;  /* how many have come */
	uint64_t token;    /* of the last one */
	enum store_status status;
	int64_t number;
	uint32_t nvalues;
	char values[BED_VALUES_MAX][256]; /* "-": the key does not exist */
	char text[STORE_TEXT_MAX];
};

struct bed {
	struct layout *layout;
	struct store *store;
	struct store_options options;
};

/* `ranks` ranks on one node, n0. */
void bed_open(struct bed *b, uint32_t ranks);
void bed_close(struct bed *b);
void bed_client(struct bed *b, struct bed_client *c, enum store_space space);
void bed_hang_up(struct bed_client *c);

/* An answer has come, the only one since the last call. */
bool bed_answered(struct bed_client *c);

/* Requests with text for keys and values; a list of keys has blanks. */
void bed_ask(struct bed_client *c, enum store_op op, const char *keys, const char *value);
void bed_compare_set(struct bed_client *c, const char *key, const char *expected,
		     const char *value);
void bed_add(struct bed_client *c, const char *key, int64_t number);
void bed_meet(struct bed_client *c, const char *name, uint32_t rank, const char *value);
/* The value of a key now; "-": it does not exist. */
const char *bed_get(struct bed_client *c, const char *key);
