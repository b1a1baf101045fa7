/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal of a head (journal.h) on a disk (disk.h) that may fail: what is written
 * when, what is safe, and what follows from a failure. Calls no system function.
 *
 * Positions count the bytes of all records that were given to durable_append. They do
 * not change when the file is written anew, nor by a failure.
 *
 * - A record is in the file when durable_append returns: it outlives the process.
 * - It is safe, and outlives the machine, when ops.safe says a position behind it.
 * - After a failed sync the bytes since the last good one count as lost. They are kept
 *   in memory until they are safe: they are written again, and synced again.
 * - The file that has the name "journal" is the one that is written, always. When it has
 *   the name no more, it is written anew from what is in it.
 * - A rename lasts when the directory is synced. If that fails, the file is written anew
 *   and renamed again.
 * - Between a sync and its ops.safe the owner is checked (owner.h). One that is the owner
 *   no more never says again that something is safe.
 *
 * One thread at a time; operations must not call back. Times are milliseconds of a clock
 * that cannot be set.
 */
#pragma once

#include "dvm/core/disk.h"
#include "dvm/core/journal.h"
#include "dvm/core/owner.h"
#include "libutil/log.h"

#define DURABLE_LATER_MS 1000 /* delay of a sync for which no process waits; time between tries */
#define DURABLE_SOON_MS 10    /* between syncs for ends, of which many come at once */
#define DURABLE_LOOK_MS 5000  /* between two checks of the owner */
#define DURABLE_LIMIT_MIN ((uint64_t)64 << 20) /* bytes; at four times what is needed
                                                  the file is made smaller */

enum durable_wait {
	DURABLE_LATER, /* no process waits for it */
	DURABLE_SOON,  /* a process waits for the report of an end */
	DURABLE_NOW,   /* a process waits, and does nothing else before */
};

struct durable_ops {
	/*
	 * True: a head that goes on with the journal needs the record, of which parts may be
	 * taken out.
	 */
	bool (*knows)(void *arg, struct journal_record *r);
	/* Get the counts of the records that are needed no more. */
	void (*forgotten)(void *arg, struct journal_counts *out);
	/* All that was given up to this position is safe. Ascending. */
	void (*safe)(void *arg, uint64_t position);
	/*
	 * The journal cannot be made safe: a negative errno, reported again only when it
	 * changes; 0: it can again.
	 */
	void (*failed)(void *arg, int error);
	/*
	 * Another head is the owner, or a user has removed this one's file: then the epoch
	 * is 0. Called once; then all calls fail with -ESTALE.
	 */
	void (*superseded)(void *arg, const struct owner *by);
};

struct durable_options {
	struct owner self;       /* without its epoch */
	owner_lives_fn *lives;
	void *lives_arg;
	bool take_over;          /* even if the last owner may live */
};

struct durable;

/* Create a journal. 0 or -ENOMEM. */
int durable_create(struct durable **out, const struct durable_options *options,
		   const struct disk_ops *disk, void *disk_arg,
		   const struct durable_ops *ops, void *arg, const struct log_hook *log);
/* Free it without a sync: as when the process is killed. */
void durable_destroy(struct durable *d);

/*
 * Lock, become the owner, and open the present journal, if any. 0. -EBUSY: another head
 * writes it, or may: *other says which, if its epoch is not 0. -EPERM: it is not the
 * user's.
 */
int durable_open(struct durable *d, struct owner *other);
bool durable_is_there(const struct durable *d);
/* All of the present journal, to be freed; also when it is empty. 0 or a negative errno. */
int durable_read(struct durable *d, void **data, size_t *len);
/* Keep a second name of the present journal, journal.damaged. */
int durable_keep(struct durable *d);

/*
 * Begin: write what the head knows of `old` (NULL: nothing) in place of it, and sync
 * that. Before any append. 0 or a negative errno.
 */
int durable_begin(struct durable *d, const void *old, size_t len, uint64_t now_ms);

/*
 * Append whole records (journal_put): all or nothing. 0 or a negative errno. Without any,
 * `wait` is for what was appended before.
 */
int durable_append(struct durable *d, const void *data, size_t len,
		   enum durable_wait wait, uint64_t now_ms);

/* The epoch of this owner; call it after durable_open. */
uint64_t durable_epoch(const struct durable *d);
/* Check the owner. False: another head is the owner, and ops.superseded has been called. */
bool durable_is_owner(struct durable *d, uint64_t now_ms);

/* A sync that disk_ops.begin_sync has begun has ended: 0 or a negative errno. */
void durable_synced(struct durable *d, int error, uint64_t now_ms);

/*
 * Do all work that is due. Call it after inputs, and at the deadline, which may be
 * UINT64_MAX.
 */
void durable_turn(struct durable *d, uint64_t now_ms);
uint64_t durable_deadline(const struct durable *d);

/* Make the file smaller when it has `bytes` bytes, once. */
void durable_set_limit(struct durable *d, uint64_t bytes);

/* The position behind all that was appended. */
uint64_t durable_end(const struct durable *d);

/*
 * No more is appended. Sync what is left, now, and give up the journal. The end of a sync
 * that is under way means nothing any more. 0: all is safe; else what was not synced may
 * not be.
 */
int durable_close(struct durable *d, uint64_t now_ms);
