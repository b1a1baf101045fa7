/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's half of the engine: name service (of PMIx: name_store.h), spawn
 * bookkeeping, aborts and reports. Sans-I/O like the rest of libpmi: control
 * frames in, operations out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpmi/control.h"
#include "libpmi/spawn.h"
#include "libutil/log.h"

#define STEP_SERVICES_NAMES_MAX 65536  /* published names */
#define STEP_SERVICES_SPAWNS_MAX 1024  /* spawns in progress */
#define STEP_SERVICES_REPORTS_MAX 3    /* lines for the user why collectives failed:
                                     one failure can reach srun on several ways */
#define STEP_SERVICES_NOTES_MAX 16     /* lines for the user of programs, while the step goes on */
#define STEP_SERVICES_FORWARDS_MAX 65536 /* name requests the parent's srun has */

struct step_services;

struct step_services_ops {
	/* Send a frame on the link that `link` stands for (as given to receive). */
	void (*reply)(void *arg, void *link, const void *data, size_t len);
	/*
	 * Start the processes of a request. The end is told with
	 * step_services_spawned(token). 0, or a negative errno: the request fails.
	 * `request` is the launcher's and ends with the call.
	 */
	int (*spawn)(void *arg, uint32_t token, const struct spawn_request *request);
	/*
	 * A rank called abort, or CONTROL_NO_RANK: a node cannot go on. End
	 * the step. Called once. This text and that of a report are printable
	 * ASCII, whatever a node has sent.
	 */
	void (*abort)(void *arg, uint32_t rank, int code, const char *text);
	/* A line for the user; at most STEP_SERVICES_REPORTS_MAX, none after abort. */
	void (*report)(void *arg, const char *text);
	/* A line while the step goes on; at most STEP_SERVICES_NOTES_MAX. NULL: report is called. */
	void (*note)(void *arg, const char *text);
	/* Ranks have ended because of what was reported. May be NULL. */
	void (*gave_up)(void *arg);
	/* The record of the node at `position`. May be NULL. */
	void (*trace)(void *arg, uint32_t position, const void *data,
		      size_t len);
	/*
	 * A collective or a rank waits long; give_up: too long. `text`, printable:
	 * for what, where no status tells it, or empty. May be NULL.
	 */
	void (*stall)(void *arg, uint32_t age_s, bool give_up, const char *text);
	/* The status of a node, for query `id`. With stall. */
	void (*status)(void *arg, uint32_t id, uint32_t position,
		       const void *data, size_t len);
	/* True: the ranks of the node at `position` have been started. May be NULL. */
	bool (*started)(void *arg, uint32_t position);
	/* The first rank of this (spawned) step is there. Called once, or: */
	void (*ready)(void *arg);
	/* The step failed before it was ready. May be NULL. */
	void (*not_ready)(void *arg, const char *why);
	/*
	 * This srun was started by a spawn: pass a name-service request on to the parent's
	 * srun. The frame's id is the token, and so is the reply's: give the reply to
	 * step_services_forwarded(token). NULL: names are kept here. 0 or a negative errno.
	 */
	int (*forward)(void *arg, uint32_t token, const void *data, size_t len);
};

/*
 * `ops` is copied; `log` outlives the launcher. `hash_seed`: random, of this launcher
 * alone, because ranks choose the names that are published. 0 or -ENOMEM.
 */
int step_services_create(struct step_services **out,
			 const struct step_services_ops *ops,
		    void *arg, uint64_t hash_seed, const struct log_hook *log);
void step_services_destroy(struct step_services *l);

/* A frame came on `link`. 0; -EPROTO or -ENOMEM: the host drops the link. */
int step_services_receive(struct step_services *l, void *link, const void *data,
			  size_t len);

/*
 * End look-ups of PMIx that have waited too long at `now`, in ms of a clock that does
 * not go back. To be called after each step_services_receive, and at the time that it
 * returns; UINT64_MAX: at none.
 */
uint64_t step_services_expire(struct step_services *l, uint64_t now);

/* A link is gone: nothing is sent on it any more. */
void step_services_link_lost(struct step_services *l, void *link);

/*
 * The step of this link is lost, and the names that were published on it go. For a caller
 * that serves many steps.
 */
void step_services_step_lost(struct step_services *l, void *link);

/* The spawn has ended: code 0 and the new jobid, or a PMI error and why. */
void step_services_spawned(struct step_services *l, uint32_t token, int code,
		      const char *text);
/* The parent srun's reply frame to a forwarded request. */
void step_services_forwarded(struct step_services *l, uint32_t token,
			     const void *data,
			size_t len);
/*
 * All ranks of a step have ended, this or one that it has spawned: in vain PMIx clients
 * wait for what those of its namespace were to publish.
 */
void step_services_namespace_ended(struct step_services *l, const char *nspace);
/* The parent's srun is gone: what it has not answered fails. */
void step_services_parent_lost(struct step_services *l);
/* All that waits for an answer gets this one: nobody can give another. */
void step_services_fail_all(struct step_services *l, const char *why);
