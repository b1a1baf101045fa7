/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank lists as people read them. */
#include "unit.h"

#include "libutil/rankset.h"

TEST(formats_singles_and_runs)
{
	const uint32_t ranks[] = {17, 1024, 1025, 1026, 2000, 2001};
	char out[100];

	assert_string_equal(rankset_format(ranks, 6, out, sizeof(out)),
			    "17, 1024-1026, 2000-2001");
	assert_string_equal(rankset_format(ranks, 1, out, sizeof(out)), "17");
	assert_string_equal(rankset_format(ranks, 0, out, sizeof(out)), "");
}

TEST(cuts_with_an_ellipsis)
{
	uint32_t ranks[100];
	char out[40];

	for (uint32_t i = 0; i < 100; i++)
		ranks[i] = 2 * i;
	for (size_t size = 1; size <= sizeof(out); size++) {
		rankset_format(ranks, 100, out, size);
		assert_true(strlen(out) < size);
	}
	assert_string_equal(rankset_format(ranks, 100, out, 16),
			    "0, 2, 4, 6, ...");
}
