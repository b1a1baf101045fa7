/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of the supervisor share.
 *
 *   supervisor.c      life cycle and thread
 *   dormant.c         what there is before the step uses PMI, and waiting for that
 *   spawn_agent.c     starting the agent
 *   spawn_pmixd.c     pmi2x-pmixd: its sockets, starting it, and its end
 *   torch_ports.c     the ports of PyTorch, for which ranks wait
 *   sync_socket.c     the socket of pmi2x-sync, until the agent has it
 *   spawn_topology.c  pmi2x-topology: starting it, and the file that comes of it
 *   requests.c        what the agent asks, and its end
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "libconfine/host_out.h"
#include "libio/fd.h"
#include "libio/registration.h"
#include "libio/thread.h"
#include "supervisor/cgroup.h"
#include "supervisor/child.h"
#include "supervisor/pmixd_process.h"
#include "supervisor/supervisor.h"

#define SUPERVISOR_WHY_MAX 512       /* bytes of a reason */
#ifndef SUPERVISOR_MARGIN_MS
#define SUPERVISOR_MARGIN_MS 5000    /* for the agent to end, beyond drain_ms */
#endif
#define SUPERVISOR_LINGER_MS 1000    /* for a look-up that nobody waits for */

struct pollfd;

/* Descriptors and data that are held until the agent is started. */
struct dormant {
	int ours;     /* the agent's end of the registration socket */
	int theirs;   /* the end that children inherit */
	int listener; /* -1: no neighbours */
	int torch;    /* the same for supervisor_options.torch_port; -1: none */
	uint16_t port;
	int region;   /* the object of the results region; -1: none */
	int connect_back;
	bool wants_pmix; /* pmi2x-pmixd is due, too */
	bool ranks_have_come;
	bool pidfd_later; /* a rank's pidfd can be had when it is needed */
	struct registration *ranks; /* by slot; fd -1: the daemon has not registered */
	uint32_t count;
	char closed_by[PMI_PROCESS_NAME_MAX]; /* agent_options.closed_by, or "" */
	int error; /* why it cannot wait any longer, a negative errno; 0 */
	/* Made beforehand: a thread that allocates gets an arena of its own. */
	struct pollfd *fds;
};

/* Calls at once, and how many more each second. */
struct allowance {
	uint32_t most;
	uint32_t a_second;
	uint32_t left;
	uint64_t since; /* ms */
};

/* Conversation with the agent, from its start on. */
struct service {
	struct child agent;
	struct host_out out; /* to it */
	bool deaf;      /* does not read its messages: is killed */
	bool ready;     /* has sent its version */
	bool leaving;   /* was asked to leave */
	bool over;      /* has announced its end */
	bool killed;    /* the step is being ended */
	uint64_t limit; /* while leaving: then it is killed, ms */
	bool job_is_over; /* ... and now */
	struct allowance calls, questions, lines;
	uint32_t lines_lost;
	uint64_t *asked; /* by slot: how its process ends is asked for, with haste
	                    until then, ms; 0: it is not */
	uint32_t nasked;
	int ask_ms;
	struct helpers *helpers; /* calls whose end is waited for */
	struct helpers *lookups; /* look-ups whose callers do not wait any more */
};

/*
 *   NONE -- begin --> RUNNING -- complete, written --> THERE
 *     |                  |
 *     +-> FAILED <-------+  cannot be started; it says so, ends or is late
 */
enum topology_state {
	TOPOLOGY_NONE,
	TOPOLOGY_RUNNING,
	TOPOLOGY_THERE,
	TOPOLOGY_FAILED,
};

/* pmi2x-topology. */
struct topology {
	enum topology_state state;
	struct child child;
	int xml;        /* memory it writes to; -1: none */
	int file;       /* file made of it; -1: none */
	uint64_t limit; /* time at which it is killed, ms */
	bool asked;     /* the agent waits for an answer */
	pid_t rank;     /* one of the node: its cpuset is the program's; 0 */
	int done;       /* eventfd: THERE or FAILED; -1: no rank waits */
};

/*
 *   NEVER    WAITING -- begin --> STARTED -- ready --> READY
 *               |                    |                  |
 *               +------------------> ENDED <------------+
 */
