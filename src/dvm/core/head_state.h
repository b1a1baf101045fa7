/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a head: its nodes, tasks and clients. */
#ifndef PMI2X_DVM_HEAD_STATE_H
#define PMI2X_DVM_HEAD_STATE_H

#include <uthash.h>

#include "dvm/core/dvm_msg.h"
#include "dvm/core/head.h"
#include "dvm/core/journal.h"

#define NODE_NONE UINT32_MAX
#define RETRIES_MAX 1000 /* of a task */
#define PRIORITY_MAX 1000000
#define COMMAND_KEPT_MAX 1024  /* bytes of arguments of a task that has ended */

/* Lists of nodes, in the order in which they were added. */
enum node_list {
	NODES_OUT,   /* head_node.out may have messages, and so on */
	NODES_DONE,
	NODES_LATER,
	NODE_LISTS,
};

struct head_node {
	char *name;     /* NULL: the daemon has not registered */
	struct ledger_resources has;
	struct dvm_address address;
	bool lost;
	bool gone;         /* its ranks have ended, surely */
	uint64_t heard_ms; /* when it last was */
	uint64_t until_ms; /* lost, and its ranks may run until then; 0: they do not */
	bool drained;
	char *drained_why; /* NULL: a client has */
	bool leaving;      /* it is to leave, and */
	bool left;         /* has been told to */
	uint64_t leave_ms; /* when what runs there is ended; 0: it is not */
	struct buf out; /* messages of this turn */
	struct buf done; /* the same, for when the journal is safe so far, */
	struct buf later; /* and farther */
	struct buf early; /* what it has said before this head was resumed */
	uint32_t next[NODE_LISTS]; /* the node behind it in a list, or NODE_NONE */
	bool listed[NODE_LISTS];
	uint32_t namesake; /* a later node of its name, or NODE_NONE */
};

/* A name of nodes that belong to the DVM. */
struct head_name {
	const char *name; /* the first one's */
	uint32_t first, last;
	UT_hash_handle hh;
};

/* Nodes that are to come, behind all others. */
struct head_growth {
	uint32_t nodes;      /* 0: none */
	uint32_t registered; /* of these */
	uint32_t client;     /* who waits for them, and */
	char *tag; /* the text of its request's tag, NULL: it has none */
};

/* An environment; see head_profile.c. */
struct head_profile {
	uint32_t number;
	char *id;       /* of the clients' choice */
	char *cwd;
	struct buf env; /* texts, each with its NUL */
	struct dvm_limits limits;
	size_t users;   /* tasks, and clients that named it */
	uint8_t *sent;  /* by node: it has it */
	size_t nsent;
	uint64_t recorded; /* in the journal, by this request; 0: it is not */
	UT_hash_handle hh;
};

/* States of a task. It is in one list of the head; head_task.c has the legal moves. */
enum task_state {
	TASK_QUEUED,   /* in the queue */
	TASK_HELD,     /* not in the queue: ranks of it may run, see dvm_head.unheard_ms */
	TASK_PLACED,   /* it has its resources; its nodes have not been told */
	TASK_LAUNCHED, /* its nodes have been told */
	TASK_ENDED,
	TASK_STATES,
};

/* This try of a task that runs is being ended, and the task runs again. */
enum task_loss {
	LOSS_NONE,
	LOSS_STARTED, /* ranks of it may have been started */
	LOSS_UNSTARTED,
};

/* A client that is told when a task has ended. */
struct watcher {
	uint32_t client;
	struct watcher *next;
};

struct task_result {
	int32_t status;
	uint32_t rank;    /* of whom */
	bool not_started, too_long, cancelled;
	bool told;        /* status is of a part that was ended for another's sake */
	uint64_t user_us, system_us, peak_kib;
	char *why, *out, *err; /* NULL: none */
	size_t out_len, err_len;
};

/* The user's specification of a task. */
struct task_spec {
	struct ledger_shape shape;
	int32_t priority;
	uint32_t limit_s;
	uint32_t retries;
	bool pmi;        /* also for one rank */
	enum dvm_output output;
	char *argv;      /* texts, each with its NUL */
	size_t argv_len;
	char *input;     /* standard input of rank 0; or NULL */
	size_t input_len;
	char *path;      /* or NULL */
	char *error;     /* the file of stderr, or NULL */
	bool append;     /* to these files */
	char *cwd;       /* in place of the profile's; or NULL */
	char *name;      /* or NULL */
	uint64_t number; /* the client's, for lists: a line of a file; 0: none */
};

struct head_task {
	uint64_t id;
	enum task_state state;
	struct queue_item item;
	struct task_spec spec;
	struct head_profile *profile;
	uint64_t line;    /* see journal_submit */
	uint32_t instance;
	uint32_t losses;  /* of nodes that it ran on */
	uint32_t tied;    /* the client without which it is ended; 0: none */
	bool cancelled;
	enum task_loss loss;
	bool argv_cut;    /* ended: spec.argv has only the first arguments */
	uint64_t start_at, end_at; /* positions behind its records in the journal */
	bool waited;      /* ended, and a client that waited for that has confirmed it */
	uint32_t told;    /* ended: the client that was told last; 0: none */
	bool asked_names; /* of the host, see ops.names */
	bool follow;      /* watchers of it hear of tasks that it spawns, and watch them */
	struct head_spawn *spawned;  /* by a task; NULL: by a client */
	struct head_spawn *children; /* that this try of it has spawned, and that live */
	uint32_t parts_left;
	struct ledger_placement *placement;
	uint64_t submitted_ns, placed_ns, started_ns, ended_ns;
	struct task_result result;
	struct watcher *watchers;
	struct head_output *outputs; /* of this try, if output is forwarded */
	struct head_task *prev, *next; /* in the list of its state */
	UT_hash_handle hh;
};

