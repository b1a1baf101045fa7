/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A journal on a disk that fails: whatever fails, a record that was reported as safe is in
 * the journal after a crash at that moment.
 */
#include "writer.h"

#include <errno.h>
#include <stdlib.h>

/* ---- without failures ---- */

WRITER_TEST(records_are_safe_after_a_sync_and_not_before)
{
	struct writer *w = writer_on();

	assert_int_equal(put(w), 0);
	durable_turn(w->d, w->now);
	assert_int_equal(put(w), 0); /* while the first is being synced */
	assert_int_equal(w->safe, 0);
	end_sync(w);
	assert_int_equal(w->safe, w->ends[1]);
	turn(w);
	assert_int_equal(w->safe, w->ends[2]);
	disk_crash(disk);
	assert_int_equal(safe_records(), 2);
}

WRITER_TEST(syncs_wait_as_long_as_those_who_wait_may)
{
	struct writer *w = writer_on();

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
}

WRITER_TEST(records_outlive_the_process_without_a_sync)
{
	struct writer *w = writer_on(), *next = writer_new("n1", 2);
	struct owner other;

	for (int i = 0; i < 5; i++)
		assert_int_equal(put(w), 0);
	writer_free(w);
	assert_int_equal(writer_open(next, &other), 0);
	assert_int_equal(writer_begin(next), 0);
	assert_int_equal(safe_records(), 5);
}

WRITER_TEST(a_journal_is_made_smaller_while_it_is_written)
{
	struct writer *w = writer_on();
	int file = disk_safe_file(disk, "journal");

	assert_int_equal(put(w), 0);
	durable_set_limit(w->d, 1);
	turn(w);
	assert_true(disk_safe_file(disk, "journal") != file);
	assert_true(all_safe(w));
	assert_int_equal(put(w), 0);
	pass(w, 100);
	assert_true(all_safe(w));
	assert_int_equal(safe_records(), 2);
}

/* ---- failures ---- */

WRITER_TEST(a_failed_sync_is_not_believed_when_it_is_repeated)
{
	struct writer *w = writer_on();

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
}

WRITER_TEST(a_file_is_never_written_without_its_name)
{
	struct writer *w = writer_on();

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
	assert_int_equal(safe_records(), 2);
}

WRITER_TEST(a_journal_that_was_removed_is_written_anew)
{
	struct writer *w = writer_on();

	assert_int_equal(put(w), 0);
	turn(w);
	assert_int_equal(disk_ops.unlink(disk, "journal"), 0);
	assert_int_equal(disk_ops.sync(disk, DISK_DIRECTORY), 0);
	assert_int_equal(put(w), 0);
	turn(w);
	assert_int_equal(w->error, -ENOENT);
	pass(w, 2 * DURABLE_LATER_MS);
	assert_true(all_safe(w));
	assert_int_equal(safe_records(), 2);
}

/* The records cannot be written again where they were. */
WRITER_TEST(a_journal_that_was_removed_and_cannot_be_synced_is_written_anew)
{
	struct writer *w = writer_on();

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
	assert_int_equal(safe_records(), 1);
}

WRITER_TEST(a_rename_that_was_done_and_yet_failed_is_noticed)
{
	struct writer *w = writer_on();

	disk_fail(disk, DISK_RENAME, -EIO, 1);
	disk->done = true;
	durable_set_limit(w->d, 1);
	turn(w);
	assert_int_equal(put(w), 0);
	pass(w, 100);
	assert_true(all_safe(w));
	assert_int_equal(w->failures, 0);
	assert_int_equal(safe_records(), 1);
}

/* A full disk takes no record: what of it was written is no record for who reads it. */
WRITER_TEST(remains_of_a_failed_write_are_cut_off)
{
	struct writer *w = writer_on();
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
	assert_int_equal(safe_records(), 2);
}

WRITER_TEST(nothing_is_written_behind_a_rest_that_cannot_be_cut_off)
{
	struct writer *w = writer_on();
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
	assert_int_equal(safe_records(), 1);
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
	struct writer *w = writer_on_new_disk();
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
	assert_int_equal(safe_records(), w->wrote);
}

WRITER_TEST(whatever_fails_safe_records_outlive_a_crash)
{
	for (int op = DISK_NO_OP + 1; op < DISK_OPS; op++)
		for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
			try_failure(op, errors[i], 1);
			try_failure(op, errors[i], 3);
			try_failure(op, errors[i], -1);
		}
}

WRITER_TEST(a_disk_that_fails_for_ever_makes_nothing_safe)
{
	static const enum disk_op ops_of_a_sync[] = { DISK_SYNC, DISK_LOOK };

	for (size_t i = 0; i < 2; i++) {
		struct writer *w = writer_on_new_disk();

		disk_fail(disk, ops_of_a_sync[i], -EIO, -1);
		work(w);
		assert_int_equal(w->safe, 0);
		assert_int_equal(w->error, -EIO);
		assert_int_equal(w->failures, 1);
		assert_int_equal(durable_close(w->d, w->now), -EIO);
	}
}

WRITER_TEST(a_head_whose_owner_file_cannot_be_made_does_not_begin)
{
	static const enum disk_op steps[] = {
		DISK_CREATE, DISK_WRITE, DISK_SYNC, DISK_SYNC_DIR, DISK_LIST,
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct writer *w;
		struct owner other;

		new_disk();
		w = writer_new("n1", 1);
		disk_fail(disk, steps[i], -EDQUOT, 1);
		assert_int_equal(writer_open(w, &other), -EDQUOT);
		assert_int_equal(other.epoch, 0);
		assert_false(disk_has(disk, "owner.1"));
		writer_free(w);
		writer_on();
	}
}

WRITER_TEST(closing_makes_everything_safe_or_says_that_it_is_not)
{
	for (int fails = 0; fails < 2; fails++) {
		struct writer *w = writer_on_new_disk();

		assert_int_equal(put(w), 0);
		if (fails)
			disk_fail(disk, DISK_SYNC, -EIO, 1);
		assert_int_equal(durable_close(w->d, w->now), fails ? -EIO : 0);
		assert_int_equal(w->safe, fails ? 0 : w->ends[1]);
	}
}

/* The sync that is under way may have had the failure, and the next one not. */
WRITER_TEST(closing_during_a_sync_writes_its_bytes_again)
{
	struct writer *w = writer_on();

	assert_int_equal(put(w), 0);
	durable_turn(w->d, w->now);
	disk_fail(disk, DISK_SYNC, -EIO, 1);
	assert_int_equal(disk_finish_sync(disk), -EIO);
	assert_int_equal(durable_close(w->d, w->now), 0);
	assert_int_equal(w->safe, w->ends[1]);
	durable_synced(w->d, -EIO, w->now);
	assert_int_equal(w->error, 0);
}

/* ---- damage ---- */

static char *damage_line;

static void on_line(void *arg, enum log_level level, const char *text)
{
	free(damage_line);
	damage_line = strdup(text);
}

WRITER_TEST(damage_that_is_found_while_it_is_written_is_named)
{
	struct writer *w = writer_new("n1", 1);
	struct durable_options options = { .lives = writer_lives, .lives_arg = w };
	const struct log_hook log = { on_line, NULL };
	struct owner other;

	assert_int_equal(durable_create(&w->d, &options, &disk_ops, disk, &writer_ops, w, &log), 0);
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
}
