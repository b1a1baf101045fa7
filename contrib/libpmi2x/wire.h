/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of a session to the process manager, as a table of operations: one table for
 * PMI-2, one for PMI-2 with the pmi2x extension, one for PMI-1, one for a process that
 * has no process manager (singleton). Chosen at init.
 *
 * All return 0 or an error (see conn.h); -ENOENT: no such key, name or
 * attribute; -ENOTSUP: this process manager cannot do that. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "conn.h"
#include "libpmi/spawn.h"

struct job;

struct spawn_result {
	struct value jobid;    /* no data when the server did not tell */
	struct value errcodes; /* comma-separated numbers, or no data */
};

struct wire_ops {
	/* The next fence publishes the value. */
	int (*put)(struct job *job, const char *key, size_t key_len,
		   const void *value, size_t value_len);
	/* Post a fence as `call`. After 0 the caller waits for it and ends it. */
	int (*fence)(struct job *job, struct call *call);
	/*
	 * For servers with job->groups: enter and leave a group's barrier, as PMI-1 1.2
	 * names it.
	 */
	int (*barrier_group)(struct job *job, const char *group, int tag);
	/* `jobid` NULL: this job; `source`: rank that put it, or -1. */
	int (*get)(struct job *job, const char *jobid, int source,
		   const char *key, struct value *out);
	/*
	 * For servers with job->fetches: post as `call` a fetch of a value that `rank`
	 * puts, which waits up to `timeout` ms for it (-1: no limit). The value is the
	 * field "value" of the reply. After 0 the caller waits for the call and ends it.
	 */
	int (*fetch)(struct job *job, int rank, const char *key, int timeout,
		     struct call *call);
	/* End the fetches that are under way, with an error. */
	int (*fetch_cancel)(struct job *job);
	int (*node_put)(struct job *job, const char *name, const char *value);
	int (*node_get)(struct job *job, const char *name, bool wait,
			struct value *out);
	int (*job_attr)(struct job *job, const char *name, struct value *out);
	int (*publish)(struct job *job, const char *name, const char *port);
	int (*unpublish)(struct job *job, const char *name);
	int (*lookup)(struct job *job, const char *name, struct value *port);
	int (*ring)(struct job *job, const char *value,
		    struct ring_place *out);
	int (*spawn)(struct job *job, const struct spawn_request *request,
		     struct spawn_result *out);
	int (*jobid)(struct job *job, struct value *out);
	int (*connect)(struct job *job, const char *jobid);
	int (*disconnect)(struct job *job, const char *jobid);
	/* Tell the process manager; returns. */
	int (*abort)(struct job *job, bool world, int code, const char *text);
	int (*finalize)(struct job *job);
};

extern const struct wire_ops wire_pmi2;
extern const struct wire_ops wire_extended;
extern const struct wire_ops wire_pmi1;
extern const struct wire_ops wire_singleton;

/* The job's name, from the first call or the server. 0 or an error. */
int wire_job_name(struct job *job, const char **out);
/* Any refusal of a look-up means that there is no such thing. */
int wire_absent(int rc);
/*
 * The rest of a call: wait for it (when `rc`, of the post, is 0), copy a field
 * of its reply, end it. -ENOENT when the field `found` says so.
 */
int wire_take(struct call *call, int rc, const char *key, struct value *out);
/* Wait, end. */
int wire_wait(struct call *call);
/* Post, wait, end. */
int wire_run(struct call *call);
/*
 * A request of text fields, key and value in turn up to a NULL, from its start to its
 * end; wire_ask also copies the field `want` of the response.
 */
int wire_tell(struct job *job, const char *cmd, const char *response, ...)
	__attribute__((sentinel));
int wire_ask(struct job *job, const char *want, struct value *out,
	     const char *cmd, const char *response, ...)
	__attribute__((sentinel));
/* Post; end the call when that fails. */
int wire_post(struct call *call);