/* The link of a spawned task to its spawner; see head_spawned.c. */
struct head_spawn {
	struct head_task *task;   /* which has it */
	struct head_task *parent; /* NULL: it has ended well before this one */
	uint64_t parent_id;
	uint32_t instance, token, node; /* of who has asked, and there */
	bool asks;      /* it has not been answered */
	char *why_not;  /* its first rank never will be there: NULL, or why */
	void *about;    /* dvm_spawn.about */
	size_t about_len;
	struct head_spawn *prev, *next; /* of the parent's children */
};

/* Tasks that have ended, whose results are not kept, and that nobody has waited for. */
struct unwaited {
	uint64_t tasks, failed; /* failed are tasks, too */
};

/* Lines that a client is sent when the journal is safe up to a position. */
struct held_lines {
	uint64_t at;
	struct buf lines;
	struct held_lines *prev, *next;
};

struct head_client {
	uint32_t number;
	bool broken;   /* its connection is being closed */
	struct held_lines *held; /* in this order, whatever comes is behind it */
	struct head_profile **profiles;
	size_t nprofiles, profiles_cap;
	bool watches;  /* it waits for tasks, and is told of nodes */
	bool leaves;   /* no other client need leave the DVM up for it: it only looks, or has
	                  asked for the end, if it is the last, and ends its connection */
	bool refused;  /* it is of another version: what it asks is not heard */
	struct unwaited unkept; /* of what it waits for */
	struct buf ended;  /* events with tasks that have ended in this turn, */
	size_t ended_last; /* the last of which begins here */
	uint64_t sent; /* bytes of lines: given to the host */
	uint64_t windows; /* bytes: those of output that it is to read */
	uint64_t ended_at; /* behind the last of their records */
	UT_hash_handle hh;
};

/* See head_journal.c. */
struct head_journal {
	bool on;
	struct buf out;   /* records that the host has not written */
	enum durable_wait wait; /* for these */
	uint64_t written; /* position: what the host has written */
	uint64_t safe;    /* what is safe on the disk */
	uint64_t end_at;  /* behind the last end that outlives the head */
	uint64_t done_at; /* head_node.done waits for it */
	bool done_waits;  /* there is some, */
	bool done_later;  /* and of head_node.later */
	int error;        /* why it cannot be written, or 0 */
	int unsafe;       /* why it cannot be made safe, or 0 */
	uint64_t request; /* to submit: their number */
};

enum head_phase {
	HEAD_SERVES,
	HEAD_DRAINS, /* takes no tasks; ends when none is left */
	HEAD_STOPS,  /* starts none; ends when none runs */
	HEAD_LEFT,
};

struct dvm_head {
	struct dvm_head_options options;
	struct dvm_head_ops ops;
	void *arg;
	const struct log_hook *log;
	struct ledger *ledger;
	struct queue *queue;
	struct head_node *nodes;  /* by position, which is the ledger's number */
	uint32_t registered;
	struct head_name *names;
	uint32_t list_first[NODE_LISTS], list_last[NODE_LISTS]; /* or NODE_NONE */
	uint64_t nodes_due_ms;    /* no node has a deadline before; 0: not known */
	bool some_leave;          /* nodes wait for the end of their tasks to leave */
	struct head_growth growth;
	struct head_profile *profiles;
	uint32_t next_profile;
	struct head_client *clients;
	struct head_task *tasks;  /* all, by id */
	/* Lists: with those that are held, and those that are placed. */
	struct head_task *queued, *running, *ended;
	size_t nqueued, nrunning, nended;           /* in them */
	struct head_output *unread; /* list of those that some client has not read */
	uint64_t windows;           /* bytes: those of all clients */
	uint64_t next_id;         /* from 1 */
	uint64_t done, failed;    /* ever */
	struct unwaited unkept;
	uint64_t line;            /* the last of all tasks */
	struct head_journal journal;
	bool adopting;            /* until it is resumed */
	uint64_t unheard_ms;      /* ranks that another head has started may run until then
	                             on nodes that have not been heard; 0: there are none */
	uint64_t hopeless_ms;     /* when tasks end for which too few nodes are left */
	enum head_phase phase;
	uint64_t stop_ms;         /* of HEAD_STOPS: when what runs is ended; 0: never */
	uint64_t down_ms;         /* when a client has asked for the end, whose number is */
	uint32_t down_client;     /* this, and was not told of nodes out of reach; or 0 */
	bool awaits_starter;      /* see dvm_head_await_starter */
	bool retry;               /* something was added or freed: place */
	struct dvm_time now;      /* of the input that is handled */
};

/* The task whose item in the queue it is. */
static inline struct head_task *task_of_item(const struct queue_item *item)
{
	return (struct head_task *)((char *)(uintptr_t)item - offsetof(struct head_task, item));
}

static inline bool task_waits(const struct head_task *t)
{
	return t->state == TASK_QUEUED || t->state == TASK_HELD;
}
static inline bool task_runs(const struct head_task *t)
{
	return t->state == TASK_PLACED || t->state == TASK_LAUNCHED;
}

#endif
