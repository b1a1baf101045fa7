/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is started beside slurmstepd: pmi2x-agent, pmi2x-topology, pmi2x-pmixd.
 * It is executed with slurmstepd's rights, gives them up, and says what it has to say in
 * messages of libconfine/host_msg.h. It then belongs to the step's user, so what it says is
 * checked. One thread at a time.
 *
 * It is nobody's child and in no step's process group, so that neither Slurm's signals
 * nor its waiting reach it. It stays in slurmstepd's session: where the kernel shares out
 * processors by session (autogroup), an agent in one of its own waits, for each request,
 * until other sessions have had their turns.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "libconfine/host_msg.h"

struct child {
	int fd;    /* conversation; -1: there is none */
	int pidfd; /* -1: there is none, or the kernel has none */
};

/* The program, its arguments, environment and descriptors. */
struct child_program {
	int file;          /* opened O_PATH or to read */
	const char *name;  /* argv[0] */
	uid_t uid;         /* arguments: whom it is to become, and for who looks at */
	gid_t gid;         /* processes, the step and the node */
	const char *step;
	const char *node;
	char *const *more; /* the other arguments, NULL ends */
	int *const *fds;   /* pointers to what it has from AGENT_FD_SETUP on; -1: closed.
	                      They may be moved */
	size_t nfds;
};

#define CHILD_NONE ((struct child){ -1, -1 })
#define CHILD_ARGS_MAX 16

/* Make the conversation; *theirs is the child's end. 0 or a negative errno. */
int child_connect(struct child *c, int *theirs);
/*
 * Execute it; its standard descriptors are /dev/null. Runs no fork handler. 0 or a
 * negative errno.
 */
int child_start(struct child *c, const struct child_program *p);
/*
 * 1: a message in *m, which points into `room`; 0: none yet; -EPIPE: the connection has
 * ended; -EPROTO: the message is invalid, or carries descriptors. Never blocks,
 * whatever the program sends.
 */
int child_receive(const struct child *c, char room[HOST_MSG_MAX], struct host_msg *m);
/* The message's text as one line, in which nothing can pass for another line. */
void child_text(char *out, size_t size, const struct host_msg *m);
void child_kill(const struct child *c);
/* End the conversation. Never blocks, whatever the program has sent. */
void child_hang_up(struct child *c);
/* Forget the process, but not the conversation. */
void child_forget(struct child *c);
/*
 * Wait until it has ended, at most `ms`: what it had open is closed then. Call it after
 * child_kill.
 */
void child_wait_end(const struct child *c, int ms);

/* Give this thread slurmstepd's own rights, whatever the other threads have now. */
void child_become_root(void);
