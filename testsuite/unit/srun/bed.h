/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's server over real sockets: agents that connect to it, and an srun whose
 * spawned processes are forks of the test.
 */
#pragma once

#include "unit.h"

#include <stdatomic.h>
#include <sys/types.h>

#include "libio/link.h"
#include "libpmi/control.h"
#include "loopback.h"
#include "srun/srun_server.h"

extern uv_loop_t loop;       /* of the agents */
extern struct secret secret; /* of every step */

/* Which copy from now, from 1, srun's threads find no memory for; 0: none. */
extern atomic_int failing_copy;

struct agent {
	struct handshake_self self;
	struct link *link;
	int proved, ended, error;
	unsigned replies;
	struct control_msg reply; /* the last one */
};

struct srun {
	struct srun_server *server;
	struct srun_server *spawned; /* of the program "step" */
	pid_t pid;           /* of the last spawned process */
	int hold;            /* spawned processes read it before they end */
	int tells;           /* it knows nodes, and writes here of an abort */
	atomic_int aborts; /* read while srun's server runs */
	int reports;
	uint32_t abort_rank;
	char text[128];
};

/* A step's srun, whose parent, if it has one, is at `parent_fd`; else that is -1. */
void start(struct srun_server **out, struct srun *s, const char *jobid, int parent_fd);

/* Returns when the link is proved, or has ended. */
void agent_connect(struct agent *a, const struct srun_server *h, const char *jobid,
		   const struct secret *s);
void agent_send(struct agent *a, const struct control_msg *msg);
void await_replies(struct agent *a, unsigned count);

/* Ask and return the code of the answer. */
int ask(struct agent *a, enum control_type type, const char *name, const char *text);

/* In order. */
void agent_leave(struct agent *a);

int set_up(void **state);
int tear_down(void **state);
