/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts the agent of a node, when somebody in the step uses PMI, and answers
 * what it asks. Embedded by the Slurm plugin (in slurmstepd) and by the fake server. The
 * C library only.
 *
 *   prepare   listens for neighbours, makes the object of the results region and
 *             the socket over which ranks register
 *   run       a thread, which sleeps until a rank says its first byte, or a
 *             neighbour connects, or a message comes from another node; on the
 *             first node, until a process closes PMI_FD and lives on, too
 *   then      the agent is started with all descriptors; the thread answers it
 *   stop      has the agent leave the step, and ends everything
 *
 * A step that does not use PMI has no agent. An agent that dies ends the step.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "agent/setup.h"
#include "libpmi/cause.h"
#include "libpmi/step.h"
#include "libutil/log.h"

struct supervisor;

/* Functions that the program that embeds it provides. */
struct supervisor_host {
	/*
	 * Address of a node (its port is ignored). 0 or a negative errno;
	 * -EAGAIN, unless `may_block`: it has to be looked up. With `may_block`
	 * it is called in a thread of its own, several at the same time.
	 */
	int (*node_address)(void *arg, uint32_t node_id, bool may_block,
			    struct sockaddr_storage *out);
	/*
	 * Hand `data` to the told socket of another node over a path that the site
	 * authenticates. Blocks; called in a thread of its own. 0 or negative
	 * errno; -ENOENT or -ECONNREFUSED: the node has answered, and has
	 * nobody whom it could hand the data to. NULL: there is none.
	 */
	int (*connect_back)(void *arg, uint32_t node_id, const void *data,
			 size_t len);
	/*
	 * End the step because srun cannot be told to. Blocks; in a thread of
	 * its own. NULL: nothing can be done.
	 */
	void (*kill_step)(void *arg, const char *why);
	/*
	 * How the process of the rank in `slot` has ended: false as long as that
	 * is not known, but by_launcher counts before, too. In the supervisor's
	 * thread; must not block. NULL: it never is.
	 */
	bool (*rank_exit)(void *arg, uint32_t slot, struct pmi_exit *end);
	/*
	 * The job has ended: nobody can need the agent any more. Blocks; in the thread
	 * of supervisor_stop, while the agent stays. NULL: nobody knows.
	 */
	bool (*job_is_over)(void *arg);
	/* The process of the rank in `slot`, or 0. NULL: nobody knows. */
	pid_t (*rank_pid)(void *arg, uint32_t slot);
	void *arg;
};

/* How the agent is started. */
struct supervisor_program {
	int fd;          /* of the agent's file, opened O_PATH or to read; the caller's */
	uid_t uid;       /* as whom it is to run, when this process may choose */
	gid_t gid;
	/* Instead, in tests: what is to be done in a thread of this process. */
	int (*run)(int setup_fd, int host_fd, const struct agent_fds *fds);
};

/* When the topology of the node is made a file for its ranks. */
enum supervisor_topology {
	TOPOLOGY_START_NEVER,
	TOPOLOGY_START_ASKED, /* when a rank of it asks */
	TOPOLOGY_START_AGENT, /* when the agent is started */
	TOPOLOGY_START_RANKS, /* when the first rank registers */
};

/* When pmi2x-pmixd is started. */
enum supervisor_pmix {
	PMIX_START_NEVER, /* no PMIx is offered */
	PMIX_START_ASKED, /* when the first client connects */
	PMIX_START_EARLY, /* when the first rank has come; ranks may wait for it */
};

/* Texts are the caller's, and outlive it. */
struct supervisor_pmix_options {
	enum supervisor_pmix when;
	const char *program; /* path of pmi2x-pmixd */
	const char *dir;     /* to be made for it, below one that only root may write */
	const char *library; /* helpers/pmixd/pmixd.h describes this and the next two */
	const char *gds;
	const char *collect;
};

/* How the last part of `dir` begins: those that are not in use are removed. */
#define SUPERVISOR_PMIX_DIR_PREFIX "pmi2x.pmix."

struct supervisor_ports {
	uint16_t first, last;
};

