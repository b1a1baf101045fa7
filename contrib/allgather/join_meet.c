/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fences of joining, and who has not come to one. PMI says only that not all
 * have, so who has says so where others see it without a fence: a rank in the
 * attributes of its node, a leader also under a name that srun keeps.
 *
 * Where PMI fails, it says itself who is to blame, if its library passes that on.
 * When the time is over, who misses a rank of its node publishes a verdict, and
 * the others wait for one. Without any, a leader is missing: rank 0 looks for
 * all of them, the others only for rank 0. Ranks that lead no node have the
 * verdict from their leader, so srun is asked once a node.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../libpmi2x/clique.h"
#include "clock.h"
#include "join.h"
#include "pmi2.h"
#include "pmi_library.h"

#define NAME_MAX_LEN 128
#define HERE_MS 1000   /* a fence that takes longer is worth a word */
#define SETTLE_MS 1200 /* so the others of a node have had the time to say it */
#define JUDGE_MS 2000
/*
 * The rank that has begun to wait first hears the verdict last: where ranks need long
 * to start, and so are given long, also a part of that time.
 */
#define GIVE_UP_MS 6000
#define GIVE_UP_PART 2
/*
 * Added to all limits: after a fence that failed early, other elements may only just have
 * been started.
 */
#define FAILED_MS 4000
#define LOOK_NS 50000000
#define LOOK_MAX_NS 500000000

/* ---- what is said ---- */

static void name_of(const struct join *j, char *out, const char *what, int rank)
{
	const char *job = getenv("PMI_JOBID");

	snprintf(out, NAME_MAX_LEN, "%s-%u-%u-%s-%d-%s", j->ring->use.keys,
		 j->ring->use.sequence, j->round, what, rank, job ? job : "");
}

/* To the node. */
static void tell_node(struct join *j, const char *what, int rank,
		      const char *text)
{
	char name[NAME_MAX_LEN];

	name_of(j, name, what, rank);
	j->ring->pmi.put_node_attr(name, text);
}

static bool told_by_node(struct join *j, const char *what, int rank,
			 char *text)
{
	char name[NAME_MAX_LEN];
	int found = 0;

	name_of(j, name, what, rank);
	return !j->ring->pmi.get_node_attr(name, text, PMI2_MAX_ATTRVALUE,
					   &found, 0) && found;
}

/* To the job. */
static bool tell_job(struct join *j, const char *what, int rank,
		     const char *text)
{
	char name[NAME_MAX_LEN];

	name_of(j, name, what, rank);
	return j->ring->pmi.publish &&
	       j->ring->pmi.publish(name, NULL, text) == 0;
}

static bool told_by_job(struct join *j, const char *what, int rank, char *text)
{
	char name[NAME_MAX_LEN];

	name_of(j, name, what, rank);
	return j->ring->pmi.lookup &&
	       j->ring->pmi.lookup(name, NULL, text, PMI2_MAX_ATTRVALUE) == 0;
}

static int64_t limit_ms(const struct join *j)
{
	/* A leader that has waited for a connection may be late. */
	return j->ring->stall_ms + (j->round ? j->connect_ms : 0);
}

static void say_here(struct join *j)
{
	if (j->said < SAID_NODE)
		tell_node(j, "here", j->ring->rank, "1");
	j->said = SAID_NODE;
}

static void say_here_to_all(struct join *j)
{
	say_here(j);
	if (j->said < SAID_JOB && j->ring->index == 0)
		tell_job(j, "here", j->ring->rank, "1");
	j->said = SAID_JOB;
}

static void while_waiting(void *arg, int64_t waited)
{
	struct join *j = arg;

	if (j->said < SAID_NODE && waited >= HERE_MS)
		say_here(j);
	if (j->said < SAID_JOB && waited >= limit_ms(j) / 2)
		say_here_to_all(j);
}

/* ---- who is missing ---- */

/* A rank of this node that has not come, or has died; -1: none. */
static int missing_here(struct join *j)
{
	struct pmi2x_ring *r = j->ring;
	char value[PMI2_MAX_ATTRVALUE];
	int dead = r->group ? group_dead(r->group) : -1;

	if (dead >= 0)
		return r->ranks[dead];
	for (uint32_t i = 0; i < r->members; i++)
		if (r->ranks[i] != r->rank &&
		    !told_by_node(j, "here", r->ranks[i], value))
			return r->ranks[i];
	return -1;
}

/* The ranks of the element that `rank` leads; how many. */
static int members_of(const struct join *j, int rank, int *ranks)
{
	if (j->grouped)
		return clique_find(j->mapping, rank, j->ring->size, ranks,
				   j->ring->size);
	ranks[0] = rank;
	return 1;
}

