/* SPDX-License-Identifier: BSD-3-Clause */
/* Core seconds of ranks, and the line about them. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "ledger-bed.h"
#include "lend/summary.h"

#define MS 1000ull

static struct ledger_bed bed;
static struct account ranks[2];
static struct accounts own; /* of rank 0 */

static void begin(void)
{
	memset(ranks, 0, sizeof(ranks));
	bed_make(&bed, 2, 1, 2);
	accounts_view(&own, ranks, 0);
}

static void update(uint64_t now)
{
	struct ledger l = bed_ledger(&bed);

	accounts_update(&own, &l, now);
}

/* Rank 1 waits, and rank 0 takes its core at this time. */
static void take_at(uint64_t now)
{
	struct ledger l = bed_ledger(&bed);

	ledger_wait(&l, 1);
	bed_share(&bed, 0);
	assert_int_equal(bed_held(&bed, 0), 1);
	update(now);
}

/* Rank 1 comes back at one time, and rank 0 leaves at another. */
static void leave_at(uint64_t back, uint64_t now)
{
	struct ledger l = bed_ledger(&bed);
	struct accounts other;

	accounts_view(&other, ranks, 1);
	ledger_resume(&l, 1, 0);
	accounts_resume(&other, back, 1, back);
	update(back);
	bed_share(&bed, 0);
	update(now);
}

TEST(core_is_lent_and_used_until_its_holder_leaves)
{
	begin();
	take_at(10 * MS);
	assert_int_equal(ranks[0].used, 0);
	leave_at(30 * MS, 30 * MS + 500);
	assert_int_equal(ranks[0].used, 20 * MS + 500);
	assert_int_equal(ranks[1].lent, 20 * MS + 500);
	assert_int_equal(ranks[1].idle, 30 * MS);
	assert_int_equal(ranks[1].late + ranks[0].late + ranks[0].lent + ranks[1].used, 0);
}

TEST(core_that_is_left_after_more_than_a_millisecond_is_late)
{
	begin();
	take_at(10 * MS);
	leave_at(30 * MS, 32 * MS);
	assert_int_equal(ranks[1].late, 2 * MS);
	assert_int_equal(ranks[0].late, 0);
}

TEST(core_that_is_given_up_during_its_owners_wait_is_not_late)
{
	struct ledger l;

	begin();
	leave_at(1 * MS, 1 * MS);
	take_at(10 * MS);
	l = bed_ledger(&bed);
	ledger_wait(&l, 0);
	update(50 * MS);
	assert_int_equal(ranks[0].used, 40 * MS);
	assert_int_equal(ranks[1].late, 0);
}

TEST(summary_names_ranks_by_their_number_in_the_step)
{
	struct lend_table *table = calloc(1, lend_table_size(2));
	char text[LEND_SUMMARY_MAX];

	begin();
	table->entries[0].facts.rank = 6;
	table->entries[1].facts.rank = 7;
	ranks[1].idle = 2500 * MS;
	ranks[1].lent = 1500 * MS;
	ranks[0].used = 1500 * MS;
	ranks[1].late = 10 * MS;
	lend_summary(ranks, table, 2, "n1", text);
	assert_string_equal(text, "PMI2X_LEND: node n1: core seconds idle/lent/used/late: "
				  "all 2.50/1.50/1.50/0.01, rank 6 0.00/0.00/1.50/0.00, "
				  "rank 7 2.50/1.50/0.00/0.01");
	free(table);
}

TEST(summary_of_many_ranks_ends_with_their_number)
{
	struct lend_table *table = calloc(1, lend_table_size(1000));
	struct account *many = calloc(1000, sizeof(*many));
	char text[LEND_SUMMARY_MAX], node[500] = "";

	memset(node, 'n', sizeof(node) - 1);
	memset(many, 0xff, 1000 * sizeof(*many));
	lend_summary(many, table, 1000, node, text);
	assert_true(strlen(text) < LEND_SUMMARY_MAX);
	assert_non_null(strstr(text, ", and 984 others"));
	free(table);
	free(many);
}
