/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives without faults: contents and order under every interleaving, what
 * a neighbour may not send, limits, reports.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "bed.h"

/* Enter and deliver in random order until every rank has entered `limit`. */
static void run(struct bed *bed, uint32_t limit)
{
	uint32_t left = 0;
	uint32_t haste = 1 + bed_random(bed, 8); /* how far ranks run ahead */

	for (uint32_t r = 0; r < bed->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			left += limit - bed_entered(bed, kind, r);
	while (left) {
		uint32_t rank = bed_random(bed, bed->nranks);
		enum coll_kind kind = bed_random(bed, COLL_KINDS);

		if (bed_random(bed, 8) >= haste) {
			bed_deliver(bed);
		} else if (bed_entered(bed, kind, rank) < limit) {
			assert_int_equal(bed_enter(bed, kind, rank), 0);
			left--;
		}
	}
	bed_deliver_all(bed);
}

static void assert_all_done(const struct bed *bed, uint32_t limit)
{
	bed_check_settled(bed);
	for (uint32_t r = 0; r < bed->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			for (uint32_t s = 0; s < limit; s++)
				assert_int_equal(bed_outcome(bed, kind, r, s),
						 BED_DONE);
	assert_int_equal(bed->record->faults_sent, 0);
}

TEST(everybody_gets_everything_in_order)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint32_t nnodes = 1 + seed * 7 % 40;
		uint32_t nranks = nnodes + seed * 13 % 60;
		struct bed *bed = new_bed(nnodes, nranks, 2 + seed % 6, seed);

		run(bed, 6);
		assert_all_done(bed, 6);
		unit_end(bed);
	}
}

TEST(a_single_rank_is_its_own_neighbour)
{
	struct bed *bed = new_bed(1, 1, 16, 0);

	for (uint32_t s = 0; s < 8; s++)
		for (int kind = 0; kind < COLL_KINDS; kind++) {
			assert_int_equal(bed_enter(bed, kind, 0), 0);
			assert_int_equal(bed_outcome(bed, kind, 0, s),
					 BED_DONE);
		}
	bed_check_settled(bed);
}

BED_TEST(a_rank_may_run_far_ahead_but_not_for_ever, 3, 3)
{
	for (uint32_t s = 0; s < COLL_IN_FLIGHT_MAX; s++)
		assert_int_equal(bed_enter(bed, COLL_FENCE, 2), 0);
	assert_int_equal(bed_enter(bed, COLL_FENCE, 2), -EAGAIN);
	assert_int_equal(coll_pending(bed->nodes[2].coll), COLL_IN_FLIGHT_MAX);
	bed_deliver_all(bed);
	for (uint32_t s = 0; s < 3; s++) {
		assert_int_equal(bed_enter(bed, COLL_FENCE, 0), 0);
		assert_int_equal(bed_enter(bed, COLL_FENCE, 1), 0);
	}
	bed_deliver_all(bed);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 2, 2), BED_DONE);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 2, 3), BED_WAITING);
	for (uint32_t s = 0; s < 3; s++)
		assert_int_equal(bed_enter(bed, COLL_FENCE, 2), 0);
	assert_int_equal(bed_enter(bed, COLL_FENCE, 2), -EAGAIN);
}

TEST(entries_that_cannot_be_combined_fail_alone_and_everywhere)
{
	struct bed *bed = new_bed(7, 11, 2, 5);

	bed->combine_fails = 2;
	run(bed, 5);
	bed_check_settled(bed);
	for (uint32_t r = 0; r < bed->nranks; r++)
		for (uint32_t s = 0; s < 5; s++) {
			assert_int_equal(bed_outcome(bed, COLL_FENCE, r, s),
					 s == 2 ? BED_FAILED : BED_DONE);
			assert_int_equal(bed_outcome(bed, COLL_GATHER, r, s),
					 BED_DONE);
		}
	assert_non_null(strstr(bed->record->reason, "fence 2"));
}

/* ---- what a neighbour cannot have sent ---- */

/*
 * Width 2: node 0 has the children 1 and 4, node 1 the children 2 and 3. Node 1
 * has entered fence 0 and has heard of it from its first child.
 */
