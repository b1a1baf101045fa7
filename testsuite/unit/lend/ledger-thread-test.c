/* SPDX-License-Identifier: BSD-3-Clause */
/* Many calls of real threads: two for each rank, as in libpmi2x-lend. */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>

#include "ledger-bed.h"

#define RANKS 3
#define ROUNDS 30000

struct thread {
	struct ledger_bed *bed;
	uint32_t rank;
	atomic_bool *over;
	pthread_t id;
};

static void *wait_and_resume(void *arg)
{
	struct thread *t = arg;
	struct ledger l = bed_ledger(t->bed);

	for (int i = 0; i < ROUNDS; i++) {
		ledger_wait(&l, t->rank);
		ledger_resume(&l, t->rank, (uint32_t)i % 7);
	}
	if (t->rank == 0)
		ledger_leave(&l, 0);
	else if (t->rank == 1)
		ledger_wait(&l, 1);
	return NULL;
}

static void *share(void *arg)
{
	struct thread *t = arg;

	while (!atomic_load(t->over))
		bed_share(t->bed, t->rank);
	return NULL;
}

TEST(ledger_is_whole_after_many_calls)
{
	struct thread mains[RANKS], helpers[RANKS];
	atomic_bool over = false;
	struct ledger_bed b;

	bed_make(&b, RANKS, 2, 4);
	for (uint32_t r = 0; r < RANKS; r++) {
		mains[r] = helpers[r] = (struct thread){ &b, r, &over, 0 };
		assert_int_equal(pthread_create(&helpers[r].id, NULL, share, &helpers[r]), 0);
		assert_int_equal(pthread_create(&mains[r].id, NULL, wait_and_resume, &mains[r]), 0);
	}
	for (uint32_t r = 0; r < RANKS; r++)
		pthread_join(mains[r].id, NULL);
	atomic_store(&over, true);
	for (uint32_t r = 0; r < RANKS; r++)
		pthread_join(helpers[r].id, NULL);
	bed_check(&b);
	bed_check_settled(&b);
	assert_int_equal(bed_state(&b, 0), LEDGER_GONE);
	assert_int_equal(bed_state(&b, 2), LEDGER_COMPUTES);
}
