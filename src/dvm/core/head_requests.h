/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of clients to the head, as calls: dvm/json calls them for the requests that it
 * reads, and answers with client_send_at.
 */
#pragma once

#include "dvm/core/head_format.h"

/* The reason why a request is refused. */
struct head_refusal {
	char why[DVM_TEXT_MAX];
};

/* Write the reason. Returns false. */
bool head_refuse(struct head_refusal *no, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- head_lookup.c ---- */

const char *head_node_name(const struct dvm_head *h, uint32_t node);
/* The node of this name, preferably one that is not lost, or NODE_NONE. */
uint32_t head_find_node(const struct dvm_head *h, const char *name);
bool head_is_ready(const struct dvm_head *h);
/* True: a task of this DVM can have this number. */
bool head_is_own_id(const struct dvm_head *h, uint64_t id);
struct head_task *task_find(struct dvm_head *h, uint64_t id);
struct head_client *client_find(struct dvm_head *h, uint32_t number);

/* ---- head_client.c ---- */

/* The number of connected clients that stay, without this one. */
int head_other_clients(const struct dvm_head *h, const struct head_client *c);

/* The fate of tasks that have not ended. */
enum head_work {
	WORK_REFUSE, /* there must be none */
	WORK_WAIT,
	WORK_CANCEL,
	WORK_KEEP, /* these are in the journal, for another head */
	WORK_STOP, /* as above, and what runs is ended at once */
	WORKS,
};

/* End the DVM. */
bool head_down(struct dvm_head *h, const struct head_client *c, enum head_work work,
	       struct head_refusal *no);

/* ---- head_growth.c ---- */

/* Give the node no more tasks; `why` is NULL when a client has asked for that. */
void head_drain_node(struct dvm_head *h, uint32_t node, const char *why);
void head_undrain_node(struct dvm_head *h, uint32_t node);

/* Nodes by their names, or any nodes: then only their number is given. */
struct node_names {
	int64_t count;
	const char *const *names; /* NULL: any; a name that is NULL is refused */
};

/*
 * Start daemons on these nodes; job 0: in this job. The client gets an event when they have
 * registered.
 */
bool head_grow(struct dvm_head *h, const struct head_client *c, const char *tag,
	       const struct node_names *n, int64_t job, struct head_refusal *no);
/* Remove nodes, after this time for what runs there; NULL: when it has ended. */
bool head_shrink(struct dvm_head *h, const struct node_names *n, const int64_t *grace_s,
		 struct head_refusal *no);

/* ---- head_unreached.c ---- */

/*
 * Nodes that have been silent for this time in ms, to be freed; *count is 0 without memory.
 */
struct silent_node *head_unreached(const struct dvm_head *h, uint64_t silent, size_t *count);

/* ---- head_wait.c ---- */

/*
 * Watch a task for a client. 0 or -ENOMEM. The end of an ended task is reported in this
 * turn.
 */
int task_watch(struct dvm_head *h, struct head_task *t, uint32_t client);
/*
 * Report to the client all ended tasks for which no client has waited. Returns the number
 * of results that the client gets; c->unkept counts those that are not kept.
 */
size_t wait_unwaited(struct dvm_head *h, struct head_client *c);
/* The client has received the reported end of a task, or of all. */
void wait_confirm(struct dvm_head *h, const struct head_client *c, uint64_t task);
void wait_confirm_all(struct dvm_head *h, struct head_client *c);

/* ---- head_profile.c ---- */

/* Files of tasks with a profile. */
struct profile_files {
	const char *outputs; /* directory for complete output, or NULL */
	struct dvm_bytes input; /* standard input, or empty */
};

/* Define a profile, or find the same; one use is counted. All is copied. NULL: no memory. */
struct head_profile *profile_define(struct dvm_head *h, const char *id,
				    const char *cwd, struct buf *env,
				    const struct dvm_limits *limits,
				    const struct profile_files *files);
struct head_profile *profile_find(struct dvm_head *h, const char *id);

/* ---- head_submit.c ---- */

/* Note a wrong key, unless one was noted before. */
void spec_wrong(struct spec_reading *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Call submit_begin and submit_end around the tasks of a request, whose records are written
 * together, or not at all. 0, or the errno of writing: then task_undo each task. *at: the
 * position at which they are safe.
 */
int submit_begin(struct dvm_head *h);
int submit_end(struct dvm_head *h, uint64_t *at);
/*
 * Submit a task that has been read; r->spec is taken over. `tied`: to this client, 0: to
 * none; `text`: for the journal. NULL: the task is refused, and `r` has the reason.
 */
struct head_task *submit_read(struct spec_reading *r, struct head_profile *p, uint32_t tied,
			      const struct dvm_bytes *text);
/*
 * A task that was submitted waits for the client's other requests of the same submit, if
 * these may have tasks that come before it. Call submit_goes_on after each such request, and
 * submit_complete after the last one.
 */
void submit_await(struct dvm_head *h, struct head_client *c, struct head_task *t);
void submit_goes_on(struct dvm_head *h, struct head_client *c);
void submit_complete(struct dvm_head *h, struct head_client *c);

/* ---- head_task.c ---- */

void task_cancel(struct dvm_head *h, struct head_task *t);
/* Nodes that know the task signal its ranks; 0: the nodes end the ranks with grace. */
void task_signal_parts(struct dvm_head *h, const struct head_task *t, uint32_t number);
/* Undo the submission of the last task. */
void task_undo(struct dvm_head *h, struct head_task *t);

/* ---- head_spawned.c ---- */

/* True: the task would fit if only the task and its spawner ran. */
bool spawned_fits_beside(const struct dvm_head *h, const struct head_task *parent,
			 const struct ledger_shape *shape);

/* ---- head_journal.c ---- */

/* A client waits: make the journal safe, if it is not. */
void journal_hurry(struct dvm_head *h);
/* Why the journal is not written or not safe: a negative errno, or 0. */
int journal_failure(const struct dvm_head *h);

/* ---- head_why.c ---- */

/* Add the reasons for the state of a task: texts, each with its NUL. */
void why_reasons(struct dvm_head *h, const struct head_task *t, struct buf *reasons);
/*
 * Ask the nodes of the task for its state, for a client. Returns the number of nodes that
 * are asked.
 */
uint32_t why_ask(struct dvm_head *h, const struct head_task *t, uint32_t client);

/* ---- head_lines.c ---- */

/* Send a line with its newline, when the journal is safe up to this position. */
void client_send_at(struct dvm_head *h, struct head_client *c, const char *line, size_t len,
		    uint64_t at);
/* A line is lost for lack of memory: the client gets no other, and its connection ends. */
void client_cut_off(struct dvm_head *h, struct head_client *c);
