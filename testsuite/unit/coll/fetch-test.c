/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetches between the nodes of a step: whatever goes, each ends once, with what the owner's
 * host has said or with who has gone; nobody remembers it then, and lies are refused.
 */
#include "unit.h"

#include <errno.h>

#include "bed.h"
#include "libcoll/coll_private.h"

static void answer_at(struct bed *bed, uint32_t i, enum coll_fetch_status status)
{
	assert_int_equal(bed_answer(bed, i, status), 0);
	bed_deliver_all(bed);
}

TEST(every_rank_of_every_other)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint32_t nnodes = 1 + seed * 7 % 24;
		struct bed *bed = new_bed(nnodes, nnodes + seed % 9, 2 + seed % 5,
					  seed);

		for (uint32_t p = 0; p < nnodes; p++)
			for (uint32_t r = 0; r < bed->nranks; r++)
				assert_int_equal(bed_fetch(bed, p, r), 0);
		bed_deliver_all(bed);
		assert_int_equal(bed->nasked, nnodes * bed->nranks);
		while (bed->nasked)
			answer_at(bed, bed_random(bed, bed->nasked),
				  bed_random(bed, COLL_FETCH_STATUSES));
		for (uint32_t i = 0; i < bed->nfetches; i++)
			assert_int_not_equal(bed->fetches[i].outcome, BED_WAITING);
		bed_check_settled(bed);
		unit_end(bed);
	}
}

/* Positions: 0: 1 (2 3), 4 (5 6). */
static struct bed *tree(void)
{
	return new_bed(7, 14, 2, 0);
}

TEST(costs_its_way)
{
	struct bed *bed = tree();

	bed_fetch(bed, 2, 13);
	bed_deliver_all(bed);
	assert_int_equal(bed->record->sent[COLL_MSG_FETCH], 4);
	answer_at(bed, 0, COLL_FETCH_FOUND);
	assert_int_equal(bed->record->sent[COLL_MSG_FETCHED], 4);
	assert_int_equal(bed->fetches[0].outcome, BED_DONE);
	bed_fetch(bed, 2, 4);
	assert_int_equal(bed->record->sent[COLL_MSG_FETCH], 4);
	answer_at(bed, 0, COLL_FETCH_ABSENT);
	assert_int_equal(bed->fetches[1].outcome, BED_FAILED);
	bed_check_settled(bed);
}

TEST(fetch_from_a_rank_that_goes_fails)
{
	struct bed *bed = tree();

	bed_fetch(bed, 3, 8);
	bed_fetch(bed, 3, 9);
	bed_fetch(bed, 4, 8);
	bed_deliver_all(bed);
	bed_rank_gone(bed, 8);
	bed_deliver_all(bed);
	assert_int_equal(bed->fetches[0].outcome, BED_FAILED);
	assert_int_equal(bed->fetches[1].outcome, BED_WAITING);
	assert_int_equal(bed->fetches[2].outcome, BED_FAILED);
	assert_string_equal(bed->record->reason, "rank 8 is gone");
	/* The host may answer all the same, and later asks still reach it. */
	bed_fetch(bed, 6, 8);
	bed_deliver_all(bed);
	while (bed->nasked)
		(void)bed_answer(bed, 0, COLL_FETCH_FOUND);
	bed_deliver_all(bed);
	assert_int_equal(bed->fetches[3].outcome, BED_DONE);
	assert_int_equal(bed->fetches[1].outcome, BED_DONE);
	bed_check_settled(bed);
}

TEST(over_a_link_that_breaks)
{
	struct bed *bed = tree();

	bed_fetch(bed, 2, 13); /* over node 4 */
	bed_fetch(bed, 2, 0);
	bed_fetch(bed, 6, 0);
	bed_deliver_all(bed);
	bed_break(bed, 4);
	bed_detect_all(bed);
	bed_deliver_all(bed);
	assert_int_equal(bed->fetches[0].outcome, BED_FAILED);
	assert_int_equal(bed->fetches[2].outcome, BED_FAILED);
	assert_non_null(strstr(bed->record->reason, " is lost"));
	assert_int_equal(bed->fetches[1].outcome, BED_WAITING);
	/* At once, where it is known. */
	bed_fetch(bed, 0, 9);
	assert_int_equal(bed->fetches[3].outcome, BED_FAILED);
	assert_string_equal(bed->record->reason, "the link to 4 is lost");
	while (bed->nasked)
		(void)bed_answer(bed, 0, COLL_FETCH_FOUND);
	bed_deliver_all(bed);
	assert_int_equal(bed->fetches[1].outcome, BED_DONE);
	bed_check_settled(bed);
}

