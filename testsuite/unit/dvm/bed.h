/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Head and nodes of a DVM in one process, without an operating system: what is sent
 * lies in queues until the test delivers it, in any order between different nodes, and
 * processes are numbers that end when the test says so.
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
#define CLIENT 1
#define OTHER_CLIENT 2 /* a test opens it; its events are not kept */

struct queue_of_bytes {
	char **items;
	size_t *lens;
	size_t first, count, cap;
};

struct bed;

struct fake_node {
	struct bed *bed;
	uint32_t number;
	char node_name[8]; /* of which the node keeps the address */
	struct dvm_node *node;
	struct queue_of_bytes down, up;
	struct starts starts;
	bool still;       /* nobody tells it of these */
	size_t limit;     /* of the output of the last part that was given one */
	char name[32];    /* of the files of complete output that were begun last; "": none */
	char written[2][8192]; /* to these, of stdout and stderr */
	size_t written_len[2];
	bool no_files;    /* none can be begun */
	uint32_t ending;  /* the part whose files are to be ended */
	uint32_t stall_ms; /* for which files have taken nothing */
	bool lost;
	bool left;        /* its daemon is to end */
	bool busy;        /* the link to the head has output that is not sent */
};

struct process {
	uint32_t node;  /* whose it is, */
	uint32_t part, slot;  /* and which rank of which part there */
	bool runs;
	bool told;      /* SIGTERM or SIGKILL */
	bool killed;
};

struct bed {
	struct dvm_head *head;
	struct fake_node nodes[NODES];
	struct process processes[PROCESSES];
	int64_t nprocesses;
	struct dvm_time now;
	bool is_full[NODES];        /* the node can start no more than ... */
	uint32_t room[NODES];       /* ... this number of processes at once */
	struct fake_node *pmi_node; /* of the last part that was to have PMI */
	uint32_t pmi_part;
	unsigned pmis, pmi_ends; /* open ones; ended ranks of them */
	bool pmi_is_slow;        /* the test says when it is over */
	json_t *events; /* events that the client got */
	bool reads;     /* the client does; else its connection takes nothing */
	size_t unread;  /* bytes that it has not taken */
	bool ended;
};

#define PROFILE "'profile':{'id':'p','cwd':'/','env':{'A':'b'}}"

/* A bed ends with its test. */
struct bed *bed_create_member(size_t max_waiting, uint32_t member, uint32_t members);
struct bed *bed_create(size_t max_waiting);
#define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create(100))
void say_to_node(struct fake_node *n, const struct dvm_msg *m);
void say_pmi_over(struct fake_node *n, uint32_t part);
/* In any order between nodes: one message of a node, or all until nothing is left. */
void deliver_down(struct fake_node *n);
void deliver_up(struct fake_node *n);
void deliver_all(struct bed *b);
void pass(struct bed *b, uint64_t ms);
void lose(struct bed *b, uint32_t node);
void end_process(struct bed *b, int64_t process, int32_t status);
void end_now(struct bed *b, int64_t process, int32_t status); /* and deliver all */
/* The process could not execute its program, since the node lacked something; deliver all. */
void end_lacking(struct bed *b, int64_t process);
void ask(struct bed *b, const char *fmt, ...);
void request(struct bed *b, const char *fmt, ...); /* ask, and deliver all */
void submit(struct bed *b, const char *tasks);
/* The last event of this name. */
json_t *event(struct bed *b, const char *name);
/* The event that told the client of the end of a task; NULL: nothing. Once at most. */
json_t *end_of(struct bed *b, json_int_t id);
const char *text(json_t *o, const char *key);
long long number(json_t *o, const char *key);
long long status_of(struct bed *b, const char *key);
long long free_cores(struct bed *b);
