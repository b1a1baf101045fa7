/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of srun's server share.
 *
 *   srun_server.c        agents, the launcher, the phases of the end
 *   srun_server_spawn.c  spawned sruns, and the srun that spawned this one
 *   srun_server_status.c questions to the agents, and who is told the answers
 */
#pragma once

#include <stdbool.h>

#include "libio/channel.h"
#include "libio/link.h"
#include "libio/listener.h"
#include "libio/loop.h"
#include "libio/strangers.h"
#include "libpmi/status.h"
#include "libpmi/step_services.h"
#include "srun/spawned.h"
#include "srun/srun_server.h"

enum phase { RUNNING, WAITING, TERMINATING, DRAINING, CLOSED };

/* A sender of requests; the launcher knows it as a link. */
struct asker {
	void (*send)(struct asker *to, const void *data, size_t len);
};

struct agent_link {
	struct asker asker; /* first: an asker is cast back */
	struct srun_server *server;
	struct link *link;
	struct stranger stranger; /* until it is proved */
	bool heard; /* a message has come from it */
	bool left;  /* it said goodbye, or was closed */
	struct agent_link *prev, *next;
};

struct child {
	struct asker asker; /* first */
	struct srun_server *server;
	struct spawned *process;
	uint32_t token;
	bool ready; /* its first rank is there: the spawn has been answered */
	char *jobid; /* since then */
	struct child *prev, *next;
};

/* Agents want a report of who waits long. */
struct stalls {
	bool any;
	uint32_t give_up_ms; /* waits of this length fail; 0: none does */
};

struct reported {
	uint32_t seq;
	uint32_t age_ms; /* 0: nothing has been */
};

/* Questions of srun to its nodes; one query at a time. */
struct srun_status {
	struct listener *listener; /* of tools; NULL: there is none */
	uv_timer_t deadline;
	struct step_status *asked; /* the answers; NULL: no query is under way */
	uint32_t query;            /* its number */
	struct stalls stalls;      /* waits found in the nodes' status */
	struct stalls later;       /* ... the next one: its answers are older */
	struct reported reported[COLL_KINDS];
	char *ending;       /* why the step is to be ended when the query is over; NULL: it is not */
	int ending_code;
	uint32_t key_age_s; /* of the last report of a wait for a key; 0: none */
	struct tool *tools;
	unsigned ntools;
};

struct srun_server {
	struct handshake_self self;
	char *jobid;
	char *build;
	struct srun_server_host host;
	const struct log_hook *log;
	uint32_t handshake_ms;
	bool no_kill;
	uint16_t port;
	enum phase phase;
	bool aborted;     /* the host has been told to end the step */
	uint32_t wait_ms; /* of srun_server_stop */
	struct loop *loop;
	uv_async_t stop;
	uv_check_t settled; /* after a stop */
	uv_timer_t deadline; /* of the phase */
	uv_timer_t names_due; /* a look-up of PMIx has waited long enough */
	bool met_other_protocol; /* and the log has the line about it */
	bool met_other_build;
	char lost[256];      /* node that went without a goodbye; empty: none */
	struct listener *listener;
	struct step_services *launcher;
	struct srun_status status;
	struct channel *parent; /* NULL: none, or gone */
	struct strangers strangers;
	struct agent_link *agents; /* links that are proved */
	struct child *children;
};

/* ---- srun_server.c ---- */

/* A frame for the launcher. As step_services_receive. */
int srun_server_receive(struct srun_server *h, struct asker *from, const void *data,
			size_t len);
/* Something has gone: is that what the phase waits for? May close everything. */
void srun_server_advance(struct srun_server *h);

/* ---- srun_server_spawn.c ---- */

/* Operations of the launcher; `arg` is the server. */
int srun_server_spawn(void *arg, uint32_t token,
		      const struct spawn_request *request);
void srun_server_ready(void *arg);
void srun_server_not_ready(void *arg, const char *why);
int srun_server_forward(void *arg, uint32_t token, const void *data,
			size_t len);
/* All ranks of a step have ended, the own or a spawned one. */
void srun_server_step_ended(struct srun_server *h, const char *jobid);
/*
 * A rank waits for the answer to its spawn. When the step has ended without one
 * the rank has died, and nobody wants what it has spawned: end those. Is any
 * other left?
 */
bool srun_server_spawn_end_unwanted(struct srun_server *h);
/* End the spawned sruns. */
void srun_server_spawn_terminate(struct srun_server *h);
/*
 * Takes over the descriptor of the pair; -1: nobody has spawned this srun. 0 or a
 * negative errno.
 */
int srun_server_spawn_open(struct srun_server *h, int fd);
void srun_server_spawn_close(struct srun_server *h);

/* ---- srun_server_status.c ---- */

/* The send operation of an agent. */
void srun_server_send_to_agent(struct asker *to, const void *data, size_t len);
/* Listen for tools, if the host knows the nodes; without them srun goes on. */
void srun_server_status_open(struct srun_server *h);
void srun_server_status_close(struct srun_server *h);
/*
 * End the step: the last line also names the ranks that wait for a key of the store, if the nodes
 * say so soon.
 */
void srun_server_status_end_step(struct srun_server *h, int code, const char *why);
/* The step is over: wait no longer for that. */
void srun_server_status_flush(struct srun_server *h);
/* An agent has connected: it can answer what is asked. */
void srun_server_status_joined(struct agent_link *a);
/*
 * Operations of the launcher; `arg` is the server. A node says that its ranks wait
 * long: `age_s` seconds; give_up: too long. And the status of a node.
 */
void srun_server_stall(void *arg, uint32_t age_s, bool give_up,
		       const char *text);
void srun_server_status(void *arg, uint32_t query, uint32_t position,
			const void *data, size_t len);
