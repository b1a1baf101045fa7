/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of pmi2x-probe, each with a check of its result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "pmi2.h"
#include "pmi2x.h"
#include "tools/probe.h"

#define TEXT_MAX PMI2_MAX_VALLEN
#define KVS_COUNT 16           /* keys of each rank in "kvs" */
#define KVS_COUNT_MAX 100000
#define KVS_GETS_MAX 100000    /* look-ups of each rank; more are sampled */
#define FETCH_COUNT 64         /* ranks of which each fetches in "fetch" */
#define FETCH_NUMBER KVS_COUNT_MAX /* of the key: none of those of "kvs" */
#define FETCH_MS 60000
#define SPAWN_PREPUT_KEY "pmi2x-probe"
#define SPAWN_PREPUT_VALUE "put by the spawner"

/* Copy `from` with every %r replaced by the rank. False when it is too long. */
static bool expand(const struct probe *p, const char *from, char *out)
{
	size_t at = 0;

	while (*from && at < TEXT_MAX - 16) {
		if (from[0] == '%' && from[1] == 'r') {
			at += sprintf(out + at, "%d", p->rank);
			from += 2;
		} else {
			out[at++] = *from++;
		}
	}
	out[at] = '\0';
	return !*from || probe_fail(p, "an argument is too long");
}

/* Split NAME=VALUE, both expanded; *value NULL when there is no '='. */
static bool split(const struct probe *p, const char *word, char *name,
		  char *text, char **value)
{
	char *equals;

	if (!expand(p, word, name))
		return false;
	equals = strchr(name, '=');
	*value = NULL;
	if (equals) {
		*equals = '\0';
		strcpy(text, equals + 1);
		*value = text;
	}
	return true;
}

static bool to_number(const char *word, long min, long max, long *out)
{
	char *end;

	*out = strtol(word, &end, 10);
	return end != word && !*end && *out >= min && *out <= max;
}

/* ---- single operations ---- */

static bool op_put(const struct probe *p, char **args)
{
	char key[TEXT_MAX], text[TEXT_MAX], *value;
	int rc;

	if (!split(p, args[0], key, text, &value))
		return false;
	rc = PMI2_KVS_Put(key, value ? value : "");
	return !rc || probe_fail(p, "put %s: error %d", key, rc);
}

static bool op_fence(const struct probe *p, char **args)
{
	int rc = PMI2_KVS_Fence();

	if (rc)
		return probe_fail(p, "fence: error %d", rc);
	probe_say(p, "fence: ok");
	return true;
}

static bool op_ifence(const struct probe *p, char **args)
{
	PMIX_Request request;
	int flag = 0;
	int rc = PMIX_KVS_Ifence(&request);

	if (!rc)
		rc = PMIX_Test(request, &flag);
	if (!rc && !flag)
		rc = PMIX_Wait(request);
	if (rc)
		return probe_fail(p, "ifence: error %d", rc);
	probe_say(p, "ifence: ok");
	return true;
}

static bool op_get(const struct probe *p, char **args)
{
	char key[TEXT_MAX], text[TEXT_MAX], got[TEXT_MAX], *want;
	int rc, len;

	if (!split(p, args[0], key, text, &want))
		return false;
	rc = PMI2_KVS_Get(NULL, PMI2_ID_NULL, key, got, sizeof(got), &len);
	if (rc)
		return probe_fail(p, "get %s: error %d", key, rc);
	if (want && strcmp(got, want))
		return probe_fail(p, "get %s: got %s instead of %s", key, got,
				  want);
	probe_say(p, "get: %s = %s", key, got);
	return true;
}

static bool op_attr(const struct probe *p, char **args)
{
	char got[TEXT_MAX];
	int found;
	int rc = PMI2_Info_GetJobAttr(args[0], got, sizeof(got), &found);

	if (rc)
		return probe_fail(p, "attr %s: error %d", args[0], rc);
	probe_say(p, "attr: %s = %s", args[0], found ? got : "(none)");
	return true;
}

/* ---- kvs: put, fence, get of many keys ---- */

static void kvs_pair(int rank, long i, char *key, char *value)
{
	snprintf(key, PMI2_MAX_KEYLEN, "probe-%d-%ld", rank, i);
	snprintf(value, TEXT_MAX, "value %ld; of rank %d", i, rank);
}

static bool kvs_put(const struct probe *p, long count)
{
	char key[PMI2_MAX_KEYLEN], value[TEXT_MAX];
	int rc = 0;

	for (long i = 0; !rc && i < count; i++) {
		kvs_pair(p->rank, i, key, value);
		rc = PMIX_KVS_Put_n(key, value, strlen(value));
	}
	return !rc || probe_fail(p, "kvs: put %s: error %d", key, rc);
}

