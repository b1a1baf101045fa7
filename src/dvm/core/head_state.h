/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a head: its nodes, tasks and clients. */
#pragma once

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "dvm/core/dvm_msg.h"
#include "dvm/core/head.h"
#include "dvm/core/journal.h"

#define NODE_NONE UINT32_MAX
#define RETRIES_MAX 1000 /* limit of the retries of a task */
#define PRIORITY_MAX 1000000
#define COMMAND_KEPT_MAX 1024  /* bytes of arguments of a task that has ended */

/* Lists of nodes, in the order in which they were added. */
enum node_list {
	NODES_OUT,   /* nodes whose head_node.out may have messages; the others likewise */
	NODES_DONE,
	NODES_LATER,
	NODE_LISTS,
};

struct head_node {
	char *name;     /* NULL: the daemon has not registered */
	struct ledger_resources has;
	struct dvm_address address;
	bool lost;
	bool gone;         /* its ranks have certainly ended */
	uint64_t heard_ms; /* time of its last message */
	uint64_t until_ms; /* lost, and its ranks may run until then; 0: no rank runs */
	bool drained;
	char *drained_why; /* NULL: drained by a client */
	bool leaving;      /* the node is to leave */
	bool left;         /* LEAVE was sent */
	uint64_t leave_ms; /* when running ranks are ended; 0: never */
	struct buf out; /* messages of this turn */
	struct buf done; /* messages for when the journal is safe so far */
	struct buf later; /* messages for a later position of the journal */
	struct buf early; /* messages from before this head was resumed */
	uint32_t next[NODE_LISTS]; /* the next node of a list, or NODE_NONE */
	bool listed[NODE_LISTS];
	uint32_t namesake; /* a later node of its name, or NODE_NONE */
	size_t names_sent; /* the bytes of dvm_head.node_names that the node was sent */
};

/* A name of nodes that belong to the DVM. */
struct head_name {
	const char *name; /* owned by the first of these nodes */
	uint32_t first, last;
	UT_hash_handle hh;
};

/* Nodes that are to come, with positions behind all others. */
struct head_growth {
	uint32_t nodes;      /* 0: none */
	uint32_t registered; /* the registered ones */
	uint32_t client;     /* the client that waits for them */
	char *tag; /* text of its request's tag, NULL: none */
};

/* An environment; see head_profile.c. */
struct head_profile {
	uint32_t number;
	char *id;       /* of the clients' choice */
	char *cwd;
	struct buf env; /* texts, each with its NUL */
	struct dvm_limits limits;
	char *outputs;  /* directory for complete output, or NULL */
	struct buf input; /* standard input of tasks that have none of their own */
	size_t users;   /* tasks, and clients that named it */
	uint8_t *sent;  /* by node: it knows the profile */
	size_t nsent;
	uint64_t recorded; /* number of the request that recorded it in the journal; 0: not
	                      recorded */
	UT_hash_handle hh;
};

/* States of a task. It is in one list of the head; head_task.c has the legal moves. */
enum task_state {
	TASK_QUEUED,   /* in the queue */
	TASK_HELD,     /* not in the queue: ranks of it may run, see dvm_head.unheard_ms */
	TASK_COMING,   /* not in the queue: its submit is not complete, see head_submit.c */
	TASK_PLACED,   /* has resources; its nodes do not know yet */
	TASK_LAUNCHED, /* its nodes have got LAUNCH */
	TASK_ENDED,
	TASK_STATES,
};

/* This try of a running task is being ended, and the task runs again. */
enum task_loss {
	LOSS_NONE,
	LOSS_STARTED, /* ranks of it may have been started */
	LOSS_UNSTARTED,
};

/* Another client that gets an event when a task has ended. */
struct watcher {
	uint32_t client;
	struct watcher *next;
};

/* Files in the directory of the task's profile. */
struct task_files {
	char *unkept; /* why they are not whole, or NULL */
	size_t len;
	char names[]; /* each with its NUL */
};

/* The user's specification of a task, as it is read. */
struct task_spec {
	struct ledger_shape shape;
	int32_t priority;
	uint32_t limit_s;
	uint32_t retries;
	bool pmi;        /* also for a task of one rank */
	enum dvm_output output;
	char *argv;      /* texts, each with its NUL */
	size_t argv_len;
	char *input;     /* standard input of rank 0; or NULL */
	size_t input_len;
	char *path;      /* or NULL */
	char *error;     /* the file of stderr, or NULL */
	bool append;     /* to these files */
	bool preloaded;  /* argv is a script with its arguments: see up --preload */
	char *cwd;       /* in place of the profile's; or NULL */
	char *name;      /* or NULL */
	uint64_t number; /* number by the client, for lists: a line of a file; 0: none */
};

