/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm-head: a process around libdvm's head. pmi2x-dvm up starts it, and it starts
 * the daemons of the nodes.
 *
 *   head_main.c        life
 *   say.c              time, and words for pmi2x-dvm up
 *   welcome.c          the name and secret of this DVM
 *   nodes.c            links of the nodes' daemons
 *   clients.c          clients, over a unix socket in the DVM's directory, or by links
 *   address.c          the file that tells those on other nodes where it is
 *   names.c            names that tasks publish
 *   launch.c           starting the daemons
 *   stop.c             what it does at its time
 *   durable_journal.c  what outlives it
 *   identity.c         which process it is, for another head
 *   orphans.c          daemons that outlive it
 *   ends.c             daemons that it has lost, and that are to end
 *
 * One thread, that of the loop; libuv's own flush the journal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "dvm/common/bootstrap.h"
#include "dvm/core/head.h"
#include "dvm/head/durable_journal.h"
#include "dvm/json/dvm_json.h"
#include "libio/link.h"
#include "libio/listener.h"
#include "libio/loop.h"
#include "libio/strangers.h"

#define WIDTH_DEFAULT UINT32_MAX /* by the number of nodes */

struct head_options {
	const char *name;
	const char *dir;        /* exists, the user's alone; it goes with the head */
	const char *lock;       /* a descriptor's number that has its lock (rundir.h) */
	uint32_t nodes;         /* to begin with */
	bool local;             /* all of them processes of this machine */
	uint32_t width;         /* of the tree of control; 0: a star; WIDTH_DEFAULT */
	const char *names;      /* its nodes, with commas; NULL: any */
	uint32_t relative;      /* of the job's nodes, the first that is this one's */
	bool ends;              /* with its last client */
	bool share;             /* other DVMs of the job may be on its nodes */
	const char *launcher;   /* a shell's command that runs pmi2x-dvmd on each node */
	const char *slots, *gpus, *preload; /* as in bootstrap.h */
	uint32_t grace_ms;      /* as in dvm_head_options */
	uint32_t within_ms;     /* of the first: all nodes must be up; of a growth's
	                           begin: so must these */
	const char *address;    /* a file for clients on other nodes, or NULL */
	uint32_t orphan_s;      /* how long its daemons wait for another head */
	struct head_journal_options journal;
	const char *hold;       /* a descriptor's number: its reader waits to hear that
	                           this DVM is ready; or NULL */
};

struct settings;
struct head_tree;
struct node_link;
struct orphan;
struct client;
struct daemon_process;
struct name_service;
struct ending;

struct head_main;

/* When the Slurm job ends, and what is done about it; see job_end.c. */
enum job_state { JOB_NOTHING, JOB_ASKS, JOB_ASKING, JOB_STOPS };

struct head_job {
	void (*stop)(struct head_main *h);
	enum job_state state;
	uv_timer_t timer;    /* asks again, gives up, or stops */
	char id[64];         /* of the job; "": there is none */
	uint64_t end_s;      /* of the job, as of time(2); 0: not known */
	uv_process_t process; /* squeue, */
	uv_pipe_t output;
	unsigned open;       /* of these two handles */
	bool failed;
	char text[64];       /* its output */
	size_t len;
};

/* Calls from files below head_main.c. */
struct head_hooks {
	/* Make this head, for `adopted` daemons of another one. 0 or a negative errno. */
	int (*begin)(struct head_main *h, uint32_t adopted);
	/* The head cannot go on, has said why, and ends. */
	void (*failed)(struct head_main *h);
	/* Something of what it waits for at its end has gone. */
	void (*check_left)(struct head_main *h);
};

/* Nodes of the last head, whose daemons do not wait: former_nodes.c. */
struct former_nodes {
	struct head_main *head;
	struct former_node *all;
	size_t count, gone;
	bool known;   /* these are all of them */
	bool calling; /* the timer is open */
	struct former_call *calls;
	size_t ncalls;
	uv_timer_t timer;
};

