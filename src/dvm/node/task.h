/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One task with PMI on this node: its agent, and what srun is to a step: aborts, reports
 * of what failed, and the way to the head, which keeps the names of all tasks and starts
 * those that are spawned. The agent is made when a rank of this node has spoken, or
 * a frame of another node has come.
 *
 *                          the agent has left
 *   SILENT ----> SERVED ------------------------> LEFT --+-- and all ranks are reaped --> gone
 *     |             | all ranks are reaped, or it is left alone: the agent leaves
 *     +-- all ranks are reaped, or it is left alone -------------------------------> gone
 */
#ifndef PMI2X_DVM_TASK_H
#define PMI2X_DVM_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

#include "agent/agent.h"
#include "dvm/core/node.h"
#include "dvm/node/mesh.h"
#include "dvm/node/silent.h"
#include "dvm/node/spawn.h"
#include "libio/loop.h"
#include "libpmi/step_services.h"
#include "libutil/budget.h"

struct task;

/* Where tasks are; outlives them. */
struct task_host {
	struct loop *loop;
	struct epoll_set *silent; /* of ranks that have not spoken */
	const char *dvm, *node; /* names */
	const struct log_hook *log;
	/* It is to be ended. May be said more than once, also when it is over here. */
	void (*failed)(void *arg, const struct task *t, const struct node_failure *f);
	/* A frame for the daemon at a node of the DVM; see pool_send. */
	int (*send)(void *arg, uint32_t node, const struct dvm_address *address,
		    const struct pool_frame *f, const struct payload_vec *body);
	/* The head is asked about names: a frame (libpmi/control.h). 0 or a negative errno. */
	int (*ask_names)(void *arg, const struct task *t, const void *data, size_t len);
	/*
	 * ... for another task: task, instance are filled in. 0 or a negative errno. And
	 * told that the first rank of this one, a spawned one, is there, or why it never
	 * will be; NULL: it is.
	 */
	int (*ask_spawn)(void *arg, const struct task *t, struct dvm_spawn *m);
	void (*ready)(void *arg, const struct task *t, const char *why_not);
	/*
	 * A message of a task's agent for the program that serves PMIx: agent_host.
	 * NULL: nobody does.
	 */
	void (*pmix_send)(void *arg, const struct task *t, const void *head, size_t len,
			  struct payload *data);
	/* Nothing may be said to it any more; it frees itself. */
	void (*gone)(void *arg, struct task *t);
	void *arg;
};

/* The name of a task in the whole DVM. */
struct task_key {
	uint64_t task;
	uint64_t instance; /* as wide, so that there is no hole */
};

struct task_node {
	uint32_t node; /* in the DVM */
	struct dvm_address address;
	uint32_t ranks;
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
	struct agent *agent;       /* NULL: not needed yet, or it could not be made */
	struct setup setup;
	struct spawn_origin origin; /* of a spawned one */
	struct budget budget;
	int registration;          /* the agent's, once there is one */
	char jobid[DVM_JOBID_MAX], *mapping;
	struct task_node *nodes;   /* by node id of the layout */
	char **names;              /* of them */
	uint32_t nnodes;
	uint32_t ranks;            /* here */
	struct rank_end *ends;     /* by slot */
	struct step_services *launcher; /* NULL until something is for it */
	struct payload_vec control; /* for it */
	uv_timer_t soon;           /* to look at that */
	bool served; /* an agent has been made, or tried */
	bool over, left, closing;
	UT_hash_handle hh;         /* of who has it, by part */
	UT_hash_handle hh_key;     /* by key */
};

/* `registration`: taken over, also on failure. NULL: no memory, or it is invalid. */
struct task *task_create(const struct task_host *host, uint32_t part,
			 const struct dvm_launch *m, int registration);
/* Serve those who speak. Failures are told. */
void task_begin(struct task *t);
/* A frame of the daemon at a node has come. */
void task_frame(struct task *t, uint32_t node, const struct pool_frame *f,
		struct payload *body);
/* A message of who serves PMIx. 0 or a negative errno: it is invalid. */
int task_pmix_message(struct task *t, struct payload *message);
/* Nobody does any more: the task fails. */
void task_pmix_lost(struct task *t, const char *why);
/* The head's answer about names. */
void task_names_told(struct task *t, const void *data, size_t len);
/* ... and about a task. */
void task_spawn_told(struct task *t, const struct dvm_spawned *m);
/* The head is lost: what it has not answered fails. */
void task_head_lost(struct task *t);
/* That daemon cannot be reached any more. */
void task_node_lost(struct task *t, uint32_t node, const char *why);
/* A rank has been reaped. */
void task_rank_ended(struct task *t, uint32_t slot, int32_t status);
/* Append how its PMI is here (libpmi/status.h); nothing, where it cannot be said. */
void task_status(struct task *t, struct buf *out);
/* All have. */
void task_over(struct task *t);
/* This process ends: nobody waits for anything. */
void task_leave_alone(struct task *t);
/* Before task_begin. */
void task_destroy(struct task *t);

#endif