#define SUPERVISOR_SLURM_PORTS 2 /* ranges: slurmd's, slurmctld's */

#define SUPERVISOR_UNFINISHED ".new" /* after the path, while it is written */

struct supervisor_options {
	struct agent_options agent;
	struct supervisor_program program;
	enum supervisor_topology topology;
	int topology_program;      /* as program.fd, of pmi2x-topology */
	const char *topology_path; /* of the file; the caller's, outlives it */
	struct supervisor_pmix_options pmix;
	/*
	 * Listening unix socket for connect-back messages; -1: none. Owned by the supervisor
	 * once supervisor_prepare has begun, also when it fails.
	 */
	int connect_back_fd;
	/* Ports of Slurm's daemons, which may be about to start again; 0-0: none. */
	struct supervisor_ports slurm_ports[SUPERVISOR_SLURM_PORTS];
	uint16_t torch_port; /* for PyTorch's TCPStore; 0: nobody serves it */
	bool torch_loopback; /* at 127.0.0.1 only, and not at every address */
	bool sync;    /* there is a socket for pmi2x-sync */
	int rank_fd;  /* number for registration_takes_place, or the next free one above */
};

/*
 * A descriptor of a file that is going to be executed with this process's rights, or a
 * negative errno; -EPERM: it may be written by others than root and this user. Whoever
 * replaces the file does not change what is executed.
 */
int supervisor_program_open(const char *path);

/*
 * `step` and `host` must outlive it; options are copied. 0 or a negative errno with a
 * line in the log.
 */
int supervisor_prepare(struct supervisor **out, const struct pmi_step *step,
		    const struct supervisor_options *options,
		    const struct supervisor_host *host,
		    const struct log_hook *log);

/*
 * Start the thread. On failure, a negative errno with a line in the log, ranks
 * cannot register any more; supervisor_stop is still due.
 */
int supervisor_run(struct supervisor *s);

/* Both. There is none when it fails. */
int supervisor_start(struct supervisor **out, const struct pmi_step *step,
		  const struct supervisor_options *options,
		  const struct supervisor_host *host, const struct log_hook *log);

/*
 * The socket over which the children of this process register ranks: inherit it
 * across fork. Owned by the supervisor.
 */
int supervisor_registration_fd(const struct supervisor *s);

/*
 * In a child that becomes a rank, once it has registered, with TOPOLOGY_START_RANKS: wait
 * for the topology's file, `ms` at most. Its path; NULL: it is not there, or not
 * readable here.
 */
const char *supervisor_topology_file(const struct supervisor *s, int ms);

/*
 * In a child that becomes a rank, once it has registered: from now on the step's cgroups
 * are there, in which pmi2x-pmixd is started.
 */
void supervisor_rank_comes(const struct supervisor *s);

/*
 * In such a child, with agent_options.torch_ports_wanted: wait until the first node has told its
 * ports, `ms` at most, and write them. If that node has left the step, `ports` stays as it is.
 * False: the rank is not to begin.
 */
bool supervisor_torch_ports(const struct supervisor *s, int ms, uint16_t ports[TORCH_PORTS]);

/* The abstract name of the socket for pmi2x-sync; NULL: there is none. */
const char *supervisor_sync_name(const struct supervisor *s);

/* The port of 127.0.0.1 for PMIx clients; `old`: of PMIx 3 and older. */
uint16_t supervisor_pmix_port(const struct supervisor *s, bool old);
/*
 * In a child that becomes a rank, with PMIX_START_EARLY: wait until the server can serve
 * clients, `ms` at most. Whether it was in time.
 */
bool supervisor_pmix_wait(const struct supervisor *s, int ms);
/* In such a child, once it has waited: the step is being ended, and it is not to begin. */
bool supervisor_pmix_refused(const struct supervisor *s);

/*
 * Make the agent leave the step within its drain_ms (with agent_options.stays: once the
 * nodes below have left), kill it after that, join the thread, and free everything. 0; or
 * -EBUSY: a call of the host has not returned in time. It goes on in its own thread, whose
 * code stays loaded; what `step` and `host` point to must stay, too.
 */
int supervisor_stop(struct supervisor *s);
