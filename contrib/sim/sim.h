/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated step: nodes, ranks, messages, and what is counted.
 *
 * A node takes up what comes to it in order of arrival; its processor works on
 * one thing at a time, and what it sends leaves through one network interface
 * (LogGP). So each event is handled at once: node.now moves on by what it costs,
 * and whatever follows from it is put in the future.
 *
 *   build.c     layout, nodes and ranks of a scenario
 *   shape.c     trees
 *   run.c       the loop, and what events do
 *   message.c   sending and receiving: times, counts
 *   faults.c    ranks, nodes and links that die
 *   coll_node.c nodes that are libcoll alone
 *   pmi_node.c  nodes that are libengine's server
 *   client.c    and their ranks, which use PMI
 *   store_node.c nodes that are libstore's store, and its clients
 *   contents.c  what ranks contribute
 *   stock.c     nodes of other designs
 *   stats.c     what is counted
 */
#ifndef PMI2X_SIM_SIM_H
#define LINK_SLOTS 2 /* of a node: to its parent, and back */
#define PMI2X_SIM_SIM_H

#include "events.h"
#include "libcoll/coll.h"
#include "libcoll/layout.h"
#include "libcoll/tree.h"
#include "libpmi/control.h"
#include "libutil/payload.h"
#include "path.h"
#include "scenario.h"

struct sim;
struct servers;

struct sim_rank {
	sim_time busy_until;  /* end of a computation beside a collective */
	uint16_t next;        /* operation, which it is in when it waits */
	bool waiting;
	bool gone;
	bool finished;
};

struct sim_node {
	struct sim *sim;
	void *state;          /* of the protocol; NULL: none, or dead */
	struct path *path;    /* why it is busy */
	sim_time now, cpu_free, out_free, in_free;
	sim_time dead_at;     /* SIM_NEVER: alive */
	double factor;        /* its work takes this many times longer */
	uint64_t held;        /* bytes of contributions and results, and of
	                         messages that have not arrived */
	uint64_t queued;      /* bytes of these messages, each for itself */
	uint64_t held_peak, queued_peak;
	uint32_t position, id, parent, children;
	uint32_t first, nranks; /* its ranks: sim.ranks[first...] */
	uint32_t entering;    /* the group that a rank is just entering; UINT32_MAX */
	bool dead;
};

#define SIM_NEVER INT64_MAX

/* On its way. The head is what the protocol packed. */
struct sim_message {
	struct path *path;
	struct payload *body; /* kept by the sender; NULL: none */
	uint64_t body_len;
	uint64_t wire;        /* bytes with its frame */
	uint32_t from, to;    /* positions */
	sim_time inside;      /* time of the bytes at a network interface */
	uint32_t steps;       /* the longest chain of messages up to this one */
	uint16_t phase, head_len, head_room;
	unsigned char head[];
};

/* The counts of a phase, for a node, and for a link in one direction. */
struct node_count {
	uint64_t bytes_sent, bytes_received;
	uint32_t sent, received;
	uint32_t steps;
	uint64_t values; /* of keys of the store, that it has sent to children */
};

struct link_count {
	uint64_t bytes;
	uint32_t messages;
};

/* An operation of the scenario, or what belongs to none. */
struct phase {
	sim_time first_entry, last_entry, first_exit, last_exit;
	uint32_t entered, succeeded, failed; /* ranks */
	uint32_t last_rank;   /* that entered last */
	uint64_t messages, bytes;
	uint32_t steps;
	struct path *path;    /* to the last exit */
	char reason[160];     /* of the first failure */
};

