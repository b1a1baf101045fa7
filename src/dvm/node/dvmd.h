/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvmd: the state of the daemon, and the functions that its files share. Only the
 * loop's thread calls them.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "dvm/common/bootstrap.h"
#include "dvm/core/node.h"
#include "dvm/node/lease_timer.h"
#include "dvm/node/mesh.h"
#include "dvm/node/outputs.h"
#include "dvm/node/output_writer.h"
#include "dvm/node/pmix_hub.h"
#include "dvm/node/tasks.h"
#include "libio/channel.h"
#include "libio/link.h"
#include "libio/loop.h"

#define HOST_NAME_MAX_BYTES 256

struct dvmd {
	struct loop *loop;
	struct welcome welcome;
	struct handshake_self self;
	char name[HOST_NAME_MAX_BYTES];
	char programs[PATH_MAX]; /* the directory of the programs */
	uint32_t next_head;
	uint64_t begun_ms; /* when the first address was tried, by the loop's clock */
	bool try_again;    /* an address may answer later */
	struct link *head; /* or to the parent, in a tree */
	struct dvmd_tree *tree;   /* NULL: a star; tree_link.h */
	struct dvmd_tree *former; /* ... that was left for another head */
	struct channel *channel; /* to the zygote */
	struct dvm_node *node;
	struct buf for_zygote;   /* sent with the next EXEC, or at the end of a turn */
	struct outputs *outputs;
	struct output_writers *writers;
	struct tasks *tasks;
	struct pmi_event *events; /* of PMI, for the node: see node_host.c */
	uv_prepare_t prepare;    /* for turns of the node */
	uv_timer_t due, late;
	struct direct_kill *kills; /* signals that the zygote may not read */
	uv_timer_t unread;         /* when to look for unread ones */
	bool changed;            /* the node has input: it gets a turn */
	bool leaves;             /* the daemon leaves */
	int signals;
	uv_poll_t signalled;
	struct pool *pool;
	struct pmix_hub *pmix;
	struct log_hook log;
	bool joined;       /* the head has got REGISTER */
	uv_timer_t orphan; /* until the next try, another head, or the end of the head's link */
	struct lease_timer lease;
	bool gives_up;     /* no head has come, or this one does not answer */
	bool ended;        /* no rank is left */
	pid_t process;     /* the zygote */
	struct rlimit core; /* RLIMIT_CORE for the zygote */
	int status;
};

/* ---- node_main.c ---- */

/* Close all but the link to the head. */
void dvmd_leave_others(struct dvmd *d);
/* Close everything: the loop ends, and the program exits with this status. */
void dvmd_finish(struct dvmd *d, int status);
/* Print why, and finish with status 1. */
void dvmd_die(struct dvmd *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- node_host.c ---- */

struct dvm_time dvmd_now(void);
/* The node has new input: give it a turn. */
void dvmd_node_changed(struct dvmd *d);
/*
 * Create the node. 0 or a negative errno. Call dvmd_close_node later, and after the loop
 * dvmd_free_node.
 */
int dvmd_open_node(struct dvmd *d);
void dvmd_close_node(struct dvmd *d);
void dvmd_free_node(struct dvmd *d);
/* Callback of the channel to the zygote. */
int dvmd_zygote_says(void *arg, const void *data, size_t len);
/* Callbacks of the tasks. */
void dvmd_pmi_failed(void *arg, uint32_t part, const struct node_failure *f);
void dvmd_pmi_failed_late(void *arg, uint64_t task, uint32_t instance,
			  const struct node_failure *f);
void dvmd_pmi_over(void *arg, uint32_t part);

/* ---- direct_kill.c ---- */

/* Signal the process groups of a part's ranks, without the zygote if it stands still. */
void dvmd_kill_soon(struct dvmd *d, uint32_t part, int number);
void dvmd_forget_kills(struct dvmd *d);

/* ---- step_signals.c ---- */

/*
 * Catch SIGCONT and SIGTERM, with which Slurm ends a step, from now on: 0 or a negative
 * errno.
 */
int dvmd_open_signals(struct dvmd *d);
/*
 * Handle signals that have come. Call it before the end of a rank is handled: the same
 * signal may have caused it.
 */
void dvmd_take_signals(struct dvmd *d);
void dvmd_close_signals(struct dvmd *d);

/* ---- head_link.c ---- */

/* Try the addresses of the head that are left. error: of the last try, or 0. */
void dvmd_connect_next(struct dvmd *d, int error);
/* Connect to a process of the DVM, with the DVM's limits of time. 0 or a negative errno. */
int dvmd_dial(struct dvmd *d, struct link **out, uint32_t position,
	      const struct sockaddr_storage *to, const struct link_ops *ops);
/* Callback of such a link: output may have waited for it. */
void dvmd_link_drained(void *arg, struct link *l);
/* Register with the head; the lease begins. */
void dvmd_join(struct dvmd *d);
/* True: the daemon will wait for another head when this one is lost. */
bool dvmd_outlives_head(const struct dvmd *d);
/* The head is lost: close the link, and wait for another. */
void dvmd_wait_for_head(struct dvmd *d);
/* Callback of the mesh: take over the link to another head. */
void dvmd_other_head(void *arg, struct link *l);
/* Connecting to the head has failed for good, or its link has ended. */
void dvmd_lose_head(struct dvmd *d, int error);
/* A frame of the head. */
void dvmd_head_says(struct dvmd *d, const void *data, size_t len);
/* Send messages to the head, by whatever way. 0 or a negative errno. */
int dvmd_send_head(struct dvmd *d, const void *data, size_t len);
/* The zygote takes over the link d->head if this process is killed: zygote.h. */
void dvmd_hand_link_on(const struct dvmd *d);
/* Callbacks of the lease's timer. */
void dvmd_ask_for_lease(void *arg, uint64_t now_ms);
void dvmd_lease_over(void *arg, uint64_t late_ms);

/* ---- zygote_process.c ---- */

/* Start the zygote, and read from it. 0 or a negative errno. */
int dvmd_start_zygote(struct dvmd *d);
/* End the zygote and this daemon: nothing runs any more, or nothing may. */
void dvmd_leave(struct dvmd *d);
/*
 * Wait for the end of the zygote, and kill ranks that are left. False: some cannot be
 * killed.
 */
bool dvmd_end_ranks(struct dvmd *d);
