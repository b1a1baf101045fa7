/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the starter share.
 *
 *   starter.c   life cycle and thread
 *   idle.c      what there is before the step uses PMI, and waiting for that
 *   launch.c    starting the agent
 *   helper.c    pmi2x-topology: starting it, and the file that comes of it
 *   service.c   what the agent asks, and its end
 */
#ifndef PMI2X_STARTER_INTERNAL_H
#define PMI2X_STARTER_INTERNAL_H

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>

#include "libio/fd.h"
#include "libio/registration.h"
#include "libio/thread.h"
#include "starter/leaf.h"
#include "starter/starter.h"

#define STARTER_WHY_MAX 512       /* bytes of a reason */
#define STARTER_MARGIN_MS 5000    /* for the agent to end, beyond drain_ms */
#define LAUNCH_MORE_MAX LEAF_DIRS_MAX
#define STARTER_LINGER_MS 1000    /* for a look-up that nobody waits for */

struct pollfd;

/* What is held until the agent is started. */
struct idle {
	int ours;     /* the agent's end of the registration socket */
	int theirs;   /* what children inherit */
	int listener; /* -1: no neighbours */
	uint16_t port;
	int region;   /* the object of the results region; -1: none */
	int doorbell;
	bool pidfd_later; /* a rank's pidfd can be had when it is needed */
	struct registration *ranks; /* by slot; fd -1: it has not registered */
	uint32_t count;
	int error; /* why it cannot wait any longer, a negative errno; 0 */
	/* Made beforehand: a thread that allocates gets an arena of its own. */
	struct pollfd *fds;
};

/* So many at once, and so many more each second. */
struct allowance {
	uint32_t most;
	uint32_t a_second;
	uint32_t left;
	uint64_t since; /* ms */
};

/* Conversation with the agent, from its start on. */
struct service {
	int fd;         /* -1: there is none */
	int pidfd;      /* of the agent; -1: unknown */
	bool ready;     /* it has said which version it speaks */
	bool leaving;   /* it has been told to leave */
	bool over;      /* it has said that its end follows */
	bool killed;    /* the step is being ended */
	uint64_t limit; /* while leaving: then it is killed, ms */
	struct allowance calls, lines;
	uint32_t lines_lost;
	uint64_t *asked; /* by slot: how its process ends is asked for until, ms; 0 */
	uint32_t nasked;
	int ask_ms;
	struct helpers *helpers; /* calls whose end is waited for */
	struct helpers *lookups; /* nobody waits for these */
};

/*
 *   NONE -- begin --> RUNNING -- complete, written --> THERE
 *     |                  |
 *     +-> FAILED <-------+  cannot be started; it says so, ends or is late
 */
enum helper_state {
	HELPER_NONE,
	HELPER_RUNNING,
	HELPER_THERE,
	HELPER_FAILED,
};

/* pmi2x-topology. */
struct helper {
	enum helper_state state;
	int fd;         /* conversation; -1 */
	int xml;        /* what it writes; -1 */
	int file;       /* what it has become; -1 */
	int pidfd;      /* of what was started, which forks and ends; -1 */
	int own_pidfd;  /* of what it has forked; -1: unknown */
	uint64_t limit; /* then it is killed, ms */
	bool asked;     /* the agent waits for an answer */
	pid_t rank;     /* one of the node: its cpuset is the helper's; 0 */
	int done;       /* eventfd: THERE or FAILED; -1: no rank waits */
};

struct starter {
	const struct pmi_step *step;
	struct starter_options options;
	struct starter_host host;
	const struct log_hook *log;
	struct idle idle;
	struct service service;
	struct helper helper;
	int wake;             /* eventfd: the step is over */
	atomic_bool stopping; /* set before that is written */
	bool running;         /* there is a thread */
	pthread_t thread;
	struct leaf leaf;     /* the agent's cgroups; none before it is started */
	pthread_t agent;      /* of program.run */
	bool has_thread;      /* there is one */
};

const char *starter_node_name(const struct starter *s);
/* Milliseconds of the clock that nobody sets. */
uint64_t starter_now(void);
/* Log the reason and end the step, in the starter's thread. Blocks. */
void starter_kill(struct starter *s, const char *why);

/* ---- idle.c ---- */

/* In the creator's thread. 0, or a negative errno with idle_close due. */
int idle_open(struct starter *s);
/*
 * Wait until somebody wants PMI, or waiting has failed: idle.error (true), or until
 * the step is over (false).
 */
bool idle_wait(struct starter *s);
/* Pass the ranks that have registered on to the agent. 0 or a negative errno. */
int idle_pass_ranks(struct starter *s);
/* Close what the agent has of its own now. */
void idle_hand_over(struct starter *s);
/* Nobody will serve the ranks: they get an error or the end of file. */
void idle_refuse_ranks(struct starter *s);
void idle_close(struct starter *s);

/* ---- launch.c ---- */

/* Start the agent, connected to service.fd. 0 or a negative errno. */
int launch_agent(struct starter *s);
/* This thread's rights are slurmstepd's own, whatever the others' are now. */
void launch_become_root(void);
/* What is started has `*fd` as `number`; *fd may be moved. 0 or a negative errno. */
int launch_give(posix_spawn_file_actions_t *actions, int *fd, int number);
/* Its standard descriptors are /dev/null. */
int launch_give_null(posix_spawn_file_actions_t *actions);
/*
 * Execute the file of a descriptor: NAME UID GID STEP NODE MORE ... 0 or a
 * negative errno.
 */
int launch_execute(const struct starter *s, int file, const char *name,
		   const posix_spawn_file_actions_t *actions,
		   char *const more[LAUNCH_MORE_MAX + 1], pid_t *pid);

/* ---- helper.c ---- */

/* In the creator's thread. 0 or a negative errno. */
int helper_open(struct starter *s);
/* A rank has registered over this socket. */
void helper_met_rank(struct starter *s, int fd);
/* Start it, unless it has been. What goes wrong is a line in the log. */
void helper_begin(struct starter *s);
/* The agent asks; it is answered now or later. */
void helper_asked(struct starter *s);
/* When it has said something: poll helper.fd. */
void helper_event(struct starter *s);
/* Milliseconds until it is late; negative: it does not run. */
int helper_left_ms(const struct starter *s);
/* Kill it when it is late. */
void helper_check(struct starter *s);
/* Kill it, remove its file. */
void helper_close(struct starter *s);

/* ---- service.c ---- */

int service_open(struct starter *s);
/* Each rank of the node has ended, or the launcher is ending it. */
bool service_step_ends_here(const struct starter *s);
/* Answer the agent until it has ended. */
void service_run(struct starter *s);
/* 0, or -EBUSY: a call of the host has not come back. */
int service_close(struct starter *s);

#endif