/* Texts that few tasks have: as in task_spec. One block of memory. */
struct task_texts {
	const char *path, *error, *cwd, *name;
	const char *input;
	size_t input_len;
	char bytes[];
};

/*
 * The state that only a task has that was placed, by this head or an earlier one. Another
 * try uses it again.
 */
struct task_run {
	uint32_t parts_left;
	uint32_t losses;  /* lost nodes among those that it ran on */
	enum task_loss loss;
	bool asked_names; /* ops.names was called for it */
	bool output_lost; /* with a head: the journal does not have it */
	struct ledger_placement *placement; /* NULL: it waits for another try */
	uint64_t *by_node; /* index of its parts; NULL: there is none yet, or they are few */
	uint64_t start_at; /* position after its record in the journal */
	uint64_t placed_ns, started_ns;
	uint64_t user_us, system_us, peak_kib;
	char *out, *err; /* tails; NULL: none */
	uint32_t out_len, err_len;
	struct task_files *files; /* of complete output; NULL: out and err are complete */
	struct head_spawn *children; /* live tasks that this try has spawned */
	struct head_output *outputs; /* of this try, if output is forwarded */
};

/*
 * A task. A million of them may wait, so what only placed tasks have is in another block,
 * and so is what few have.
 */
struct head_task {
	uint64_t id;
	struct queue_item item;
	struct head_task *same_hash;   /* the next task of its bucket */
	struct head_task *prev, *next; /* in the list of its state */
	struct head_profile *profile;
	char *argv;       /* texts, each with its NUL */
	struct task_texts *texts; /* NULL: none; see task_texts() */
	struct task_run *run;     /* NULL: it was never placed; see task_run() */
	struct watcher *watchers; /* clients behind the first one */
	struct head_spawn *spawned; /* spawned by a task; NULL: submitted by a client */
	uint64_t line;    /* see journal_submit */
	uint64_t number;  /* as in task_spec */
	uint64_t submitted_ns, ended_ns;
	uint64_t end_at;  /* ended: position after its record in the journal */
	char *why;        /* the reason why it failed, or NULL */
	uint32_t watcher; /* the first client that gets an event when it has ended; 0: none */
	uint32_t argv_len;
	uint32_t ranks;
	int32_t priority;
	uint32_t limit_s, retries; /* as in task_spec */
	uint32_t instance;
	uint32_t tied;    /* the task ends with this client; 0: none */
	uint32_t told;    /* ended: the client that got the last event; 0: none. TASK_COMING:
	                     the client that submits it */
	int32_t status;   /* the wait status of its result so far, */
	uint32_t rank;    /* ... and the rank that has it */
	uint8_t state;    /* enum task_state */
	uint8_t output;   /* enum dvm_output */
	bool pmi : 1, append : 1, preloaded : 1; /* as in task_spec */
	bool follow : 1;    /* watchers also get events of tasks that it spawns, and watch them */
	bool cancelled : 1;
	bool argv_cut : 1;  /* ended: argv has only the first arguments */
	bool waited : 1;    /* ended, and a client that waited for that has confirmed it */
	bool not_started : 1, too_long : 1; /* of its result: as in dvm_ended */
	bool told_to_end : 1; /* its status is of a part that was ended because of another */
};

/* The link of a spawned task to its spawner; see head_spawned.c. */
struct head_spawn {
	struct head_task *task;   /* the spawned task */
	struct head_task *parent; /* NULL: it has ended well before the spawned task */
	uint64_t parent_id;
	uint32_t instance, token, node; /* the rank that asked: instance, token and node */
	bool asks;      /* without an answer so far */
	char *why_not;  /* why its first rank will never be ready, or NULL */
	void *about;    /* dvm_spawn.about */
	size_t about_len;
	struct head_spawn *prev, *next; /* of the parent's children */
};

/* Ended tasks whose results are not kept, and for which no client has waited. */
struct unwaited {
	uint64_t tasks, failed; /* all of them, and the failed ones */
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
	struct held_lines *held; /* in order; later lines go behind them */
	struct head_profile **profiles;
	size_t nprofiles, profiles_cap;
	bool watches;  /* waits for tasks, and gets events of nodes */
	bool leaves;   /* the DVM may end without this client: it only looks, or has asked for
	                  the end as the last client, and leaves */
	bool refused;  /* of another version: its requests are ignored */
	struct unwaited unkept; /* of the tasks that it waits for */
	size_t coming;    /* tasks of its submit that is not complete */
	uint64_t whole_ms, pause_ms; /* when these wait no longer */
	struct buf ended;  /* events with tasks that have ended in this turn */
	size_t ended_last; /* begin of the last of these events */
	uint64_t sent; /* bytes of lines: given to the host */
	uint64_t windows; /* bytes: output that the client is to read */
	uint64_t ended_at; /* after the last of their records */
	UT_hash_handle hh;
};