struct sim_protocol {
	uint32_t width;       /* of its tree; 0: the scenario's */
	bool host;            /* the root is another machine, without ranks, */
	bool star;            /* every node is its child */
	bool filled;          /* the tree is filled as Slurm's (shape.c) */
	bool connects;        /* a connection, an authentication and a fork for each
	                         message, but for those to the host */
	bool faults;          /* ranks, nodes and links may die */
	/* Before the first node and after the last; NULL: nothing to do. */
	int (*open)(struct sim *s);
	void (*close)(struct sim *s);
	/* 0, or -1 with sim.error. */
	int (*create)(struct sim *s, struct sim_node *n);
	void (*destroy)(struct sim_node *n);
	/* The rank in `slot` enters operation `op`. */
	void (*enter)(struct sim_node *n, uint32_t slot, uint32_t op);
	/* The rank in `slot`, which has called rank_asks_on, goes on with it. NULL: none does. */
	void (*more)(struct sim_node *n, uint32_t slot, uint32_t op);
	/*
	 * The rank has left the collective, whatever its result, and looks at the data.
	 * NULL: nothing to do.
	 */
	void (*look)(struct sim_node *n, uint32_t slot, uint32_t op);
	void (*receive)(struct sim_node *n, struct sim_message *m);
	void (*rank_gone)(struct sim_node *n, uint32_t slot, const char *why);
	void (*link_lost)(struct sim_node *n, uint32_t peer, const char *why);
	/* A text for people: the event that it waits for when nothing happens any more. */
	void (*describe)(const struct sim_node *n, char *out, size_t len);
};

struct sim {
	const struct scenario *scenario;
	const struct sim_protocol *protocol;
	struct layout *layout;
	struct servers *servers;  /* see pmi_node.c; NULL: nodes are none */
	struct sim_node *nodes;   /* by position, then the host */
	uint32_t nnodes, nhosts;  /* with ranks; all */
	struct sim_rank *ranks;   /* in tree order */
	uint32_t nranks;
	uint32_t width;
	struct events events;
	struct sim_random random;
	struct sim_random work; /* of the lengths of work */
	double drift;           /* all work of this run takes so much longer */
	uint16_t seq_of[SCENARIO_OPS_MAX];           /* of its kind */
	uint16_t op_of[3][SCENARIO_OPS_MAX];         /* [kind][seq] */
	uint64_t unit_len[SCENARIO_OPS_MAX];         /* see contents.h */
	/* A group: the key of its messages, from the first of them on. */
	unsigned char group_key[SCENARIO_OPS_MAX][COLL_KEY_SIZE];
	bool group_known[SCENARIO_OPS_MAX];
	struct phase phases[SCENARIO_OPS_MAX + 1];   /* the last: no operation */
	uint32_t nphases;
	struct node_count *node_counts; /* see stats_node */
	struct link_count *link_counts; /* see stats_link */
	sim_time *core_free;      /* of the cores that are shared */
	bool fault_done[SCENARIO_FAULTS_MAX];
	sim_time broken_at[SCENARIO_FAULTS_MAX]; /* of links */
	sim_time slow_free[SCENARIO_FAULTS_MAX][2]; /* of slow links */
	bool faulty;              /* something has died */
	sim_time now;             /* of the last event */
	uint64_t handled;         /* events */
	struct sim_message *spare; /* messages to use again */
	uint32_t waiting_for_ever; /* ranks, in the end */
	uint32_t reports;         /* lines that srun would print; */
	char report[CONTROL_TEXT_MAX]; /* the first of them */
	bool failed;              /* error says why the simulation stopped */
	char error[512];
	void (*progress)(void *arg, const struct sim *s);
	void *progress_arg;
};

/* ---- build.c ---- */

/* NULL with a message in `error`. */
struct sim *sim_new(const struct scenario *scenario,
		    char error[SCENARIO_ERROR_MAX]);
void sim_free(struct sim *s);
/* A message of a group comes from a rank that enters this operation. */
void group_seen(struct sim *s, uint32_t op, const struct coll_msg *msg);
/* The kind under which a message of libcoll is counted. */
uint32_t phase_of(const struct sim *s, const struct coll_msg *msg);

/* ---- shape.c ---- */

/* Sets parent and children. */
void shape_place(struct sim_node *n);
/* The position of a child. */
uint32_t shape_child(const struct sim_node *n, uint32_t i);

