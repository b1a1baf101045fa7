/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A journal on a disk that fails: whatever fails, what was said to be safe is in the
 * journal after a crash at that moment.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "disk.h"
#include "dvm/core/durable.h"

#define RECORDS_MAX 4096

/* A head of which all that matters is its records: the numbers from 1. */
struct writer {
	struct disk *disk;
	struct durable *d;
	uint64_t now;
	uint64_t wrote;           /* records that were taken */
	uint64_t safe;            /* a position */
	uint64_t ends[RECORDS_MAX];
	int error;                /* as it was told */
	unsigned failures, mends; /* how often it was told */
	unsigned superseded;
	struct owner by;
	bool alive;               /* what owners of this machine are */
	struct owner self;
	bool take_over;
	bool damaged;             /* the test has damaged what was safe */
};

/* ---- the host ---- */

static bool knows(void *arg, const struct journal_record *r)
{
	return r->type == JOURNAL_CANCEL;
}

static void forgotten(void *arg, struct journal_counts *out)
{
	*out = (struct journal_counts){ 0 };
}

/* How many of the records 1, 2 and so on would be in the journal after a crash. */
static uint64_t safe_records(const struct disk *disk)
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
	assert_true(w->damaged || safe_records(w->disk) >= n);
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

static bool lives(void *arg, const struct owner *o)
{
	return ((struct writer *)arg)->alive;
}

static const struct durable_ops ops = {
	.knows = knows, .forgotten = forgotten, .safe = on_safe, .failed = on_failed,
	.superseded = on_superseded,
};

/* ---- a writer ---- */

static struct writer *writer_new(struct disk *disk, const char *host, uint64_t pid)
{
	struct writer *w = calloc(1, sizeof(*w));

	w->disk = disk;
	w->now = 1000;
	snprintf(w->self.host, sizeof(w->self.host), "%s", host);
	snprintf(w->self.where, sizeof(w->self.where), "boot of %s", host);
	w->self.pid = pid;
	return w;
}

static int writer_open(struct writer *w, struct owner *other)
{
	struct durable_options options = {
		.self = w->self, .lives = lives, .lives_arg = w,
		.take_over = w->take_over,
	};

	assert_int_equal(durable_create(&w->d, &options, &disk_ops, w->disk, &ops, w,
					NULL), 0);
	return durable_open(w->d, other);
}

static int writer_begin(struct writer *w)
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

static struct writer *writer_on(struct disk *disk)
{
	struct writer *w = writer_new(disk, "n1", 1);
	struct owner other;

	assert_int_equal(writer_open(w, &other), 0);
	assert_int_equal(writer_begin(w), 0);
	return w;
}

static void writer_free(struct writer *w)
{
	durable_destroy(w->d);
	free(w);
}

static int put_as(struct writer *w, enum durable_wait wait)
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

static int put(struct writer *w)
{
	return put_as(w, DURABLE_NOW);
}

/* The sync that is under way ends, if there is one. */
static void end_sync(struct writer *w)
{
	if (w->disk->syncing < 0)
		return;
	durable_synced(w->d, disk_finish_sync(w->disk), w->now);
}

static void turn(struct writer *w)
{
	durable_turn(w->d, w->now);
	end_sync(w);
}

static void pass(struct writer *w, uint64_t ms)
{
	for (uint64_t until = w->now + ms; w->now < until; w->now += 10)
		turn(w);
}

static bool all_safe(const struct writer *w)
{
	return w->safe == durable_end(w->d) && !w->error;
}

/* ---- without failures ---- */

static void records_are_safe_after_a_sync_and_not_before(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);

	assert_int_equal(put(w), 0);
	durable_turn(w->d, w->now);
	assert_int_equal(put(w), 0); /* while the first is being synced */
	assert_int_equal(w->safe, 0);
	end_sync(w);
	assert_int_equal(w->safe, w->ends[1]);
	turn(w);
	assert_int_equal(w->safe, w->ends[2]);
	disk_crash(disk);
	assert_int_equal(safe_records(disk), 2);
	writer_free(w);
	disk_destroy(disk);
}

