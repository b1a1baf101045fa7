/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of the disk share.
 *
 *   disk.c        the operations, as processes see them
 *   disk_crash.c  what a machine that stops loses, and damage
 */
#pragma once

#include "disk.h"

#define SECTOR 512
#define NAME_BYTES 48
#define NAMES_MAX 32
#define FILES_MAX 8    /* open files of a process */
#define PENDING_MAX 64 /* changes of names that are not synced; older ones are */
#define DIRTY 1
#define IN_SYNC 2      /* a sync that is under way writes it */

struct inode {
	uint64_t id;
	struct buf now;      /* as it is read */
	struct buf durable;
	uint8_t *dirty;      /* by sector */
	size_t sectors;
	struct buf snapshot; /* of `now`, when a sync began */
	unsigned writer;     /* the machine that has written to it last */
	struct inode *next;
};

struct entry {
	char name[NAME_BYTES];
	struct inode *inode;
};

struct names {
	struct entry all[NAMES_MAX];
	size_t n;
};

/* A change of names; a rename changes two at once. */
struct change {
	struct entry set[2]; /* inode NULL: the name is no more */
	size_t n;
	unsigned machine;
};

struct disk {
	struct world *w;
	enum weather weather;
	enum lock_kind locks;
	struct inode *inodes;
	uint64_t next_id;
	struct names now, durable;
	struct change pending[PENDING_MAX];
	size_t npending;
	struct disk_user *users;
};

struct disk_user {
	struct disk *disk;
	unsigned machine;
	bool locked, ended;
	struct inode *files[FILES_MAX];
	struct inode *syncing;
	void (*synced)(void *arg, int error);
	void *arg;
	struct disk_user *next;
};

/* NULL: there is none. */
struct inode *disk_lookup(const struct names *n, const char *name);
void disk_apply(struct names *n, const struct change *c);
void disk_drop_pending(struct disk *d, size_t i);
/* Up to `len` bytes of a sector reach the disk. */
void disk_write_sector(struct inode *f, const struct buf *from, size_t sector, size_t len);
