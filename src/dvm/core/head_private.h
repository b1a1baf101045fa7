/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the files of the head share. */
#ifndef PMI2X_DVM_HEAD_PRIVATE_H
#define PMI2X_DVM_HEAD_PRIVATE_H

#include "dvm/core/head_requests.h"

/* ---- head_lookup.c ---- */

/* The node is one of its name. 0 or -ENOMEM. */
int head_add_name(struct dvm_head *h, uint32_t node);
/* The node, which was added last, is not. */
void head_drop_name(struct dvm_head *h, uint32_t node);
void head_forget_names(struct dvm_head *h);
/* True: a node of this name has been lost. */
bool head_has_lost_name(const struct dvm_head *h, const char *name);
/* Add a node to a list, unless it is in it. Take the first out: NODE_NONE when there is none. */
void head_list_node(struct dvm_head *h, enum node_list list, uint32_t node);
uint32_t head_take_listed(struct dvm_head *h, enum node_list list);
void head_queue_msg(struct dvm_head *h, uint32_t node, const struct dvm_msg *m);
bool head_has_lost_all(const struct dvm_head *h);
/* The next number that a task of this DVM could have. */
uint64_t head_id_after(const struct dvm_head *h, uint64_t id);

/* ---- head.c ---- */

/* A message of a node that has registered. NULL, or what is wrong. */
const char *head_take(struct dvm_head *h, uint32_t node, const struct dvm_msg *m);

/* ---- head_adopt.c ---- */

struct adoption;

/* Parts that nodes hold, as they have said. NULL: no memory. */
struct adoption *adoption_create(struct dvm_head *h);
/* A task of the journal goes on with what nodes hold of it. False: they do not. */
bool adoption_take(struct adoption *a, struct head_task *t, bool once);
/* All parts of it that nodes hold have ended. */
bool adoption_is_over(struct adoption *a, const struct head_task *t);
/* Take the ends of adopted tasks: their resources are free. */
void adoption_take_ends(struct adoption *a);
/* All nodes of the other head have said what they hold. */
bool adoption_is_whole(const struct dvm_head *h);
/* Nodes end what nobody wants, and what else they have said is taken. */
void adoption_end(struct adoption *a);

/* ---- head_done.c ---- */

/* The task's nodes need not keep its ends once the journal is safe up to here. */
void done_note(struct dvm_head *h, const struct head_task *t);
/* As above for one part. */
void done_pack(struct dvm_head *h, uint32_t node, uint64_t task, uint32_t instance);
/* Send what waits for the journal no more. */
void done_send(struct dvm_head *h);

/* ---- head_growth.c ---- */

/* A node of those that are to come has registered. */
void head_growth_registered(struct dvm_head *h);
void head_growth_forget(struct dvm_head *h);
void head_node_free(struct head_node *n);

/* ---- head_nodes.c ---- */

/* Do all work that is due. */
void head_nodes_turn(struct dvm_head *h);
void head_stop_turn(struct dvm_head *h);
/* No new tasks; ends when none is left. */
void head_drain(struct dvm_head *h);

/* ---- head_unreached.c ---- */

void head_unreached_turn(struct dvm_head *h);
/* A client has asked for the end: nodes that cannot be reached are not waited for. */
void head_down_begins(struct dvm_head *h, uint32_t client);

/* ---- head_wait.c ---- */

/* The result of a task is not kept any more. */
void wait_task_forgotten(struct dvm_head *h, const struct head_task *t);
/* A client has gone: what it has not confirmed is for others. */
void wait_client_gone(struct dvm_head *h, struct head_client *c);
/* A record of the journal. */
void wait_read(struct dvm_head *h, const struct journal_waited *r);
/* All that nobody has confirmed. */
struct unwaited wait_unkept(const struct dvm_head *h);

/* ---- head_profile.c ---- */

void profile_release(struct dvm_head *h, struct head_profile *p);
/* The node gets it, unless it has it. */
void profile_send(struct dvm_head *h, struct head_profile *p, uint32_t node);

/* ---- head_task.c ---- */

