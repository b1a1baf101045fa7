/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One task with PMI on this node: its agent, and the services that srun has for a step:
 * aborts, reports of failures, and the way to the head, which keeps the names of all tasks
 * and starts spawned tasks. The agent is created when a rank of this node uses PMI, or at
 * the first frame of another node.
 *
 *                          the agent has left
 *   SILENT ----> SERVED ------------------------> LEFT --+-- and all ranks are reaped --> gone
 *     |             | all ranks are reaped, or task_leave_alone: the agent leaves
 *     +-- all ranks are reaped, or task_leave_alone -------------------------------> gone
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "agent/agent.h"
#include "dvm/core/node.h"
#include "dvm/node/mesh.h"
#include "dvm/node/silent.h"
#include "dvm/node/spawn.h"
#include "dvm/node/task_nodes.h"
#include "dvm/node/tasks.h"
#include "libio/loop.h"
#include "libpmi/step_services.h"
#include "libutil/budget.h"

struct task;

/* The owner of tasks; outlives them. */
struct task_host {
	struct loop *loop;
	struct epoll_set *silent; /* watches ranks that have not used PMI */
	const char *dvm, *node; /* names */
	const struct log_hook *log;
	struct tasks_ops ops;
	void *ops_arg;
	/*
	 * The task is to be ended. May be called more than once, also when it has ended
	 * here.
	 */
	void (*failed)(void *arg, const struct task *t, const struct node_failure *f);
	/* The task is over: do not call it any more; it frees itself. */
	void (*gone)(void *arg, struct task *t);
	void *arg;
};

/* The name of a task in the whole DVM. */
struct task_key {
	uint64_t task;
	uint64_t instance; /* 64 bits, so that the key has no padding */
};

struct rank_end {
	bool known;
	int32_t status;
};

struct task {
	uint32_t part;
	struct task_key key;
	const struct task_host *host;
	struct silent *silent;
	struct agent *agent;       /* NULL: not needed yet, or not created for an error */
	struct setup setup;
	struct spawn_origin origin; /* of a spawned one */
	struct budget budget;
	int registration;          /* the agent's, once it exists */
	char jobid[DVM_JOBID_MAX], *mapping;
	struct task_nodes nodes;
	uint32_t ranks;            /* number of ranks on this node */
	struct rank_end *ends;     /* by slot */
	struct step_services *launcher; /* NULL until there is a message for it */
	struct payload_vec control; /* messages for `launcher` */
	uv_timer_t soon;           /* to handle `control` */
	bool served; /* an agent has been made, or tried */
	bool over, left, closing;
	UT_hash_handle hh;         /* in the table of tasks, by part */
	UT_hash_handle hh_key;     /* in the table of tasks, by key */
};

/* `registration`: taken over, also on failure. NULL: no memory, or it is invalid. */
struct task *task_create(const struct task_host *host, uint32_t part,
			 const struct dvm_launch *m, int registration);
/* Serve the ranks that use PMI. Failures are reported. */
void task_begin(struct task *t);
/* A frame of the daemon at a node has come. */
void task_frame(struct task *t, uint32_t node, const struct pool_frame *f,
		struct payload *body);
/*
 * A message of the program that serves PMIx. 0 or a negative errno: the message is invalid.
 */
int task_pmix_message(struct task *t, struct payload *message);
/* No program serves PMIx any more: the task fails. */
void task_pmix_lost(struct task *t, const char *why);
/* The head's answer about names. */
void task_names_told(struct task *t, const void *data, size_t len);
/* The head's answer about a task. */
void task_spawn_told(struct task *t, const struct dvm_spawned *m);
/* The head is lost: requests without an answer fail. */
void task_head_lost(struct task *t);
/* The daemon of this node cannot be reached any more. */
void task_node_lost(struct task *t, uint32_t node, const char *why);
/* A rank has been reaped. */
void task_rank_ended(struct task *t, uint32_t slot, int32_t status);
/*
 * Append the state of the task's PMI here (libpmi/status.h); nothing, if it is not known.
 */
void task_status(struct task *t, struct buf *out);
/* All ranks have been reaped. */
void task_over(struct task *t);
/* This process ends: nothing is waited for. */
void task_leave_alone(struct task *t);
/* Free a task before task_begin. */
void task_destroy(struct task *t);
