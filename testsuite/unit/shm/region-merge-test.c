/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many fences in a row: every key is found at every point of a merge, and what a
 * fence costs does not grow. Work is counted, not timed.
 */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>

#include "region-fixture.h"

static void tidy_all(struct region_writer *w)
{
	while (region_tidy(w))
		;
}

/* As when a node has no time for anything between fences. */
WRITER_TEST(many_generations_are_found_untidied, REGION_SIZE_DEFAULT)
{
	struct region *r = attach(w);
	char prefix[32], value[32], key[64];

	for (int g = 0; g < 100; g++) {
		const struct region_view *view;

		snprintf(prefix, sizeof(prefix), "g%d-", g);
		snprintf(value, sizeof(value), "v%d", g);
		assert_int_equal(publish_keys(w, prefix, 1000, value), 0);
		assert_int_equal(publish_keys(w, "same", 3, value), 0);
		view = view_of(r);
		assert_in_range(view->count, 1, REGION_CHAIN_MAX);
		check_key(r, "same2", value);
	}
	for (int g = 0; g < 100; g++) {
		snprintf(value, sizeof(value), "v%d", g);
		for (int i = 0; i < 1000; i++) {
			snprintf(key, sizeof(key), "g%d-%d", g, i);
			check_key(r, key, value);
		}
	}
	assert_false(has_key(r, "g100-0"));
}

/* 100 fences of one key a rank, and what each fence costs on the way. */
WRITER_TEST(fences_in_a_row_cost_the_same, REGION_SIZE_DEFAULT)
{
	enum { FENCES = 100, KEYS = 1024 };
	struct region *r = attach(w);
	const struct region_view *view;
	char prefix[32], key[64];
	uint64_t merged;
	size_t first = 0;

	for (int g = 0; g < FENCES; g++) {
		size_t used = region_writer_used(w);

		merged = region_writer_merged(w);
		snprintf(prefix, sizeof(prefix), "g%03d-", g);
		assert_int_equal(publish_keys(w, prefix, KEYS, prefix), 0);
		assert_int_equal(region_writer_merged(w), merged);
		used = region_writer_used(w) - used;
		first = first ? first : used;
		assert_in_range(used, 0, first + 4096); /* and some views */
		tidy_all(w);
		view = view_of(r);
		assert_in_range(view->count, 1, REGION_CHAIN_GOOD);
	}
	/* An image has 2 to 4 buckets a key; the joint index grows by doubling. */
	merged = region_writer_merged(w);
	assert_in_range(merged, FENCES * KEYS, 12 * FENCES * KEYS);
	tidy_all(w);
	assert_int_equal(region_writer_merged(w), merged);
	assert_in_range(region_writer_used(w), FENCES * first,
			FENCES * (first + 64 * KEYS));
	for (int g = 0; g < FENCES; g++) {
		snprintf(prefix, sizeof(prefix), "g%03d-", g);
		for (int i = 0; i < KEYS; i += 31) {
			snprintf(key, sizeof(key), "g%03d-%d", g, i);
			check_key(r, key, prefix);
		}
	}
}

/* The newest value wins, at every point of a merge. */
WRITER_TEST(keys_put_again_have_their_last_value, REGION_SIZE_DEFAULT)
{
	struct region *r = attach(w);
	char value[32];

	assert_int_equal(publish_keys(w, "many", 100000, "v"), 0);
	for (int g = 0; g < 40; g++) {
		snprintf(value, sizeof(value), "v%d", g);
		assert_int_equal(publish_keys(w, "same", 10, value), 0);
		check_key(r, "same9", value);
		if (g % 3)
			region_tidy(w);
		check_key(r, "same9", value);
		check_key(r, "many99999", "v");
	}
	tidy_all(w);
	check_key(r, "same9", value);
	check_key(r, "many0", "v");
}

struct watcher {
	const struct region *region;
	_Atomic int published; /* generations that must be found */
	_Atomic int misses;
	_Atomic bool stop;
};

static void *watch_keys(void *arg)
{
	struct watcher *w = arg;
	uint32_t x = 1;
	char key[64];

	while (!w->stop) {
		int g = w->published;

		if (!g)
			continue;
		x = x * 1664525u + 1013904223u;
		snprintf(key, sizeof(key), "g%u-%u", (x >> 8) % g,
			 (x >> 16) % 50);
		w->misses += !has_key(w->region, key);
	}
	return NULL;
}

WRITER_TEST(readers_miss_nothing_while_indexes_change, REGION_SIZE_DEFAULT)
{
	struct region *r = attach(w);
	struct watcher watcher = { .region = r };
	pthread_t thread;
	char prefix[32];

	assert_int_equal(pthread_create(&thread, NULL, watch_keys, &watcher), 0);
	for (int g = 0; g < 400; g++) {
		snprintf(prefix, sizeof(prefix), "g%d-", g);
		assert_int_equal(publish_keys(w, prefix, 50, "v"), 0);
		watcher.published = g + 1;
		if (g % 5)
			tidy_all(w);
	}
	watcher.stop = true;
	pthread_join(thread, NULL);
	assert_int_equal(watcher.misses, 0);
}