/* ---- run.c ---- */

/* 0: every rank has come to its end; -1: not, s->error says why. */
int sim_run(struct sim *s);
/* The first error stops the simulation. */
void sim_fail(struct sim *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* An event after the end of time, SIM_TIME_MAX, stops the simulation, too. */
void sim_add(struct sim *s, struct event e);
/*
 * The node's processor takes something up that is there at `at`, because of
 * `cause` (NULL: nothing) or of `rank`; n->now is then when it does so.
 */
void node_begin(struct sim_node *n, sim_time at, struct path *cause,
		uint32_t rank);
void node_spend(struct sim_node *n, double cost);
void node_end(struct sim_node *n);
/* A rank that waits in an operation goes on; `why`: it has failed. */
void rank_exits(struct sim_node *n, uint32_t slot, const char *why);
/* A rank that waits in an operation has got a part, and will do more in it. */
void rank_asks_on(struct sim_node *n, uint32_t slot);
void rank_leaves(struct sim_node *n, uint32_t slot, const char *why);
/* The rank's number. */
uint32_t rank_number(const struct sim *s, uint32_t index);

/* ---- message.c ---- */

/*
 * Send from inside node_begin and node_end. The head is copied; `body` (NULL:
 * none) is referenced until it has arrived.
 */
void message_send(struct sim_node *n, uint32_t to, uint32_t phase,
		  const void *head, size_t head_len, uint64_t body_len,
		  struct payload *body);
void message_arrives(struct sim *s, struct sim_message *m, sim_time at);
void message_free(struct sim *s, struct sim_message *m);
/* A payload that counts as held by the node until its last reference goes. */
struct payload *payload_held(struct sim_node *n, size_t len,
			     struct payload *bytes);

/* ---- faults.c ---- */

/* 0, or -1 with s->error: a link that cannot be. */
int faults_plan(struct sim *s);
void fault_happens(struct sim *s, uint32_t index);
/* Node n's first rank, or this one, enters an operation. */
void faults_in_phase(struct sim_node *n, uint32_t slot, uint32_t op);
/* Whether what left `from` for `to` does not arrive at this time. */
bool fault_takes(const struct sim *s, const struct sim_node *from,
		 const struct sim_node *to, sim_time at);
void fault_noticed(struct sim *s, uint32_t position, uint32_t peer);

/* ---- stats.c ---- */

struct node_count *stats_node(const struct sim *s, uint32_t phase,
			      uint32_t position);
/*
 * Counts of a link of that node. Slot 0: to the parent; 1: from it; then to those that
 * are not in the tree, by their index.
 */
struct link_count *stats_link(const struct sim *s, uint32_t phase,
			      uint32_t position, uint32_t slot);
/* Sets m->steps. */
void stats_sent(struct sim_node *n, struct sim_message *m);
void stats_received(struct sim_node *n, const struct sim_message *m);
void stats_memory(struct sim_node *n);

struct spread {
	uint64_t min, median, max;
};

struct phase_stats {
	struct spread messages, bytes;  /* sent and received by a node */
	struct spread sent, bytes_sent; /* by a node */
	struct spread values;           /* the same, see struct node_count */
	struct link_count link_max;     /* each the largest of any link */
	uint64_t links;                 /* used links, in one direction */
	uint32_t path_steps;
};

/* 0 or -1 (no memory). */
int stats_phase(const struct sim *s, uint32_t phase, struct phase_stats *out);
int stats_memory_spread(const struct sim *s, struct spread *out);
/* The most that any node has sent and that has not arrived. */
uint64_t stats_queue_max(const struct sim *s);

/* Two forms of pmi2x: nodes that are libcoll alone, and libengine's server. */
extern const struct sim_protocol protocol_coll;
extern const struct sim_protocol protocol_pmi;
/* Nodes that are libstore's store. */
extern const struct sim_protocol protocol_store;
/* The protocol of another design. */
const struct sim_protocol *protocol_stock(enum sim_protocol_id id);

#endif