static void syncs_wait_as_long_as_those_who_wait_may(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);

	pass(w, 100);
	assert_int_equal(durable_deadline(w->d), 1000 + DURABLE_LOOK_MS);
	put_as(w, DURABLE_LATER);
	assert_int_equal(durable_deadline(w->d), w->now + DURABLE_LATER_MS);
	put_as(w, DURABLE_SOON);
	assert_int_equal(durable_deadline(w->d), w->now); /* long after the last sync */
	turn(w);
	assert_true(all_safe(w));
	put_as(w, DURABLE_SOON);
	assert_int_equal(durable_deadline(w->d), w->now + DURABLE_SOON_MS);
	pass(w, 100);
	put_as(w, DURABLE_NOW);
	turn(w);
	put_as(w, DURABLE_SOON); /* the last sync was for no end */
	assert_int_equal(durable_deadline(w->d), w->now);
	put_as(w, DURABLE_NOW);
	assert_int_equal(durable_deadline(w->d), w->now);
	writer_free(w);
	disk_destroy(disk);
}

static void records_outlive_the_process_without_a_sync(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk), *next = writer_new(disk, "n1", 2);
	struct owner other;

	for (int i = 0; i < 5; i++)
		assert_int_equal(put(w), 0);
	writer_free(w);
	assert_int_equal(writer_open(next, &other), 0);
	assert_int_equal(writer_begin(next), 0);
	assert_int_equal(safe_records(disk), 5);
	writer_free(next);
	disk_destroy(disk);
}

static void a_journal_is_made_smaller_while_it_is_written(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);
	int file = disk_safe_file(disk, "journal");

	assert_int_equal(put(w), 0);
	durable_set_limit(w->d, 1);
	turn(w);
	assert_true(disk_safe_file(disk, "journal") != file);
	assert_true(all_safe(w));
	assert_int_equal(put(w), 0);
	pass(w, 100);
	assert_true(all_safe(w));
	assert_int_equal(safe_records(disk), 2);
	writer_free(w);
	disk_destroy(disk);
}

/* ---- failures ---- */

static void a_failed_sync_is_not_believed_when_it_is_repeated(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);

	assert_int_equal(put(w), 0);
	turn(w);
	disk_fail(disk, DISK_SYNC, -EIO, 1);
	assert_int_equal(put(w), 0);
	turn(w);
	assert_int_equal(w->error, -EIO);
	assert_int_equal(w->safe, w->ends[1]);
	pass(w, DURABLE_LATER_MS - 10);
	assert_int_equal(w->error, -EIO);
	pass(w, 100);
	assert_true(all_safe(w)); /* on_safe looks whether that is so */
	assert_int_equal(w->failures, 1);
	assert_int_equal(w->mends, 1);
	writer_free(w);
	disk_destroy(disk);
}

static void a_file_is_never_written_without_its_name(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);

	disk_fail(disk, DISK_SYNC_DIR, -EIO, 1);
	assert_int_equal(put(w), 0);
	durable_set_limit(w->d, 1);
	turn(w);
	assert_int_equal(w->error, -EIO);
	assert_int_equal(w->safe, 0);
	assert_int_equal(put(w), 0); /* to the file that has the name */
	assert_int_equal(w->safe, 0);
	pass(w, 2 * DURABLE_LATER_MS);
	assert_true(all_safe(w));
	assert_int_equal(safe_records(disk), 2);
	writer_free(w);
	disk_destroy(disk);
}

static void a_journal_that_was_removed_is_written_anew(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);

	assert_int_equal(put(w), 0);
	turn(w);
	assert_int_equal(disk_ops.unlink(disk, "journal"), 0);
	assert_int_equal(disk_ops.sync(disk, DISK_DIRECTORY), 0);
	assert_int_equal(put(w), 0);
	turn(w);
	assert_int_equal(w->error, -ENOENT);
	pass(w, 2 * DURABLE_LATER_MS);
	assert_true(all_safe(w));
	assert_int_equal(safe_records(disk), 2);
	writer_free(w);
	disk_destroy(disk);
}

