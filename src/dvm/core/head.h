/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head of a DVM: it knows the nodes, keeps the queue, places tasks, has nodes start
 * them, and tells clients how they ended. Messages in, messages out; calls no system
 * function. One thread at a time; operations must not call back.
 *
 *   head.c          life, what nodes say, turns
 *   head_nodes.c    nodes that are lost, silent or have to leave
 *   head_growth.c   nodes that come later, and go before the end
 *   head_unreached.c  nodes that cannot be told to end tasks
 *   head_task.c     a task from the queue to its result, through
 *   head_launch.c   its start on nodes, and
 *   head_parts.c    what these say of their parts
 *   head_placement.c  which part is on a node
 *   head_profile.c  environments that tasks share
 *   head_client.c   clients that come and go; requests of them: head_requests.h
 *   head_lines.c    lines to clients
 *   head_submit.c   tasks that are submitted
 *   head_wait.c     clients that wait for tasks
 *   head_report.c   what clients are told
 *   head_output.c   output that clients are sent, and its windows
 *   head_why.c      what a task waits for
 *   head_asks.c     what tasks ask for while they run: names, other tasks
 *   head_spawned.c  tasks that have been spawned
 *   head_journal.c  what another head needs to go on
 *   head_done.c     nodes forget what is in the journal
 *   head_resume.c   going on with the journal of another head
 *   head_adopt.c    tasks that have outlived another head
 *   head_lookup.c   nodes, tasks and clients by name and number
 *   head_node_names.c  names of nodes, for their daemons
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dvm/core/durable.h"
#include "dvm/core/dvm_time.h"
#include "dvm/core/journal.h"
#include "dvm/core/queue.h"
#include "libutil/log.h"

#define HEAD_KEPT_MAX 10000     /* results that are kept for later requests */
#define HEAD_INSTANCES_MAX 4    /* tries of a task whose nodes are lost */
#define HEAD_HOPE_MS 5000       /* from a node's loss, with a journal: see head.c */

struct dvm_head_options {
	const char *name;           /* name of the DVM; outlives the head, as build does */
	const char *build;
	uint32_t nodes;             /* number that is expected */
	struct queue_options queue;
	uint32_t grace_ms;          /* between SIGTERM and SIGKILL */
	size_t max_waiting;         /* tasks in the queue; more are refused */
	uint32_t member, members;   /* of several DVMs under one name, from 1: no two
	                               give tasks the same number; 0: it is the only one */
	bool keeps;                 /* nodes keep the ends of tasks for another head */
	bool adopts;                /* nodes of another head are sent ADOPT and come */
	bool unheard;               /* nodes of another head may still run ranks: the nodes do
	                               not answer, or their addresses are unknown */
	uint32_t lease_ms;          /* ranks of a node end this time after its last answer
	                               (lease.h): a node that is silent for this time is
	                               lost; 0: there is no lease */
	uint32_t away_ms;           /* tasks of a lost node are given to others this time
	                               after the node was last heard of: more than
	                               lease_ms; 0: at once */
	bool once;                  /* a task's start is safe before it is launched, and it
	                               ends with its node */
	bool preloads;              /* nodes have an interpreter for preloaded tasks */
	bool paused;                /* nothing is started until a client says {"op":"go"} */
	const char *journal;        /* the path of its directory, for clients; or NULL */
	bool ends;                  /* with its last client: clients are told */
	bool fast;                  /* recorded is taken for safe */
	bool simulated;             /* by pmi2x sim run: the journal says so */
	uint64_t began_ns;          /* when the head's process began, by CLOCK_REALTIME */
};

struct head_format;

struct dvm_head_ops {
	const struct head_format *format; /* dvm_json */
	/* Messages (dvm_msg.h) for the node at a position; copied. */
	void (*node_send)(void *arg, uint32_t position, const void *data,
			  size_t len);
	/*
	 * The node has sent an invalid message: close its link, and call dvm_head_node_lost
	 * later.
	 */
	void (*node_break)(void *arg, uint32_t position, const char *why);
	/* Send a line to a client, newline included; copied. */
	void (*client_send)(void *arg, uint32_t client, const char *line,
			    size_t len);
	/* Bytes of these lines that its connection has not taken yet. NULL: always none. */
	size_t (*client_unread)(void *arg, uint32_t client);
	/* A name of the client, for messages: "process 4711". NULL: no names. */
	void (*client_name)(void *arg, uint32_t client, char *out, size_t size);
	/*
	 * Close the client's connection, and call dvm_head_client_closed later. NULL: not
	 * needed.
	 */
	void (*client_break)(void *arg, uint32_t client);
	/*
	 * Append whole records to the journal: all or nothing, as durable_append does. 0
	 * or a negative errno; then they come again. Also without a record, if `wait`
	 * has changed.
	 */
	int (*record)(void *arg, const void *data, size_t len, enum durable_wait wait);
	/*
	 * Start `nodes` daemons more, in the Slurm job of this number, 0: that of the
	 * others; on nodes of these names, with commas between them, or NULL: any.
	 * Their positions follow dvm_head_positions() as it was. Later they register,
	 * or dvm_head_grow_failed is called. 0 or a negative errno; -ENOTSUP: not in
	 * that job, or there.
	 */
	int (*grow)(void *arg, uint32_t nodes, uint64_t job, const char *names);
	/*
	 * A task of the node at a position asks about names, which all tasks share. The
	 * host answers it itself: dvm_msg_for_pmi. NULL: there are none.
	 */
	void (*names)(void *arg, uint32_t position, const struct dvm_names *m);
	/*
	 * This try of a task that asked or was spawned has ended, and with it the names
	 * that it published.
	 */
	void (*names_end)(void *arg, uint64_t task, uint32_t instance);
	/* All work is done and reported: exit. Called once. */
	void (*end)(void *arg);
};

