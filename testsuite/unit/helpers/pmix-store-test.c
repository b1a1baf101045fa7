/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory of libpmix 4: its name, and that what is taken back is only zeros. */
#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers/pmixd/store.h"

#define SIZE (1 << 20)
#define LAST 70000 /* of the bytes that are not zero */

struct place {
	char dir[32], store[PATH_MAX];
};

/* As libpmix leaves it: bytes, then zeros that have been written. */
static void fill(const struct place *p, const char *name)
{
	char path[PATH_MAX + 32], *bytes = calloc(1, SIZE);
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", p->store, name);
	memset(bytes, 'x', LAST);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, SIZE, file), SIZE);
	assert_int_equal(fclose(file), 0);
	free(bytes);
}

static void holds(const char *path)
{
	char *bytes = malloc(SIZE + 1);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, SIZE + 1, file), SIZE);
	fclose(file);
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(bytes[i], i < LAST ? 'x' : 0);
	free(bytes);
}

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, "/tmp/pmi2x-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->store, sizeof(p->store), "%s/pmix_dstor_ds21_%d", p->dir,
		 (int)getpid());
	*state = p;
	return mkdir(p->store, 0700);
}

static void drop(const char *dir, const char *name)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)remove(path);
}

static int clean_up(void **state)
{
	struct place *p = *state;

	drop(p->store, "smseg-a-0");
	drop(p->store, "smdataseg-a-0");
	drop(p->dir, "ds21");
	rmdir(p->store);
	rmdir(p->dir);
	free(p);
	return 0;
}

TEST_WITH(has_a_name_that_clients_know, set_up, clean_up)
{
	struct place *p = *state;
	char path[PATH_MAX];

	fill(p, "smseg-a-0");
	assert_int_equal(store_show(p->dir), 0);
	snprintf(path, sizeof(path), "%s/ds21/smseg-a-0", p->dir);
	holds(path);
	assert_int_equal(store_show(p->dir), 0); /* once more */
	holds(path);
}

TEST_WITH(keeps_what_it_holds, set_up, clean_up)
{
	static const char *const names[] = { "smseg-a-0", "smdataseg-a-0" };
	struct place *p = *state;
	char path[PATH_MAX + 32];

	for (size_t i = 0; i < 2; i++)
		fill(p, names[i]);
	store_trim(p->dir);
	store_trim(p->dir);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", p->store, names[i]);
		holds(path);
	}
}

TEST(bears_that_there_is_none)
{
	store_trim("/nowhere");
	assert_int_not_equal(store_show("/nowhere"), 0);
}