/* Its bytes cannot be written again where they were. */
static void a_journal_that_was_removed_and_cannot_be_synced_is_written_anew(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);

	assert_int_equal(put(w), 0);
	assert_int_equal(disk_ops.unlink(disk, "journal"), 0);
	disk_fail(disk, DISK_SYNC, -EIO, 1);
	turn(w);
	assert_int_equal(w->error, -EIO);
	disk_fail(disk, DISK_WRITE, -EIO, 1);
	w->now += DURABLE_LATER_MS;
	turn(w);
	assert_int_equal(disk->times, 1); /* nothing was written to the file without a name */
	disk_fail(disk, DISK_NO_OP, 0, 0);
	pass(w, 2 * DURABLE_LATER_MS);
	assert_true(all_safe(w));
	assert_int_equal(safe_records(disk), 1);
	writer_free(w);
	disk_destroy(disk);
}

static void a_rename_that_was_done_and_yet_failed_is_noticed(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);

	disk_fail(disk, DISK_RENAME, -EIO, 1);
	disk->done = true;
	durable_set_limit(w->d, 1);
	turn(w);
	assert_int_equal(put(w), 0);
	pass(w, 100);
	assert_true(all_safe(w));
	assert_int_equal(w->failures, 0);
	assert_int_equal(safe_records(disk), 1);
	writer_free(w);
	disk_destroy(disk);
}

/* A full disk takes no record: what of it was written is no record for who reads it. */
static void remains_of_a_failed_write_are_cut_off(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);
	int file = disk_safe_file(disk, "journal");
	size_t len;

	assert_int_equal(put(w), 0);
	len = disk->files[file]->len;
	disk_fail(disk, DISK_WRITE, -ENOSPC, 1);
	assert_int_equal(put(w), -ENOSPC);
	assert_int_equal(disk->files[file]->len, len);
	assert_int_equal(put(w), 0);
	turn(w);
	assert_true(all_safe(w));
	assert_int_equal(safe_records(disk), 2);
	writer_free(w);
	disk_destroy(disk);
}

static void nothing_is_written_behind_a_rest_that_cannot_be_cut_off(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);
	int file = disk_safe_file(disk, "journal");
	size_t len;

	disk_fail(disk, DISK_WRITE, -EIO, 3);
	disk->also = DISK_TRUNCATE;
	assert_int_equal(put(w), -EIO);
	len = disk->files[file]->len;
	assert_int_equal(put(w), -EIO);
	assert_int_equal(disk->files[file]->len, len);
	assert_int_equal(disk->times, 0);
	assert_int_equal(put(w), 0);
	turn(w);
	assert_true(all_safe(w));
	assert_int_equal(safe_records(disk), 1);
	writer_free(w);
	disk_destroy(disk);
}

static const int errors[] = { -EIO, -ENOSPC, -EDQUOT, -EMFILE };

/* Write for a minute, with a journal that is made smaller all the time. */
static void work(struct writer *w)
{
	for (int i = 0; i < 300; i++) {
		(void)put(w);
		pass(w, 200);
		if (i % 8 == 0)
			durable_set_limit(w->d, 1);
	}
}

static void try_failure(enum disk_op op, int error, int times)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);
	unsigned told;

	put(w);
	turn(w);
	disk_fail(disk, op, error, times);
	work(w);
	told = w->failures;
	if (times < 0)
		assert_true(told <= 1); /* once, however long it goes on */
	disk_fail(disk, DISK_NO_OP, 0, 0);
	assert_int_equal(put(w), 0);
	pass(w, 3 * DURABLE_LATER_MS);
	assert_true(all_safe(w));
	assert_int_equal(w->failures, told);
	assert_int_equal(w->mends, told);
	disk_crash(disk);
	assert_int_equal(safe_records(disk), w->wrote);
	writer_free(w);
	disk_destroy(disk);
}

