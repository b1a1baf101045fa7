/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that a journal needs of a disk, on the files of one directory, by their
 * names. The head has one that calls the system (dvm/common/journal_file.h); tests
 * have one that fails.
 *
 * Each operation may fail with a negative errno. A file that is open is a number from 0.
 * An operation returns when it is done, but for begin_sync.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_DIRECTORY (-2) /* in place of a file, for sync: the names */

struct disk_stat {
	uint64_t id;   /* no two files of the directory have the same */
	uint64_t size; /* bytes */
	bool own;      /* a file, and the user's */
};

struct disk_ops {
	/*
	 * Lock the directory for this process. -EWOULDBLOCK: another process has it.
	 * -ENOLCK: this file system has no locks.
	 */
	int (*lock)(void *arg);
	/*
	 * Make a file that no other user can read, and open it. -EEXIST: the name is taken.
	 */
	int (*create)(void *arg, const char *name);
	/* Open a file. -ENOENT: no such file. */
	int (*open)(void *arg, const char *name);
	void (*close)(void *arg, int file);
	/*
	 * Read up to `len` bytes from offset `at`; fewer only at the file's end. Returns
	 * their number.
	 */
	int64_t (*read)(void *arg, int file, void *data, size_t len, uint64_t at);
	/* Write all of it; after a failure any part of it may be written. */
	int (*write)(void *arg, int file, const void *data, size_t len, uint64_t at);
	int (*truncate)(void *arg, int file, uint64_t len);
	int (*stat)(void *arg, int file, struct disk_stat *out);
	/*
	 * Look at a name as every other machine sees it now, without a descriptor. -ENOENT.
	 */
	int (*look)(void *arg, const char *name, struct disk_stat *out);
	/* Rename a file; a file with the name `to` is replaced. */
	int (*rename)(void *arg, const char *from, const char *to);
	/* Make a second name of a file. */
	int (*link)(void *arg, const char *from, const char *to);
	int (*unlink)(void *arg, const char *name);
	/* Call `each` with the names that begin like this, in any order. */
	int (*list)(void *arg, const char *prefix,
		    void (*each)(void *ctx, const char *name), void *ctx);
	/* Sync: all that was written to the file, or DISK_DIRECTORY, outlives a crash. */
	int (*sync)(void *arg, int file);
	/*
	 * As sync, for all that was written before this call, without waiting for it:
	 * when it has ended, durable_synced is called with the result, and not from
	 * within. One at a time. It ends only when the disk answers: what is looked at
	 * then does not wait for a file server that hangs.
	 */
	int (*begin_sync)(void *arg, int file);
};
