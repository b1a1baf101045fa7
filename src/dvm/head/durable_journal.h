/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal of a head that is a process: libdvm's durable.h, with files of the system,
 * and syncs in a thread of libuv's.
 */
#pragma once

#include <uv.h>

#include "dvm/common/journal_file.h"
#include "dvm/core/durable.h"

struct head_main;

struct head_journal_options {
	const char *dir;  /* NULL: no journal */
	bool resume;      /* there is one, and this head goes on with it */
	bool once;        /* do not run again what ran */
	bool fast;        /* no client waits for the disk */
	bool take_over;   /* even if another head may write it */
};

struct head_journal {
	struct journal_dir dir;
	struct durable *durable; /* NULL: no journal */
	bool begun;       /* all of it is in the file */
	bool superseded;  /* by another head */
	uv_work_t sync;
	int sync_file, sync_error; /* of that */
	uv_timer_t timer; /* for durable_deadline */
};

/* Before the daemons: 0, or 1 when head_say has been told why not. */
int head_journal_open(struct head_main *h);
/* All nodes have registered: begin it, or go on. As above. */
int head_journal_begin(struct head_main *h);
/* As of dvm_head_ops. */
int head_journal_record(void *head, const void *data, size_t len,
			 enum durable_wait wait);
/* After a turn. */
void head_journal_turn(struct head_main *h);
/* The epoch of this head as the owner of its journal; 0: it has none. */
uint64_t head_journal_epoch(const struct head_main *h);
/* Look: false: another head has taken the journal over, and this one ends. */
bool head_journal_is_ours(struct head_main *h);
/*
 * Nothing more is written. Clients that wait for what is safe now hear of it; of the rest
 * they do not.
 */
void head_journal_close(struct head_main *h);
/* At the very end. */
void head_journal_free(struct head_main *h);

/* ---- identity.c ---- */

/* This process as the owner of a journal, without an epoch. */
void head_owner_self(struct owner *o);
owner_lives_fn head_owner_lives;
/* For people, as the subject of a sentence. */
void head_owner_name(const struct owner *o, char *out, size_t size);
