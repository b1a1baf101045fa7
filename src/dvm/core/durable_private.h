/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions that the files of a journal on a disk share: durable.h. */
#pragma once

#include "dvm/core/durable.h"

#define JOURNAL "journal"
#define JOURNAL_NEW "journal.new." /* followed by the head's epoch */
#define JOURNAL_DAMAGED "journal.damaged"
#define KEPT_MAX ((size_t)1 << 30) /* bytes that are not safe */
#define NAME_SIZE 40

/* Repairs to make before anything is safe again. */
enum repair {
	REPAIR_NONE,
	REPAIR_TAIL, /* write the kept bytes again */
	REPAIR_FILE, /* write another file */
};

struct durable {
	struct durable_options options;
	struct disk_ops disk;
	void *disk_arg;
	struct durable_ops ops;
	void *arg;
	const struct log_hook *log;
	struct owner self;
	char new_name[NAME_SIZE];
	bool owns;
	bool superseded;
	bool begun, closed;
	int file;                   /* -1: none */
	uint64_t id;                /* disk_stat.id of the file */
	uint64_t size;              /* bytes of the file that count */
	bool rest;                  /* remains of a failed write may follow them */
	struct journal_chain chain; /* at the file's end */
	struct buf kept;            /* the last bytes of the file: those not yet safe */
	uint64_t end, safe;         /* positions */
	uint64_t limit;             /* bytes of the file, see DURABLE_LIMIT_MIN */
	bool syncs;                 /* a sync is under way */
	uint64_t syncing;           /* position up to which that sync goes */
	uint64_t due_ms;            /* when a sync begins; UINT64_MAX: nothing is to be */
	bool soon;                  /* a process waits for the next sync, for the report of an
	                               end */
	uint64_t soon_ms;           /* when the last sync for an end began */
	uint64_t look_ms;           /* when the owner is checked again */
	enum repair repair;
	uint64_t retry_ms;
	int error;                  /* last error of ops.failed */
};

/*
 * 0; -ESTALE: the head has been superseded, and ops.superseded has been called; or the
 * disk's error.
 */
int durable_check_owner(struct durable *d, uint64_t now_ms);

/* ---- durable_copy.c ---- */

/*
 * Write what the head knows of `old` in place of the present file. 0 or a negative errno.
 * *taken: that file is the present one, also if the directory could not be synced then.
 */
int durable_replace(struct durable *d, const void *old, size_t len, bool *taken,
		    uint64_t now_ms);
