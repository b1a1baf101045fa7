/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory of a DVM has one owner at a time, and goes with the last one. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dvm/common/rundir.h"

#define RIVALS 3
#define TIMES 500

struct base {
	char base[32], dir[48], owner[64];
};

static int make_base(void **state)
{
	static struct base b;

	strcpy(b.base, "/tmp/pmi2x-place.XXXXXX");
	assert_non_null(mkdtemp(b.base));
	snprintf(b.dir, sizeof(b.dir), "%s/one", b.base);
	snprintf(b.owner, sizeof(b.owner), "%s/owner", b.base);
	setenv("PMI2X_DVM_DIR", b.base, 1);
	*state = &b;
	return 0;
}

static int remove_base(void **state)
{
	struct base *b = *state;

	return rmdir(b->base); /* all else has gone */
}

static bool is_there(const char *path)
{
	struct stat st;

	return !stat(path, &st);
}

TEST_WITH(run_directory_has_one_owner, make_base, remove_base)
{
	struct base *b = *state;
	int fd = place_take(b->dir);

	assert_true(fd >= 0);
	assert_int_equal(place_take(b->dir), -EWOULDBLOCK);
	place_leave(b->dir, false);
	assert_false(is_there(b->dir));
	close(fd);
}

TEST_WITH(run_directory_of_a_killed_head_is_free, make_base, remove_base)
{
	struct base *b = *state;
	int fd = place_take(b->dir);

	close(fd);
	fd = place_take(b->dir);
	assert_true(fd >= 0);
	place_leave(b->dir, false);
	close(fd);
}

TEST_WITH(a_log_may_stay, make_base, remove_base)
{
	struct base *b = *state;
	char log[64];
	int fd = place_take(b->dir);

	snprintf(log, sizeof(log), "%s/log", b->dir);
	close(open(log, O_WRONLY | O_CREAT, 0600));
	place_leave(b->dir, true);
	close(fd);
	assert_true(is_there(log));
	fd = place_take(b->dir);
	place_leave(b->dir, false);
	close(fd);
	assert_false(is_there(b->dir));
}

TEST_WITH(parent_of_the_run_directory_must_exist, make_base, remove_base)
{
	struct base *b = *state;
	char dir[64];

	snprintf(dir, sizeof(dir), "%s/none/one", b->base);
	assert_int_equal(place_take(dir), -ENOENT);
}

TEST_WITH(run_directory_is_made_and_left_without_a_variable, make_base, remove_base)
{
	struct base *b = *state;
	char dir[64], parent[48];
	int fd;

	snprintf(parent, sizeof(parent), "%s/all", b->base);
	snprintf(dir, sizeof(dir), "%s/one", parent);
	assert_int_equal(mkdir(parent, 0700), 0);
	unsetenv("PMI2X_DVM_DIR");
	fd = place_take(dir);
	place_leave(dir, false);
	setenv("PMI2X_DVM_DIR", b->base, 1);
	assert_false(is_there(parent));
	close(fd);
}

/* Exit status 0: nobody else had it when it did. */
static void __attribute__((noreturn)) compete(const struct base *b)
{
	int own, fd;

	for (int i = 0; i < TIMES; i++) {
		fd = place_take(b->dir);
		if (fd == -EWOULDBLOCK)
			continue;
		own = fd < 0 ? -1 : open(b->owner, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (own < 0)
			_exit(1);
		close(own);
		unlink(b->owner);
		place_leave(b->dir, false);
		close(fd);
	}
	_exit(0);
}

TEST_WITH(rivals_have_it_in_turn, make_base, remove_base)
{
	struct base *b = *state;
	int status;

	for (int i = 0; i < RIVALS; i++)
		if (!fork())
			compete(b);
	for (int i = 0; i < RIVALS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_false(is_there(b->dir));
}
