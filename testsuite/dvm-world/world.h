/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole DVM in one process and in virtual time: heads, daemons, clients, links between
 * machines, and the journal's disk. Heads and daemons are the objects of libdvm. The seed
 * decides all: delays, cuts, deaths, and what the disk does. A seed is one run.
 *
 *   world.c     time, what is drawn, the trace and the verdict
 *   links.c     connections between machines, which may be cut off
 *   daemon*.c   a node's daemon
 *   zygote.c    its fork server, and ranks
 *   head*.c     the process of a head: which daemons and clients it has
 *   output.c    what ranks write, and clients read
 *   store.c     its journal
 *   disk*.c     where that lies
 *   client.c    those that submit tasks and wait for them
 *   promises.c  what must hold
 *   plan.c      what a seed draws, and the faults
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "dvm/core/head.h"
#include "dvm/core/node.h"
#include "dvm/json/dvm_json.h"

#define SECOND UINT64_C(1000) /* times are milliseconds */
#define NEVER UINT64_MAX

#define NODES 3      /* machines with a daemon */
#define HEADS 2      /* machines on which a head can run */
#define MACHINES (NODES + HEADS + 1)
#define CLIENT_MACHINE (NODES + HEADS)
#define CORES 4      /* of a node */
#define CLIENTS 2
#define DAEMONS_MAX 64
#define HEADS_MAX 400 /* processes, one after another */
#define TASKS_MAX 128
#define RANKS_MAX 2048

struct world;
struct disk;
struct daemon;
struct head_process;
struct client;

/* ---- what a seed draws ---- */

struct plan {
	uint64_t latency_ms; /* of a message, at most */
	bool orphan;         /* daemons outlive their head, for */
	uint32_t orphan_s;
	uint32_t lease_ms;   /* of a node's ranks, */
	uint32_t grace_ms;   /* ... then they are ended with that, */
	uint32_t away_ms;    /* ... and until what ran there is given to others */
	bool once;           /* no task is started twice */
	bool fast;           /* answers when a record is written, before the sync */
	uint32_t width;      /* of the tree of control of a head without adopted daemons; 0: none */
	uint32_t tasks;      /* that clients submit */
	uint64_t calm_ms;    /* no fault begins after that */
};

/* ---- events ---- */

typedef void (*event_fn)(struct world *w, void *arg, uint64_t number);

struct event {
	uint64_t ms, order;
	event_fn fn;
	void *arg;
	uint64_t number;
};

struct machine {
	uint64_t cut_until;  /* nothing comes from it or to it; 0: it is not cut off */
	uint64_t clock_ms;   /* its clock at time 0 */
	bool mute;           /* its messages wait */
	bool down;
	uint64_t full_until; /* it lacks descriptors, processes or memory until then, */
	bool is_hard;        /* ... for each start, not for some */
};

/* ---- tasks, as the world knows them ---- */

struct world_task {
	uint64_t id;         /* 0: no client and no node has heard of it */
	uint32_t ranks;
	bool submitted;      /* its client was told that it is */
	uint64_t submitted_ms, ended_ms; /* when it was told so first */
	bool tied;           /* to its client's connection */
	bool ended;          /* the client was told how: */
	int64_t code;
	bool cancelled;      /* a client has asked for it */
	bool hard;           /* a rank could not be started, and its node lacked nothing */
	struct client *client;
	uint64_t told_by;    /* the connection over which its end was told */
};

struct rank_process {
	uint32_t task;       /* its index in the world */
	uint32_t rank, instance;
	uint32_t part, slot; /* which one of its node's */
	bool lacks;          /* its node lacked something between fork and exec */
	bool unstartable;    /* ... or its program cannot be executed */
	unsigned machine;
	struct daemon *daemon;
	bool runs;
	bool killed;
	bool dies;           /* with its daemon */
};

struct world {
	uint64_t seed, random;
	uint64_t ms;         /* virtual time, from 1 s on */
	struct plan plan;
	struct event *events; /* a heap */
	size_t nevents, events_cap;
	bool verbose;
	bool failed;
	bool over;           /* all is done, or has failed */
	struct machine machines[MACHINES];
	struct link *links;
	struct daemon *daemons[DAEMONS_MAX];
	uint32_t ndaemons;
	struct head_process *heads[HEADS_MAX];
	uint32_t nheads;
	struct head_process *published; /* the last that was ready: clients find it */
	struct client *clients[CLIENTS];
	struct world_task tasks[TASKS_MAX];
	uint32_t ntasks;
	struct rank_process ranks[RANKS_MAX];
	uint32_t nranks;
	uint64_t next_connection;
	struct outlet *outlets;
	struct disk *disk;
	bool silent;         /* a machine was cut off or has stopped: messages may wait for long */
	bool weak;           /* unsynced records may be lost though they were answered: --fast */
	bool damaged;        /* the disk has damaged what was synced, */
	bool unreadable;     /* ... so that no head goes on with it */
	bool damage_named;   /* ... and a head has said so */
	/* Daemons that a head writes down for the next: beside the journal. */
	uint32_t nknown;
	struct daemon *known[DAEMONS_MAX];
	uint32_t known_epoch; /* the number of that head */
	bool known_unheard;  /* and there may be unknown ones, with ranks */
};

