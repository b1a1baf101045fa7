/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heads of which only the records matter: their numbers are 1, 2 and so on. All write to the
 * journal on one disk, and are freed with it.
 */
#pragma once

#include "unit.h"

#include "disk.h"
#include "dvm/core/durable.h"

#define RECORDS_MAX 4096

struct writer {
	struct writer *next;
	struct durable *d;
	uint64_t now;
	uint64_t wrote;           /* records that were taken */
	uint64_t safe;            /* a position */
	uint64_t ends[RECORDS_MAX];
	int error;                /* the last that was reported */
	unsigned failures, mends; /* number of reports */
	unsigned superseded;
	struct owner by;
	bool alive;               /* owners of this machine live */
	struct owner self;
	bool take_over;
	bool damaged;             /* the test has damaged safe bytes */
};

extern struct disk *disk;
extern const struct durable_ops writer_ops;

/* A test that begins with an empty disk, and leaves nothing. */
#define WRITER_TEST(test) TEST_WITH(test, begin_test, end_test)
int begin_test(void **state);
int end_test(void **state);
/* Free the disk and its writers, and make an empty disk. */
void new_disk(void);
/* How many of the records 1, 2 and so on would be in the journal after a crash. */
uint64_t safe_records(void);

struct writer *writer_new(const char *host, uint64_t pid);
int writer_open(struct writer *w, struct owner *other);
int writer_begin(struct writer *w);
/* A writer on n1 that is the owner. */
struct writer *writer_on(void);
struct writer *writer_on_new_disk(void);
void writer_free(struct writer *w);
bool writer_lives(void *arg, const struct owner *o);

int put(struct writer *w);
int put_as(struct writer *w, enum durable_wait wait);
/* End the sync that is under way, if there is one. */
void end_sync(struct writer *w);
void turn(struct writer *w);
void pass(struct writer *w, uint64_t ms);
bool all_safe(const struct writer *w);