enum pmix_state {
	PMIX_NEVER,
	PMIX_WAITING,
	PMIX_STARTED,
	PMIX_READY,
	PMIX_ENDED,
};

/* In what is polled, from there on. */
enum pmix_poll {
	PMIX_POLL_RANK,
	PMIX_POLL_LISTENER,
	PMIX_POLL_OLD,
	PMIX_POLLS,
};

/* pmi2x-pmixd. All descriptors: -1 where there is none, or not any more. */
struct pmix {
	enum pmix_state state;
	struct pmixd_process process;
	struct leaf leaf;        /* its cgroups; none before it is started */
	int rank;                /* eventfd: a rank has come, so there are the step's cgroups */
	bool ranks_have_come;
	int listener, old;       /* of clients, and of those of PMIx 3 and older */
	uint16_t port, old_port;
	int client;              /* the first one, until it can be served */
	bool client_is_old;      /* the client connected to `old` */
	int agent;               /* its end of what connects it with the agent */
	int agents;              /* the agent's */
	int program;             /* the file, as it was when the step began; or why not */
	int done;                /* eventfd: it serves, or has ended; -1: no rank waits */
	int over;                /* eventfd: the step is being ended; -1: no rank waits */
};

/* The socket of pmi2x-sync. Descriptors are -1 where there is none, or not any more. */
struct sync_socket {
	int listener;
	int client;    /* the first caller, until the agent has it */
	char name[32]; /* abstract; "": there is no socket */
};

/* How ranks learn of the ports of PyTorch; -1: no rank waits. */
struct torch_ports {
	int known; /* ranks look at what has come here: two ports, or the end */
	int tell;
};

struct supervisor {
	const struct pmi_step *step;
	struct supervisor_options options;
	struct supervisor_host host;
	const struct log_hook *log;
	struct dormant dormant;
	struct service service;
	struct topology topology;
	struct pmix pmix;
	struct sync_socket sync;
	struct torch_ports torch_ports;
	int wake;             /* eventfd: the step is over; and then: the job */
	int news;             /* eventfd: the agent stays, or the thread ends */
	atomic_bool stopping; /* set before that is written */
	atomic_bool ended;    /* set before the thread does */
	bool running;         /* there is a thread */
	pthread_t thread;
	struct leaf leaf;     /* the agent's cgroups; none before it is started */
	pthread_t agent;      /* of program.run */
	bool has_thread;      /* there is one */
};

const char *supervisor_node_name(const struct supervisor *s);
/* Milliseconds of the clock that nobody sets. */
uint64_t supervisor_now(void);
/* In a child, too: wait until an eventfd says something, at most `ms`. Does it? */
bool supervisor_wait_event(int fd, int ms);
/* Log the reason and end the step, in the supervisor's thread. Blocks. */
void supervisor_kill(struct supervisor *s, const char *why);

/* ---- dormant.c ---- */

/* In the creator's thread. 0, or a negative errno with dormant_close due. */
int dormant_open(struct supervisor *s);
/*
 * Wait until somebody wants PMI, or waiting has failed: dormant.error (true), or until
 * the step is over (false).
 */
bool dormant_wait(struct supervisor *s);
/* Pass the ranks that have registered on to the agent. 0 or a negative errno. */
int dormant_pass_ranks(struct supervisor *s);
/* Close what the agent has of its own now. */
void dormant_hand_over(struct supervisor *s);
/* Nobody will serve the ranks: they get an error or the end of file. */
void dormant_refuse_ranks(struct supervisor *s);
void dormant_close(struct supervisor *s);

/* ---- spawn_agent.c ---- */

/* Start the agent, connected to service.agent. 0 or a negative errno. */
int launch_agent(struct supervisor *s);
/*
 * The cgroups of a program, by those in which slurmstepd is now. They are not made. 0 or
 * a negative errno; release with leaf_free in any case.
 */
int launch_find_leaf(const struct supervisor *s, enum leaf_kind kind,
		     struct leaf *leaf);
/*
 * A program that is executed as the step's user; without further arguments and
 * descriptors.
 */
