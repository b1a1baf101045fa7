/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes pages of a results region before an image needs them. */
#include "libshm/region_prefault.h"

#define AHEAD_MAX ((uint64_t)2 << 20)  /* bytes: 16,384 values of 64 */
#define AHEAD_STEP ((uint64_t)256 << 10) /* bytes: well below a millisecond */

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void region_prefault_expect(struct region_prefault *a, uint64_t len)
{
	a->expected = min(len, AHEAD_MAX);
}

/* How much of what begins at `at` has been made. */
static uint64_t made_from(const struct region_prefault *a, uint64_t at)
{
	uint64_t end = a->made.offset + a->made.len;

	return at >= a->made.offset && at < end ? end - at : 0;
}

void region_prefault_step(struct region_prefault *a,
			  const struct region_memory *m,
			  const struct extents *free)
{
	uint64_t at, have, more;

	if (!extents_find(free, a->expected, m->page, &at))
		goto done;
	have = made_from(a, at);
	if (have >= a->expected)
		goto done;
	more = min(a->expected - have, AHEAD_STEP);
	/* Without memory the image will fail, or not: this is no time to say so. */
	if (region_memory_commit(m, at + have, more))
		goto done;
	a->made = (struct extent){ at, have + more };
	return;
done:
	a->expected = 0;
}