static bool kvs_check(const struct probe *p, int rank, long i)
{
	char key[PMI2_MAX_KEYLEN], want[TEXT_MAX], got[TEXT_MAX];
	int rc, len = 0;

	kvs_pair(rank, i, key, want);
	rc = PMIX_KVS_Get_n(key, got, sizeof(got), &len);
	if (rc)
		return probe_fail(p, "kvs: get %s: error %d", key, rc);
	if (len != (int)strlen(want) || memcmp(got, want, len))
		return probe_fail(p, "kvs: %s has the wrong value", key);
	return true;
}

/* COUNT is optional: the next word belongs to it when it is a number. */
static bool op_kvs(const struct probe *p, char **args)
{
	long count = KVS_COUNT, gets = 0, all, step;

	if (args[0] && !to_number(args[0], 1, KVS_COUNT_MAX, &count))
		return probe_fail(p, "kvs: 1 to %d keys", KVS_COUNT_MAX);
	if (!kvs_put(p, count) || PMI2_KVS_Fence())
		return probe_fail(p, "kvs: put and fence failed");
	all = count * p->size;
	step = 1 + all / KVS_GETS_MAX;
	for (long i = p->rank % step; i < all; i += step, gets++)
		if (!kvs_check(p, i % p->size, i / p->size))
			return false;
	probe_say(p, "kvs: ok, %d process%s x %ld key%s, %ld look-up%s each",
		  p->size, probe_es(p->size), count, count == 1 ? "" : "s", gets,
		  gets == 1 ? "" : "s");
	return true;
}

/* ---- fetch: what no fence has published ---- */

static bool fetch_check(const struct probe *p, int rank)
{
	char key[PMI2_MAX_KEYLEN], want[TEXT_MAX], got[TEXT_MAX];
	size_t len = sizeof(got);
	int rc;

	kvs_pair(rank, FETCH_NUMBER, key, want);
	rc = PMIX_KVS_Fetch(rank, key, got, &len, FETCH_MS);
	if (rc)
		return probe_fail(p, "fetch %s of rank %d: error %d", key, rank,
				  rc);
	if (len != strlen(want) || memcmp(got, want, len))
		return probe_fail(p, "fetch: %s has the wrong value", key);
	return true;
}

/* Fetches values of `count` ranks; then nobody needs the values any more. */
static bool op_fetch(const struct probe *p, char **args)
{
	long count = p->size < FETCH_COUNT ? p->size : FETCH_COUNT;
	char key[PMI2_MAX_KEYLEN], value[TEXT_MAX], can[8] = "";

	if (args[0] && !to_number(args[0], 1, p->size, &count))
		return probe_fail(p, "fetch: 1 to %d ranks", p->size);
	PMIX_Capabilities("fetch", can, sizeof(can));
	if (strcmp(can, "1"))
		return probe_fail(p, "fetch: this PMI server does not support it");
	kvs_pair(p->rank, FETCH_NUMBER, key, value);
	if (PMI2_KVS_Put(key, value))
		return probe_fail(p, "fetch: put failed");
	for (long i = 0; i < count; i++)
		if (!fetch_check(p, (int)((p->rank + 1 + i * p->size / count) %
					  p->size)))
			return false;
	if (PMI2_KVS_Fence())
		return probe_fail(p, "fetch: the fence after it failed");
	probe_say(p, "fetch: ok, values of %ld process%s each", count,
		  probe_es(count));
	return true;
}

/* ---- ring and gathers ---- */

struct seat {
	int at; /* rank in the ring */
	char own[24];
	char left[24];
	char right[24];
};

/* Everybody's neighbours, seen by everybody, must agree. */
static bool check_seats(const struct probe *p, const struct seat *seats)
{
	const struct seat **ring = calloc(p->size, sizeof(*ring));
	bool ok = ring != NULL;

	for (int r = 0; ok && r < p->size; r++) {
		int at = seats[r].at;

		ok = at >= 0 && at < p->size && !ring[at];
		if (ok)
			ring[at] = &seats[r];
	}
	for (int i = 0; ok && i < p->size; i++) {
		const struct seat *next = ring[(i + 1) % p->size];

		ok = !strcmp(ring[i]->right, next->own) &&
		     !strcmp(next->left, ring[i]->own);
	}
	free(ring);
	return ok || probe_fail(p, "ring: the neighbours do not agree");
}

static bool op_ring(const struct probe *p, char **args)
{
	struct seat *seats = calloc(p->size, sizeof(*seats));
	struct seat mine = { 0 };
	int size = 0, rc;
	bool ok;

	if (!seats)
		return probe_fail(p, "ring: no memory");
	snprintf(mine.own, sizeof(mine.own), "seat of %d", p->rank);
	rc = PMIX_Ring(mine.own, &mine.at, &size, mine.left, mine.right,
		       sizeof(mine.left));
	if (!rc)
		rc = PMIX_Allgather_n(&mine, sizeof(mine), seats, sizeof(mine),
				      NULL);
	if (rc)
		ok = probe_fail(p, "ring: error %d", rc);
	else if (size != p->size)
		ok = probe_fail(p, "ring: size %d instead of %d", size, p->size);
	else
		ok = check_seats(p, seats);
	free(seats);
	if (ok)
		probe_say(p, "ring: ok, %d process%s", size, probe_es(size));
	return ok;
}