struct dvm_head;

/* Tasks in the journal of an earlier head. */
struct dvm_resumed {
	uint64_t ended;  /* tasks that have ended */
	uint64_t queued; /* waiting tasks, `again` among them */
	uint64_t again;  /* they ran, and are run again */
	uint64_t lost;   /* they ran, and are reported lost */
	uint64_t adopted; /* they still run, or ended without a head */
};

/* Create a head. 0 or -ENOMEM. */
int dvm_head_create(struct dvm_head **out, const struct dvm_head_options *options,
		    const struct dvm_head_ops *ops, void *arg,
		    const struct log_hook *log);
void dvm_head_destroy(struct dvm_head *h);
/* Add a counter of this amount, before any node registers. 0 or errno. */
int dvm_head_add_counter(struct dvm_head *h, const char *name, uint32_t amount);

/* A frame of the node at a position below dvm_head_positions(). */
void dvm_head_node_input(struct dvm_head *h, uint32_t position, const void *data,
			 size_t len, struct dvm_time now);
void dvm_head_node_lost(struct dvm_head *h, uint32_t position, const char *why,
			struct dvm_time now);
/* The ranks of a node have certainly ended: its tasks need not wait for the lease. */
void dvm_head_node_gone(struct dvm_head *h, uint32_t position, struct dvm_time now);
/* So have those of all nodes that this head has not heard: dvm_head_options.unheard. */
void dvm_head_former_gone(struct dvm_head *h, struct dvm_time now);
/* True: ranks of a lost node may still run. */
bool dvm_head_node_may_run(const struct dvm_head *h, uint32_t position);

/* The daemon of an earlier head at this position does not come. `where` it listened. */
void dvm_head_node_absent(struct dvm_head *h, uint32_t position, const char *name,
			  const struct dvm_address *where);
/*
 * True: ranks that an earlier head has started may still run on nodes that have not
 * registered.
 */
bool dvm_head_is_unheard(const struct dvm_head *h);
/* The address from which a node comes, before it registers: IPv4 in its mapped form. */
void dvm_head_node_address(struct dvm_head *h, uint32_t position,
			   const uint8_t ip[16]);

/* The number of positions: of nodes, lost ones too, and of those that are to come. */
uint32_t dvm_head_positions(const struct dvm_head *h);
/* The name of a node. NULL: its daemon has not registered, or is lost. */
const char *dvm_head_node_name(const struct dvm_head *h, uint32_t position);
/*
 * The name of a node that has registered, also when it is lost, and the address at which it
 * listens.
 */
const char *dvm_head_node_where(const struct dvm_head *h, uint32_t position,
				struct dvm_address *address);
/* Some of the new nodes cannot come, so none of them joins. */
void dvm_head_grow_failed(struct dvm_head *h, const char *why);
/*
 * Start nothing more. Running tasks have options.grace_ms to finish; then they are ended,
 * and wait with the rest for a head that goes on with the journal. Then all leave.
 */
void dvm_head_stop(struct dvm_head *h, struct dvm_time now);
/* As above, but what runs is ended at once. */
void dvm_head_stop_now(struct dvm_head *h, struct dvm_time now);
/* The client that started this DVM has yet to connect, and counts as one until then. */
void dvm_head_await_starter(struct dvm_head *h, bool awaited);
/* The .ms when dvm_head_turn is to be called at the latest, or UINT64_MAX. */
uint64_t dvm_head_deadline(const struct dvm_head *h);

/*
 * Messages of both directions between the head and its nodes since the head began, without
 * those of leases and of PMI, and their bytes.
 */
struct dvm_traffic {
	uint64_t messages, bytes;
};
void dvm_head_traffic(const struct dvm_head *h, struct dvm_traffic *out);

/* The number of registered nodes; tasks are accepted when all have registered. */
uint32_t dvm_head_registered(const struct dvm_head *h);

/*
 * Begin the journal when all nodes have registered, before the first request of a client:
 * from now on ops.record gets records.
 */
void dvm_head_keep_journal(struct dvm_head *h);
/*
 * As above, after going on with what another head has written; journal_open has been
 * called. Tasks that ran are run again, or, with `once`, reported lost; but tasks that
 * nodes still hold go on there. 0 or -ENOMEM.
 */
int dvm_head_resume(struct dvm_head *h, struct journal_reader *journal, bool once,
		    struct dvm_resumed *out, struct dvm_time now);
/*
 * A journal in which only those records are that the head knows, followed by one of
 * what it has forgotten, says all that it needs. Parts of *r may be taken out.
 */
bool dvm_head_knows(struct dvm_head *h, struct journal_record *r);
void dvm_head_forgotten(const struct dvm_head *h, struct journal_counts *out);

/*
 * The first `position` bytes of all that ops.record has taken are safe on the disk.
 * Clients hear now what waited for that; a turn follows.
 */
void dvm_head_safe(struct dvm_head *h, uint64_t position, struct dvm_time now);
/*
 * The records cannot be made safe, a negative errno; or it can again, 0. Until then no
 * task is taken or started.
 */
void dvm_head_journal_failed(struct dvm_head *h, int error);

/* `client` is a number that is not used again. Its requests: dvm/json/dvm_json.h. */
void dvm_head_client_opened(struct dvm_head *h, uint32_t client);
void dvm_head_client_closed(struct dvm_head *h, uint32_t client,
			    struct dvm_time now);

/*
 * After inputs of one turn of the loop: place what fits, send what has come up.
 */
void dvm_head_turn(struct dvm_head *h, struct dvm_time now);