/* Faults at any time, answers at any time: each ends. */
TEST(ends_whatever_happens)
{
	for (uint64_t seed = 1; seed < 300; seed++) {
		struct bed *bed = new_bed(2 + seed % 12, 14 + seed % 7,
					  2 + seed % 3, seed);

		for (int i = 0; i < 150; i++) {
			uint32_t dice = bed_random(bed, 40);

			if (dice < 12 && bed->nfetches < bed->o.fetches_max)
				bed_fetch(bed, bed_random(bed, bed->nnodes),
					  bed_random(bed, bed->nranks));
			else if (dice < 20 && bed->nasked)
				(void)bed_answer(bed, bed_random(bed, bed->nasked),
						 bed_random(bed, COLL_FETCH_STATUSES));
			else if (dice == 20)
				bed_break_any(bed);
			else if (dice == 21)
				bed_rank_gone(bed, bed_random(bed, bed->nranks));
			else if (dice == 22)
				bed_detect_all(bed);
			else
				bed_deliver(bed);
		}
		bed_detect_all(bed);
		do {
			bed_deliver_all(bed);
			while (bed->nasked)
				(void)bed_answer(bed, 0, COLL_FETCH_FOUND);
		} while (bed_deliver(bed));
		bed_check_settled(bed);
		unit_end(bed);
	}
}

BED_TEST(limits_are_kept, 2, 2)
{
	struct coll *c = bed->nodes[0].coll;
	static char key[COLL_FETCH_KEY_MAX + 1];
	struct coll_fetch what = { .rank = 1, .key = key, .key_len = sizeof(key) };

	assert_int_equal(coll_fetch(c, &what, 0), -EINVAL);
	what.key_len = 1;
	what.rank = 2;
	assert_int_equal(coll_fetch(c, &what, 0), -EINVAL);
	for (uint32_t i = 0; i < COLL_FETCH_AHEAD_MAX; i++)
		assert_int_equal(bed_fetch(bed, 0, 1), 0);
	assert_int_equal(bed_fetch(bed, 0, 1), -EAGAIN);
	assert_int_equal(coll_fetches_pending(c), COLL_FETCH_AHEAD_MAX);
	bed_deliver_all(bed);
	answer_at(bed, 0, COLL_FETCH_FOUND);
	assert_int_equal(bed_fetch(bed, 0, 1), 0);
	bed_deliver_all(bed);
	assert_int_equal(coll_fetch_answer(bed->nodes[1].coll, 1 << 20,
					   &(struct coll_fetched){ 0 }), -ENOENT);
	/* A fetch of a neighbour that does not keep them. */
	assert_int_equal(bed_inject(bed, 0, 1, &(struct coll_msg){
		.type = COLL_MSG_FETCH, .fetch = { .rank = 1 } }, "k"), -EPROTO);
}

BED_TEST(more_than_can_be_fetched, 2, 2)
{
	struct payload *much = payload_virtual(COLL_FETCH_BYTES_MAX + 1);

	bed_fetch(bed, 1, 0);
	bed_deliver_all(bed);
	assert_int_equal(coll_fetch_answer(bed->nodes[0].coll,
					   bed->asked[0].token,
					   &(struct coll_fetched){ .value = much }),
			 0);
	bed_deliver_all(bed);
	assert_int_equal(bed->fetches[0].outcome, BED_FAILED);
	assert_string_equal(bed->record->reason,
			    "the node of rank 0 has a value that is too long for a fetch");
	payload_unref(much);
}

TEST(lies_are_refused)
{
	struct bed *bed = tree();
	const struct {
		uint32_t from, to;
		struct coll_msg msg;
	} lies[] = {
		{ 0, 1, { .type = COLL_MSG_FETCH, .fetch = { .rank = 14 } } },
		{ 0, 1, { .type = COLL_MSG_FETCH, .fetch = { .rank = 13 } } },
		{ 2, 1, { .type = COLL_MSG_FETCH, .fetch = { .rank = 4 } } },
		{ 2, 1, { .type = COLL_MSG_FETCHED, .fetch = { .id = 1 } } },
		{ 3, 1, { .type = COLL_MSG_FETCHED, .fetch = { .id = 77 } } },
		{ 3, 1, { .type = COLL_MSG_FETCHED,
			  .fetch = { .id = 1, .status = COLL_FETCH_STATUSES } } },
	};

	bed_fetch(bed, 2, 6);
	bed_deliver_all(bed);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		assert_int_equal(bed_inject(bed, lies[i].from, lies[i].to,
					    &lies[i].msg, "key"), -EPROTO);
	answer_at(bed, 0, COLL_FETCH_FOUND);
	bed_check_settled(bed);
}