static void gather_value(int rank, char *out)
{
	snprintf(out, PMI2X_MAXLENGTH, "rank %d;%.*s", rank, rank % 40,
		 "........................................");
}

static bool check_gathered(const struct probe *p, const char *what,
			   const char *all)
{
	char want[PMI2X_MAXLENGTH];

	for (int r = 0; r < p->size; r++) {
		gather_value(r, want);
		if (strcmp(all + (size_t)r * PMI2X_MAXLENGTH, want))
			return probe_fail(p, "%s: wrong value of rank %d", what,
					  r);
	}
	probe_say(p, "%s: ok, %d process%s", what, p->size, probe_es(p->size));
	return true;
}

static int gather_and_test(const char *value, char *all)
{
	PMIX_Request request;
	int flag = 0;
	int rc = PMIX_Iallgather(value, all, &request);

	if (!rc)
		rc = PMIX_Test(request, &flag);
	if (!rc && !flag)
		rc = PMIX_Wait(request);
	return rc;
}

static bool gather(const struct probe *p, const char *what,
		   int (*collective)(const char *value, char *all))
{
	char *all = calloc(p->size, PMI2X_MAXLENGTH);
	char value[PMI2X_MAXLENGTH];
	bool ok;
	int rc;

	if (!all)
		return probe_fail(p, "%s: no memory", what);
	gather_value(p->rank, value);
	rc = collective(value, all);
	ok = rc ? probe_fail(p, "%s: error %d", what, rc)
		: check_gathered(p, what, all);
	free(all);
	return ok;
}

static int gather_and_wait(const char *value, char *all)
{
	return PMIX_Allgather(value, all);
}

static bool op_allgather(const struct probe *p, char **args)
{
	return gather(p, "allgather", gather_and_wait);
}

static bool op_iallgather(const struct probe *p, char **args)
{
	return gather(p, "iallgather", gather_and_test);
}

/* ---- names: rank 0 publishes and unpublishes, a fence orders the rest ---- */

static int publish_and_look_up(const char *name, const char *port)
{
	char got[TEXT_MAX];
	int rc = PMI2_Nameserv_publish(name, NULL, port);

	if (!rc)
		rc = PMI2_Nameserv_lookup(name, NULL, got, sizeof(got));
	if (!rc && strcmp(got, port))
		rc = PMI2_ERR_INVALID_VAL;
	return rc;
}

static bool op_publish(const struct probe *p, char **args)
{
	char name[TEXT_MAX], text[TEXT_MAX], *port;
	int rc = 0;

	if (!split(p, args[0], name, text, &port))
		return false;
	if (!port)
		return probe_fail(p, "publish: NAME=PORT is needed");
	if (p->rank == 0)
		rc = publish_and_look_up(name, port);
	if (rc)
		probe_fail(p, "publish %s: error %d", name, rc);
	if (PMI2_KVS_Fence() || rc)
		return false;
	probe_say(p, "publish: %s = %s", name, port);
	return true;
}

static bool op_lookup(const struct probe *p, char **args)
{
	char name[TEXT_MAX], text[TEXT_MAX], got[TEXT_MAX], *want;
	int rc;

	if (!split(p, args[0], name, text, &want))
		return false;
	rc = PMI2_Nameserv_lookup(name, NULL, got, sizeof(got));
	if (rc)
		return probe_fail(p, "lookup %s: error %d", name, rc);
	if (want && strcmp(got, want))
		return probe_fail(p, "lookup %s: got %s", name, got);
	probe_say(p, "lookup: %s = %s", name, got);
	return true;
}

static bool op_unpublish(const struct probe *p, char **args)
{
	char name[TEXT_MAX];
	int rc = 0;

	if (!expand(p, args[0], name) || PMI2_KVS_Fence())
		return false;
	if (p->rank == 0)
		rc = PMI2_Nameserv_unpublish(name, NULL);
	if (rc)
		return probe_fail(p, "unpublish %s: error %d", name, rc);
	probe_say(p, "unpublish: %s", name);
	return true;
}

/* ---- spawn and abort ---- */

static bool own_path(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);

	if (n < 0)
		return false;
	out[n] = '\0';
	return true;
}

