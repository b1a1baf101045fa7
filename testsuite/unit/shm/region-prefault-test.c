/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that are made before an image needs them: which, how many, and when. */
#include "config.h" /* _GNU_SOURCE */

#include "unit.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshm/extents.h"
#include "libshm/region_memory.h"
#include "libshm/region_prefault.h"
#include "region-fixture.h"

#define STEPS_MAX 1000

struct ground {
	struct region_memory memory;
	struct extents free;
	struct region_prefault ahead;
};

static void prepare(struct ground *g, size_t size)
{
	memset(g, 0, sizeof(*g));
	assert_int_equal(region_memory_create(&g->memory,
					      region_object_create(), size), 0);
	assert_int_equal(extents_give(&g->free, 0, size), 0);
}

static void clear(struct ground *g)
{
	extents_free(&g->free);
	region_memory_destroy(&g->memory);
}

/* Pages that there are, from `offset` on. */
static size_t pages_at(const struct ground *g, uint64_t offset, size_t pages)
{
	unsigned char *there = calloc(1, pages);
	size_t n = 0;

	NOT_EMULATED("which pages are there");
	assert_int_equal(mincore(g->memory.map + offset,
				 pages * g->memory.page, there), 0);
	while (n < pages && there[n] & 1)
		n++;
	free(there);
	return n;
}

/* How many steps it took. */
static int finish(struct ground *g)
{
	int steps = 0;

	for (; region_prefault_wanted(&g->ahead); steps++) {
		assert_in_range(steps, 0, STEPS_MAX);
		region_prefault_step(&g->ahead, &g->memory, &g->free);
	}
	return steps;
}

TEST(as_many_as_the_last_image_took)
{
	struct ground g;
	size_t page;

	prepare(&g, 1 << 20);
	page = g.memory.page;
	assert_false(region_prefault_wanted(&g.ahead));
	region_prefault_expect(&g.ahead, 10 * page);
	assert_int_equal(pages_at(&g, 0, 32), 0);
	finish(&g);
	assert_int_equal(pages_at(&g, 0, 32), 10);
	clear(&g);
}

TEST(behind_what_was_taken_meanwhile)
{
	struct ground g;
	uint64_t at;
	size_t page;

	prepare(&g, 1 << 20);
	page = g.memory.page;
	region_prefault_expect(&g.ahead, 4 * page);
	finish(&g);
	assert_int_equal(extents_take(&g.free, 3 * page, page, &at), 0);
	assert_int_equal(at, 0);
	region_prefault_expect(&g.ahead, 4 * page);
	finish(&g);
	assert_int_equal(pages_at(&g, 0, 32), 7);
	clear(&g);
}

/* A large image's pages are made in steps, up to a bound. */
TEST(in_steps_and_within_a_bound)
{
	struct ground g;
	size_t size = 64 << 20, made;

	prepare(&g, size);
	region_prefault_expect(&g.ahead, 32 << 20);
	region_prefault_step(&g.ahead, &g.memory, &g.free);
	made = pages_at(&g, 0, size / g.memory.page) * g.memory.page;
	assert_in_range(made, 1, 1 << 20);
	assert_in_range(finish(&g), 2, STEPS_MAX);
	made = pages_at(&g, 0, size / g.memory.page) * g.memory.page;
	assert_in_range(made, 1 << 20, 4 << 20);
	clear(&g);
}

TEST(nothing_where_there_is_no_room)
{
	struct ground g;
	uint64_t at;

	prepare(&g, 1 << 20);
	assert_int_equal(extents_take(&g.free, (1 << 20) - g.memory.page,
				      g.memory.page, &at), 0);
	region_prefault_expect(&g.ahead, 2 * g.memory.page);
	assert_int_equal(finish(&g), 1);
	assert_int_equal(pages_at(&g, 0, 8), 0);
	clear(&g);
}

/* Two fences of one size: the second finds its pages. */
WRITER_TEST(a_fence_finds_its_pages, REGION_SIZE_DEFAULT)
{
	struct stat before, after;

	NOT_EMULATED("pages that are there before they are used");
	assert_int_equal(publish_keys(w, "a", 1000, "value"), 0);
	assert_int_equal(publish_keys(w, "b", 1000, "value"), 0);
	while (region_tidy(w))
		;
	assert_false(region_untidy(w));
	assert_int_equal(fstat(region_writer_fd(w), &before), 0);
	assert_int_equal(publish_keys(w, "c", 1000, "value"), 0);
	assert_int_equal(fstat(region_writer_fd(w), &after), 0);
	/* In units of 512 bytes. One page: blocks need not begin with one. */
	assert_in_range(after.st_blocks - before.st_blocks, 0, 8);
	assert_true(region_untidy(w));
}
