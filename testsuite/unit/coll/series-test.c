/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Series: ranks run PMIx programs one after the other, some of which are killed. Whatever
 * any rank has entered ends, and programs that nobody kills meet in each of their fences.
 */
#include "bed.h"

#include <errno.h>
#include <stdlib.h>

#define PROGRAMS 3 /* the last one is not killed */
#define FENCES 2   /* of a program */

struct runs {
	struct bed *bed;
	uint32_t *program; /* by rank */
	uint32_t *entered; /* of the program's fences */
	uint32_t kills;    /* still to happen */
};

/* Numbers of three series at most. */
static struct bed *series_bed(uint32_t nodes, uint32_t ranks, uint32_t width,
			      uint64_t seed)
{
	return unit_at_end(free_bed, bed_new(&(struct bed_options){
		.nodes = nodes, .ranks = ranks, .width = width, .piece = 24,
		.seed = seed, .seq_max = PROGRAMS * COLL_SERIES, .groups_max = 1,
		.varied = true, .broken = promise_is_broken,
	}));
}

#define SERIES_TEST(name, nodes, ranks) \
	TEST_ON(name, struct bed *b, series_bed(nodes, ranks, 2, 0))

static void next(struct bed *b, uint32_t rank, bool killed)
{
	uint32_t slot;
	struct coll *c = bed_coll_of(b, rank, &slot);

	bed_inside(b, true);
	coll_next_series(c, slot, killed, "a program was killed");
	bed_inside(b, false);
}

static void end_program(struct bed *b, uint32_t rank)
{
	uint32_t slot;
	struct coll *c = bed_coll_of(b, rank, &slot);

	bed_inside(b, true);
	coll_end_series(c, slot, "a program was killed");
	bed_inside(b, false);
}

static enum bed_outcome last_outcome(const struct bed *b, uint32_t rank)
{
	uint32_t seq = bed_entered(b, COLL_PMIX, rank);

	return seq % COLL_SERIES ? bed_outcome(b, COLL_PMIX, rank, seq - 1) : BED_NONE;
}

/* Sometimes the end is told of long before the next program begins. */
static void kill_one(struct runs *r, uint32_t rank)
{
	r->kills--;
	if (bed_random(r->bed, 2)) {
		end_program(r->bed, rank);
		bed_deliver(r->bed);
	}
	next(r->bed, rank, true);
	r->program[rank]++;
	r->entered[rank] = 0;
}

/* The rank goes on with what it does; false: it waits, or has done all. */
static bool go_on(struct runs *r, uint32_t rank)
{
	bool failed = last_outcome(r->bed, rank) == BED_FAILED;

	if (last_outcome(r->bed, rank) == BED_WAITING)
		return false;
	if (!failed && r->entered[rank] < FENCES) {
		assert_int_equal(bed_enter(r->bed, COLL_PMIX, rank), 0);
		r->entered[rank]++;
		return true;
	}
	if (r->program[rank] == PROGRAMS - 1)
		return false;
	next(r->bed, rank, false);
	r->program[rank]++;
	r->entered[rank] = 0;
	return true;
}

static void step(struct runs *r)
{
	uint32_t rank = bed_random(r->bed, r->bed->nranks);

	if (r->kills && r->program[rank] < PROGRAMS - 1 && !bed_random(r->bed, 20))
		kill_one(r, rank);
	else if (bed_random(r->bed, 2))
		go_on(r, rank);
	else
		bed_deliver(r->bed);
}

static void run_out(struct runs *r)
{
	bool any = true;

	while (any) {
		any = false;
		for (uint32_t rank = 0; rank < r->bed->nranks; rank++)
			any |= go_on(r, rank);
		while (bed_deliver(r->bed))
			any = true;
	}
}

/* Numbers that a rank has skipped have no outcome. */
static void assert_all_ended(const struct bed *b)
{
	for (uint32_t i = 0; i < b->nnodes; i++)
		assert_int_equal(coll_pending(b->nodes[i].coll), 0);
	for (uint32_t r = 0; r < b->nranks; r++)
		for (uint32_t s = 0; s < bed_entered(b, COLL_PMIX, r); s++)
			assert_int_not_equal(bed_outcome(b, COLL_PMIX, r, s),
					     BED_WAITING);
}

static void one_history(uint64_t seed, uint32_t kills)
{
	uint32_t nnodes = 1 + seed * 7 % 12;
	struct bed *b = series_bed(nnodes, nnodes + seed * 11 % 20, 2 + seed % 5, seed);
	struct runs r = {
		.bed = b, .kills = kills,
		.program = calloc(b->nranks, sizeof(uint32_t)),
		.entered = calloc(b->nranks, sizeof(uint32_t)),
	};

	for (uint32_t steps = bed_random(b, 40 * b->nranks); steps; steps--)
		step(&r);
	run_out(&r);
	assert_all_ended(b);
	for (uint32_t rank = 0; rank < b->nranks; rank++) {
		assert_int_equal(r.program[rank], PROGRAMS - 1);
		assert_int_equal(r.entered[rank], FENCES);
		assert_int_equal(bed_entered(b, COLL_PMIX, rank),
				 (PROGRAMS - 1) * COLL_SERIES + FENCES);
		assert_int_equal(last_outcome(b, rank), BED_DONE);
	}
	free(r.program);
	free(r.entered);
	unit_end(b);
}

TEST(programs_after_killed_ones_meet)
{
	for (uint64_t seed = 1; seed <= 300; seed++)
		one_history(seed, seed % 6);
}

