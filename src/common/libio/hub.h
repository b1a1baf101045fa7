/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's end: a thread that listens for agents of the step, proves them, and
 * feeds their control frames to a struct launcher. The counterpart of
 * agent.h; embedded by the plugin in srun and by the fake server.
 */
#ifndef PMI2X_HUB_H
#define PMI2X_HUB_H

#include <stdint.h>
#include <sys/types.h>

#include "libio/secret.h"
#include "libpmi/spawn.h"
#include "libutil/log.h"

struct hub;

struct hub_host {
	/*
	 * Start the processes of a spawn. Called in the hub thread; must not
	 * block. Returns the pid of a child process that runs the new step (the
	 * hub watches and reaps it) or a negative errno, and a descriptor to
	 * read from: the child writes "ready <jobid>\n" to it when its first rank
	 * is there, or "failed <why>\n"; names it wants looked up travel there
	 * too (hub-private). The hub owns the descriptor.
	 */
	pid_t (*spawn)(void *arg, uint32_t serial,
		       const struct spawn_request *request, int *fd);
	/* A rank called abort: end the step. Hub thread; must not block for long. */
	void (*abort)(void *arg, uint32_t rank, int code, const char *text);
	/* A line for the user's terminal. */
	void (*report)(void *arg, const char *text);
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

/* Listen and start the thread. 0 or a negative errno, with a line in the log. */
int hub_start(struct hub **out, const struct hub_options *o,
	      const struct hub_host *host, const struct log_hook *log);
uint16_t hub_port(const struct hub *h);
/*
 * End the thread and free everything. Children that still run are waited for up
 * to `wait_ms` (UINT32_MAX: as long as they run), then sent SIGTERM.
 */
void hub_stop(struct hub *h, uint32_t wait_ms);

#endif
