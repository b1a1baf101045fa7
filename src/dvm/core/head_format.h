/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of clients and of the journal: dvm/json reads and writes them. The core has them as
 * bytes, and asks this table.
 */
#ifndef PMI2X_DVM_HEAD_FORMAT_H
#define PMI2X_DVM_HEAD_FORMAT_H

#include "dvm/core/head_state.h"

/* A task that is being read. */
struct spec_reading {
	struct dvm_head *h;
	void *source;               /* the format's, while it reads */
	struct task_spec spec;      /* to be freed, also when a key is wrong */
	uint64_t line;              /* see journal_submit */
	struct head_spawn *spawned; /* NULL: a client wants it */
	bool may_not_fit;           /* nodes that it needs are lost: it waits */
	const char *key;            /* the wrong key; NULL: all are right */
	bool full;                  /* only that the queue has no room now */
	char why[256];
};

/* A node whose ranks are to end, and that has said nothing for some time. */
struct silent_node {
	const char *name;
	double silent, until; /* seconds; seconds since 1970: then its ranks have ended */
};

enum head_event_type {
	EVENT_NODE,      /* for clients that wait for tasks */
	EVENT_OUTPUT,
	EVENT_SPAWNED,
	EVENT_UNREACHED,
	EVENT_TOLD,      /* a node's answer to "why" */
	EVENT_GROWN,     /* the late answer to "grow" */
};

/* An event for a client. All is the caller's. */
struct head_event {
	enum head_event_type type;
	union {
		struct {
			const char *name, *state, *why;
			uint64_t tasks;
		} node;
		struct {
			uint64_t task;
			const struct dvm_output_msg *m;
		} output;
		struct {
			uint64_t task, parent;
		} spawned;
		struct {
			const struct silent_node *nodes;
			size_t count;
		} unreached;
		struct {
			uint64_t task;
			const char *node;
			const struct dvm_told *m;
		} told;
		struct {
			const char *tag; /* of the request, as its text; NULL: none */
			const char *why; /* reason of a failure; NULL: none */
			uint32_t nodes;
		} grown;
	};
};

struct head_format {
	/* A task of the journal, or that write_spawned has written. */
	void (*read_task)(struct spec_reading *r, const struct dvm_bytes *text);
	/* 0, -EILSEQ: an argument is not text; -ENOMEM. */
	int (*write_spawned)(const struct head_task *parent, const struct dvm_spawn *m,
			     struct buf *out);
	/* An event, with its newline. 0 or a negative errno. */
	int (*write_event)(const struct head_event *e, struct buf *out);
	/* The end of a task: behind others of an event, or as the first of a new one. */
	int (*write_result)(const struct dvm_head *h, const struct head_task *t, bool first,
			    struct buf *out);
	/* After the last result of an event, with its newline. */
	int (*close_results)(struct buf *out);
};

#endif
