/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of a store share.
 *
 *   store.c    clients, the homes, and life
 *   home.h     where keys and meetings are at home
 *   request.c  rules of each request
 */
#ifndef PMI2X_STORE_PRIVATE_H
#define PMI2X_STORE_PRIVATE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "libstore/home.h"
#include "libstore/request.h"
#include "libstore/store.h"

/* A request of a client of this node that is not answered. */
struct own_request {
	UT_hash_handle hh; /* in store.own, by number */
	uint64_t number;
	uint64_t token;
	bool local;
	struct store_client *client;
	struct own_request *prev, *next; /* in the client's list, the latest first */
};

struct store_client {
	struct store *store;
	enum store_space space;
	const struct store_client_ops *ops;
	void *arg;
	struct own_request *requests;
	uint32_t count;
};

struct store {
	struct store_ops ops;
	struct tree_place place;
	const struct layout *layout;
	uint32_t position;
	struct home *here;  /* of what the tasks of this node share among themselves */
	struct home *step;  /* of the step's keys; NULL: another node has them */
	struct own_request *own;
	uint64_t last_number; /* of a request of this node */
	uint32_t waiting;
	bool used;
};

#endif