/* See head_journal.c. */
struct head_journal {
	bool on;
	struct buf out;   /* records that the host has not written */
	enum durable_wait wait; /* for the sync of the records */
	uint64_t written; /* position that the host has written */
	uint64_t safe;    /* position that is safe on the disk */
	uint64_t end_at;  /* after the last end that outlives the head */
	uint64_t done_at; /* head_node.done waits for it */
	bool done_waits;  /* some node's `done` has messages */
	bool done_later;  /* some node's `later` has messages */
	int error;        /* negative errno of writing, or 0 */
	int unsafe;       /* negative errno of making it safe, or 0 */
	uint64_t request; /* number of requests to submit */
};

enum head_phase {
	HEAD_SERVES,
	HEAD_DRAINS, /* takes no tasks; exits when no task is left */
	HEAD_STOPS,  /* starts none; exits when none runs */
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
	struct dvm_traffic traffic;
	struct head_name *names;
	struct buf node_names;    /* the names of the first `named` nodes, as NODES */
	uint32_t named;
	uint32_t list_first[NODE_LISTS], list_last[NODE_LISTS]; /* or NODE_NONE */
	uint64_t nodes_due_ms;    /* no node has a deadline before; 0: not known */
	bool some_leave;          /* nodes wait for the end of their tasks to leave */
	struct head_growth growth;
	struct head_profile *profiles;
	uint32_t next_profile;
	struct head_client *clients;
	struct head_task **buckets; /* all tasks, by id: head_lookup.c */
	size_t nbuckets;          /* a power of two */
	struct task_run *spare;   /* for the next task that is placed */
	/*
	 * Lists; with the queued tasks are the held ones, with the running tasks the placed
	 * ones.
	 */
	struct head_task *queued, *running, *ended;
	size_t nqueued, nrunning, nended;           /* lengths of the lists */
	size_t coming;            /* TASK_COMING tasks among the queued ones */
	struct head_output *unread; /* output that some client has not read */
	uint64_t windows;           /* bytes: those of all clients */
	uint64_t next_id;         /* from 1 */
	uint64_t done, failed;    /* since the DVM's start */
	struct unwaited unkept;
	uint64_t line;            /* the line of the last task */
	struct head_journal journal;
	bool adopting;            /* until the head is resumed */
	uint64_t unheard_ms;      /* until then ranks that another head has started may run on
	                             nodes that have not registered; 0: none do */
	uint64_t hopeless_ms;     /* when tasks end for which too few nodes are left */
	enum head_phase phase;
	uint64_t ending_ns;       /* when the head stopped to serve; 0: it serves */
	uint64_t stop_ms;         /* of HEAD_STOPS: when running tasks are ended; 0: never */
	uint64_t down_ms;         /* when a client is told of nodes out of reach; 0: never */
	uint64_t stuck_ms;        /* when nodes are given up that do not end ranks; 0: never */
	uint32_t down_client;     /* that client, if it got no event of nodes out of reach; or
	                             0 */
	bool awaits_starter;      /* see dvm_head_await_starter */
	bool retry;               /* something was added or freed: place */
	struct dvm_time now;      /* of the input that is handled */
};

/* The task of an item in the queue. */
static inline struct head_task *task_of_item(const struct queue_item *item)
{
	return (struct head_task *)((char *)(uintptr_t)item - offsetof(struct head_task, item));
}

/* Iterates over the clients that watch a task. */
struct watcher_at {
	uint32_t client;
	const struct watcher *rest;
};

static inline struct watcher_at watcher_next(const struct watcher *rest)
{
	return rest ? (struct watcher_at){ rest->client, rest->next } :
		      (struct watcher_at){ 0, NULL };
}

/* `w`: a variable of the loop; w.client is the client. */
#define FOR_EACH_WATCHER(t, w)                                            \
	for (struct watcher_at w = { (t)->watcher, (t)->watchers }; w.client; \
	     w = watcher_next(w.rest))

/* The rare texts of a task; empty, if there are none. */
static inline const struct task_texts *task_texts(const struct head_task *t)
{
	static const struct task_texts none;

	return t->texts ? t->texts : &none;
}

/* The state of a placed task; empty, if it was never placed. */
static inline const struct task_run *task_run(const struct head_task *t)
{
	static const struct task_run none;

	return t->run ? t->run : &none;
}

static inline bool task_failed_so_far(const struct head_task *t)
{
	return t->status || t->cancelled;
}

static inline bool task_waits(const struct head_task *t)
{
	return t->state == TASK_QUEUED || t->state == TASK_HELD || t->state == TASK_COMING;
}
static inline bool task_runs(const struct head_task *t)
{
	return t->state == TASK_PLACED || t->state == TASK_LAUNCHED;
}
