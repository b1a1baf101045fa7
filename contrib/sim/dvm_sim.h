/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated DVMs: the heads and nodes of libdvm, the daemons' own objects, exchange their
 * own messages in simulated time. A client submits the tasks of a workload in JSON. The
 * times of messages, processes, and work of head and node are a model.
 *
 *   dvm_sim.c     making it, the loop
 *   dvm_head.c    hosts of heads
 *   dvm_node.c    hosts of nodes, and their processes
 *   dvm_tree.c    their tree of control
 *   dvm_client.c  the client
 *   dvm_faults.c  nodes and heads that are lost, heads that go on with a journal
 */
#pragma once

#include "dvm/core/head.h"
#include "dvm/core/node.h"
#include "dvm/core/share.h"
#include "dvm/core/tree_head.h"
#include "dvm/core/tree_node.h"
#include "libutil/buf.h"
#include "events.h"
#include "scenario.h"
#include "workload.h"

#define DVM_FROM_CLIENT UINT32_MAX

/* Bytes on their way: messages, or a line of JSON. */
struct dvm_frame {
	uint32_t to;   /* number of the head or node */
	uint32_t from; /* to a head: position of the node, or DVM_FROM_CLIENT; to a node in
	                  a tree: the link, RELAY_UP or a child */
	uint32_t life; /* of the receiver, when it was sent: a later one does not get it */
	bool lost;     /* in place of bytes: the other end of the link is lost */
	bool opens;    /* the first one over a link of a tree */
	bool told;     /* in place of bytes: addresses of nodes that may have children */
	size_t len;
	struct dvm_frame *next;
	_Alignas(8) char data[];
};

struct dvm_frames {
	struct dvm_frame *first, *last;
};

struct dvm_sim;

struct sim_head {
	struct dvm_sim *sim;
	struct dvm_head *head;   /* NULL: it is lost */
	uint32_t number;         /* from 0 */
	uint32_t life;           /* number of heads that this DVM has lost */
	uint32_t first, nodes;   /* of the simulation: its own */
	uint32_t *members;       /* by position: the node, of those that live */
	uint32_t nmembers;
	bool ready;              /* all nodes have registered */
	bool given_up;           /* no other head follows */
	struct dvm_frames in;    /* what has come and has not been taken up */
	struct dvm_frames out;   /* of this turn, for nodes, */
	struct dvm_frames lines; /* and for the client */
	struct dvm_frames kept;  /* requests that wait for another head */
	bool busy;               /* EVENT_DVM_HEAD is to come */
	sim_time due;            /* EVENT_DVM_DUE is to come; SIM_TIME_MAX: none */
	bool is_due;             /* it came while the head was busy */
	sim_time cost;           /* of this turn so far */
	struct tree_head *tree;  /* NULL: a star */
	uint32_t relays;         /* nodes that are to have children */
	bool told;               /* ... have registered, and the others get their addresses */
	struct buf journal;      /* if it writes one */
	struct journal_chain chain;
	/* ---- the client's view ---- */
	bool heard;              /* it has been ready or given up */
	bool asked;              /* it has not answered a submit */
	uint64_t submitted, ended; /* tasks */
	uint8_t *have_ended;     /* a bit for each task, in order of their numbers */
	size_t bits_cap;         /* bytes */
	uint32_t *rows;          /* of its tasks, in order of their numbers */
	size_t nrows, rows_cap;
};

struct sim_dvm_node {
	struct dvm_sim *sim;
	struct dvm_node *node;     /* NULL: it is lost */
	uint32_t number, position; /* in the simulation, in its DVM */
	uint32_t life;             /* number of its daemons that were lost */
	bool lost;                 /* it does not come back */
	double factor;             /* its work takes this much longer */
	struct sim_head *head;
	sim_time free;             /* when its daemon is */
	sim_time turn;             /* EVENT_DVM_TURN is to come; SIM_TIME_MAX: none */
	struct tree_node *tree;    /* NULL: a star, or it is lost */
	uint32_t parent;           /* in the tree: position, or TREE_HEAD */
	bool opens;                /* it has sent nothing to that parent yet */
	bool flushes;              /* EVENT_DVM_FLUSH is to come */
	sim_time sent_at;          /* when the bundles of this flush leave */
	char name[SCENARIO_NAME_MAX + 16];
};

