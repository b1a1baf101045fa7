/* SPDX-License-Identifier: BSD-3-Clause */
/* The table that ranks of a node share. */
#include "unit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lend/table.h"

#define RANKS 4
#define LONG_MS 60000

/* As the plugin makes it. */
static int make_memory(size_t size, bool sealed)
{
	int fd = memfd_create("table", MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (sealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static int make_table(uint32_t ranks, bool sealed)
{
	return make_memory(lend_table_size(ranks), sealed);
}

static struct lend_table *map(int fd, uint32_t ranks)
{
	const struct lend_place place = { .fd = dup(fd), .ranks = ranks };

	return lend_table_map(&place);
}

TEST(facts_of_other_processes_arrive_in_order_of_slots)
{
	int fd = make_table(RANKS, true);
	struct lend_facts got[RANKS], facts = { .threads = 2 };
	struct lend_table *table = map(fd, RANKS);

	assert_non_null(table);
	for (uint32_t slot = RANKS; slot-- > 1;)
		if (!fork()) {
			facts.rank = 10 + slot;
			lend_table_enter(map(fd, RANKS), slot, &facts);
			_exit(0);
		}
	facts.rank = 10;
	lend_table_enter(table, 0, &facts);
	assert_int_equal(lend_table_collect(table, RANKS, LONG_MS, got), RANKS);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(got[i].rank, 10 + i);
	while (wait(NULL) > 0)
		;
}

TEST(second_entry_of_a_slot_counts_once)
{
	int fd = make_table(2, true);
	struct lend_facts got[2], facts = { .rank = 7 };
	struct lend_table *table = map(fd, 2);

	lend_table_enter(table, 1, &facts);
	facts.rank = 8;
	lend_table_enter(table, 1, &facts);
	assert_int_equal(lend_table_collect(table, 2, 1, got), 1);
	assert_int_equal(got[0].rank, 7);
}

TEST(descriptor_stays_open_until_an_exec_where_cores_are_lent)
{
	const uint32_t cores = 16;
	int fd = make_memory(lend_memory_size(RANKS, cores), true), other = dup(fd);
	const struct lend_place place = { .fd = fd, .ranks = RANKS, .cores = cores };
	const struct lend_place plain = { .fd = other, .ranks = RANKS };

	assert_non_null(lend_table_map(&place));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_null(lend_table_map(&plain));
	assert_null(lend_table_map(&(struct lend_place){ .fd = fd, .ranks = RANKS,
							 .cores = UINT32_MAX }));
}

TEST(descriptor_of_something_else_is_rejected)
{
	int open_ended = make_table(RANKS, false), smaller = make_table(RANKS - 1, true);
	int null = open("/dev/null", O_RDWR);
	const struct lend_place closed = { .fd = 1000, .ranks = RANKS };

	assert_null(map(open_ended, RANKS));
	assert_null(map(smaller, RANKS));
	assert_null(map(null, RANKS));
	assert_null(lend_table_map(&closed));
	assert_null(map(smaller, UINT32_MAX));
}