static int missing_leader(struct join *j)
{
	int size = j->ring->size, missing = -1;
	int *ranks = calloc(size, sizeof(*ranks));
	bool *seen = calloc(size, sizeof(*seen));
	char value[PMI2_MAX_ATTRVALUE];

	for (int rank = 0; ranks && seen && rank < size && missing < 0;
	     rank++) {
		if (seen[rank])
			continue;
		for (int n = members_of(j, rank, ranks); n > 0; n--)
			seen[ranks[n - 1]] = true;
		if (!told_by_job(j, "here", rank, value))
			missing = rank;
	}
	free(ranks);
	free(seen);
	return missing;
}

/* ---- the verdict ---- */

static bool verdict(struct join *j, char *text)
{
	if (j->ring->index > 0)
		return told_by_node(j, "missing", 0, text);
	if (!told_by_job(j, "missing", 0, text))
		return false;
	tell_node(j, "missing", 0, text);
	return true;
}

/* The first one counts. */
static void judge(struct join *j, char *text, int missing, bool here,
		  int error)
{
	char why[64] = ": the job's PMI has failed";

	if (error == -ETIMEDOUT)
		snprintf(why, sizeof(why), " within %d s",
			 (int)(limit_ms(j) / 1000));
	if (here)
		snprintf(text, PMI2_MAX_ATTRVALUE, "rank %d on node %s has "
			 "not joined%s", missing, j->ring->node, why);
	else
		snprintf(text, PMI2_MAX_ATTRVALUE, "rank %d, the first of its "
			 "node, has not joined%s", missing, why);
	if (!tell_job(j, "missing", 0, text))
		told_by_job(j, "missing", 0, text);
	tell_node(j, "missing", 0, text);
}

/* For leaders that have waited for a verdict long enough. */
static int look_for_leaders(struct join *j, int64_t waited)
{
	struct pmi2x_ring *r = j->ring;
	char value[PMI2_MAX_ATTRVALUE];

	if (r->index > 0 || waited < (r->rank ? 2 * JUDGE_MS : JUDGE_MS) ||
	    !told_by_job(j, "here", r->rank, value))
		return -1; /* not yet, or there is no name service */
	if (r->rank == 0)
		return missing_leader(j);
	return told_by_job(j, "here", 0, value) ? -1 : 0;
}

/* False: nobody has said it in time. */
static bool find_missing(struct join *j, char *text, int error)
{
	int64_t give_up = GIVE_UP_MS + limit_ms(j) / GIVE_UP_PART;
	struct timespec pause = { 0, LOOK_NS };
	int64_t start = clock_ms() + (error == -ETIMEDOUT ? 0 : FAILED_MS);
	int64_t waited = 0;

	while (waited < give_up && !verdict(j, text)) {
		int missing = waited > SETTLE_MS ? missing_here(j) : -1;
		bool here = missing >= 0;

		if (!here)
			missing = look_for_leaders(j, waited);
		if (missing >= 0) {
			judge(j, text, missing, here, error);
			return true;
		}
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < LOOK_MAX_NS)
			pause.tv_nsec += pause.tv_nsec / 4;
		waited = clock_ms() - start;
	}
	return waited < give_up;
}

int join_blame(struct join *j, int error)
{
	struct pmi2x_ring *r = j->ring;
	char text[PMI2_MAX_ATTRVALUE];
	int seconds = (int)(limit_ms(j) / 1000);

	if (error != -ETIMEDOUT && pmi_refusal(&r->pmi, text, sizeof(text)))
		return join_fail(j, PMI2_FAIL, "rank %d on node %s: the job's "
				 "PMI has failed: %s", r->rank, r->node, text);
	say_here_to_all(j);
	if (find_missing(j, text, error))
		return join_fail(j, PMI2_FAIL, "%s", text);
	if (error != -ETIMEDOUT)
		return join_fail(j, PMI2_FAIL, "rank %d on node %s: the job's "
				 "PMI has failed%s%s", r->rank, r->node,
				 j->bad[0] ? "; " : "", j->bad);
	if (j->bad[0])
		return join_fail(j, PMI2_FAIL, "%s; not all ranks reported that within %d s", j->bad, seconds);
	return join_fail(j, PMI2_FAIL, "rank %d on node %s: all ranks of the "
			 "node have joined, but not all %d of the job within "
			 "%d s", r->rank, r->node, r->size, seconds);
}

int join_meet(struct join *j)
{
	int rc = pmi_fence(&j->ring->pmi, limit_ms(j), while_waiting, j);

	if (rc)
		return join_blame(j, rc);
	j->said = SAID_NOTHING;
	return PMI2_SUCCESS;
}
