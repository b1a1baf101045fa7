/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the hub share.
 *
 *   hub.c        agents, the launcher, the phases of the end
 *   hub_spawn.c  spawned sruns, and the srun that spawned this one
 *   hub_live.c   surveys: questions to the agents, and their answers
 */
#ifndef PMI2X_HUB_INTERNAL_H
#define PMI2X_HUB_INTERNAL_H

#include <stdbool.h>

#include "libio/channel.h"
#include "libio/hub.h"
#include "libio/link.h"
#include "libio/listener.h"
#include "libio/live.h"
#include "libio/loop.h"
#include "libio/spawned.h"
#include "libio/strangers.h"
#include "libpmi/launcher.h"

enum phase { RUNNING, WAITING, TERMINATING, DRAINING, CLOSED };

/* Who sends requests: what the launcher knows as a link. */
struct asker {
	void (*send)(struct asker *to, const void *data, size_t len);
};

struct agent_link {
	struct asker asker; /* first: an asker is cast back */
	struct hub *hub;
	struct link *link;
	bool heard; /* it has asked or told something */
	bool left;  /* it has said goodbye */
	struct agent_link *prev, *next;
};

struct child {
	struct asker asker; /* first */
	struct hub *hub;
	struct spawned *process;
	uint32_t token;
	bool ready; /* its first rank is there: the spawn has been answered */
	struct child *prev, *next;
};

struct hub {
	struct handshake_self self;
	char *jobid;
	char *build;
	struct hub_host host;
	const struct log_hook *log;
	uint32_t handshake_ms;
	uint16_t port;
	enum phase phase;
	bool aborted;     /* the host has been told to end the step */
	uint32_t wait_ms; /* of hub_stop */
	struct loop *loop;
	uv_async_t stop;
	uv_check_t settled; /* after a stop */
	uv_timer_t deadline; /* of the phase */
	char lost[256];      /* who went without a goodbye; empty: nobody */
	struct listener *listener;
	struct launcher *launcher;
	struct live *live; /* NULL: the host knows no nodes */
	struct channel *parent; /* NULL: none, or gone */
	struct agent_link *strangers; /* not yet proved; oldest first */
	unsigned nstrangers;
	struct strangers refused;
	struct agent_link *agents;
	struct child *children;
};

/* ---- hub.c ---- */

/* Something has gone: is that what the phase waits for? May close everything. */
void hub_advance(struct hub *h);

/* ---- hub_spawn.c ---- */

/* Operations of the launcher; `arg` is the hub. */
int hub_spawn(void *arg, uint32_t token, const struct spawn_request *request);
void hub_ready(void *arg);
int hub_forward(void *arg, uint32_t token, const void *data, size_t len);
/*
 * A rank waits for the answer to its spawn. When the step has ended without one
 * the rank has died, and nobody wants what it has spawned: end those. Is any
 * other left?
 */
bool hub_spawn_end_unwanted(struct hub *h);
/* End the spawned sruns. */
void hub_spawn_terminate(struct hub *h);
/*
 * Takes over the descriptor of the pair; -1: nobody has spawned this srun. 0 or a
 * negative errno.
 */
int hub_spawn_open(struct hub *h, int fd);
void hub_spawn_close(struct hub *h);

/* ---- hub_live.c ---- */

/* The send operation of an agent. */
void hub_send_to_agent(struct asker *to, const void *data, size_t len);
/* Without knowledge of the nodes there is nothing: 0, or -ENOMEM. */
int hub_live_open(struct hub *h);
/* An agent has connected. */
void hub_live_joined(struct agent_link *a);
/* Operations of the launcher; `arg` is the hub. */
void hub_live_stall(void *arg, uint32_t age_s, bool give_up);
void hub_live_state(void *arg, uint32_t query, uint32_t position,
		    const void *data, size_t len);

#endif
