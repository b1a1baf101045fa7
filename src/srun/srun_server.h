/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's end: a thread that listens for agents of the step, proves them, and
 * feeds their control frames to a struct step_services. The counterpart of
 * agent.h; embedded by the plugin in srun and by the fake server.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libio/secret.h"
#include "libpmi/spawn.h"
#include "libutil/log.h"

/* Connections that have not proved themselves. */
#define SRUN_SERVER_STRANGERS_MAX 128
#define SRUN_SERVER_TERM_MS 3000
#define SRUN_SERVER_DRAIN_MS 1000
/* For the neighbours of a node that has gone to say so, and what has failed. */
#define SRUN_SERVER_LOST_MS 2000
#define SRUN_SERVER_TRACE_MS 10000
/* A silent peer is dead after; srun knows no mpi.conf, this is its default. */
#define SRUN_SERVER_DEAD_PEER_MS 30000

struct srun_server;

struct srun_server_host {
	/*
	 * Start the processes of a spawn. Called in the server's thread, where
	 * all signals are blocked: the child has to unblock them. Must not block.
	 * Returns the pid of a child process that runs the new step (the server
	 * watches and reaps it) or a negative errno, and one end of a unix stream
	 * socket pair (CLOEXEC); the other end is the child's, for its own
	 * srun_server_options.parent_fd. The server owns the descriptor. The two sruns
	 * send on it: that the first rank is there, name-service requests and their
	 * answers.
	 */
	pid_t (*spawn)(void *arg, uint32_t serial,
		       const struct spawn_request *request, int *fd);
	/*
	 * A rank called abort, or CONTROL_NO_RANK: a node cannot go on. End the
	 * step. Hub thread; must not block for long.
	 */
	void (*abort)(void *arg, uint32_t rank, int code, const char *text);
	/* A line for the user's terminal. */
	void (*report)(void *arg, const char *text);
	/* Ranks have ended because of what was reported. NULL: so what. */
	void (*gave_up)(void *arg);
	/* The record of a node: a line of JSON, from an untrusted agent. */
	void (*trace)(void *arg, uint32_t position, const void *data,
		      size_t len);
	/*
	 * True: the record of a node is missing. srun_server_stop waits for them, at most
	 * SRUN_SERVER_TRACE_MS. With trace, NULL means that none is missing.
	 */
	bool (*traces_missing)(void *arg);
	/*
	 * How many nodes the step has, and what the one at a position is called
	 * (a text that stays; "?" for none). NULL: not known, and nobody is told
	 * who waits for whom.
	 */
	uint32_t (*nodes)(void *arg);
	const char *(*node_name)(void *arg, uint32_t position);
	/*
	 * True: the ranks of the node at this position (any number) run, or have run. NULL:
	 * srun does not know, and nodes that wait for an answer go on waiting.
	 */
	bool (*started)(void *arg, uint32_t position);
	void *arg;
};

struct srun_server_options {
	struct secret secret;
	uint64_t port_seed; /* of the step: see seeded_port */
	const char *jobid;
	const char *build;
	uint16_t port_first; /* range to listen in; 0: any port */
	uint16_t port_last;
	int parent_fd;       /* this srun was spawned: the descriptor to its
	                        parent's server; -1 otherwise. Owned by the
	                        server. */
	uint32_t handshake_ms;
	bool no_kill; /* a node that is lost does not end the step */
};

/*
 * Listen and start the thread. Options and host are copied; `log` outlives the
 * server. 0 or a negative errno, with a line in the log.
 */
int srun_server_start(struct srun_server **out,
		      const struct srun_server_options *o,
		      const struct srun_server_host *host,
		      const struct log_hook *log);
uint16_t srun_server_port(const struct srun_server *h);
/*
 * End the thread and free everything. Children that still run are waited for up
 * to `wait_ms` (UINT32_MAX: as long as they run), then sent SIGTERM and waited
 * for SRUN_SERVER_TERM_MS more; those whose spawn has not been answered at once. Messages
 * that agents have sent before their goodbye are still read, for at most
 * SRUN_SERVER_DRAIN_MS.
 */
void srun_server_stop(struct srun_server *h, uint32_t wait_ms);
