/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The disk of a journal (dvm/core/disk.h), as the system has it: files in a directory of the
 * user's, to which nobody else can write:
 *
 *   journal          the user's alone
 *   journal.new.N    one that is being written, in place of it
 *   journal.damaged  one that was damaged, as it was before a head went on with it
 *   owner.N          which head writes it (dvm/core/owner.h)
 *   lock             locked by that head, where the file system has locks
 *
 * Functions return 0 or a negative errno, and block as the file system does.
 */
#pragma once

#include <stddef.h>

#include "dvm/core/disk.h"

struct journal_dir {
	int fd, lock;     /* -1: none */
	int (*begin_sync)(void *arg, int file); /* as of disk_ops */
	void *arg;
};

/* With a journal_dir. */
extern const struct disk_ops journal_dir_ops;

/* Make a directory of the user's whose name outlives the machine. -EEXIST: it is there. */
int journal_dir_make(const char *path);
/*
 * Make the directory if it is not there, and open it, once: later operations need no
 * path. -EPERM: it is not this user's, or others can write to it.
 */
int journal_dir_open(struct journal_dir *d, const char *path);
void journal_dir_close(struct journal_dir *d);

/*
 * Reads a journal that another process may be writing, as far as it is now; neither
 * made nor locked. To be freed, also when it is empty. -ENOENT: there is none; -EPERM:
 * it is no file.
 */
int journal_file_read(const char *dir, void **data, size_t *len);
