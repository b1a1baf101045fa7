/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's end: a thread that listens for agents of the step, proves them, and
 * feeds their control frames to a struct launcher. The counterpart of
 * agent.h; embedded by the plugin in srun and by the fake server.
 */
#ifndef PMI2X_HUB_H
#define PMI2X_HUB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libio/secret.h"
#include "libpmi/spawn.h"
#include "libutil/log.h"

#define HUB_STRANGERS_MAX 128 /* connections that have not proved themselves */
#define HUB_TERM_MS 3000
#define HUB_DRAIN_MS 1000
/* For the neighbours of a node that has gone to say so, and what has failed. */
#define HUB_LOST_MS 2000
#define HUB_TRACE_MS 10000

struct hub;

struct hub_host {
	/*
	 * Start the processes of a spawn. Called in the hub thread, where all
	 * signals are blocked: the child has to unblock them. Must not block.
	 * Returns the pid of a child process that runs the new step (the
	 * hub watches and reaps it) or a negative errno, and one end of a unix
	 * stream socket pair (CLOEXEC); the other end is the child's, for its
	 * own hub_options.parent_fd. The hub owns the descriptor. What travels
	 * on it is between the hubs: that the first rank is there, name-service
	 * requests and their answers.
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
	/* What a node has recorded: a line of JSON, from an untrusted agent. */
	void (*trace)(void *arg, uint32_t position, const void *data,
		      size_t len);
	/*
	 * Does any node's record not have come yet? hub_stop waits for them, at
	 * most HUB_TRACE_MS. NULL, with trace: there is no trace.
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
	 * Has the node at a position (any number) said that its ranks run, or
	 * have run? NULL: not known; nodes that wait for it go on waiting.
	 */
	bool (*started)(void *arg, uint32_t position);
	void *arg;
};

struct hub_options {
	struct secret secret;
	const char *jobid;
	const char *build;
	uint16_t port_first; /* range to listen in; 0: any port */
	uint16_t port_last;
	int parent_fd;       /* this srun was spawned: the descriptor to its
	                        parent's hub; -1 otherwise. Owned by the hub. */
	uint32_t handshake_ms;
};

/*
 * Listen and start the thread. Options and host are copied; `log` outlives the
 * hub. 0 or a negative errno, with a line in the log.
 */
int hub_start(struct hub **out, const struct hub_options *o,
	      const struct hub_host *host, const struct log_hook *log);
uint16_t hub_port(const struct hub *h);
/*
 * End the thread and free everything. Children that still run are waited for up
 * to `wait_ms` (UINT32_MAX: as long as they run), then sent SIGTERM and waited
 * for HUB_TERM_MS more; those whose spawn has not been answered at once. What
 * agents have sent before they said goodbye is still heard, for at most
 * HUB_DRAIN_MS.
 */
void hub_stop(struct hub *h, uint32_t wait_ms);

#endif