static void whatever_fails_safe_records_outlive_a_crash(void **state)
{
	for (int op = DISK_NO_OP + 1; op < DISK_OPS; op++)
		for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
			try_failure(op, errors[i], 1);
			try_failure(op, errors[i], 3);
			try_failure(op, errors[i], -1);
		}
}

static void a_disk_that_fails_for_ever_makes_nothing_safe(void **state)
{
	static const enum disk_op ops_of_a_sync[] = { DISK_SYNC, DISK_LOOK };

	for (size_t i = 0; i < 2; i++) {
		struct disk *disk = disk_create();
		struct writer *w = writer_on(disk);

		disk_fail(disk, ops_of_a_sync[i], -EIO, -1);
		work(w);
		assert_int_equal(w->safe, 0);
		assert_int_equal(w->error, -EIO);
		assert_int_equal(w->failures, 1);
		assert_int_equal(durable_close(w->d, w->now), -EIO);
		writer_free(w);
		disk_destroy(disk);
	}
}

static void a_head_whose_owner_file_cannot_be_made_does_not_begin(void **state)
{
	static const enum disk_op steps[] = {
		DISK_CREATE, DISK_WRITE, DISK_SYNC, DISK_SYNC_DIR, DISK_LIST,
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct disk *disk = disk_create();
		struct writer *w = writer_new(disk, "n1", 1), *next;
		struct owner other;

		disk_fail(disk, steps[i], -EDQUOT, 1);
		assert_int_equal(writer_open(w, &other), -EDQUOT);
		assert_int_equal(other.epoch, 0);
		assert_false(disk_has(disk, "owner.1"));
		writer_free(w);
		next = writer_on(disk);
		writer_free(next);
		disk_destroy(disk);
	}
}

static void closing_makes_everything_safe_or_says_that_it_is_not(void **state)
{
	for (int fails = 0; fails < 2; fails++) {
		struct disk *disk = disk_create();
		struct writer *w = writer_on(disk);

		assert_int_equal(put(w), 0);
		if (fails)
			disk_fail(disk, DISK_SYNC, -EIO, 1);
		assert_int_equal(durable_close(w->d, w->now), fails ? -EIO : 0);
		assert_int_equal(w->safe, fails ? 0 : w->ends[1]);
		writer_free(w);
		disk_destroy(disk);
	}
}

/* The sync that is under way may have had the failure, and the next one not. */
static void closing_during_a_sync_writes_its_bytes_again(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_on(disk);

	assert_int_equal(put(w), 0);
	durable_turn(w->d, w->now);
	disk_fail(disk, DISK_SYNC, -EIO, 1);
	assert_int_equal(disk_finish_sync(disk), -EIO);
	assert_int_equal(durable_close(w->d, w->now), 0);
	assert_int_equal(w->safe, w->ends[1]);
	durable_synced(w->d, -EIO, w->now);
	assert_int_equal(w->error, 0);
	writer_free(w);
	disk_destroy(disk);
}

/* ---- damage ---- */

static char *damage_line;

static void on_line(void *arg, enum log_level level, const char *text)
{
	free(damage_line);
	damage_line = strdup(text);
}

static void damage_that_is_found_while_it_is_written_is_named(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_new(disk, "n1", 1);
	struct durable_options options = { .lives = lives, .lives_arg = w };
	const struct log_hook log = { on_line, NULL };
	struct owner other;

	assert_int_equal(durable_create(&w->d, &options, &disk_ops, disk, &ops, w, &log), 0);
	assert_int_equal(durable_open(w->d, &other), 0);
	assert_int_equal(writer_begin(w), 0);
	for (int i = 0; i < 9; i++)
		assert_int_equal(put(w), 0);
	turn(w);
	disk->files[disk_safe_file(disk, "journal")]->now[150] ^= 1;
	w->damaged = true;
	durable_set_limit(w->d, 1);
	turn(w);
	assert_non_null(damage_line);
	assert_non_null(strstr(damage_line, "the journal is damaged"));
	assert_true(disk_has(disk, "journal.damaged"));
	free(damage_line);
	writer_free(w);
	disk_destroy(disk);
}

