/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives without memory: each allocation of a history fails in turn, alone
 * or with all after it, and still everything that was entered ends.
 */
#include "unit.h"

#include <errno.h>

#include "bed.h"
#include "wrap-memory.h"

static struct {
	bool armed;     /* inside libcoll */
	bool for_good;  /* once it has failed it goes on failing */
	uint32_t count; /* allocations so far */
	uint32_t fail;  /* the one that fails, from 1; 0: none */
} memory;

static bool is_refused(void)
{
	if (!memory.armed || !memory.fail)
		return false;
	memory.count++;
	return memory.for_good ? memory.count >= memory.fail :
				 memory.count == memory.fail;
}

static void inside(bool yes)
{
	memory.armed = yes;
}

/* A host ends a rank that it cannot let enter. */
static void enter(struct bed *bed, enum coll_kind kind, uint32_t rank)
{
	int rc;

	if (bed->gone[rank])
		return;
	rc = bed_enter(bed, kind, rank);
	if (rc == -ENOMEM)
		bed_rank_gone(bed, rank);
	else
		assert_int_equal(rc, 0);
}

static void history(void)
{
	struct bed *bed = new_bed(7, 10, 2, 3);

	bed->inside = inside;
	for (uint32_t s = 0; s < 2; s++)
		for (uint32_t r = 0; r < bed->nranks; r++)
			for (int kind = 0; kind < COLL_KINDS; kind++) {
				enter(bed, kind, r);
				bed_deliver(bed);
			}
	bed_deliver_all(bed);
	bed_rank_gone(bed, 4);
	for (uint32_t r = 0; r < bed->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			enter(bed, kind, r);
	bed_deliver_all(bed);
	bed_check_settled(bed);
	unit_end(bed);
}

static void enter_group(struct bed *bed, uint32_t group)
{
	for (uint32_t i = 0; i < bed->groups[group].count; i++) {
		uint32_t rank = bed->groups[group].ranks[i];
		int rc;

		if (bed->gone[rank])
			continue;
		rc = bed_enter_group(bed, group, i);
		if (rc == -ENOMEM)
			bed_rank_gone(bed, rank);
		else
			assert_int_equal(rc, 0);
		bed_deliver(bed);
	}
}

static void groups(void)
{
	static const uint32_t some[] = { 1, 3, 4, 6, 9 }, far[] = { 2, 8 };
	struct bed *bed = new_bed(7, 10, 2, 0);

	bed->inside = inside;
	bed_group(bed, some, 5);
	bed_group(bed, far, 2);
	for (uint32_t n = 0; n < 2; n++)
		for (uint32_t g = 0; g < bed->ngroups; g++)
			enter_group(bed, g);
	bed_deliver_all(bed);
	if (!bed->gone[4])
		bed_rank_gone(bed, 4);
	for (uint32_t g = 0; g < bed->ngroups; g++)
		enter_group(bed, g);
	bed_deliver_all(bed);
	bed_check_settled(bed);
	unit_end(bed);
}

static void fail_each(void (*run)(void), bool for_good)
{
	uint32_t fail = 0;

	do {
		memory.count = 0;
		memory.for_good = for_good;
		memory.fail = ++fail;
		run();
	} while (memory.count >= fail);
	assert_true(fail > 100); /* it did allocate */
}

TEST(survives_each_failure)
{
	fail_each(history, false);
	fail_each(groups, false);
}

TEST(survives_when_there_is_no_more)
{
	fail_each(history, true);
	fail_each(groups, true);
}

TEST(creation_fails_cleanly)
{
	struct bed *bed = new_bed(3, 6, 2, 0);
	const struct coll_options options = { .tree_width = 2 };
	struct coll_ops none = { 0 };
	struct coll *c = NULL;

	for (memory.fail = 1; memory.fail <= 3; memory.fail++) {
		memory.count = 0;
		memory.armed = true;
		assert_int_equal(coll_create(&c, bed->layout, 0,
					     &options, &none, NULL), -ENOMEM);
		memory.armed = false;
	}
	memory.fail = 0;
}

TEST(a_layout_fails_cleanly)
{
	const uint32_t one[] = { 1 }, zero[] = { 0 };
	const uint32_t *ranks[] = { one, zero };
	const uint32_t counts[] = { 1, 1 };
	struct layout *l = NULL;

	for (memory.fail = 1; memory.fail <= 6; memory.fail++) {
		memory.count = 0;
		memory.armed = true;
		assert_int_equal(layout_create(&l, 2, 2, counts, ranks),
				 -ENOMEM);
		memory.armed = false;
	}
	memory.fail = 0;
}
