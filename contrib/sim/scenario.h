/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scenario: what is simulated. pmi2x-sim-scenario(5) describes the file.
 */
#pragma once

#include <stddef.h>

#include "libcoll/coll.h"
#include "random.h"
#include "units.h"
#include "workload.h"

#define SLURM_TREE_WIDTH 16 /* of mpi-pmi2 where a scenario names none */
#define SCENARIO_KEYS_MAX 96 /* that there may be */
#define SCENARIO_OPS_MAX 256
#define SCENARIO_FAULTS_MAX 64
#define SCENARIO_FILE_MAX ((size_t)1 << 20) /* bytes */
#define SCENARIO_LINE_MAX 512               /* bytes, without the newline */
#define SCENARIO_ERROR_MAX 512              /* bytes of a message, NUL too */
#define SCENARIO_AT_MAX 288                 /* bytes of a file and line */
#define SCENARIO_NAME_MAX 64                /* bytes of a name, NUL too */
#define SCENARIO_PATH_MAX 256               /* bytes of a path, NUL too */

#define SCENARIO_GROUP_MAX 65536 /* members: each holds the list of all */
#define SCENARIO_RUN_FORMS \
	"fence|ifence|allgather|iallgather|ring BYTES [keys N] [times N] [compute TIME ...], group EVERY [times N], share BYTES [keys N] [times N], or compute TIME ...; keys of a fence and of a share, the compute of an i-operation comes last, a value has at most 1MiB"

/* The carrier of the data; all but the first and the store are models of other designs. */
enum sim_protocol_id {
	PROTOCOL_PMI2X,
	PROTOCOL_MPI_PMI2,    /* a tree below srun, a connection a message */
	PROTOCOL_HYDRA_STAR,  /* standing connections, all through mpiexec */
	PROTOCOL_BINARY_TREE, /* store and forward */
	PROTOCOL_RADIX64,     /* the same, 64 children */
	PROTOCOL_STORE,       /* of pmi2x: keys of a step without PMI */
	PROTOCOLS,
};

/*
 * With pmi2x: what ranks speak to the server of their node. None: nodes have no
 * server, and ranks are only counted.
 */
enum scenario_clients {
	CLIENTS_NONE,
	CLIENTS_PMI1,
	CLIENTS_PMI2,
	CLIENTS_PMI2X, /* PMI-2 with the extension */
	CLIENTS_MIXED, /* by turns, of those that can carry out all operations */
};

enum scenario_layout { RANKS_BLOCK, RANKS_CYCLIC, RANKS_UNEVEN };
enum scenario_topology { TOPOLOGY_FLAT, TOPOLOGY_FAT_TREE, TOPOLOGY_DRAGONFLY };
enum scenario_payload { PAYLOAD_SIZES, PAYLOAD_BYTES };
/* The first three are collectives of libcoll with values, as enum coll_kind. */
enum scenario_op_kind { OP_FENCE, OP_ALLGATHER, OP_RING, OP_GROUP, OP_SHARE, OP_COMPUTE };

/* The next action of every rank. */
struct scenario_op {
	enum scenario_op_kind kind;
	uint32_t bytes;      /* of a value */
	uint32_t keys;       /* fence: values of a rank; share: keys of all; otherwise 1 */
	uint32_t every;      /* group: the first rank of every so-manieth node */
	bool nonblocking;    /* the rank computes, then waits */
	struct distribution compute;
	unsigned int line;
};

enum scenario_fault_kind { FAULT_RANK, FAULT_NODE, FAULT_LINK, FAULT_HEAD };

struct scenario_fault {
	enum scenario_fault_kind kind;
	uint32_t a, b;       /* rank; node id; node ids; number of a DVM, from 1 */
	bool in_phase;       /* when it, or node a, enters operation `phase` */
	uint32_t phase;      /* from 0 */
	sim_time at;
	bool resumes;        /* another head goes on with the journal, */
	sim_time resume;     /* this time after `at` */
	unsigned int line;
};

/* A node whose work, or a link whose bytes and latency, take longer. */
struct scenario_slow {
	bool link;
	uint32_t a, b;
	double factor;
	unsigned int line;
};

struct network_params {
	enum scenario_topology topology;
	uint64_t leaf;        /* fat tree: nodes below a switch, and switches
	                         below one of the next level; dragonfly: nodes
	                         of a router */
	uint64_t group;       /* dragonfly: routers of a group */
	sim_time latency;     /* L, between any two nodes */
	sim_time hop_latency; /* for each switch between the nodes */
	sim_time global_latency; /* dragonfly: and between groups */
	sim_time send, receive;  /* o, processor time of a message */
	sim_time gap;         /* g, between messages at a network interface */
	sim_time byte_gap;    /* G, of a byte there */
	sim_time detect;      /* until a dead link is noticed */
};

struct node_params {
	uint64_t cores;       /* shared by all nodes; 0: each has its own */
	uint64_t spread;      /* percent: deviation of each piece of work, */
	uint64_t drift;       /* ... and of all work of a run */
	sim_time resume;      /* of a node that was idle, before anything else */
	sim_time enter, wake; /* of one rank */
	sim_time answer;      /* of a rank that gets an answer of its own, in a ring */
	sim_time request;     /* of one rank, that is no collective: put, get */
	sim_time read;        /* of a byte that a rank copies of an allgather */
	sim_time copy;        /* of a byte sent or received */
	sim_time combine;     /* of a byte of a result, where it is made */
	sim_time publish;     /* of a byte of a result, at every node */
	sim_time connect;     /* mpi-pmi2: of a message, at each end */
};

