/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of a journal (libdvm/journal.h), in a directory of the user's:
 *
 *   journal          the user's alone
 *   lock             locked by the head that writes it, for as long as it lives
 *   journal.damaged  one that was damaged, as it was before a head went on with it
 *
 * Functions return 0 or a negative errno, and block as the file system does.
 */
#ifndef PMI2X_DVM_JOURNAL_FILE_H
#define PMI2X_DVM_JOURNAL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/buf.h"

struct journal_file {
	const char *dir;  /* outlives it */
	int lock, fd;     /* -1: none */
	uint64_t end;     /* bytes in it */
};

/*
 * Make the directory when it is not there, and lock it; open the journal, if there is one:
 * else fd is -1. -EWOULDBLOCK: another head has it. -EPERM: it is not this user's, or no
 * file.
 */
int journal_file_open(struct journal_file *f, const char *dir);
/* All of it, to be read; *len is 0 when it is empty. Free it with journal_file_unmap. */
int journal_file_map(const struct journal_file *f, void **data, size_t *len);
void journal_file_unmap(void *data, size_t len);
/*
 * What another process may be writing, as far as it is now; neither made nor locked. To be
 * freed, also when it is empty. -ENOENT: there is none; -EPERM: it is no file.
 */
int journal_file_read(const char *dir, void **data, size_t *len);
/* At its end: all or nothing. */
int journal_file_append(struct journal_file *f, const void *data, size_t len);
/* Keep a second name of the present one. */
int journal_file_keep(const struct journal_file *f);

/* Another one, which takes the place of the first when all of it is on the disk. */
struct journal_file_new {
	int fd;
	uint64_t len;
	struct buf out;
	int error;        /* the first; what follows does nothing */
};

void journal_file_new(const struct journal_file *f, struct journal_file_new *n);
void journal_file_put(struct journal_file_new *n, const void *data, size_t len);
/* On failure the present one stays. */
int journal_file_replace(struct journal_file *f, struct journal_file_new *n);

#endif
