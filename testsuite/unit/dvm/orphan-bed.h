/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that outlive their head, and wait for another. Heads and nodes are real; what is
 * sent lies in queues, and processes are numbers. A head is lost at any moment: what it
 * has sent still comes, or some of it, and what it was sent is lost.
 */
#pragma once

#include <jansson.h>

#include "requests.h"
#include "starts.h"
#include "dvm/core/head.h"
#include "dvm/core/node.h"
#include "unit.h"

#define NODES 3
#define CORES 4
#define PROCESSES 4096
#define TASKS 64
#define CLIENT 1
#define JOURNAL_MAX ((size_t)64 << 20)
#define QUEUE_MAX ((size_t)1 << 20)

struct bed;

struct fake_node {
	struct bed *bed;
	uint32_t number;
	char name[8];
	struct dvm_node *node;
	struct buf down, up;
	struct starts starts;
	bool gone, left;
	bool lacks; /* it can start nothing */
};

struct process {
	uint32_t node, rank;
	uint32_t part, slot;
	uint64_t task;
	bool runs, killed, polite;
	char cwd[16];
};

struct bed {
	struct dvm_head *head;
	struct dvm_time now;
	struct fake_node nodes[NODES];
	struct process processes[PROCESSES];
	int64_t nprocesses;
	struct buf journal;
	json_t *answer;      /* the last that was no end */
	bool full;           /* nothing can be written */
	bool once;           /* of heads */
	uint32_t away_ms;    /* the same */
	bool down;          /* the head has ended by itself */
	bool gone_for_sure;  /* nodes that are gone have no ranks */
	uint64_t random;
};

#define SUBMIT "{'op':'submit','profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':["

void make_head(struct bed *b, bool adopts);
void tell_node(struct fake_node *n, struct buf *what);
void deliver_down(struct fake_node *n);
void deliver_up(struct fake_node *n);
void deliver_all(struct bed *b);
/* A bed ends with its test. */
struct bed *bed_create(void);
#define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create())
/* Messages that nodes send meanwhile reach nobody. */
void lose_head(struct bed *b);
struct dvm_resumed next_head(struct bed *b, bool once);
struct dvm_resumed change_head(struct bed *b, bool once); /* lose one; the next */
void lose_head_and_node(struct bed *b, uint32_t node);
void ask(struct bed *b, const char *fmt, ...);
void run(struct bed *b, const char *tasks); /* submit them, and deliver all */
void pass(struct bed *b, uint64_t ms);
json_int_t status(struct bed *b, const char *key);
json_t *task(struct bed *b, int id);
const char *shown_state(struct bed *b, int id);
json_int_t instance(struct bed *b, int id);
void end_process(struct bed *b, int64_t i, int32_t status);
void end_now(struct bed *b, int64_t i, int32_t status); /* and deliver all */
void end_killed(struct bed *b);
void reap(struct bed *b); /* end_killed, and deliver all */
void end_all(struct bed *b, int32_t status);
/* Everything, until nothing is left to be done. */
void finish(struct bed *b);
int64_t process_of(const struct bed *b, uint64_t task);
unsigned starts(const struct bed *b, uint64_t task);
unsigned ends(const struct bed *b, uint64_t task);
/* No node keeps anything, or runs anything that its head does not know. */
void assert_nothing_is_kept(struct bed *b);