/* ---- owners ---- */

static void a_second_head_is_refused_with_the_name_of_the_first(void **state)
{
	static const int locks[] = { 0, -ENOLCK, -EWOULDBLOCK };

	for (size_t i = 0; i < 3; i++) {
		struct disk *disk = disk_create();
		struct writer *first = writer_on(disk);
		struct writer *second = writer_new(disk, "n2", 2);
		struct owner other;

		disk->lock_error = locks[i];
		assert_int_equal(writer_open(second, &other), -EBUSY);
		assert_string_equal(other.host, "n1");
		assert_int_equal(other.pid, 1);
		assert_int_equal(put(first), 0);
		turn(first);
		assert_true(all_safe(first));
		writer_free(first);
		writer_free(second);
		disk_destroy(disk);
	}
}

static void a_head_is_not_refused_for_one_that_is_known_to_be_over(void **state)
{
	struct disk *disk = disk_create();
	struct writer *first = writer_on(disk), *w;
	struct owner other;

	assert_int_equal(durable_close(first->d, first->now), 0);
	writer_free(first);
	w = writer_new(disk, "n2", 2); /* it has said that it ended */
	assert_int_equal(writer_open(w, &other), 0);
	writer_free(w);
	w = writer_new(disk, "n2", 3); /* its process is gone */
	assert_int_equal(writer_open(w, &other), 0);
	writer_free(w);
	w = writer_new(disk, "n2", 4); /* its process is there */
	w->alive = true;
	assert_int_equal(writer_open(w, &other), -EBUSY);
	assert_int_equal(other.epoch, 3);
	writer_free(w);
	disk_destroy(disk);
}

static struct writer *of_job(struct disk *disk, const char *host, uint64_t job,
			     uint64_t restarts)
{
	struct writer *w = writer_new(disk, host, 1);

	w->self.job = job;
	w->self.restarts = restarts;
	return w;
}

static void a_requeued_job_takes_over_by_itself(void **state)
{
	struct disk *disk = disk_create();
	struct writer *first = of_job(disk, "n1", 7, 0), *w;
	struct owner other;

	assert_int_equal(writer_open(first, &other), 0);
	assert_int_equal(writer_begin(first), 0);
	w = of_job(disk, "n2", 8, 1);
	assert_int_equal(writer_open(w, &other), -EBUSY);
	writer_free(w);
	w = of_job(disk, "n2", 7, 0);
	assert_int_equal(writer_open(w, &other), -EBUSY);
	writer_free(w);
	w = of_job(disk, "n2", 7, 1);
	disk->lock_error = -EWOULDBLOCK; /* of a process that hangs */
	assert_int_equal(writer_open(w, &other), 0);
	writer_free(w);
	writer_free(first);
	disk_destroy(disk);
}

static struct writer *take_over(struct disk *disk)
{
	struct writer *w = writer_new(disk, "n2", 2);
	struct owner other;

	w->take_over = true;
	assert_int_equal(writer_open(w, &other), 0);
	return w;
}

static void a_head_that_was_taken_over_says_nothing_is_safe(void **state)
{
	struct disk *disk = disk_create();
	struct writer *first = writer_on(disk), *second;

	assert_int_equal(put(first), 0);
	turn(first);
	assert_int_equal(put(first), 0);
	durable_turn(first->d, first->now);
	second = take_over(disk);
	assert_int_equal(writer_begin(second), 0);
	end_sync(first);
	assert_int_equal(first->superseded, 1);
	assert_string_equal(first->by.host, "n2");
	assert_int_equal(first->safe, first->ends[1]);
	assert_int_equal(put(first), -ESTALE);
	pass(first, 5000);
	assert_int_equal(first->superseded, 1);
	assert_int_equal(durable_close(first->d, first->now), -ESTALE);
	second->wrote = 2;
	assert_int_equal(put(second), 0);
	pass(second, 100);
	assert_int_equal(safe_records(disk), 3);
	writer_free(first);
	writer_free(second);
	disk_destroy(disk);
}