static void enter_all(struct bed *b, uint32_t but)
{
	for (uint32_t r = 0; r < b->nranks; r++)
		if (r != but)
			bed_enter(b, COLL_PMIX, r);
	bed_deliver_all(b);
}

SERIES_TEST(end_of_a_program_fails_the_fence_that_others_wait_in, 7, 14)
{
	enter_all(b, 5);
	assert_int_equal(bed_outcome(b, COLL_PMIX, 13, 0), BED_WAITING);
	end_program(b, 5);
	bed_deliver_all(b);
	bed_check_settled(b);
	assert_int_equal(bed_outcome(b, COLL_PMIX, 13, 0), BED_FAILED);
	assert_string_equal(b->record->reason, "a program was killed");
	assert_in_range(b->record->sent[COLL_MSG_SERIES], b->nnodes - 1,
			2 * (b->nnodes - 1));
	assert_int_equal(b->record->faults_sent, 0);
}

SERIES_TEST(program_without_fences_begins_no_series, 3, 6)
{
	next(b, 2, false);
	enter_all(b, COLL_NEVER);
	assert_int_equal(bed_outcome(b, COLL_PMIX, 5, 0), BED_DONE);
	assert_int_equal(b->record->sent[COLL_MSG_SERIES], 0);
}

SERIES_TEST(other_kinds_have_no_series, 3, 6)
{
	bed_enter(b, COLL_FENCE, 0);
	next(b, 2, true);
	bed_deliver_all(b);
	for (uint32_t r = 1; r < 6; r++)
		bed_enter(b, COLL_FENCE, r);
	bed_deliver_all(b);
	assert_int_equal(bed_outcome(b, COLL_FENCE, 0, 0), BED_DONE);
}

/* The rank's old program goes on with fences, long after its series has ended. */
SERIES_TEST(retries_in_an_ended_series_never_reach_the_next, 2, 2)
{
	struct payload *nothing = payload_virtual(0);
	uint32_t slot, seq;
	struct coll *c = bed_coll_of(b, 1, &slot);

	end_program(b, 0);
	bed_deliver_all(b);
	b->o.alone = true; /* results are not checked */
	for (uint32_t i = 0; i < 2 * COLL_SERIES; i++) {
		*bed_outcome_of(b, COLL_PMIX, 1, bed_entered(b, COLL_PMIX, 1)) =
			BED_WAITING;
		assert_int_equal(coll_enter(c, COLL_PMIX, slot, nothing, &seq), 0);
		assert_true(seq < COLL_SERIES);
	}
	next(b, 1, false);
	assert_int_equal(bed_entered(b, COLL_PMIX, 1), COLL_SERIES);
	payload_unref(nothing);
}

SERIES_TEST(long_program_takes_numbers_of_several_series, 2, 2)
{
	for (uint32_t i = 0; i < COLL_SERIES + 2; i++)
		enter_all(b, COLL_NEVER);
	assert_int_equal(last_outcome(b, 0), BED_DONE);
	for (uint32_t r = 0; r < 2; r++)
		next(b, r, false);
	bed_deliver_all(b);
	enter_all(b, COLL_NEVER);
	assert_int_equal(bed_outcome(b, COLL_PMIX, 1, 2 * COLL_SERIES), BED_DONE);
}

SERIES_TEST(bad_series_of_a_neighbour_are_refused, 2, 2)
{
	struct coll_msg msg = { .type = COLL_MSG_SERIES, .kind = COLL_PMIX };
	static const uint32_t bad[] = { 0, 1, COLL_SERIES + 1, COLL_NEVER };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		msg.seq = bad[i];
		assert_int_equal(coll_receive(b->nodes[0].coll, 1, &msg, NULL),
				 -EPROTO);
	}
	msg.kind = COLL_FENCE;
	msg.seq = COLL_SERIES;
	assert_int_equal(coll_receive(b->nodes[0].coll, 1, &msg, NULL), -EPROTO);
}

/* ---- subsets ---- */

/* Ranks 0 and 3 of 4, on 2 nodes. */
static int enter_subset(struct bed *b, uint32_t i, uint64_t id)
{
	static const uint32_t members[] = { 0, 3 };
	uint32_t slot;
	struct coll *c = bed_coll_of(b, members[i], &slot);
	const struct coll_subset_name name = {
		.op = COLL_OP_PMIX, .ranks = members, .count = 2,
		.series = coll_series(c, slot),
	};
	int rc;

	bed_inside(b, true);
	rc = coll_enter_subset(c, slot, &name, NULL, id);
	bed_inside(b, false);
	return rc;
}

/* libcoll knows the members by name: entries of groups tell their ends by index. */
SERIES_TEST(subsets_of_an_ended_program_fail_and_later_ones_meet, 2, 4)
{
	static const uint32_t members[] = { 0, 3 };
	uint32_t group = bed_group(b, members, 2);
	struct bed_group *g = &b->groups[group];

	b->o.alone = true; /* results are not checked */
	g->outcome[1][0] = BED_WAITING;
	assert_int_equal(enter_subset(b, 1, (uint64_t)group << 32), 0);
	bed_deliver_all(b);
	next(b, 0, true);
	bed_deliver_all(b);
	assert_int_equal(g->outcome[1][0], BED_FAILED);
	next(b, 3, false);
	g->outcome[0][1] = g->outcome[1][1] = BED_WAITING;
	assert_int_equal(enter_subset(b, 0, (uint64_t)group << 32 | 1), 0);
	assert_int_equal(enter_subset(b, 1, (uint64_t)group << 32 | 1), 0);
	bed_deliver_all(b);
	assert_int_equal(g->outcome[0][1], BED_DONE);
	assert_int_equal(g->outcome[1][1], BED_DONE);
}