struct head_main {
	struct head_options options;
	const struct head_hooks *hooks;
	struct dvm_head *head;      /* NULL: daemons of another one are being called */
	const struct settings *settings;
	struct loop *loop;
	struct welcome welcome;
	struct handshake_self self;
	struct listener *nodes_listener, *clients_listener;
	struct head_tree *tree;    /* NULL: a star */
	struct node_link **links;  /* by position; NULL: none that is proved */
	uint32_t links_room;       /* how many positions it has */
	uint32_t nlinks;           /* of those that are not NULL */
	struct strangers strangers; /* connections that came and are not */
	struct node_link *all_links;
	struct client *clients;    /* by number */
	uint32_t next_client;
	struct orphan *orphans;    /* by position: of another head; NULL: there are none */
	uint32_t norphans;         /* daemons that it had */
	bool noted_unheard;        /* the next head finds that ranks of a daemon may run that
	                              nobody has heard */
	bool unheard;              /* ranks of some daemon may run that does not answer, or
	                              that this head cannot call */
	uint32_t called;           /* of these, that have not answered */
	struct former_nodes former;
	struct ending *endings;    /* daemons that are lost and are to end */
	struct daemon_process *daemons;
	uint32_t ndaemons;         /* of those that run */
	bool growing;              /* since its last turn, or longer */
	off_t log_at;              /* where the log ended when that began */
	uint64_t grow_until;       /* its limit, as dvm_time.ms */
	struct log_hook log;       /* its file HEADD_LOG */
	off_t log_notes;           /* bytes there that nobody need read at the end */
	struct head_journal journal;
	struct name_service *names;
	uv_prepare_t turn;
	uv_timer_t limit;          /* of leaving */
	uv_signal_t terminate;
	uv_poll_t hold_watch;      /* the reader of `hold` goes; of stop.c */
	uv_timer_t alarm;          /* of stop.c */
	struct head_job job;
	bool stops;                /* a stop was requested */
	int hold;                  /* -1 */
	struct rlimit core, files; /* of what it starts */
	bool ready;
	bool published;            /* the file of options.address is this one's */
	bool leaving;
	int status;
};

/* ---- say.c ---- */

