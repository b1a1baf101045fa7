/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated DVMs: the heads and nodes of libdvm, the daemons' own objects, exchange their
 * own messages in simulated time. A client submits the tasks of a workload in JSON. The
 * times of messages, processes, and work of head and node are a model.
 *
 *   dvm_sim.c     making it, the loop
 *   dvm_head.c    hosts of heads
 *   dvm_node.c    hosts of nodes, and their processes
 *   dvm_client.c  the client
 */
#ifndef PMI2X_SIM_DVM_SIM_H
#define PMI2X_SIM_DVM_SIM_H

#include "dvm/core/head.h"
#include "dvm/core/node.h"
#include "dvm/core/share.h"
#include "libutil/buf.h"
#include "events.h"
#include "scenario.h"
#include "workload.h"

#define DVM_FROM_CLIENT UINT32_MAX

/* Bytes on their way: messages, or a line of JSON. */
struct dvm_frame {
	uint32_t to;   /* number of the head or node */
	uint32_t from; /* to a head: position of the node, or DVM_FROM_CLIENT */
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
	struct dvm_head *head;
	uint32_t number;         /* from 0 */
	uint32_t first, nodes;   /* of the simulation: its own */
	struct dvm_frames in;    /* what has come and has not been taken up */
	struct dvm_frames out;   /* of this turn, for nodes, */
	struct dvm_frames lines; /* and for the client */
	bool busy;               /* EVENT_DVM_HEAD is to come */
	sim_time cost;           /* of this turn so far */
	uint32_t *rows;          /* of its tasks, in order of their numbers */
	size_t nrows, rows_cap;
};

struct sim_dvm_node {
	struct dvm_sim *sim;
	struct dvm_node *node;
	uint32_t number, position; /* in the simulation, in its DVM */
	struct sim_head *head;
	sim_time free;             /* when its daemon is */
	sim_time turn;             /* EVENT_DVM_TURN is to come; SIM_TIME_MAX: none */
	char name[16];
};

struct dvm_process {
	uint32_t node, part, slot; /* slot: among the ranks there */
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
	struct workload workload;
	uint64_t handled;          /* events */
	/* ---- the client ---- */
	struct buf text;
	struct share_member *members; /* by head */
	uint32_t ready;            /* heads that have answered */
	uint32_t asked;            /* heads that have not answered a submit */
	uint64_t submitted, ended, failed; /* tasks */
	sim_time up_at, begin_at, end_at;
	/* ---- results ---- */
	bool want_rows;
	struct dvm_row *rows;
	size_t nrows, rows_cap;
	float *starts;             /* seconds from placed to started, of all */
	size_t nstarts, starts_cap;
	double core_s, gpu_s;      /* used by ranks */
	uint64_t running, most;    /* ranks at once */
	uint64_t messages, bytes;  /* between heads and nodes */
	char error[SCENARIO_ERROR_MAX]; /* empty: none */
};

/* NULL with `error`. The scenario stays. */
struct dvm_sim *dvm_sim_new(const struct scenario *scenario, bool want_rows,
			    char error[SCENARIO_ERROR_MAX]);
/* Until all tasks have ended. 0, or -1 with s->error. */
int dvm_sim_run(struct dvm_sim *s);
void dvm_sim_free(struct dvm_sim *s);

/* ---- for its own files ---- */

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
/* The frame arrives then; NULL: nothing does. */
void dvm_sim_send(struct dvm_sim *s, sim_time at, enum event_type type,
		  struct dvm_frame *f);

int sim_heads_make(struct dvm_sim *s);
void sim_heads_free(struct dvm_sim *s);
/* Something has come to a head. */
void sim_head_take(struct dvm_sim *s, struct dvm_frame *f);
/* The head takes up all that has come. */
void sim_head_work(struct dvm_sim *s, uint32_t head);

int sim_nodes_make(struct dvm_sim *s);
void sim_nodes_free(struct dvm_sim *s);
void sim_node_take(struct dvm_sim *s, struct dvm_frame *f);
void sim_node_turn(struct dvm_sim *s, uint32_t node);
/* All ranks of a part that were to be started have been. */
void sim_node_started(struct dvm_sim *s, struct dvm_frame *f);
void sim_process_exit(struct dvm_sim *s, uint32_t process);

/* A head is there. */
void sim_client_ready(struct dvm_sim *s);
void sim_client_take(struct dvm_sim *s, struct dvm_frame *f);

#endif