void task_spec_free(struct task_spec *s);
/*
 * Queue a task; what `spec` holds is taken over, also on failure. NULL with a
 * negative errno in *error.
 */
struct head_task *task_submit(struct dvm_head *h, struct task_spec *spec,
			      struct head_profile *profile, int *error);
/* A client has gone: end what is tied to it. */
void tasks_lose_client(struct dvm_head *h, uint32_t client);
/* Ends tasks that can never run any more, unless they wait for another head. */
void tasks_fail_impossible(struct dvm_head *h);
/* A waiting task is neither placed nor ended until tasks_release. */
void task_hold(struct dvm_head *h, struct head_task *t);
/*
 * Ranks of tasks that are held have ended; or: cancelled ones do not wait for that. False:
 * there are none.
 */
bool tasks_release(struct dvm_head *h, bool cancelled);
/* End a waiting task, because its head or client was lost. */
void task_end_lost(struct dvm_head *h, struct head_task *t, int32_t status, const char *why);
/* End a waiting task with the result that it has. */
void task_end_queued(struct dvm_head *h, struct head_task *t);
/* Why it has failed, or is about to. */
void task_set_why(struct head_task *t, const char *why);
void tasks_free(struct dvm_head *h);
void task_result_free(struct task_result *r);
/* True: the move between these states is legal. */
bool task_may_move(enum task_state from, enum task_state to);
/* A legal move, and into the list of the new state if that is another one. */
void task_move(struct dvm_head *h, struct head_task *t, enum task_state state);
/* The task has ended: report it to all that wait. */
void task_end(struct dvm_head *h, struct head_task *t);

/* ---- head_launch.c ---- */

void tasks_place(struct dvm_head *h);
/* Nodes get what has been placed: when its start is in the journal. */
void tasks_launch(struct dvm_head *h);
/* A waiting task runs on nodes, since another head has started it. */
void task_adopt(struct dvm_head *h, struct head_task *t,
		struct ledger_placement *placement, uint64_t started_ns);
/* An adopted task has lost nodes: the rest of it is ended. */
void task_lose_rest(struct dvm_head *h, struct head_task *t, bool once);

/* ---- head_parts.c ---- */

void task_started(struct dvm_head *h, const struct dvm_started *m);
/* A rank of the task has failed: end the other ranks on all nodes. */
void task_failing(struct dvm_head *h, const struct dvm_started *m);
/* The task has failed as a whole. */
void task_failed(struct dvm_head *h, const struct dvm_failed *m);
void task_output(struct dvm_head *h, uint32_t node, const struct dvm_output_msg *m);
/* How the part of it on the node has ended. */
void task_part_ended(struct dvm_head *h, uint32_t node, const struct dvm_ended *m);
/*
 * Tasks that have ranks on the node are lost with it: their ranks on other nodes are
 * ended. False: there are none.
 */
bool tasks_lose_node(struct dvm_head *h, uint32_t node, const char *why);
/* Ranks of a lost node have surely ended: tasks that are over with that wait again. */
void tasks_leave_node(struct dvm_head *h, uint32_t node);
/* By node, to be freed: does it have ranks of a task that is to end? NULL: no memory. */
bool *tasks_end_on(const struct dvm_head *h);
/* Ranks on the node are ended as by a time limit, and their tasks wait again. */
void tasks_move_away(struct dvm_head *h, uint32_t node);

/* ---- head_asks.c ---- */

/* A rank of a task that runs asks about names. */
void asks_names(struct dvm_head *h, uint32_t node, const struct dvm_names *m);
/* The task spawns another one. */
void asks_spawn(struct dvm_head *h, uint32_t node, const struct dvm_spawn *m);
/* The first rank of a spawned one is there, or never will be. */
void asks_ready(struct dvm_head *h, const struct dvm_ready *m);

/* ---- head_spawned.c ---- */

