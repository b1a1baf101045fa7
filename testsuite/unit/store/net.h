/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores of seven nodes with a rank each, and one client at each node. */
#pragma once

#include "unit.h"

#include <stdio.h>

#include "libstore/store.h"

#define NET_NODES 7 /* 0 has the children 1 and 4, and these have two each */
#define NET_WIDTH 2
#define NET_QUEUE 4096

struct net;

struct net_node {
	struct net *net;
	struct store *store;
	uint32_t position;
	uint32_t sent_up; /* messages to the parent */
	uint64_t under_way[NET_NODES], most_under_way; /* bytes to each node, not delivered */
	int links_wanted;
};

struct net_message {
	uint32_t from, to;
	struct payload *bytes;
};

struct net_client {
	struct store_client *client;
	uint32_t answers;
	struct store_answer last; /* without values */
	size_t value_len;         /* of the first value */
	char value[64], text[STORE_TEXT_MAX];
};

struct net {
	struct layout *layout;
	struct net_node nodes[NET_NODES];
	struct net_client clients[NET_NODES];
	struct net_message queue[NET_QUEUE];
	uint32_t first, count;
	bool cut[NET_NODES]; /* the link to the parent is down */
};

extern struct net net; /* of the test that runs */

/* A test whose stores have no options. */
#define NET_TEST(name) TEST_WITH(name, net_setup, net_teardown)
int net_setup(void **state);
int net_teardown(void **state);

void net_open(struct net *t, const struct store_options *options);
void net_close(struct net *t);
/* Deliver up to `n` messages, oldest first. */
void net_deliver(struct net *t, uint32_t n);
/* Deliver all messages, and those that follow from them. */
void net_settle(struct net *t);
/* A client beside that of the node. */
void net_client(struct net *t, struct net_client *x, uint32_t node);
/* The client asks; STORE_ADD adds 1. Tokens follow from the address of `key`. */
void net_ask(struct net_client *x, uint32_t rank, enum store_op op, const char *key,
	     struct store_bytes value);