/* Rank 0 starts N of this program, which then run "spawned". */
static bool op_spawn(const struct probe *p, char **args)
{
	MPID_Info preput = { .key = (char *)SPAWN_PREPUT_KEY,
			     .value = (char *)SPAWN_PREPUT_VALUE };
	const MPID_Info *preputs[] = { &preput };
	const char *argv[] = { "spawned", NULL };
	const char **argvs[] = { argv };
	char path[4096], jobid[TEXT_MAX];
	const char *cmds[] = { path };
	int argcs[] = { 1 }, maxprocs[1], rc;
	long n;

	if (!to_number(args[0], 1, 10000, &n))
		return probe_fail(p, "spawn: a number up to 10000 is needed");
	if (p->rank != 0)
		return true;
	if (!own_path(path, sizeof(path)))
		return probe_fail(p, "spawn: own path not found");
	maxprocs[0] = (int)n;
	rc = PMI2_Job_Spawn(1, cmds, argcs, argvs, maxprocs, NULL, NULL, 1,
			    preputs, jobid, sizeof(jobid), NULL);
	if (rc)
		return probe_fail(p, "spawn: error %d", rc);
	probe_say(p, "spawn: ok, %ld process%s, job %s", n, probe_es(n), jobid);
	return true;
}

/* Checks of the spawned processes. */
static bool op_spawned(const struct probe *p, char **args)
{
	char got[TEXT_MAX];
	int rc, len;

	if (!p->spawned)
		return probe_fail(p, "spawned: init says that I was not");
	rc = PMI2_KVS_Get(NULL, PMI2_ID_NULL, SPAWN_PREPUT_KEY, got,
			  sizeof(got), &len);
	if (rc || strcmp(got, SPAWN_PREPUT_VALUE))
		return probe_fail(p, "spawned: the preput value is missing");
	if (PMI2_KVS_Fence())
		return probe_fail(p, "spawned: the fence failed");
	probe_say(p, "spawned: ok, %d process%s, appnum %d", p->size,
		  probe_es(p->size), p->appnum);
	return true;
}

/* All others wait in a fence, which fails if it ends before the job does. */
static bool op_abort(const struct probe *p, char **args)
{
	if (p->rank == p->size - 1)
		PMI2_Abort(1, "pmi2x-probe was asked to abort");
	if (PMI2_KVS_Fence())
		return true;
	return probe_fail(p, "abort: a fence without the last rank ended");
}

/* ---- the table ---- */

static const struct operation {
	const char *name;
	int args;
	bool optional; /* its one argument is a number that may be left out */
	bool (*run)(const struct probe *p, char **args);
	const char *help;
} operations[] = {
	{ "put", 1, false, op_put, "put KEY=VALUE" },
	{ "fence", 0, false, op_fence, "fence" },
	{ "ifence", 0, false, op_ifence, "ifence: fence without blocking" },
	{ "get", 1, false, op_get, "get KEY[=EXPECTED]" },
	{ "kvs", 1, true, op_kvs, "kvs [COUNT]: put, fence, get of COUNT keys" },
	{ "fetch", 1, true, op_fetch,
	  "fetch [COUNT]: values of COUNT ranks, without a fence" },
	{ "attr", 1, false, op_attr, "attr NAME: an attribute of the job" },
	{ "ring", 0, false, op_ring, "ring" },
	{ "allgather", 0, false, op_allgather, "allgather" },
	{ "iallgather", 0, false, op_iallgather,
	  "iallgather: allgather without blocking" },
	{ "publish", 1, false, op_publish, "publish NAME=PORT, and look it up" },
	{ "lookup", 1, false, op_lookup, "lookup NAME[=EXPECTED]" },
	{ "unpublish", 1, false, op_unpublish, "unpublish NAME" },
	{ "spawn", 1, false, op_spawn,
	  "spawn N: start N processes that check what they find" },
	{ "spawned", 0, false, op_spawned,
	  "spawned: what those processes do" },
	{ "abort", 0, false, op_abort,
	  "abort: the last rank ends the job, the others wait" },
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

void probe_list_operations(FILE *to)
{
	for (size_t i = 0; i < OPERATIONS; i++)
		fprintf(to, "  %s\n", operations[i].help);
}

static const struct operation *find_operation(const char *name)
{
	for (size_t i = 0; i < OPERATIONS; i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	return NULL;
}

bool probe_operation(const struct probe *p, char **words, int count, int *used)
{
	const struct operation *op = find_operation(words[0]);
	char *none[] = { NULL };
	int args;
	long n;

	*used = 0;
	if (!op)
		return probe_fail(p, "%s: no such operation, see --help",
				  words[0]);
	args = op->args;
	if (op->optional && (count < 2 || !to_number(words[1], 0, 1000000, &n)))
		args = 0;
	if (count <= args)
		return probe_fail(p, "%s: an argument is missing: %s", words[0],
				  op->help);
	*used = args + 1;
	return op->run(p, args ? words + 1 : none);
}
