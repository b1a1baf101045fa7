/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of clients and of the journal: dvm/json reads and writes them. The core keeps them
 * as bytes, and calls these functions.
 */
#pragma once

#include "dvm/core/head_state.h"

/* A task that is being read. */
struct spec_reading {
	struct dvm_head *h;
	void *source;               /* used by the format while it reads */
	struct task_spec spec;      /* freed by the caller, also when a key is wrong */
	uint64_t line;              /* see journal_submit */
	struct head_spawn *spawned; /* NULL: submitted by a client */
	bool may_not_fit;           /* lost nodes are needed: the task waits */
	const char *key;            /* the wrong key; NULL: all are right */
	bool full;                  /* the only error: the queue is full */
	char why[256];
};

/* A silent node whose ranks are to end. */
struct silent_node {
	const char *name;
	double silent, until; /* seconds of silence; seconds since 1970 when its ranks have
	                         ended */
};

enum head_event_type {
	EVENT_NODE,      /* for clients that wait for tasks */
	EVENT_OUTPUT,
	EVENT_SPAWNED,
	EVENT_UNREACHED,
	EVENT_TOLD,      /* a node's answer to "why" */
	EVENT_GROWN,     /* the late answer to "grow" */
	EVENT_UNSAFE,    /* for clients that wait until the journal is safe */
};

/* An event for a client. The caller owns all memory. */
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
			const char *outputs; /* directory for complete output, or NULL */
		} told;
		struct {
			const char *tag; /* tag of the request, as its text; NULL: none */
			const char *why; /* reason of a failure; NULL: none */
			uint32_t nodes;
		} grown;
		const char *unsafe; /* why it is not safe */
	};
};

struct head_format {
	/* Read a task of the journal, or one that write_spawned has written. */
	void (*read_task)(struct spec_reading *r, const struct dvm_bytes *text);
	/* Write a spawned task. 0; -EILSEQ: an argument is not text; -ENOMEM. */
	int (*write_spawned)(const struct head_task *parent, const struct dvm_spawn *m,
			     struct buf *out);
	/* Write an event, with its newline. 0 or a negative errno. */
	int (*write_event)(const struct head_event *e, struct buf *out);
	/*
	 * Write the end of a task: behind others of an event, or as the first of a new one.
	 */
	int (*write_result)(const struct dvm_head *h, const struct head_task *t, bool first,
			    struct buf *out);
	/* Write the rest of such an event, with its newline. */
	int (*close_results)(struct buf *out);
};
