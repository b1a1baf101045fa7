/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A disk (dvm/core/disk.h) of one directory, in memory, that fails when a test says so.
 * Data that were not synced are lost by a crash, and so are names. After a sync that
 * failed, a later sync writes nothing of what the failed one was to write: as Linux does.
 */
#pragma once

#include "dvm/core/disk.h"

#define DISK_FILES 64
#define DISK_FILE_MAX ((size_t)1 << 18)
#define DISK_NAMES 32
#define DISK_NAME_MAX 48

enum disk_op {
	DISK_NO_OP,
	DISK_LOCK,
	DISK_CREATE,
	DISK_OPEN,
	DISK_READ,
	DISK_WRITE,
	DISK_TRUNCATE,
	DISK_STAT,
	DISK_LOOK,
	DISK_RENAME,
	DISK_LINK,
	DISK_UNLINK,
	DISK_LIST,
	DISK_SYNC,     /* of a file, also one that is begun */
	DISK_SYNC_DIR,
	DISK_OPS,
};

struct disk_name {
	char name[DISK_NAME_MAX];
	int file;      /* -1: the entry is free */
};

struct disk_file {
	char now[DISK_FILE_MAX], safe[DISK_FILE_MAX];
	bool dirty[DISK_FILE_MAX];
	size_t len, safe_len;
	int opens;
	bool cut;      /* its length is to be synced */
};

struct disk {
	struct disk_file *files[DISK_FILES];
	int nfiles;
	struct disk_name names[DISK_NAMES], safe_names[DISK_NAMES];
	bool names_dirty;
	enum disk_op fails, also; /* these operations do, */
	int error;          /* with this negative errno, */
	int times;          /* this many times; -1: always */
	bool done;          /* a rename that fails is done nevertheless */
	int lock_error;
	int syncing;        /* the file of a sync that is under way, or -1 */
	void (*before_rename)(void *arg); /* NULL, or called once */
	void *before_rename_arg;
};

extern const struct disk_ops disk_ops;

struct disk *disk_create(void);
void disk_destroy(struct disk *d);
void disk_fail(struct disk *d, enum disk_op op, int error, int times);
/* End the sync that begin_sync began. Returns its result. */
int disk_finish_sync(struct disk *d);
void disk_crash(struct disk *d);
/* The file that would have this name after a crash, or -1. */
int disk_safe_file(const struct disk *d, const char *name);
bool disk_has(const struct disk *d, const char *name);