static struct bed *half_a_fence(void)
{
	struct bed *bed = new_bed(7, 7, 2, 0);

	bed_enter(bed, COLL_FENCE, 1);
	bed_enter(bed, COLL_FENCE, 2);
	bed_deliver_all(bed);
	return bed;
}

/* The fence must still come out right, and the next ones. */
static void finish(struct bed *bed)
{
	for (uint32_t r = 0; r < bed->nranks; r++)
		if (bed_entered(bed, COLL_FENCE, r) == 0)
			assert_int_equal(bed_enter(bed, COLL_FENCE, r), 0);
	bed_deliver_all(bed);
	for (uint32_t r = 0; r < bed->nranks; r++)
		for (int kind = 0; kind < COLL_KINDS; kind++)
			assert_int_equal(bed_enter(bed, kind, r), 0);
	bed_deliver_all(bed);
	bed_check_settled(bed);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 6, 1), BED_DONE);
	assert_int_equal(bed_outcome(bed, COLL_RING, 6, 0), BED_DONE);
	unit_end(bed);
}

static void refuse(struct bed *bed, uint32_t from, struct coll_msg msg,
		   const char *body)
{
	assert_int_equal(bed_inject(bed, from, 1, &msg, body), -EPROTO);
}

static const struct coll_msg up = { .type = COLL_MSG_UP };
static const struct coll_msg down = { .type = COLL_MSG_DOWN };

TEST(refuses_what_does_not_come_from_a_neighbour)
{
	struct bed *bed = half_a_fence();
	const uint32_t strangers[] = { 1, 4, 5, 6, 7, 1000000, UINT32_MAX };

	for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++) {
		struct coll_msg fault = { .type = COLL_MSG_FAULT };

		refuse(bed, strangers[i], up, "x");
		refuse(bed, strangers[i], down, "x");
		refuse(bed, strangers[i], fault, NULL);
		assert_int_equal(bed_inject(bed, UINT32_MAX, 0, &up, "x"),
				 -EPROTO);
	}
	finish(bed);
}

TEST(refuses_what_goes_the_wrong_way)
{
	struct bed *bed = half_a_fence();

	refuse(bed, 0, up, "x");
	refuse(bed, 2, down, "x");
	refuse(bed, 3, down, "x");
	finish(bed);
}

TEST(refuses_what_comes_twice_or_too_early)
{
	struct bed *bed = half_a_fence();
	struct coll_msg later = up;

	later.seq = 2;
	refuse(bed, 2, up, "x");
	refuse(bed, 2, later, "x"); /* 1 comes first */
	refuse(bed, 0, down, "x");  /* node 1 has not sent its contribution */
	later.type = COLL_MSG_DOWN;
	refuse(bed, 0, later, "x");
	later.seq = UINT32_MAX;
	refuse(bed, 0, later, "x");
	finish(bed);
}

BED_TEST(refuses_a_result_that_it_has, 3, 3)
{
	run(bed, 1);
	refuse(bed, 0, down, "x");
	run(bed, 2);
	assert_all_done(bed, 2);
}

TEST(refuses_types_and_kinds_that_do_not_exist)
{
	struct bed *bed = half_a_fence();
	struct coll_msg msg = { .type = COLL_MSG_TYPES };

	refuse(bed, 3, msg, "x");
	refuse(bed, 3, (struct coll_msg){ .kind = COLL_KINDS }, "x");
	finish(bed);
}

TEST(refuses_a_ring_value_longer_than_its_message)
{
	struct bed *bed = half_a_fence();
	struct coll_msg ring = { .kind = COLL_RING, .left_len = 3 };

	refuse(bed, 3, ring, "xx");
	refuse(bed, 3, ring, NULL);
	ring.left_len = UINT32_MAX;
	refuse(bed, 3, ring, "xx");
	finish(bed);
}

