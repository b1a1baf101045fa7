/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvmd: the state of the daemon, and what its files call of one another. Its loop's
 * thread alone calls these functions.
 */
#ifndef PMI2X_DVM_DVMD_H
#define PMI2X_DVM_DVMD_H

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
	char programs[PATH_MAX]; /* their directory */
	uint32_t next_head;
	uint64_t begun_ms; /* when the first address was tried, by the loop's clock */
	bool try_again;    /* one of them may answer yet */
	struct link *head;
	struct channel *channel; /* to the zygote */
	struct dvm_node *node;
	struct buf for_zygote;   /* goes with the next EXEC, or at the end of a turn */
	struct outputs *outputs;
	struct tasks *tasks;
	struct pmi_event *events; /* for the node: see node_host.c */
	uv_prepare_t prepare;    /* turns of the node, */
	uv_timer_t due, late;
	struct direct_kill *kills; /* that the zygote may not read, */
	uv_timer_t unread;         /* which shows then */
	bool changed;            /* ... which something has come for */
	bool leaves;             /* all is over */
	int signals;
	uv_poll_t signalled;
	struct pool *pool;
	struct pmix_hub *pmix;
	struct log_hook log;
	bool joined;       /* the head has been told what this node is */
	uv_timer_t orphan; /* it waits to try again, for another head, or for the end of
	                      its link */
	struct lease_timer lease;
	bool gives_up;     /* none has come, or this one does not answer */
	bool ended;        /* no rank is left */
	pid_t process;     /* of the zygote */
	struct rlimit core; /* for that */
	int status;
};

/* ---- node_main.c ---- */

/* Close all but the link to the head. */
void dvmd_leave_others(struct dvmd *d);
/* Close everything: the loop ends, and the program with this status. */
void dvmd_finish(struct dvmd *d, int status);
/* Print why, and finish with status 1. */
void dvmd_die(struct dvmd *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- node_host.c ---- */

struct dvm_time dvmd_now(void);
/* The node has been told something: it gets its turn. */
void dvmd_node_changed(struct dvmd *d);
/* 0 or a negative errno. Then dvmd_close_node; after the loop, dvmd_free_node. */
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

/* Also without the zygote, if it stands still: to the process groups of a part's ranks. */
void dvmd_kill_soon(struct dvmd *d, uint32_t part, int number);
void dvmd_forget_kills(struct dvmd *d);

/* ---- step_signals.c ---- */

/*
 * Take SIGCONT and SIGTERM, with which Slurm ends a step, from now on: 0 or a negative
 * errno.
 */
int dvmd_open_signals(struct dvmd *d);
/* Take what has come: before an end of a rank, which may be for the same reason. */
void dvmd_take_signals(struct dvmd *d);
void dvmd_close_signals(struct dvmd *d);

/* ---- head_link.c ---- */

/* Try the addresses of the head that are left. error: of the last try, or 0. */
void dvmd_connect_next(struct dvmd *d, int error);
/* The head hears what this node is from now on, and its lease begins. */
void dvmd_join(struct dvmd *d);
/* Will the daemon wait for another head when this one is lost? */
bool dvmd_outlives_head(const struct dvmd *d);
/* The head is lost: close the link, and wait for another. */
void dvmd_wait_for_head(struct dvmd *d);
/* Callback of the mesh: takes over the link to another head. */
void dvmd_other_head(void *arg, struct link *l);
/* Callbacks of the lease's timer. */
void dvmd_ask_for_lease(void *arg, uint64_t now_ms);
void dvmd_lease_over(void *arg, uint64_t late_ms);

/* ---- zygote_process.c ---- */

/* Start the zygote, and listen to it. 0 or a negative errno. */
int dvmd_start_zygote(struct dvmd *d);
/* Nothing runs any more, or is to: the zygote is to end, and this daemon with it. */
void dvmd_leave(struct dvmd *d);
/* The zygote ends, for it is left alone; and its ranks, if it was killed. False: some cannot. */
bool dvmd_end_ranks(struct dvmd *d);

#endif
