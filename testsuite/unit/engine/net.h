/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step in memory for tests of the server engine: one server a node, wired by
 * a queue, one srun, and ranks that speak bytes.
 */
#ifndef PMI2X_SERVER_NET_H
#define PMI2X_SERVER_NET_H

#include "unit.h"

#include <stdbool.h>

#include "libengine/pmi_server.h"
#include "libpmi/message.h"
#include "libpmi/step_services.h"

#define NET_NODES 3
#define NET_RANKS 6
#define NET_WAKE_FD 1000 /* passed to ranks; nobody reads it */

struct net;

struct net_rank {
	struct buf out; /* what the server has sent and nobody has read */
	int fd;         /* passed last, or -1 */
	int fds;        /* how many were passed */
	bool closed;
	char *last;     /* what the last reader returned */
};

struct net_node {
	struct net *net;
	uint32_t position;
	struct pmi_step step;
	struct region_writer *region;
	struct slots *slots; /* NULL: none */
	struct pmi_server *server;
	int wakes;           /* of those who wait on the slots */
	int tidies;          /* asked for later */
	int tidies_soon;     /* of them, asked for soon */
	int agains;
	int links_wanted;
	int topology_wanted;
	uint64_t now;        /* ms */
	uint64_t timer;      /* of fetches; 0: it is not set */
	int ends;            /* the server wants the step to end, */
	int end_code;        /* with this exit code, */
	char end_why[COLL_REASON_MAX + 64]; /* for this */
	bool link_lost;
	bool broken[NET_NODES]; /* the link to that node */
	bool pmi;            /* who serves them knows that ranks use PMI */
	uint32_t numbers[NET_RANKS]; /* PMI_RANK and 1 of the process 100 and the index; 0: none */
	int looks;           /* for the process that has a socket, */
	uint32_t near;       /* which may be this one */
	struct buf pmix;     /* what who serves PMIx clients has not read, */
	struct buf heard;    /* and the message that it has read last */
};

struct net_frame {
	uint32_t from, to;
	struct payload *bytes; /* NULL: the link breaks */
	size_t head_len;       /* of a message between nodes */
};

struct net {
	struct layout *layout;
	struct net_node nodes[NET_NODES];
	struct net_rank ranks[NET_RANKS];
	struct net_frame queue[4096];
	size_t head, tail;
	size_t node_bytes; /* of bodies between nodes, ever */
	struct step_services *launcher;
	struct buf control; /* what went to srun last, when it has no launcher */
	struct buf log;
	uint32_t spawn_token;
	uint32_t spawn_procs;
	char not_ready[128]; /* why */
	int abort_code;
	unsigned netinfo_asked;
	char abort_text[64];
	char report[COLL_REASON_MAX]; /* last line for the user */
	int reports;
	int gave_ups;
	int ready;
};

/* Differences from an ordinary step. */
struct net_options {
	bool heap;         /* no shared region */
	bool slots;        /* in through shared memory, too */
	size_t region_size; /* 0: a small one */
	struct budget *budget; /* of node 0 */
	bool no_launcher;
	bool ends;         /* when a collective fails */
	bool spawned;
	const void *preput;
	size_t preput_len;
};

/*
 * Ranks 0 and 3 run on node 0, ranks 1, 2 and 4 on node 1, rank 5 on node 2;
 * all are connected. It ends with the test.
 */
struct net *net_create(const struct net_options *options);
#define NET_TEST(name) TEST_ON(name, struct net *n, net_create(NULL))

struct net_node *net_node_of(struct net *n, uint32_t rank);
uint32_t net_slot_of(struct net *n, uint32_t rank);

/* Give a message to a node, as a host that has read it. */
int net_node_input(struct net_node *node, const struct net_frame *f);

/* Let every frame arrive. */
void net_run(struct net *n);
/* Feed bytes to a rank's server; nothing arrives elsewhere. */
void net_input(struct net *n, uint32_t rank, const void *data, size_t len);
void net_eof(struct net *n, uint32_t rank);
/* As above, and everything arrives. */
void net_hang_up(struct net *n, uint32_t rank);
/* Time passes on all nodes, and then everything arrives. */
void net_pass(struct net *n, uint64_t ms);

/*
 * Send a message in either form, let everything arrive, and return the next
 * answer the rank has not read, without newline or length, or NULL. The string
 * lives until the next call for that rank.
 */
const char *net_pmi1(struct net *n, uint32_t rank, const char *line);
const char *net_pmi2(struct net *n, uint32_t rank, const char *body);
const char *net_pmi2_bytes(struct net *n, uint32_t rank, const char *cmd,
			   const char *key, const void *value, size_t len);
const char *net_read(struct net *n, uint32_t rank);
/* Throw away what no rank has read. */
void net_forget(struct net *n);

/* Bring a rank, or all, to the state after init. */
void net_init1(struct net *n, uint32_t rank);
void net_init2(struct net *n, uint32_t rank);
/* As above, with the extension; returns the fullinit-response. */
const char *net_init_ext(struct net *n, uint32_t rank, int region);
/* As above, for a rank that offers to use slots. */
const char *net_init_slots(struct net *n, uint32_t rank, int slots);

/* The value of a key in a PMI-2 answer as a string the caller frees. */
char *net_field(const char *answer, const char *key);

#endif