struct dvm_process {
	uint32_t node, life, part, slot; /* UINT32_MAX: it is free; slot: among the ranks there */
	uint32_t cores, gpus;
	sim_time began, time;
	uint32_t next; /* of those that are free */
};

/* Ranks of a part that a node has started: what EVENT_DVM_STARTED brings. */
struct dvm_started_ranks {
	uint32_t part, count;
	uint64_t processes[];
};

/* A task, for a file of them. */
struct dvm_row {
	struct workload_task task;
	uint32_t dvm;
	double submitted, placed, started, ended; /* seconds; NAN: not yet */
};

struct dvm_sim {
	const struct scenario *scenario;
	struct events events;
	sim_time now;
	struct sim_head *heads;
	uint32_t nheads;
	struct sim_dvm_node *nodes;
	uint32_t nnodes;
	struct dvm_process *processes;
	uint32_t nprocesses, processes_cap, free_process;
	sim_time *core_free;       /* of dvm.cores, for processes; NULL: each part has its own */
	sim_time *urgent_free;     /* the same, for urgent work */
	struct workload workload;
	uint64_t handled;          /* events */
	/* ---- the client ---- */
	struct buf text;
	struct share_member *members; /* by head */
	uint32_t awaited;          /* heads that have been neither ready nor given up */
	bool begun;                /* it has submitted */
	uint32_t asked;            /* heads that have not answered a submit */
	bool incomplete;           /* the last request has said that others follow */
	uint64_t unsubmitted;      /* tasks for which there was no head */
	uint64_t submitted, ended, failed; /* tasks; ended are those that were lost, too */
	uint64_t lost;             /* tasks, with their head */
	uint64_t again;            /* tasks that have ended in a later try */
	sim_time up_at, begin_at, end_at;
	sim_time last_start;       /* of a process */
	/* ---- results ---- */
	bool want_rows;
	struct dvm_row *rows;
	size_t nrows, rows_cap;
	float *starts;             /* seconds from placed to started, of all */
	size_t nstarts, starts_cap;
	double core_s, gpu_s;      /* used by ranks */
	uint64_t running, most;    /* ranks at once */
	struct dvm_traffic traffic; /* between heads and nodes; of heads that were lost, */
	struct dvm_traffic before;  /* and before the first submit */
	char error[SCENARIO_ERROR_MAX]; /* empty: none */
};

/* NULL with `error`. The scenario and the tasks of its file, if it has one, stay. */
struct dvm_sim *dvm_sim_new(const struct scenario *scenario,
			    const struct workload_tasks *file, bool want_rows,
			    char error[SCENARIO_ERROR_MAX]);
/* Until all tasks have ended. 0, or -1 with s->error. */
int dvm_sim_run(struct dvm_sim *s);
void dvm_sim_free(struct dvm_sim *s);

/* ---- for its own files ---- */

/* Messages between heads and nodes so far. */
void sim_heads_traffic(const struct dvm_sim *s, struct dvm_traffic *out);