struct dvm_time head_now(const struct head_main *h);
/* To who waits in pmi2x-dvm up: "up N", "note TEXT", "ready", "failed WHY". */
void head_say(struct head_main *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Report why the head cannot go on, and end it. */
void head_fail(struct head_main *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- welcome.c ---- */

/* Another name and secret than any DVM had. 0 or a negative errno. */
int head_new_identity(struct head_main *h);

/* ---- nodes.c ---- */

/* Listen, and write down where in welcome.heads. 0 or a negative errno. */
int nodes_open(struct head_main *h);
/* Make room for `positions` positions. 0 or -ENOMEM. */
int nodes_make_room(struct head_main *h, uint32_t positions);
/* True: there is a daemon at this position or a later one. */
bool nodes_any(const struct head_main *h, uint32_t first);
/* Operations of the core (dvm/core/head.h), as all that take a struct head_main as `head`. */
void nodes_send(void *head, uint32_t position, const void *data, size_t len);
/* Send a frame over the link of a node itself. */
void nodes_send_frame(struct head_main *h, uint32_t position, const void *data, size_t len);
void nodes_break(void *head, uint32_t position, const char *why);
/* Connect to a daemon that waits for a head. 0, and orphans_answer is told; or errno. */
int nodes_call(struct head_main *h, uint32_t position,
	       const struct dvm_address *where);
/* Connect to one that is lost and waits for a head: it is to end. Errors as above. */
int nodes_call_to_end(struct head_main *h, uint32_t position,
		      const struct dvm_address *where);
/* Daemons from this position on end at once, with what runs there. */
void nodes_end(struct head_main *h, uint32_t first);
/* Send nothing any more after what is queued. */
void nodes_close(struct head_main *h);

/* ---- head_tree.c: only with h->tree, but for the first two and the last one ---- */

/* Make h->tree unless the nodes are a star. 0 or -ENOMEM. */
int head_tree_open(struct head_main *h);
void head_tree_free(struct head_main *h);
/* A node has connected to the head itself; 0 or -ENOMEM. Or that link has ended. */
int head_tree_link(struct head_main *h, uint32_t position);
void head_tree_link_lost(struct head_main *h, uint32_t position, const char *why);
/* A frame of that link. 0, or a negative errno: it has to end. */
int head_tree_frame(struct head_main *h, uint32_t position, const struct payload *body,
		    const uint8_t ip[16]);
void head_tree_send(struct head_main *h, uint32_t position, const void *data, size_t len);
/* Tell a node to end. True: no other node is reached by its link. */
bool head_tree_end(struct head_main *h, uint32_t position, const char *why);
/* New daemons will have the positions from this one on, which others may have had. */
void head_tree_forget(struct head_main *h, uint32_t first);
/* True: there is a daemon at this position. */
bool head_tree_has(const struct head_main *h, uint32_t position);
/*
 * The text with the addresses of the nodes that may have children among `nodes`; free() it.
 * NULL: no memory.
 */
char *head_tree_addresses(const struct head_main *h, uint32_t nodes);
/* True: daemons that start get them at once. */
bool head_tree_knows_addresses(const struct head_main *h);
/* Before a turn of the head, and after it. */
void head_tree_turn(struct head_main *h);
void head_tree_flush(struct head_main *h);
/* When the next turn is due, as dvm_time.ms, or UINT64_MAX. */
uint64_t head_tree_deadline(const struct head_main *h);

/* ---- names.c ---- */

/* 0 or a negative errno. */
int names_open(struct head_main *h);
void names_ask(void *head, uint32_t position, const struct dvm_names *m);
void names_end(void *head, uint64_t task, uint32_t instance);
void names_close(struct head_main *h);

/* ---- clients.c ---- */

int clients_open(struct head_main *h);
void clients_send(void *head, uint32_t client, const char *line, size_t len);
/* Bytes that its connection has not taken yet. */
size_t clients_unread(void *head, uint32_t client);
/* A name of the client, for people: "process 4711". */
void clients_name(void *head, uint32_t client, char *out, size_t size);
/* The client gets what it was sent, and the end. */
void clients_break(void *head, uint32_t client);
/*
 * A client on another node has proved itself; its link stays the caller's. clients_input
 * takes bytes of its lines as they come: 0, or a negative errno, and then the caller drops
 * the client. NULL: no memory.
 */
struct client *clients_join(struct head_main *h, struct link *l);
int clients_input(struct client *c, const void *data, size_t len);
void clients_leave(struct client *c);
/* Nobody comes any more. */
void clients_refuse(struct head_main *h);
/* Close all clients when they have read the rest and the end. */
void clients_close(struct head_main *h);

/* ---- address.c ---- */

/* A failure is told who waits in pmi2x-dvm up; it ends nothing. */
void address_publish(struct head_main *h);
void address_withdraw(struct head_main *h);

/* ---- stop.c ---- */

/* 0 or a negative errno. */
int stop_open(struct head_main *h);
/* Running tasks have the grace time to finish, and wait for the next head then. */
void stop_begin(struct head_main *h);
/* After dvm_head_turn: wake up for the next. */
void stop_turn(struct head_main *h);
/* The process that has started this DVM need not live on. */
void stop_forget_hold(struct head_main *h);
/* A client has gone: with options.ends the DVM ends with the last. */
void stop_without_clients(struct head_main *h);
void stop_close(struct head_main *h);

/* ---- job_end.c ---- */

/* `stop` is called in time before the end. */
void job_open(struct head_main *h, void (*stop)(struct head_main *h));
/* With a journal, stop in time before the job ends, if Slurm says when that is. */
void job_watch(struct head_main *h);
void job_close(struct head_main *h);

/*
 * Replace what is in a file, at once, by a text that is the user's alone. Takes over the
 * text, which has the secret, and wipes it. NULL is -ENOMEM. 0 or a negative errno.
 */
int address_write(const struct head_main *h, const char *file, char *text);

/* ---- orphans.c ---- */

/*
 * Call daemons of the journal's last head that may wait for another, if any: while
 * h->called is not 0, hooks->begin follows when all have answered. 0, or 1 when head_say
 * has been told why not.
 */
int orphans_call(struct head_main *h);
/* A daemon has answered; or a negative errno says why it has not. */
void orphans_answer(struct head_main *h, uint32_t position, int error);
/*
 * The name of a daemon, also of one that did not answer. NULL: the position is not of a
 * daemon that was called.
 */
const char *orphans_name(const struct head_main *h, uint32_t position);
/*
 * The daemon at this position, if there is one, does not come, or was lost, perhaps before
 * it registered.
 */
void orphans_be_absent(struct head_main *h, uint32_t position);
/* Give the new head the daemons that answered. */
void orphans_adopt(struct head_main *h);
/* Write down who there is for the next head. */
void orphans_publish(struct head_main *h);
/* After a turn: note it for the next head when there are none that nobody has heard. */
void orphans_turn(struct head_main *h);
/* Remove the list of daemons: none will wait for another head. */
void orphans_withdraw(const struct head_main *h);

/* ---- former_nodes.c ---- */

/* Write down where the daemons of this head listen. */
void former_publish(struct head_main *h);
/* Read where those of the last head did, before this head writes anything. */
void former_read(struct head_main *h);
/* Call them, as long as tasks wait for them. */
void former_begin(struct head_main *h);
void former_close(struct head_main *h);
/* After the loop. */
void former_free(struct head_main *h);
/* Remove the file. */
void former_withdraw(const struct head_main *h);

/* ---- ends.c ---- */

/*
 * A daemon is lost, and its ranks may run: call it until they have ended, or its lease is
 * over.
 */
void ends_begin(struct head_main *h, uint32_t position);
/* A call of nodes_call_to_end is over. `error` 0: the daemon ended the connection. */
void ends_called(struct head_main *h, uint32_t position, int error);
void ends_close(struct head_main *h);

/* ---- launch.c ---- */

/* 0 or a negative errno. */
int launch_daemons(struct head_main *h);
/* Send daemons that wait for the addresses of their parents these. */
void launch_tell_addresses(struct head_main *h);
/* This head leaves: they get none. */
void launch_tell_no_addresses(struct head_main *h);
/* All are up: what srun has said while no daemon had anything to say need not be kept. */
void launch_ready(struct head_main *h);
/* A daemon has gone before all nodes were up: fail when its words are in the log. */
void launch_daemon_lost(struct head_main *h);
/* As above, for more nodes: head.h, ops.grow. */
int launch_more(void *head, uint32_t nodes, uint64_t job, const char *names);
/* Before stop_turn: what was started for nodes that do not join is ended. */
void launch_turn(struct head_main *h);
/* Kill those that are left, with positions from this one on. */
void launch_kill(struct head_main *h, uint32_t first);