static void an_idle_head_that_was_taken_over_notices(void **state)
{
	struct disk *disk = disk_create();
	struct writer *first = writer_on(disk), *second = take_over(disk);

	pass(first, DURABLE_LOOK_MS + 20);
	assert_int_equal(first->superseded, 1);
	assert_int_equal(durable_deadline(first->d), UINT64_MAX);
	assert_false(durable_is_owner(first->d, first->now));
	assert_true(durable_is_owner(second->d, second->now));
	writer_free(first);
	writer_free(second);
	disk_destroy(disk);
}

/* On NFS the file that another machine has replaced can be read and synced no more. */
static void a_head_that_was_taken_over_notices_while_its_disk_fails(void **state)
{
	struct disk *disk = disk_create();
	struct writer *first = writer_on(disk), *second = take_over(disk);

	assert_int_equal(writer_begin(second), 0);
	assert_int_equal(put(first), 0);
	durable_turn(first->d, first->now);
	assert_true(disk->syncing >= 0);
	disk->syncing = -1;
	durable_synced(first->d, -ESTALE, first->now);
	disk_fail(disk, DISK_READ, -ESTALE, -1);
	pass(first, 3000);
	disk_fail(disk, DISK_NO_OP, 0, 0);
	assert_int_equal(first->superseded, 1);
	assert_int_equal(first->safe, 0);
	writer_free(first);
	writer_free(second);
	disk_destroy(disk);
}

static void take_over_now(void *arg)
{
	struct writer **second = arg;

	*second = take_over((*second)->disk);
	assert_int_equal(writer_begin(*second), 0);
}

/* Between its last look at the owner's file and its rename. */
static void a_head_that_was_taken_over_renames_nothing(void **state)
{
	struct disk *disk = disk_create();
	struct writer *first = writer_on(disk), place = { .disk = disk };
	struct writer *second = &place;
	int file;

	assert_int_equal(put(first), 0);
	turn(first);
	disk->before_rename = take_over_now;
	disk->before_rename_arg = &second;
	durable_set_limit(first->d, 1);
	durable_turn(first->d, first->now);
	assert_true(second != &place);
	file = disk_safe_file(disk, "journal");
	pass(first, 3000);
	assert_int_equal(first->superseded, 1);
	assert_int_equal(disk_safe_file(disk, "journal"), file);
	second->wrote = 1;
	assert_int_equal(put(second), 0);
	turn(second);
	assert_int_equal(safe_records(disk), 2);
	writer_free(first);
	writer_free(second);
	disk_destroy(disk);
}

static void numbers_of_owners_never_come_again(void **state)
{
	struct disk *disk = disk_create();
	char name[DISK_NAME_MAX];

	for (int i = 1; i < 20; i++) {
		struct writer *w = take_over(disk);

		snprintf(name, sizeof(name), "owner.%d", i);
		assert_true(disk_has(disk, name));
		snprintf(name, sizeof(name), "owner.%d", i - 1);
		assert_false(disk_has(disk, name));
		if (i % 2)
			assert_int_equal(durable_close(w->d, w->now), 0);
		writer_free(w);
	}
	disk_destroy(disk);
}

static void an_owner_whose_file_was_cut_off_may_live(void **state)
{
	struct disk *disk = disk_create();
	struct writer *w = writer_new(disk, "n1", 2);
	struct owner other;

	assert_true(disk_ops.create(disk, "owner.4") >= 0);
	assert_int_equal(writer_open(w, &other), -EBUSY);
	assert_int_equal(other.epoch, 4);
	assert_string_equal(other.host, "");
	writer_free(w);
	disk_destroy(disk);
}

