/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads that write records to a journal on one disk: writer.h. */
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

struct disk *disk;

static struct writer *writers;

/* ---- the disk ---- */

void new_disk(void)
{
	while (writers)
		writer_free(writers);
	if (disk)
		disk_destroy(disk);
	disk = disk_create();
}

int begin_test(void **state)
{
	new_disk();
	return 0;
}

int end_test(void **state)
{
	new_disk();
	disk_destroy(disk);
	disk = NULL;
	return 0;
}

/* ---- the host ---- */

static bool knows(void *arg, struct journal_record *r)
{
	return r->type == JOURNAL_CANCEL;
}

static void forgotten(void *arg, struct journal_counts *out)
{
	*out = (struct journal_counts){ 0 };
}

uint64_t safe_records(void)
{
	int file = disk_safe_file(disk, "journal");
	struct journal_reader in;
	struct journal_record r;
	uint32_t version;
	uint64_t n = 0;

	if (file < 0 || journal_open(&in, disk->files[file]->safe,
				     disk->files[file]->safe_len, &version))
		return 0;
	while (journal_next(&in, &r))
		n += r.type == JOURNAL_CANCEL && r.cancelled == n + 1;
	return n;
}

static void on_safe(void *arg, uint64_t position)
{
	struct writer *w = arg;
	uint64_t n = 0;

	assert_false(w->superseded);
	assert_true(position >= w->safe);
	w->safe = position;
	while (n < w->wrote && w->ends[n + 1] <= position)
		n++;
	assert_true(w->damaged || safe_records() >= n);
}

static void on_failed(void *arg, int error)
{
	struct writer *w = arg;

	assert_true(error != w->error);
	w->error = error;
	w->failures += error != 0;
	w->mends += !error;
}

static void on_superseded(void *arg, const struct owner *by)
{
	struct writer *w = arg;

	w->superseded++;
	w->by = *by;
}

bool writer_lives(void *arg, const struct owner *o)
{
	return ((struct writer *)arg)->alive;
}

const struct durable_ops writer_ops = {
	.knows = knows, .forgotten = forgotten, .safe = on_safe, .failed = on_failed,
	.superseded = on_superseded,
};

/* ---- a writer ---- */

struct writer *writer_new(const char *host, uint64_t pid)
{
	struct writer *w = calloc(1, sizeof(*w));

	LL_PREPEND(writers, w);
	w->now = 1000;
	snprintf(w->self.host, sizeof(w->self.host), "%s", host);
	snprintf(w->self.where, sizeof(w->self.where), "boot of %s", host);
	w->self.pid = pid;
	return w;
}

int writer_open(struct writer *w, struct owner *other)
{
	struct durable_options options = {
		.self = w->self, .lives = writer_lives, .lives_arg = w,
		.take_over = w->take_over,
	};

	assert_int_equal(durable_create(&w->d, &options, &disk_ops, disk, &writer_ops, w,
					NULL), 0);
	return durable_open(w->d, other);
}

int writer_begin(struct writer *w)
{
	void *old = NULL;
	size_t len = 0;
	int rc;

	if (durable_is_there(w->d))
		assert_int_equal(durable_read(w->d, &old, &len), 0);
	rc = durable_begin(w->d, old, len, w->now);
	free(old);
	return rc;
}

struct writer *writer_on(void)
{
	struct writer *w = writer_new("n1", 1);
	struct owner other;

	assert_int_equal(writer_open(w, &other), 0);
	assert_int_equal(writer_begin(w), 0);
	return w;
}

void writer_free(struct writer *w)
{
	LL_DELETE(writers, w);
	durable_destroy(w->d);
	free(w);
}

struct writer *writer_on_new_disk(void)
{
	new_disk();
	return writer_on();
}

int put_as(struct writer *w, enum durable_wait wait)
{
	const struct journal_record r = {
		.type = JOURNAL_CANCEL, .cancelled = w->wrote + 1,
	};
	struct buf b;
	int rc;

	buf_init(&b, 4096);
	assert_int_equal(journal_put(&b, &r), 0);
	rc = durable_append(w->d, b.data, b.len, wait, w->now);
	buf_free(&b);
	if (!rc)
		w->ends[++w->wrote] = durable_end(w->d);
	return rc;
}

int put(struct writer *w)
{
	return put_as(w, DURABLE_NOW);
}

void end_sync(struct writer *w)
{
	if (disk->syncing < 0)
		return;
	durable_synced(w->d, disk_finish_sync(disk), w->now);
}

void turn(struct writer *w)
{
	durable_turn(w->d, w->now);
	end_sync(w);
}

void pass(struct writer *w, uint64_t ms)
{
	for (uint64_t until = w->now + ms; w->now < until; w->now += 10)
		turn(w);
}

bool all_safe(const struct writer *w)
{
	return w->safe == durable_end(w->d) && !w->error;
}