BED_TEST(refuses_a_broken_ring_result, 3, 3)
{
	struct coll_msg ring = {
		.type = COLL_MSG_DOWN, .kind = COLL_RING, .left_len = 3,
	};

	bed_enter(bed, COLL_RING, 1);
	refuse(bed, 0, ring, "xx");
	ring.left_len = 0;
	ring.failed = true;
	refuse(bed, 0, ring, NULL);
	bed_enter(bed, COLL_RING, 0);
	bed_enter(bed, COLL_RING, 2);
	bed_deliver_all(bed);
	assert_int_equal(bed_outcome(bed, COLL_RING, 1, 0), BED_DONE);
}

/* 3 nodes with a rank each, of which the one on node 1 is in a fence. */
static struct bed *waits_for_a_result(void)
{
	struct bed *bed = new_bed(3, 3, 2, 0);

	assert_int_equal(bed_enter(bed, COLL_FENCE, 1), 0);
	return bed;
}

/* The collective has failed, and its report to the rank is queued. */
TEST(refuses_a_second_end_of_what_failed)
{
	struct bed *bed = waits_for_a_result();
	struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .seq = 1, .failed = true,
	};

	assert_int_equal(bed_enter(bed, COLL_FENCE, 1), 0);
	snprintf(msg.fault.reason, sizeof(msg.fault.reason), "too much");
	assert_int_equal(bed_inject(bed, 0, 1, &msg, NULL), 0);
	refuse(bed, 0, msg, NULL);
	msg.failed = false;
	refuse(bed, 0, msg, NULL);
	assert_int_equal(bed_outcome(bed, COLL_FENCE, 1, 1), BED_WAITING);
}

BED_TEST(a_child_cannot_make_it_keep_too_much, 3, 3)
{
	struct coll_msg msg = up;

	for (; msg.seq < COLL_IN_FLIGHT_MAX; msg.seq++)
		assert_int_equal(bed_inject(bed, 1, 0, &msg, "x"), 0);
	assert_int_equal(bed_inject(bed, 1, 0, &msg, "x"), -EPROTO);
}

/* ---- reports ---- */

BED_TEST(says_whom_it_waits_for, 3, 7) /* 0-2, 3-4, 5-6 */
{
	uint32_t ranks[3], children[2], nranks, nchildren, seq = 0;
	enum coll_kind kind = COLL_FENCE;
	bool up_there;

	bed_enter(bed, COLL_GATHER, 1);
	bed_enter(bed, COLL_GATHER, 5);
	bed_enter(bed, COLL_GATHER, 6);
	bed_deliver_all(bed);
	assert_true(coll_next_pending(bed->nodes[0].coll, &kind, &seq, ranks,
				      &nranks, children, &nchildren,
				      &up_there));
	assert_true(kind == COLL_GATHER && seq == 0 && !up_there);
	assert_true(nranks == 2 && ranks[0] == 0 && ranks[1] == 2);
	assert_true(nchildren == 1 && children[0] == 1);
	seq++;
	assert_false(coll_next_pending(bed->nodes[0].coll, &kind, &seq, ranks,
				       &nranks, children, &nchildren,
				       &up_there));
	kind = 0;
	seq = 0;
	assert_true(coll_next_pending(bed->nodes[2].coll, &kind, &seq, ranks,
				      &nranks, children, &nchildren,
				      &up_there));
	assert_true(up_there && nranks == 0 && nchildren == 0);
	assert_int_equal(coll_pending(bed->nodes[0].coll), 1);
	assert_int_equal(coll_pending(bed->nodes[1].coll), 0);
}

BED_TEST(refuses_a_node_that_cannot_be, 3, 3)
{
	const struct coll_options good = { .tree_width = 2 };
	const struct coll_options narrow = { .tree_width = 1 };
	const struct coll_options wide = { .tree_width = 1000000000 };
	struct coll_ops none = { 0 };
	struct coll *c;

	assert_int_equal(coll_create(&c, bed->layout, 3, &good, &none, NULL),
			 -EINVAL);
	assert_int_equal(coll_create(&c, bed->layout, 0, &narrow, &none, NULL),
			 -EINVAL);
	assert_int_equal(coll_create(&c, bed->layout, 0, &wide, &none, NULL),
			 -EINVAL);
	unit_end(bed);
	coll_destroy(NULL);
}
