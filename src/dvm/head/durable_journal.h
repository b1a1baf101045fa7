/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal of a head that is a process: libdvm's durable.h, with files of the system,
 * and syncs in a thread of libuv's.
 */
#ifndef PMI2X_DVM_DURABLE_JOURNAL_H
#define PMI2X_DVM_DURABLE_JOURNAL_H

#include <uv.h>

#include "dvm/common/journal_file.h"
#include "dvm/core/durable.h"

struct headd;

struct headd_journal_options {
	const char *dir;  /* NULL: no journal */
	bool resume;      /* there is one, and this head goes on with it */
	bool once;        /* what ran is not run again */
	bool fast;        /* nobody waits for the disk */
	bool take_over;   /* also if another head may write it */
};

struct headd_journal {
	struct journal_dir dir;
	struct durable *durable; /* NULL: no journal */
	bool begun;       /* all of it is in the file */
	bool superseded;  /* by another head */
	uv_work_t sync;
	int sync_file, sync_error; /* of that */
	uv_timer_t timer; /* for durable_deadline */
	uv_timer_t hope;  /* of a node's return: see HEAD_HOPE_MS */
};

/* Before the daemons: 0, or 1 when headd_say has been told why not. */
int headd_journal_open(struct headd *h);
/* All nodes have registered: begin it, or go on. As above. */
int headd_journal_begin(struct headd *h);
/* As of dvm_head_ops. */
int headd_journal_record(struct headd *h, const void *data, size_t len,
			 enum durable_wait wait);
/* After a turn. */
void headd_journal_turn(struct headd *h);
/* A node has been lost: have a turn when it is not hoped for any more. */
void headd_journal_node_lost(struct headd *h);
/* The epoch of this head as the owner of its journal; 0: it has none. */
uint64_t headd_journal_epoch(const struct headd *h);
/* Look: false: another head has taken the journal over, and this one ends. */
bool headd_journal_is_ours(struct headd *h);
/*
 * Nothing more is written. Clients that wait for what is safe now hear of it; of the rest
 * they do not.
 */
void headd_journal_close(struct headd *h);
/* At the very end. */
void headd_journal_free(struct headd *h);

/* ---- identity.c ---- */

/* This process, as the owner of a journal; without an epoch. */
void headd_owner_self(struct owner *o);
owner_lives_fn headd_owner_lives;
/* For people, as the subject of a sentence. */
void headd_owner_name(const struct owner *o, char *out, size_t size);

#endif
