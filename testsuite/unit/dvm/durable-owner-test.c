/* SPDX-License-Identifier: BSD-3-Clause */
/* Owners of a journal: of several heads one writes, and the others notice. */
#include "writer.h"

#include <errno.h>
#include <stdio.h>

/* ---- owners ---- */

WRITER_TEST(a_second_head_is_refused_with_the_name_of_the_first)
{
	static const int locks[] = { 0, -ENOLCK, -EWOULDBLOCK };

	for (size_t i = 0; i < 3; i++) {
		struct writer *first = writer_on_new_disk();
		struct writer *second = writer_new("n2", 2);
		struct owner other;

		disk->lock_error = locks[i];
		assert_int_equal(writer_open(second, &other), -EBUSY);
		assert_string_equal(other.host, "n1");
		assert_int_equal(other.pid, 1);
		assert_int_equal(put(first), 0);
		turn(first);
		assert_true(all_safe(first));
	}
}

WRITER_TEST(a_head_is_not_refused_for_one_that_is_known_to_be_over)
{
	struct writer *first = writer_on(), *w;
	struct owner other;

	assert_int_equal(durable_close(first->d, first->now), 0);
	writer_free(first);
	w = writer_new("n2", 2); /* the first owner recorded its end */
	assert_int_equal(writer_open(w, &other), 0);
	writer_free(w);
	w = writer_new("n2", 3); /* its process is gone */
	assert_int_equal(writer_open(w, &other), 0);
	writer_free(w);
	w = writer_new("n2", 4); /* its process is there */
	w->alive = true;
	assert_int_equal(writer_open(w, &other), -EBUSY);
	assert_int_equal(other.epoch, 3);
}

static struct writer *of_job(const char *host, uint64_t job,
			     uint64_t restarts)
{
	struct writer *w = writer_new(host, 1);

	w->self.job = job;
	w->self.restarts = restarts;
	return w;
}

WRITER_TEST(a_requeued_job_takes_over_by_itself)
{
	struct writer *first = of_job("n1", 7, 0), *w;
	struct owner other;

	assert_int_equal(writer_open(first, &other), 0);
	assert_int_equal(writer_begin(first), 0);
	w = of_job("n2", 8, 1);
	assert_int_equal(writer_open(w, &other), -EBUSY);
	writer_free(w);
	w = of_job("n2", 7, 0);
	assert_int_equal(writer_open(w, &other), -EBUSY);
	writer_free(w);
	w = of_job("n2", 7, 1);
	disk->lock_error = -EWOULDBLOCK; /* of a process that hangs */
	assert_int_equal(writer_open(w, &other), 0);
}

static struct writer *take_over(void)
{
	struct writer *w = writer_new("n2", 2);
	struct owner other;

	w->take_over = true;
	assert_int_equal(writer_open(w, &other), 0);
	return w;
}

WRITER_TEST(a_head_that_was_taken_over_says_nothing_is_safe)
{
	struct writer *first = writer_on(), *second;

	assert_int_equal(put(first), 0);
	turn(first);
	assert_int_equal(put(first), 0);
	durable_turn(first->d, first->now);
	second = take_over();
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
	assert_int_equal(safe_records(), 3);
}

WRITER_TEST(an_idle_head_that_was_taken_over_notices)
{
	struct writer *first = writer_on(), *second = take_over();

	pass(first, DURABLE_LOOK_MS + 20);
	assert_int_equal(first->superseded, 1);
	assert_int_equal(durable_deadline(first->d), UINT64_MAX);
	assert_false(durable_is_owner(first->d, first->now));
	assert_true(durable_is_owner(second->d, second->now));
}

/* On NFS the file that another machine has replaced can be read and synced no more. */
WRITER_TEST(a_head_that_was_taken_over_notices_while_its_disk_fails)
{
	struct writer *first = writer_on(), *second = take_over();

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
}

static void take_over_now(void *arg)
{
	struct writer **second = arg;

	*second = take_over();
	assert_int_equal(writer_begin(*second), 0);
}

/* Between its last look at the owner's file and its rename. */
WRITER_TEST(a_head_that_was_taken_over_renames_nothing)
{
	struct writer *first = writer_on(), *second = NULL;
	int file;

	assert_int_equal(put(first), 0);
	turn(first);
	disk->before_rename = take_over_now;
	disk->before_rename_arg = &second;
	durable_set_limit(first->d, 1);
	durable_turn(first->d, first->now);
	assert_non_null(second);
	file = disk_safe_file(disk, "journal");
	pass(first, 3000);
	assert_int_equal(first->superseded, 1);
	assert_int_equal(disk_safe_file(disk, "journal"), file);
	second->wrote = 1;
	assert_int_equal(put(second), 0);
	turn(second);
	assert_int_equal(safe_records(), 2);
}

WRITER_TEST(numbers_of_owners_never_come_again)
{
	char name[DISK_NAME_MAX];

	for (int i = 1; i < 20; i++) {
		struct writer *w = take_over();

		snprintf(name, sizeof(name), "owner.%d", i);
		assert_true(disk_has(disk, name));
		snprintf(name, sizeof(name), "owner.%d", i - 1);
		assert_false(disk_has(disk, name));
		if (i % 2)
			assert_int_equal(durable_close(w->d, w->now), 0);
		writer_free(w);
	}
}

WRITER_TEST(an_owner_whose_file_was_cut_off_may_live)
{
	struct writer *w = writer_new("n1", 2);
	struct owner other;

	assert_true(disk_ops.create(disk, "owner.4") >= 0);
	assert_int_equal(writer_open(w, &other), -EBUSY);
	assert_int_equal(other.epoch, 4);
	assert_string_equal(other.host, "");
}

WRITER_TEST(an_owner_that_cannot_be_removed_is_not_replaced)
{
	struct writer *first = writer_on(), *second = writer_new("n2", 2);
	struct owner other;

	second->take_over = true;
	disk_fail(disk, DISK_UNLINK, -EIO, 1);
	assert_int_equal(writer_open(second, &other), -EIO);
	assert_true(disk_has(disk, "owner.1"));
	assert_false(disk_has(disk, "owner.2"));
	assert_int_equal(put(first), 0);
	turn(first);
	assert_true(all_safe(first));
}

static int old_lists; /* calls that still return owner.1 only */

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
WRITER_TEST(a_head_that_was_passed_is_no_owner)
{
	struct writer *third;
	struct disk_ops late = disk_ops;
	struct owner self = { .host = "n4" }, other;

	for (int i = 1; i < 3; i++)
		writer_free(take_over());
	third = take_over();
	assert_int_equal(writer_begin(third), 0);
	late.list = list_late;
	old_lists = 1;
	assert_int_equal(owner_claim(&self, &late, disk, writer_lives, third, true, &other), -EBUSY);
	assert_int_equal(other.epoch, 3);
	assert_false(disk_has(disk, "owner.2"));
	assert_int_equal(put(third), 0);
	turn(third);
	assert_true(all_safe(third));
}