/* The task is to be ended: so are those that it has spawned. */
void spawned_cancel(struct dvm_head *h, struct head_task *t);
/* This try of the task has ended. */
void spawned_end(struct dvm_head *h, struct head_task *t);
void spawned_free(struct head_spawn *s);
/* Answer the node that has asked; later calls answer nothing. An empty `why`: there it is. */
void spawned_answer(struct dvm_head *h, struct head_spawn *s, const char *why);
void spawned_reply(struct dvm_head *h, uint32_t node, const struct dvm_spawned *a);

/* ---- head_submit.c ---- */

/* A task that another one spawns; NULL, and why it cannot be. `spawned`: taken over. */
struct head_task *submit_spawned(struct dvm_head *h, const struct dvm_bytes *text,
				 struct head_spawn *spawned, char *why, size_t size);
/*
 * A task of the journal, as it was submitted, with its id as h->next_id. NULL: no memory.
 * `why` is empty, or says why it cannot run here; it is queued all the same.
 */
struct head_task *submit_again(struct dvm_head *h, const struct dvm_bytes *text,
			       struct head_profile *p, char *why, size_t size);

/* ---- head_journal.c ---- */

void journal_init(struct dvm_head *h);
void journal_free(struct dvm_head *h);
/* Records. Without a journal, nothing. */
int journal_submit(struct dvm_head *h, const struct head_task *t,
		   const struct dvm_bytes *text);
void journal_start(struct dvm_head *h, struct head_task *t);
void journal_cancel(struct dvm_head *h, const struct head_task *t);
void journal_end(struct dvm_head *h, struct head_task *t);
void journal_waited(struct dvm_head *h, const struct journal_waited *w);
/* Record that nodes have come or gone, or that this head begins. */
void journal_nodes(struct dvm_head *h, bool begins);
/* The head ends, and no rank runs: the next head need not wait for any. */
void journal_left(struct dvm_head *h);
/* Write all records now. True: all are written. */
bool journal_flush(struct dvm_head *h);
/* Could it be written the last time, or can it now; and is that safe? */
bool journal_ready(struct dvm_head *h);
/* True: everything before this position is as safe as it has to be. */
bool journal_is_safe(const struct dvm_head *h, uint64_t position);
/*
 * Around the records of a request to submit, which are written together, or not at all.
 * 0, or why they are not written. *at: where they are safe.
 */
int journal_begin_request(struct dvm_head *h);
int journal_end_request(struct dvm_head *h, uint64_t *at);

/* ---- head_why.c ---- */

/* A node has answered. */
void why_told(struct dvm_head *h, const struct dvm_told *m);

/* ---- head_lines.c ---- */

/* End the client's connection. */
void client_break_off(struct dvm_head *h, uint32_t client);
void client_drop_held(struct head_client *c);
void client_tell(struct dvm_head *h, uint32_t client, const struct head_event *e);

/* ---- head_output.c ---- */

struct head_output;

/* A part of a task whose output is forwarded is launched on the node. Its window, in bytes. */
uint32_t output_begin(struct dvm_head *h, struct head_task *t, uint32_t node);
/* Ranks on the node have written: watchers are told. */
void output_take(struct dvm_head *h, struct head_task *t, uint32_t node,
		 const struct dvm_output_msg *m);
/* This try of the task has ended. */
void output_end(struct dvm_head *h, struct head_task *t);
/* Nodes hear what clients have read. */
void output_turn(struct dvm_head *h);
/* The node whose output waits for a client, or NODE_NONE. `who`: the client's name. */
uint32_t output_waits(struct dvm_head *h, const struct head_task *t, char *who, size_t size);

/* ---- head_report.c ---- */

/* The task has ended: its watchers are told at the end of the turn. */
void report_ended(struct dvm_head *h, struct head_task *t);
void report_ended_to(struct dvm_head *h, struct head_task *t,
		     uint32_t client);
/*
 * Tell clients that wait for tasks that a node is "lost" (why, and how many tasks ran
 * there), or has "joined" or "returned".
 */
void report_node(struct dvm_head *h, uint32_t node, const char *state, const char *why,
		 uint32_t tasks);
/* Send what has come up in this turn. */
void report_turn(struct dvm_head *h);

#endif
