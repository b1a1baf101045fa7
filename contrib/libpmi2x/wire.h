/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a session asks of the process manager, as a table of operations: one
 * table for PMI-2, one for PMI-2 with the pmi2x extension, one for PMI-1, one
 * for a process that has no process manager (singleton). Chosen at init.
 *
 * All return 0 or an error (see conn.h); -ENOENT: no such key, name or
 * attribute; -ENOTSUP: this process manager cannot do that. Any thread.
 */
#ifndef PMI2X_WIRE_H
#define PMI2X_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "conn.h"
#include "libpmi/spawn.h"

struct session;

/* A value that was read: malloc'ed, NUL-terminated behind its end. */
struct value {
	char *data;
	size_t len;
};

struct ring_place {
	int rank;
	int size;
	struct value left;
	struct value right;
};

struct spawn_result {
	struct value jobid;    /* no data when the server did not tell */
	struct value errcodes; /* comma-separated numbers, or no data */
};

struct wire_ops {
	/* The next fence publishes the value. */
	int (*put)(struct session *s, const char *key, size_t key_len,
		   const void *value, size_t value_len);
	/* Post a fence as `call`. After 0 the caller waits for it and ends it. */
	int (*fence)(struct session *s, struct call *call);
	/* `jobid` NULL: this job; `source`: rank that put it, or -1. */
	int (*get)(struct session *s, const char *jobid, int source,
		   const char *key, struct value *out);
	int (*node_put)(struct session *s, const char *name, const char *value);
	int (*node_get)(struct session *s, const char *name, bool wait,
			struct value *out);
	int (*job_attr)(struct session *s, const char *name, struct value *out);
	int (*publish)(struct session *s, const char *name, const char *port);
	int (*unpublish)(struct session *s, const char *name);
	int (*lookup)(struct session *s, const char *name, struct value *port);
	int (*ring)(struct session *s, const char *value,
		    struct ring_place *out);
	int (*spawn)(struct session *s, const struct spawn_request *request,
		     struct spawn_result *out);
	int (*jobid)(struct session *s, struct value *out);
	int (*connect)(struct session *s, const char *jobid);
	int (*disconnect)(struct session *s, const char *jobid);
	/* Tell the process manager; returns. */
	int (*abort)(struct session *s, bool world, int code, const char *text);
	int (*finalize)(struct session *s);
};

extern const struct wire_ops wire_pmi2;
extern const struct wire_ops wire_extended;
extern const struct wire_ops wire_pmi1;
extern const struct wire_ops wire_singleton;

/* Copy `len` bytes and a NUL. 0 or -ENOMEM. */
int value_set(struct value *v, const void *data, size_t len);
void value_free(struct value *v);

/* A decimal field of the reply. 0, -EPROTO when it is missing or no number. */
int wire_u64(const struct call *call, const char *key, uint64_t *out);
/* Copy a field of the reply. 0, -EPROTO when it is missing, or -ENOMEM. */
int wire_field(const struct call *call, const char *key, struct value *out);
/*
 * The rest of a call: wait for it (when `rc`, of the post, is 0), copy a field
 * of its reply, end it.
 */
int wire_take(struct call *call, int rc, const char *key, struct value *out);
/* The same for a value that is there when the field `found` says so. */
int wire_take_found(struct call *call, int rc, struct value *out);
/* Post, wait, end. */
int wire_run(struct call *call);
/* Post; end the call when that fails. */
int wire_post(struct call *call);

#endif
