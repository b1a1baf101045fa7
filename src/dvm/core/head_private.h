/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the files of the head share. */
#pragma once

#include "dvm/core/head_requests.h"

/* ---- head_lookup.c ---- */

/* Add the node to those of its name. 0 or -ENOMEM. */
int head_add_name(struct dvm_head *h, uint32_t node);
/* Remove the node, which was added last, from those of its name. */
void head_drop_name(struct dvm_head *h, uint32_t node);
void head_forget_names(struct dvm_head *h);
/* True: a node of this name has been lost. */
bool head_has_lost_name(const struct dvm_head *h, const char *name);
/* Add a node to a list, unless it is in it. */
void head_list_node(struct dvm_head *h, enum node_list list, uint32_t node);
/* Take the first node out of a list; NODE_NONE: the list is empty. */
uint32_t head_take_listed(struct dvm_head *h, enum node_list list);
void head_queue_msg(struct dvm_head *h, uint32_t node, const struct dvm_msg *m);
bool head_has_lost_all(const struct dvm_head *h);
/* Tasks by number. 0 or -ENOMEM. */
int tasks_init(struct dvm_head *h);
void task_add(struct dvm_head *h, struct head_task *t);
void task_remove(struct dvm_head *h, struct head_task *t);
/* The next number that a task of this DVM could have. */
uint64_t head_id_after(const struct dvm_head *h, uint64_t id);

/* ---- head.c ---- */

/* Handle a message of a registered node. NULL, or the error in it. */
const char *head_take(struct dvm_head *h, uint32_t node, const struct dvm_msg *m);

/* ---- head_adopt.c ---- */

struct adoption;

/* Read the parts that nodes hold from their messages. NULL: no memory. */
struct adoption *adoption_create(struct dvm_head *h);
/* Let a task of the journal go on with the parts that nodes hold. False: they hold none. */
bool adoption_take(struct adoption *a, struct head_task *t, bool once);
/* True: all parts of it that nodes hold have ended. */
bool adoption_is_over(struct adoption *a, const struct head_task *t);
/* Take the ends of adopted tasks: their resources are free. */
void adoption_take_ends(struct adoption *a);
/* True: all nodes of the other head have reported the parts that they hold. */
bool adoption_is_whole(const struct dvm_head *h);
/* Tell nodes to end unwanted parts, and handle their other messages. */
void adoption_end(struct adoption *a);

/* ---- head_done.c ---- */

/* The task's nodes need not keep its ends once the journal is safe up to here. */
void done_note(struct dvm_head *h, const struct head_task *t);
/* As above for one part. */
void done_pack(struct dvm_head *h, uint32_t node, uint64_t task, uint32_t instance);
/* Send the messages that wait for the journal no more. */
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
/* Take no new tasks, and exit when no task is left. */
void head_drain(struct dvm_head *h);

/* ---- head_unreached.c ---- */

void head_unreached_turn(struct dvm_head *h);
/* A client has asked for the end: nodes that cannot be reached are not waited for. */
void head_down_begins(struct dvm_head *h, uint32_t client);

/* ---- head_wait.c ---- */

/* The result of a task is not kept any more. */
void wait_task_forgotten(struct dvm_head *h, const struct head_task *t);
/* A client has gone: the ends that it has not confirmed are for others. */
void wait_client_gone(struct dvm_head *h, struct head_client *c);
/* Handle a record of the journal. */
void wait_read(struct dvm_head *h, const struct journal_waited *r);
/* Ended tasks whose reports no client has confirmed. */
struct unwaited wait_unkept(const struct dvm_head *h);

/* ---- head_profile.c ---- */

void profile_release(struct dvm_head *h, struct head_profile *p);
/* Send the profile to the node, unless the node has it. */
void profile_send(struct dvm_head *h, struct head_profile *p, uint32_t node);

/* ---- head_node_names.c ---- */

/* Send the names of all nodes that the node does not know. 0 or a negative errno. */
int head_send_names(struct dvm_head *h, uint32_t node);

/* ---- head_task.c ---- */