/* ---- world.c ---- */

/* Runs a seed. True: nothing has failed. *print is the same for runs that are the same. */
bool world_run(uint64_t seed, bool verbose, uint64_t *print);
uint64_t draw(struct world *w, uint64_t below);
bool draw_once_in(struct world *w, uint64_t n);
uint64_t draw_between(struct world *w, uint64_t low, uint64_t high);
/* Call fn(w, arg, number) `ms` milliseconds from now. */
void after(struct world *w, uint64_t ms, event_fn fn, void *arg, uint64_t number);
void trace(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The run has shown a bug: say so once, with what replays it. */
void failed(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The time that the clocks of a machine show. */
struct dvm_time time_of(const struct world *w, unsigned machine);
/* The machine has few descriptors, processes or memory left, */
bool machine_is_full(const struct world *w, unsigned machine);
/* ... and starts fail with one of these negative errnos. */
int draw_lack(struct world *w);

/* ---- links.c ---- */

/* Both ends see messages in order; `end` is 0 or 1. */
struct link;

struct link_end {
	unsigned machine;
	void (*input)(void *arg, const void *data, size_t len);
	/* The link has ended, and not by this end. */
	void (*ended)(void *arg, const char *why);
	void *arg;
};

/* A connection that is there. It stays until the world ends. */
struct link *link_new(struct world *w, const struct link_end *first,
		      const struct link_end *second);
void link_send(struct link *l, int end, const void *data, size_t len);
/* Bytes that this end has sent, and the other one has not got. */
size_t link_unread(const struct link *l, int end);
/* Close this end; the other end hears of it after all that was sent. NULL: does nothing. */
void link_close(struct link *l, int end);
/*
 * As above, and the last of the messages that were sent may be lost: its process was
 * killed.
 */
void link_reset(struct link *l, int end);
/* Can messages go between the two? */
bool is_reachable(const struct world *w, unsigned from, unsigned to);
/* A machine has stopped: its ends are no more, and nobody hears of that now. */
void links_lose_machine(struct world *w, unsigned machine);
/* A machine is cut off now, or not any more, or is up again. */
void links_changed(struct world *w);
void links_free(struct world *w);
/* From the first message that is not answered to the end of a link. */
uint64_t draw_dead_peer(struct world *w);

/* ---- daemon.c ---- */

/* Start a daemon that registers with a head, at this position. */
struct daemon *daemon_start(struct world *w, unsigned machine, struct head_process *head,
			    uint32_t position);
/* The process that has its ranks is gone, too: connections to it are refused. */
bool daemon_is_gone(const struct daemon *d);
unsigned daemon_machine(const struct daemon *d);
const char *daemon_name(const struct daemon *d);
/* The head of this number calls it, and has a connection then. False: it takes none. */
bool daemon_takes_head(struct daemon *d, uint32_t head);
void daemon_join(struct daemon *d, struct link *l, uint32_t head);
struct link_end daemon_end(struct daemon *d);
/* Kill the daemon's process and its ranks. */
void daemon_kill(struct daemon *d);
/* The connection with its parent in the tree ends, and what is on the way may be lost. */
void daemon_break_link(struct daemon *d);
/* A message of the daemon's zygote. */
void daemon_zygote_says(struct daemon *d, const void *data, size_t len);
/* The zygote of the daemon neither reads nor reaps for `ms`. */
void daemon_stand_still(struct daemon *d, uint64_t ms);
/* True: some of its ranks run; it and its zygote have nothing to say to each other. */
bool daemon_runs_any(const struct daemon *d);
bool daemon_is_idle(const struct daemon *d);
/* Ranks of a part have written; a rank has done its work; it has not ended. */
void daemon_output(struct daemon *d, uint32_t part, const void *data, size_t len);
void daemon_rank_done(struct daemon *d, uint32_t process);
bool daemon_runs(const struct daemon *d, uint32_t process);
/* The machine has stopped. */
void daemon_vanish(struct daemon *d);
struct daemon *daemon_on(struct world *w, unsigned machine);
bool daemon_holds_nothing(struct daemon *d);
void daemons_free(struct world *w);

/* ---- zygote.c ---- */

struct zygote;

/* It tells the daemon what the node has. */
struct zygote *zygote_start(struct world *w, struct daemon *d, unsigned machine,
			    const struct ledger_resources *has);
/* A message of the daemon. */
void zygote_order(struct zygote *z, const struct dvm_msg *m);
/* The daemon signals ranks itself, if the zygote has not read that soon. */
void zygote_kill_soon(struct zygote *z, uint32_t part, int number);
/* A rank has written all that it has to write. */
void zygote_rank_done(struct zygote *z, uint32_t process);
/* The rank is killed in `ms`. */
void zygote_kill_rank(struct zygote *z, uint32_t process, uint64_t ms);
void zygote_stand_still(struct zygote *z, uint64_t ms);
/* It, or its daemon, was killed: it starts nothing more, and reports nothing. */
void zygote_end(struct zygote *z);
bool zygote_is_idle(const struct zygote *z);
/* Nothing runs: it keeps no part. */
void zygote_check_left(const struct zygote *z);
void zygote_free(struct zygote *z);

/* ---- output.c ---- */

/* Some tasks of this world forward their output. */
bool output_world(const struct world *w);
/* As dvm_node_ops.limit_output. */
void output_set_limit(struct world *w, struct daemon *d, uint32_t part, size_t bytes);
/* A rank whose output is forwarded begins: daemon_rank_done when it has written all. */
void output_rank_begins(struct world *w, struct daemon *d, const struct node_start *what,
		  uint32_t process);
void output_head_says(struct world *w, const struct daemon *d, const void *data, size_t len);
void outputs_free(struct world *w);

/* ---- head.c ---- */

/* The last that lives; NULL: none. */
struct head_process *head_now(struct world *w);
/* With the journal that there is, or a new one. */
void head_start(struct world *w, unsigned machine, bool take_over);
void head_kill(struct head_process *h);
void head_vanish(struct head_process *h);
unsigned head_machine(const struct head_process *h);
uint32_t head_number(const struct head_process *h);
bool head_serves(const struct head_process *h);
bool head_lives(const struct head_process *h);
/* True: the head had no node before that moment, nor since. */
bool head_was_alone(const struct head_process *h, uint64_t ms);
/* True: the head serves clients, and reports no waiting or running task. */
bool head_is_idle(struct head_process *h);
/* The nodes of a machine get tasks again, for they lack nothing any more. */
void heads_undrain(struct world *w, unsigned machine);
/* True: the head is connected with the daemon. */
bool head_has(const struct head_process *h, const struct daemon *d);
/* A client has read something: the head's loop turns. */
void head_client_reads(struct head_process *h);
/* Nodes that are to have children in the tree of control; 0: there is no tree. */
uint32_t head_relays(const struct head_process *h);
/* The head knows the addresses of these, and the others get them. */
bool head_has_told(const struct head_process *h);
/* The daemon at a position; NULL: it has not been started. */
struct daemon *head_daemon(const struct head_process *h, uint32_t position);
bool head_takes_clients(const struct head_process *h);
/* A connection with it. NULL: it refuses the daemon. */
struct link *head_take_daemon(struct head_process *h, struct daemon *d, uint32_t position);
struct link *head_take_client(struct head_process *h, const struct link_end *its);
void heads_free(struct world *w);

/* ---- client.c ---- */

void clients_start(struct world *w);
bool clients_are_done(const struct world *w);
void clients_free(struct world *w);

/* ---- promises.c ---- */

/* The index of a task's name: "k12" is 12. */
uint32_t task_of_name(const char *name);
/* The journal may lose this: nobody was promised more, or the disk has erred. */
bool promise_forgiven(const struct world *w);
void promise_id(struct world *w, uint32_t task, uint64_t id);
void promise_ended(struct world *w, uint32_t task, int64_t code, uint64_t connection);
/* The end of a task, which a client is told by this head. */
void promise_reason(struct world *w, const struct head_process *head, uint32_t task,
		    const char *why, uint64_t ended_ms);
/* The task has failed, if that was not for what a node lacked. */
void promise_failure(struct world *w, uint32_t task, int64_t code, uint32_t instance);
void promise_start(struct world *w, const struct rank_process *p);
/* A daemon that had a head has another one now. */
void promise_head(struct world *w, const struct daemon *d, uint32_t before, uint32_t now);
/* A head of a tree loses a node that was reached then; 0: it has given the node up. */
void promise_patience(struct world *w, const struct head_process *head, uint32_t position,
		      uint64_t reached_ms);
/* A daemon leaves a parent in the tree because no answer of the head has come. */
void promise_answer(struct world *w, const struct daemon *d);
/* The tasks that a head knew when it was asked. */
void promises_check_report(struct world *w, uint32_t head, json_t *report,
			   uint64_t asked_ms);
/* A head has read the journal. */
void promises_check_damage(struct world *w, uint32_t head);
void promise_unreadable(struct world *w, int error);
void promises_check_end(struct world *w);

/* ---- plan.c ---- */

void plan_draw(struct world *w);
void plan_begin(struct world *w);
