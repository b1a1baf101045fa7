/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test host: plays agents and slurmstepds for the pmi2x-pmixd of several nodes, all
 * on this machine, with a star between them, and starts unmodified PMIx clients.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "helpers/pmixd/link.h"
#include "libcoll/layout.h"
#include "libpmi/name_store.h"

struct options {
	uint32_t nodes, ranks;
	uint32_t look_ups_max;    /* more of them are a fault */
	uint32_t real;            /* nodes that are there; the others are claimed */
	const char *distribution; /* see fake_layout */
	const char *helper;       /* path of pmi2x-pmixd */
	const char *library, *gds, *collect;
	const char *dir;          /* for the nodes' directories */
	const char *attack;       /* enum attack, by name; NULL: none */
	const char *topology;     /* XML file of the nodes; NULL: none */
	const char *apps;         /* "2,6": sizes of applications; NULL: one */
	bool old;                 /* old clients have a port of their own */
	bool times;               /* say what it has cost */
	char **program;
};

/* A node. */
struct node {
	uint32_t position;
	char dir[200];
	struct link link; /* to its pmi2x-pmixd */
	int host;         /* messages of libconfine/host_msg.h; -1: ended */
	int listener, old_listener;
	uint16_t port, old_port;
	pid_t pid;        /* of pmi2x-pmixd; 0: not known */
	bool ready;
};

struct rank {
	pid_t pid; /* 0: has ended */
	bool finalized, gone;
};

/* A collective that some have entered. */
struct gather {
	struct gather *next;
	enum pmix_op op;
	char name[32];     /* of a group */
	uint32_t *members; /* NULL: all */
	uint32_t count;
	uint64_t *ids;     /* by position; 0: not entered */
	struct buf *given; /* by position: entries */
	uint32_t entered, expected;
};

/* A look-up on its way. */
struct look_up {
	struct look_up *next;
	uint64_t id, asker_id;
	uint32_t asker;
};

struct host {
	const struct options *options;
	struct layout *layout;
	char **names;
	struct node *nodes; /* options->real of them */
	struct rank *ranks;
	struct gather *gathers;
	struct look_up *look_ups;
	struct name_store *name_store;
	uint64_t last_id;
	uint32_t running;   /* ranks */
	bool started;
	int result;         /* exit code; -1: goes on */
	bool signalled;     /* a rank has been killed */
	uint32_t look_ups_made;
	uint64_t fences;
};

#define NSPACE_NAME "pmi2x.test.0"

/* ---- host-node.c ---- */

/* Start pmi2x-pmixd of a position. 0 or a negative errno. */
int node_start(struct node *n, const struct host *h, uint32_t position);
/* Make the node end. True: it did. */
bool node_stop(struct node *n);
/* Start a rank. 0 or a negative errno. */
int node_start_rank(const struct node *n, const struct host *h, uint32_t rank,
		    pid_t *pid);
/* Seconds of processor time and KiB of memory of a pmi2x-pmixd. */
double node_seconds(const struct node *n);
long node_memory(const struct node *n);

/* ---- host-agent.c ---- */

/* A message of a node's pmi2x-pmixd. 0 or a negative errno. */
int agent_message(struct host *h, struct node *n, const struct pmix_msg *m);
/* A rank has ended without goodbye: what it is in fails. */
void agent_rank_gone(struct host *h, uint32_t rank);

/* See name_answer_fn. */
int agent_answer_names(void *arg, const struct name_asker *to,
		       const struct names_answer *a);

/* ---- host.c ---- */

void host_end(struct host *h, int result);