enum dvm_order { DVM_ORDER_FIFO, DVM_ORDER_LARGE }; /* as enum queue_order */

/* DVMs, of which each has its share of the nodes. */
struct dvm_params {
	uint64_t nodes, slots, gpus; /* slots and GPUs: of each node */
	uint64_t dvms;
	char names[SCENARIO_NAME_MAX]; /* how those of nodes begin */
	enum dvm_order order;
	uint64_t window;      /* tasks */
	sim_time patience;
	uint64_t max_waiting; /* tasks */
	uint64_t batch;       /* tasks of a request */
	bool mixed;           /* lines of the workload are mixed at random */
	bool journal;         /* heads write one */
	uint64_t cores;       /* shared by all heads and nodes; 0: each has its own */
	uint64_t behind;      /* percent of the processes' work that a head or daemon waits for */
	sim_time detect;      /* until a head notices that a node is lost */
	sim_time latency;     /* of a message, or a line of a client */
	uint64_t width;       /* of the tree of control; 0: a star */
	sim_time relay;       /* work of a node: for what it relays for another */
	uint64_t input;       /* bytes a second, of addresses to all nodes */
	sim_time connect;     /* work of the head: for a node that comes, */
	sim_time enter;       /* ... through a relay, */
	sim_time submit;      /* for a task of a request, */
	sim_time place, end;  /* for a part of a task that is launched, that has ended */
	sim_time bundle;      /* in a tree: for a part that is launched; place: for a frame */
	sim_time take;        /* work of a node: for a part that is to be launched, */
	sim_time start, exit; /* for a process */
};

struct scenario {
	char name[256];       /* of the file, for messages and the CSV */
	uint64_t nodes, ranks_per_node, piece, key_bytes, seed;
	uint64_t tree_width;  /* TREE_WIDTH_AUTO: by size */
	enum scenario_layout layout;
	enum sim_protocol_id protocol;
	enum scenario_clients clients;
	enum scenario_payload payload;
	bool finalize;        /* ranks leave at the end, one by one */
	struct network_params network;
	struct node_params node;
	struct distribution skew;      /* of a node's start */
	struct distribution rank_skew; /* of a rank's, added */
	struct scenario_op ops[SCENARIO_OPS_MAX];
	uint32_t nops;
	struct scenario_fault faults[SCENARIO_FAULTS_MAX];
	uint32_t nfaults;
	struct scenario_slow slow[SCENARIO_FAULTS_MAX];
	uint32_t nslow;
	struct dvm_params dvm;
	struct workload_line workload[WORKLOAD_LINES_MAX];
	uint32_t nworkload;
	char tasks_file[SCENARIO_PATH_MAX]; /* the workload instead; empty: none */
	unsigned int lines[SCENARIO_KEYS_MAX]; /* of keys; 0: not in the file */
};

/* Everything but the operations, which a scenario must name. */
void scenario_defaults(struct scenario *s);

/*
 * All of these: 0, or -1 with the file, the line, the key and what is allowed in
 * `error`. Read a scenario from text (changed; NUL-terminated) over the defaults;
 */
int scenario_parse(struct scenario *s, const char *name, char *text,
		   char error[SCENARIO_ERROR_MAX]);
/* set one key more, as "key=value" (changed), of whatever section; */
int scenario_set(struct scenario *s, char *pair,
		 char error[SCENARIO_ERROR_MAX]);
/* when all is read: whether it fits together; */
int scenario_check(const struct scenario *s, char error[SCENARIO_ERROR_MAX]);
/* when a calibration alone is read: whether it has costs, and nothing else. */
int scenario_check_costs(const struct scenario *s, char error[SCENARIO_ERROR_MAX]);

/* The forms of `run`; false with what is allowed in *allowed. */
bool scenario_parse_run(struct scenario *s, char *value, unsigned int line,
			const char **allowed);
/* The forms of `rank`, `node`, `link`, `slow_node`, `slow_link`. */
bool scenario_parse_fault(struct scenario *s, const char *key, char *value,
			  unsigned int line, const char **allowed);

/* True: the scenario describes DVMs, and no step. */
bool scenario_is_dvm(const struct scenario *s);

/* The keys with their defaults (or NULL) and forms, for --help. */
void scenario_list_keys(void (*show)(void *arg, const char *section,
				     const char *key, const char *preset,
				     const char *allowed),
			void *arg);

/*
 * The first operation that ranks which speak this cannot carry out, or NULL;
 * *allowed is what they can.
 */
const struct scenario_op *scenario_unable(const struct scenario *s,
					  enum scenario_clients clients,
					  const char **allowed);

/* The place of something in the file, for messages; line 0: on no line. */
void scenario_at(char out[SCENARIO_AT_MAX], const char *name, unsigned int line);
const char *scenario_fault_name(enum scenario_fault_kind kind);
const char *scenario_clients_name(enum scenario_clients clients);
const char *scenario_protocol_name(enum sim_protocol_id id);
const char *scenario_layout_name(enum scenario_layout layout);
/* "fence", "ifence", "allgather", "iallgather", "ring", "group", "share", "compute" */
const char *scenario_op_name(const struct scenario_op *op);
