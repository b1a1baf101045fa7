/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A head with a journal and two nodes, which the test plays: it notes what they are to
 * launch, and reports ends. It counts launches and ends of each task over all heads.
 */
#pragma once

#include "played.h"

#define NODES 2
#define CORES 3
#define TASKS 1300

/* A part that a node runs. */
struct part {
	uint64_t task;
	uint32_t instance, node;
};

/* Facts that the test knows of a task, over all heads. */
struct known {
	uint32_t launches; /* of its first part */
	uint32_t told;     /* ends that the client has got */
	uint32_t instance; /* of the last launch */
};

struct bed {
	struct played p;
	struct part parts[TASKS];
	size_t nparts;
	struct known known[TASKS];
	int submitted; /* tasks that the client knows to be accepted, */
	int refused;   /* and rejected */
	uint32_t lost; /* nodes that the next head loses before it resumes the journal */
};

#define SUBMIT "{'op':'submit','profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':["

/* A bed ends with its test. */
struct bed *bed_create(void);
#define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create())
struct bed *bed_create_as(bool once);
/* Another head goes on with the first `len` bytes of the journal. */
struct dvm_resumed another_head(struct bed *b, size_t len, bool once);
struct dvm_resumed next_head(struct bed *b);
/* Leave out of the journal what the head does not need. */
void make_smaller(struct bed *b);
json_int_t number(struct bed *b, const char *key);
void assert_refused(struct bed *b, const char *why);
/* Part `i` of those that run ends. */
void end_rank(struct bed *b, size_t i, uint32_t rank, int32_t code);
void end_part(struct bed *b, size_t i, int32_t code);
/* The first part of this task ends. */
void end_task(struct bed *b, uint64_t task, int32_t code);
void end_all(struct bed *b);
/* The journal has one end of each task. */
void assert_each_has_ended_once(struct bed *b);