static void an_owner_that_cannot_be_removed_is_not_replaced(void **state)
{
	struct disk *disk = disk_create();
	struct writer *first = writer_on(disk), *second = writer_new(disk, "n2", 2);
	struct owner other;

	second->take_over = true;
	disk_fail(disk, DISK_UNLINK, -EIO, 1);
	assert_int_equal(writer_open(second, &other), -EIO);
	assert_true(disk_has(disk, "owner.1"));
	assert_false(disk_has(disk, "owner.2"));
	assert_int_equal(put(first), 0);
	turn(first);
	assert_true(all_safe(first));
	writer_free(first);
	writer_free(second);
	disk_destroy(disk);
}

static int old_lists; /* that are still to come, with nothing but owner.1 */

static int list_late(void *arg, const char *prefix,
		     void (*each)(void *ctx, const char *name), void *ctx)
{
	if (!old_lists)
		return disk_ops.list(arg, prefix, each, ctx);
	old_lists--;
	each(ctx, "owner.1");
	return 0;
}

/* Owners 2 and 3 have come and 2 has gone, since a slow head has seen 1. */
static void a_head_that_was_passed_is_no_owner(void **state)
{
	struct disk *disk = disk_create();
	struct writer *third;
	struct disk_ops late = disk_ops;
	struct owner self = { .host = "n4" }, other;

	for (int i = 1; i < 3; i++)
		writer_free(take_over(disk));
	third = take_over(disk);
	assert_int_equal(writer_begin(third), 0);
	late.list = list_late;
	old_lists = 1;
	assert_int_equal(owner_claim(&self, &late, disk, lives, third, true, &other), -EBUSY);
	assert_int_equal(other.epoch, 3);
	assert_false(disk_has(disk, "owner.2"));
	assert_int_equal(put(third), 0);
	turn(third);
	assert_true(all_safe(third));
	writer_free(third);
	disk_destroy(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_safe_after_a_sync_and_not_before),
		cmocka_unit_test(syncs_wait_as_long_as_those_who_wait_may),
		cmocka_unit_test(records_outlive_the_process_without_a_sync),
		cmocka_unit_test(a_journal_is_made_smaller_while_it_is_written),
		cmocka_unit_test(a_failed_sync_is_not_believed_when_it_is_repeated),
		cmocka_unit_test(a_file_is_never_written_without_its_name),
		cmocka_unit_test(a_journal_that_was_removed_is_written_anew),
		cmocka_unit_test(a_journal_that_was_removed_and_cannot_be_synced_is_written_anew),
		cmocka_unit_test(a_rename_that_was_done_and_yet_failed_is_noticed),
		cmocka_unit_test(remains_of_a_failed_write_are_cut_off),
		cmocka_unit_test(nothing_is_written_behind_a_rest_that_cannot_be_cut_off),
		cmocka_unit_test(whatever_fails_safe_records_outlive_a_crash),
		cmocka_unit_test(a_disk_that_fails_for_ever_makes_nothing_safe),
		cmocka_unit_test(a_head_whose_owner_file_cannot_be_made_does_not_begin),
		cmocka_unit_test(closing_makes_everything_safe_or_says_that_it_is_not),
		cmocka_unit_test(closing_during_a_sync_writes_its_bytes_again),
		cmocka_unit_test(damage_that_is_found_while_it_is_written_is_named),
		cmocka_unit_test(a_second_head_is_refused_with_the_name_of_the_first),
		cmocka_unit_test(a_head_is_not_refused_for_one_that_is_known_to_be_over),
		cmocka_unit_test(a_requeued_job_takes_over_by_itself),
		cmocka_unit_test(a_head_that_was_taken_over_says_nothing_is_safe),
		cmocka_unit_test(an_idle_head_that_was_taken_over_notices),
		cmocka_unit_test(a_head_that_was_taken_over_notices_while_its_disk_fails),
		cmocka_unit_test(a_head_that_was_taken_over_renames_nothing),
		cmocka_unit_test(numbers_of_owners_never_come_again),
		cmocka_unit_test(an_owner_whose_file_was_cut_off_may_live),
		cmocka_unit_test(an_owner_that_cannot_be_removed_is_not_replaced),
		cmocka_unit_test(a_head_that_was_passed_is_no_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