void task_spec_free(struct task_spec *s);
/*
 * Queue a task; what `spec` holds is taken over, also on failure. NULL with a
 * negative errno in *error.
 */
struct head_task *task_submit(struct dvm_head *h, struct task_spec *spec,
			      struct head_profile *profile, int *error);
/* A client has gone: end the tasks that are tied to it. */
void tasks_lose_client(struct dvm_head *h, uint32_t client);
/* End tasks that can never run any more, unless they wait for another head. */
void tasks_fail_impossible(struct dvm_head *h);
/* A waiting task is neither placed nor ended until tasks_release. */
void task_hold(struct dvm_head *h, struct head_task *t);
/*
 * Ranks of held tasks have ended; or: cancelled tasks do not wait for that. False: no task
 * is held.
 */
bool tasks_release(struct dvm_head *h, bool cancelled);
/* End a waiting task, because its head or client was lost. */
void task_end_lost(struct dvm_head *h, struct head_task *t, int32_t status, const char *why);
/* End a waiting task with the result that it has. */
void task_end_queued(struct dvm_head *h, struct head_task *t);
/* The reason why the task has failed, or will fail. */
void task_set_why(struct head_task *t, const char *why);
void tasks_free(struct dvm_head *h);
/* The task is placed, or its journal says that it was: t->run is there. 0 or -ENOMEM. */
int task_begin_run(struct head_task *t);
/* Another try follows. */
void task_forget_result(struct head_task *t);
/* True: the move between these states is legal. */
bool task_may_move(enum task_state from, enum task_state to);
/* Move the task to another state, which is legal, and into its list. */
void task_move(struct dvm_head *h, struct head_task *t, enum task_state state);
/* The task has ended: report it to all that wait. */
void task_end(struct dvm_head *h, struct head_task *t);

/* ---- head_launch.c ---- */

void tasks_place(struct dvm_head *h);
/* Launch placed tasks whose starts are in the journal. */
void tasks_launch(struct dvm_head *h);
/* A waiting task runs on nodes, since another head has started it. */
void task_adopt(struct dvm_head *h, struct head_task *t,
		struct ledger_placement *placement, uint64_t started_ns);
/* An adopted task has lost nodes: end the rest of it. */
void task_lose_rest(struct dvm_head *h, struct head_task *t, bool once);

/* ---- head_placement.c ---- */

/* The task's part on the node, or NULL. */
struct ledger_part *task_part_on(const struct head_task *t, uint32_t node);
/* Free where it was placed. */
void task_run_unplace(struct task_run *r);

/* ---- head_parts.c ---- */

void task_started(struct dvm_head *h, const struct dvm_started *m);
/* A rank of the task has failed: end the other ranks on all nodes. */
void task_failing(struct dvm_head *h, const struct dvm_started *m);
/* The task has failed as a whole. */
void task_failed(struct dvm_head *h, const struct dvm_failed *m);
void task_output(struct dvm_head *h, uint32_t node, const struct dvm_output_msg *m);
/* Copy what a task has printed, and the names of its files, to its result. */
void task_take_output(struct task_run *r, const struct dvm_bytes *out,
		      const struct dvm_bytes *err);
void task_take_files(struct task_run *r, const struct dvm_bytes *files,
		     const struct dvm_bytes *unkept);
/* The end of the task's part on the node. */
void task_part_ended(struct dvm_head *h, uint32_t node, const struct dvm_ended *m);
/*
 * The node is lost, and its tasks with it: end their ranks on other nodes. False: the node
 * had none.
 */
bool tasks_lose_node(struct dvm_head *h, uint32_t node, const char *why);
/* Ranks of a lost node have certainly ended: its tasks wait again. */
void tasks_leave_node(struct dvm_head *h, uint32_t node);
/*
 * By node, to be freed. True: the node has ranks of a task that is to end. NULL: no memory.
 */
bool *tasks_end_on(const struct dvm_head *h);
/* End the ranks on the node as at a time limit; their tasks wait again. */
void tasks_move_away(struct dvm_head *h, uint32_t node);

/* ---- head_asks.c ---- */