int dvm_sim_fail(struct dvm_sim *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* When and where the parts of a DVM are told that it is. */
struct dvm_time dvm_sim_time(sim_time at);
/* A copy of the bytes; NULL: no memory, which has been said. */
struct dvm_frame *dvm_frame_new(struct dvm_sim *s, uint32_t to, uint32_t from,
				const void *data, size_t len);
void dvm_frames_add(struct dvm_frames *list, struct dvm_frame *f);
struct dvm_frame *dvm_frames_take(struct dvm_frames *list);
void dvm_sim_add(struct dvm_sim *s, sim_time at, enum event_type type, uint32_t a);
/*
 * The end of work that takes `cost` and can begin at `from`: on the core that is free
 * first, where heads and nodes share some. Urgent work, for which a message wakes a head or
 * daemon, waits for a share of the start of processes: `behind` of the scenario.
 */
sim_time dvm_sim_spend(struct dvm_sim *s, sim_time from, sim_time cost, bool urgent);
/* The time at which a core is free for urgent work; now, where none are shared. */
sim_time dvm_sim_core_free(const struct dvm_sim *s);
/* The frame arrives then; NULL: nothing does. */
void dvm_sim_send(struct dvm_sim *s, sim_time at, enum event_type type,
		  struct dvm_frame *f);

int sim_heads_make(struct dvm_sim *s);
void sim_heads_free(struct dvm_sim *s);
/* Something has come to a head. */
void sim_head_take(struct dvm_sim *s, struct dvm_frame *f);
/* The head takes up all that has come. */
void sim_head_work(struct dvm_sim *s, uint32_t head);
/* The time has come for which the head has asked. */
void sim_head_due(struct dvm_sim *s, uint32_t head);
/* The head is killed. */
void sim_head_die(struct sim_head *h);
/* Another head, for the nodes that live. 0, or -1 with s->error. */
int sim_head_begin(struct sim_head *h);

/* A node's messages have come to its head. */
void sim_head_node_says(struct sim_head *h, uint32_t position, const void *data, size_t len);

/* Bytes of one address (head/head_tree.c). */
#define SIM_TREE_ADDRESS_BYTES 36

/* The tree of a head that begins, if it has one. 0, or -1 with s->error. */
int sim_tree_head_begin(struct sim_head *h);
void sim_tree_head_end(struct sim_head *h);
/* A frame of a node; the time is the head's. */
void sim_tree_head_input(struct sim_head *h, const struct dvm_frame *f, sim_time at);
/* After a turn of the head. True: sim_tree_tell is to follow. */
bool sim_tree_head_turn(struct sim_head *h);
/* From then on the addresses of relays go to the other nodes. */
void sim_tree_tell(struct sim_head *h, sim_time at);
int sim_tree_node_begin(struct sim_dvm_node *n);
void sim_tree_node_end(struct sim_dvm_node *n);
/* A node has been lost: its neighbours notice. */
void sim_tree_node_lost(struct sim_dvm_node *n);
void sim_tree_node_send(struct sim_dvm_node *n, const void *data, size_t len);
void sim_tree_node_take(struct sim_dvm_node *n, const struct dvm_frame *f);
/* The node has something to send when it is free. */
void sim_tree_node_changed(struct sim_dvm_node *n);
void sim_tree_node_flush(struct dvm_sim *s, uint32_t node);

/* The daemon of a node works for this time. */
void sim_node_spend(struct sim_dvm_node *n, sim_time cost);
/* Messages of the head have come to a node. */
void sim_node_head_says(struct sim_dvm_node *n, const void *data, size_t len);
int sim_nodes_make(struct dvm_sim *s);
/* The daemon of a node starts, and registers with its head. 0, or -1 with s->error. */
int sim_node_begin(struct sim_dvm_node *n);
/* The node's daemon and all its ranks are killed. */
void sim_node_die(struct sim_dvm_node *n);
void sim_nodes_free(struct dvm_sim *s);
void sim_node_take(struct dvm_sim *s, struct dvm_frame *f);
void sim_node_turn(struct dvm_sim *s, uint32_t node);
/* All ranks of a part that were to be started have been. */
void sim_node_started(struct dvm_sim *s, struct dvm_frame *f);
void sim_process_exit(struct dvm_sim *s, uint32_t process);

/* A head is there. */
void sim_client_ready(struct dvm_sim *s, uint32_t head);
void sim_client_take(struct dvm_sim *s, struct dvm_frame *f);
/* A head is lost, and no other one follows: its tasks are lost. */
void sim_client_give_up(struct dvm_sim *s, struct sim_head *h);

/* 0, or -1 with s->error. */
int sim_faults_plan(struct dvm_sim *s);
void sim_fault_happens(struct dvm_sim *s, uint32_t fault);
/* Another head goes on with the journal. */
void sim_head_follows(struct dvm_sim *s, uint32_t head);
