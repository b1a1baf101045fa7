/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal of a head that is a process. Records are written at once, so that they
 * outlive the head; what a client waits for is also flushed to the disk, for many at
 * once, in a thread of libuv's. Once a second the rest is.
 */
#ifndef PMI2X_DVM_HEADD_JOURNAL_H
#define PMI2X_DVM_HEADD_JOURNAL_H

#include <uv.h>

#include "journal_file.h"

struct headd;

struct headd_journal_options {
	const char *dir;  /* NULL: no journal */
	bool resume;      /* there is one, and this head goes on with it */
	bool once;        /* what ran is not run again */
	bool fast;        /* clients do not wait for the disk */
};

struct headd_journal {
	struct journal_file file;
	uint64_t safe;    /* bytes that are on the disk */
	uint64_t wanted;  /* a client waits until so many are */
	uint64_t flushing;/* so many will be when the flush that is under way has ended */
	bool flushes;
	uint64_t limit;   /* bytes: then what is not needed any more is left out; 0:
	                     it has not begun */
	uv_fs_t flush;
	uv_timer_t timer; /* to flush, to try again */
	uv_timer_t hope;  /* of a node's return: see HEAD_HOPE_MS */
};

/* Before the daemons: 0, or 1 when headd_say has been told why not. */
int headd_journal_open(struct headd *h);
/* All nodes have registered: begin it, or go on. As above. */
int headd_journal_begin(struct headd *h);
/* As of dvm_head_ops. */
int headd_journal_record(struct headd *h, const void *data, size_t len,
			 uint32_t waits);
/* After a turn. */
void headd_journal_turn(struct headd *h);
/* A node has been lost: have a turn when it is not hoped for any more. */
void headd_journal_node_lost(struct headd *h);
/* Nothing more is written: all is on the disk when this returns. */
void headd_journal_close(struct headd *h);

#endif
