/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agents of three nodes, and who serves the PMIx clients of each: by its messages
 * only.
 */
#pragma once

#include "net.h"

#include "libpmi/pmix_msg.h"

#define BYTES_MAX (8u << 20)

int say_bytes(struct net_node *node, const void *data, size_t len);

int say(struct net_node *node, const struct pmix_msg *m);

int say_rank(struct net *n, enum pmix_msg_type type, uint32_t rank);

/* The first message that has not been read, good until the next of the node; false: none. */
bool hear(struct net_node *node, struct pmix_msg *m);

void hello(struct net_node *node);

/* A step whose ranks are all served and connected. */
struct net *serve(const struct net_options *options);
#define PMIX_TEST(name) TEST_ON(name, struct net *n, serve(NULL))

/* ENTER while it is made. */
struct entering {
	struct pmix_msg m;
	struct buf data;
};

void begin(struct entering *e, uint64_t id, const uint32_t *members,
	   uint32_t count);

void add(struct entering *e, uint32_t rank, const void *bytes, uint32_t len);

int enter(struct entering *e, struct net_node *node);

/* A node's ranks enter, each with `len` bytes, but rank 1 with nothing. */
void enter_named(struct net_node *node, uint64_t id, enum pmix_op op,
		 const char *name, const uint32_t *members, uint32_t count,
		 size_t len);

void enter_node(struct net_node *node, uint64_t id, const uint32_t *members,
		uint32_t count, size_t len);

void enter_nodes(struct net *n, uint64_t id, size_t len);

/* All nodes enter a fence, which ends well. */
void fence(struct net *n, uint64_t id, size_t len);

/* The ranks that give something, in tree order. */
extern const uint32_t givers[5];

/* The node hears that `id` has ended well, with what these ranks have given. */
void assert_ended(struct net_node *node, uint64_t id, const uint32_t *ranks,
		  uint32_t count, size_t len);

void assert_all_ended(struct net *n, uint64_t id, size_t len);

/* As above, but the operation has failed, and that is said. */
void assert_failed(struct net_node *node, uint64_t id, const char *why);

void assert_silence(struct net_node *node);

/* All nodes are ready for direct modex. */
void ready(struct net *n);

void exit_of(struct net *n, uint32_t rank, const struct pmi_exit *end);