/* A rank of a running task asks about names. */
void asks_names(struct dvm_head *h, uint32_t node, const struct dvm_names *m);
/* The task spawns another one. */
void asks_spawn(struct dvm_head *h, uint32_t node, const struct dvm_spawn *m);
/* The first rank of a spawned task is ready, or never will be. */
void asks_ready(struct dvm_head *h, const struct dvm_ready *m);

/* ---- head_spawned.c ---- */

/* The task is to be ended: end the tasks that it has spawned, too. */
void spawned_cancel(struct dvm_head *h, struct head_task *t);
/* This try of the task has ended. */
void spawned_end(struct dvm_head *h, struct head_task *t);
void spawned_free(struct head_spawn *s);
/*
 * Answer the node that has asked; later calls answer nothing. An empty `why`: the task is
 * ready.
 */
void spawned_answer(struct dvm_head *h, struct head_spawn *s, const char *why);
void spawned_reply(struct dvm_head *h, uint32_t node, const struct dvm_spawned *a);

/* ---- head_submit.c ---- */

/*
 * Submit a task that another one spawns. NULL: it is refused, and *why has the reason.
 * `spawned`: taken over.
 */
struct head_task *submit_spawned(struct dvm_head *h, const struct dvm_bytes *text,
				 struct head_spawn *spawned, char *why, size_t size);
/*
 * A task of the journal, as it was submitted, with its id as h->next_id. NULL: no memory.
 * `why` is empty, or the reason why the task cannot run here; it is queued nevertheless.
 */
struct head_task *submit_again(struct dvm_head *h, const struct dvm_bytes *text,
			       struct head_profile *p, char *why, size_t size);

/* A task of an incomplete submit leaves: it ends, or is undone. */
void submit_forget(struct dvm_head *h, struct head_task *t);
/* Queue the tasks of submits that have been incomplete for too long. */
void submits_turn(struct dvm_head *h);
/* When the next turn is due for that; UINT64_MAX: never. */
uint64_t submits_due_ms(const struct dvm_head *h);

/* ---- head_journal.c ---- */

void journal_init(struct dvm_head *h);
void journal_free(struct dvm_head *h);
/* Append records; without a journal, nothing. */
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
/* True: the last write succeeded, or a write succeeds now; and the records are safe. */
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

/* A node has answered a request "why". */
void why_told(struct dvm_head *h, const struct dvm_told *m);

/* ---- head_lines.c ---- */

/* Tell clients that wait for the journal why it is not safe. */
void clients_tell_unsafe(struct dvm_head *h);
/* End the client's connection. */
void client_break_off(struct dvm_head *h, uint32_t client);
void client_drop_held(struct head_client *c);
void client_tell(struct dvm_head *h, uint32_t client, const struct head_event *e);

/* ---- head_output.c ---- */

struct head_output;

/*
 * A part of a task whose output is forwarded is launched on the node. Returns its window,
 * in bytes.
 */
uint32_t output_begin(struct dvm_head *h, struct head_task *t, uint32_t node);
/* Ranks on the node have written: send it to the watchers. */
void output_take(struct dvm_head *h, struct head_task *t, uint32_t node,
		 const struct dvm_output_msg *m);
/* This try of the task has ended. */
void output_end(struct dvm_head *h, struct head_task *t);
/* Tell nodes how much clients have read. */
void output_turn(struct dvm_head *h);
/* The node whose output waits for a client, or NODE_NONE. `who`: the client's name. */
uint32_t output_waits(struct dvm_head *h, const struct head_task *t, char *who, size_t size);

/* ---- head_report.c ---- */

/* The task has ended: its watchers get the event at the end of the turn. */
void report_ended(struct dvm_head *h, struct head_task *t);
void report_ended_to(struct dvm_head *h, struct head_task *t,
		     uint32_t client);
/*
 * Tell clients that wait for tasks that a node is "lost" (why, and how many tasks ran
 * there), or has "joined" or "returned".
 */
void report_node(struct dvm_head *h, uint32_t node, const char *state, const char *why,
		 uint32_t tasks);
/* Send the events of this turn. */
void report_turn(struct dvm_head *h);