struct child_program launch_program(const struct supervisor *s, int file,
				    const char *name);

/* ---- sync_socket.c ---- */

void sync_open(struct supervisor *s);
/*
 * Look who has connected. True: a process of the step's user, which is kept for the agent; or
 * this process may have no more descriptors. Callers of other users are closed.
 */
bool sync_is_asked(struct supervisor *s);
/* The agent has them now. */
void sync_hand_over(struct supervisor *s);
/* There will be no agent. */
void sync_refuse(struct supervisor *s);

/* ---- torch_ports.c ---- */

/* In the creator's thread. 0 or a negative errno. */
int torch_ports_open(struct supervisor *s);
/* The agent has heard the ports. */
void torch_ports_known(struct supervisor *s, const struct host_msg *m);
/* No rank that waits for the ports is to begin. */
void torch_ports_refuse(const struct supervisor *s);
void torch_ports_close(struct supervisor *s);

/* ---- spawn_topology.c ---- */

/* In the creator's thread. 0 or a negative errno. */
int topology_open(struct supervisor *s);
/* A rank has registered over this socket. */
void topology_met_rank(struct supervisor *s, int fd);
/* Start it, unless it has been. An error is a line in the log. */
void topology_begin(struct supervisor *s);
/* The agent asks; it is answered now or later. */
void topology_asked(struct supervisor *s);
/* When it has said something: poll topology.child.fd. */
void topology_event(struct supervisor *s);
/* Milliseconds until it is late; negative: it does not run. */
int topology_left_ms(const struct supervisor *s);
/* Kill it when it is late. */
void topology_check(struct supervisor *s);
/* Kill it, remove its file. */
void topology_close(struct supervisor *s);
/*
 * As above, beside the supervisor's thread, which does not end: nothing of its is closed.
 */
void topology_abandon(const struct supervisor *s);

/* ---- spawn_pmixd.c ---- */

/* Listen, in the creator's thread. 0 or a negative errno. */
int pmix_open(struct supervisor *s);
/* Sets the PMIX_POLLS descriptors to wait for. */
void pmix_set_fds(const struct supervisor *s, struct pollfd *fds);
/*
 * True: pmixd is to be started, since a rank has come, and a client of the step's user
 * waits or `when` is early.
 */
bool pmix_is_due(struct supervisor *s, const struct pollfd *fds);
/*
 * Make what connects it with the agent, which is about to start. 0 or a negative errno.
 */
int pmix_connect_agent(struct supervisor *s);
/* Start it, once; the agent has been. An error ends the step. */
void pmix_begin(struct supervisor *s);
/* When it has said something: poll pmix.child.fd; or when its process has ended. */
void pmix_event(struct supervisor *s, bool ended);
/* Ranks that wait for it wait no longer, and do not begin: the step is being ended. */
void pmix_refuse_ranks(const struct supervisor *s);
/* As pmix_refuse_ranks, for ranks that wait for anything. */
static inline void refuse_waiting_ranks(const struct supervisor *s)
{
	pmix_refuse_ranks(s);
	torch_ports_refuse(s);
}
/* Kill it, remove its directory. */
void pmix_close(struct supervisor *s);
/*
 * As above, beside the supervisor's thread, which does not end: nothing of its is closed.
 */
void pmix_abandon(const struct supervisor *s);

/* ---- requests.c ---- */

int service_open(struct supervisor *s);
/* To the agent, of what the supervisor's thread has to say. */
void service_send(struct supervisor *s, const struct host_msg *m);
/* A line of a program; too many are left out. */
void service_log(struct supervisor *s, const struct host_msg *m);
/* End the step, in a thread of its own: here the agent may have to be answered. */
void service_kill(struct supervisor *s, const char *why);
/* Whether a program (HOST_READY) speaks this version; if not, the step is ended. */
bool service_fits(struct supervisor *s, const char *name, const struct host_msg *m);
/* Each rank of the node has ended, or the launcher is ending it. */
bool service_step_ends_here(const struct supervisor *s);
/* Answer the agent until it has ended. */
void service_run(struct supervisor *s);
/* 0, or -EBUSY: a call of the host has not come back. */
int service_close(struct supervisor *s);
