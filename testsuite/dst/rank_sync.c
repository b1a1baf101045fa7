/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank uses the store of the step, as a script does with pmi2x-sync: through the agents of all
 * nodes. Keys that all ranks have read, and so all nodes have copies of, change; after a barrier
 * everybody gets the new values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmi2.h"
#include "pmi2x.h"
#include "testsuite/dst/step.h"

#define PHASES 3 /* changes of each key; nodes may have copies from the second on */
#define READS 4  /* of a rank in a phase */

struct sync_rank {
	const struct sim_rank *rank;
	PMIX_Sync *sync;
	int phase;
};

static uint32_t job_size(const struct sync_rank *x)
{
	return x->rank->step->plan->ranks;
}

static int allow(const struct sync_rank *x, int rc, const char *what)
{
	trace(what, x->rank->rank, rc);
	if (rc && plan_succeeds(x->rank->step->plan))
		failed("rank %u, step %u: %s returns %d (%s)", x->rank->rank, x->rank->at, what, rc,
		       PMIX_Sync_error(x->sync));
	return rc;
}

static void key_of(const struct sync_rank *x, uint32_t rank, char key[40])
{
	snprintf(key, 40, "s%u-%u", x->rank->at, rank);
}

static int put(const struct sync_rank *x)
{
	char key[40], value[40];

	key_of(x, x->rank->rank, key);
	snprintf(value, sizeof(value), "%u.%d", x->rank->rank, x->phase);
	return allow(x, PMIX_Sync_put(x->sync, key, value, strlen(value), 0), "PMIX_Sync_put");
}

static int get(const struct sync_rank *x, uint32_t rank)
{
	char key[40], want[40];
	PMIX_Sync_value *value;
	int rc;

	key_of(x, rank, key);
	snprintf(want, sizeof(want), "%u.%d", rank, x->phase);
	rc = allow(x, PMIX_Sync_get(x->sync, key, draw_once_in(2) ? PMI2X_SYNC_WAIT : 0, &value),
		   "PMIX_Sync_get");
	if (rc)
		return rc;
	if (strcmp(value->data, want) != 0)
		failed("rank %u, step %u: key %s is \"%s\", not \"%s\"", x->rank->rank,
		       x->rank->at, key, (const char *)value->data, want);
	free(value);
	return 0;
}

static int meet(const struct sync_rank *x, const char *what)
{
	char name[40];

	snprintf(name, sizeof(name), "%s%u.%d", what, x->rank->at, x->phase);
	return allow(x, PMIX_Sync_barrier(x->sync, name, 0), "PMIX_Sync_barrier");
}

/* All ranks put; all get what all have put; nobody puts again before that. */
static int run_phase(const struct sync_rank *x)
{
	int rc = put(x);

	rc = rc ? rc : meet(x, "put");
	for (int i = 0; !rc && i < READS; i++)
		rc = get(x, draw_below(job_size(x)));
	return rc ? rc : meet(x, "got");
}

/* Each of the sums up to the number of ranks is that of one rank; after a barrier it is the last. */
static int count(const struct sync_rank *x)
{
	char key[40];
	int64_t sum = 0;
	int rc;

	snprintf(key, sizeof(key), "sum%u", x->rank->at);
	rc = allow(x, PMIX_Sync_add(x->sync, key, 1, 0, &sum), "PMIX_Sync_add");
	if (!rc && (sum < 1 || sum > job_size(x)))
		failed("rank %u, step %u: the sum is %lld", x->rank->rank, x->rank->at,
		       (long long)sum);
	rc = rc ? rc : meet(x, "sum");
	rc = rc ? rc : allow(x, PMIX_Sync_add(x->sync, key, 0, 0, &sum), "PMIX_Sync_add");
	if (!rc && sum != job_size(x))
		failed("rank %u, step %u: the sum of all is %lld", x->rank->rank, x->rank->at,
		       (long long)sum);
	return rc;
}

int rank_use_store(struct sim_rank *r)
{
	struct sync_rank x = { .rank = r };
	int rc = PMIX_Sync_open(&x.sync);

	rc = allow(&x, rc, "PMIX_Sync_open");
	for (x.phase = 0; !rc && x.phase < PHASES; x.phase++)
		rc = run_phase(&x);
	rc = rc ? rc : count(&x);
	PMIX_Sync_close(x.sync);
	return rc;
}
