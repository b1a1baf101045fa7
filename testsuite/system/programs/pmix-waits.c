/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix-waits KIND RANK GATE: all ranks enter what KIND names, RANK only once the file GATE
 * exists. KIND: "start" (PMIx_Init), "fence", "some" (a fence of all but rank 0), "connect",
 * "group", "get" (of a key that RANK puts late), "lookup" (of a name that RANK publishes
 * late), "spawn" (rank 0 spawns a process that starts PMIx late) or "meet" (rank 0 connects
 * with that process, which has started PMIx; the process is late). RANK of the last two is
 * of no meaning.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me;
static uint32_t size = 1;

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	exit(1);
}

static void await(const char *gate)
{
	while (access(gate, F_OK))
		usleep(20000);
}

static pmix_proc_t proc_of(const char *nspace, uint32_t rank)
{
	pmix_proc_t p;

	PMIX_LOAD_PROCID(&p, nspace, rank);
	return p;
}

/* All ranks from `first` on, one by one. */
static pmix_proc_t *list(uint32_t first)
{
	pmix_proc_t *procs = calloc(size, sizeof(*procs));

	for (uint32_t r = first; r < size; r++)
		procs[r - first] = proc_of(me.nspace, r);
	return procs;
}

/* Rank 0 goes on, too: the end of a rank changes what nodes know. */
static pmix_status_t fence_some(const char *gate)
{
	pmix_proc_t *some = list(1);
	pmix_status_t rc = PMIX_SUCCESS;

	if (me.rank)
		rc = PMIx_Fence(some, size - 1, NULL, 0);
	else
		await(gate);
	free(some);
	return rc;
}

static pmix_status_t group(void)
{
	pmix_proc_t *procs = list(0);
	pmix_info_t *results = NULL;
	size_t n = 0;
	pmix_status_t rc = PMIx_Group_construct("late", procs, size, NULL, 0, &results, &n);

	free(procs);
	return rc;
}

/* The late rank puts; all others get what it has put. */
static pmix_status_t get(uint32_t late)
{
	pmix_proc_t from = proc_of(me.nspace, late);
	pmix_value_t v = { .type = PMIX_UINT32, .data.uint32 = 7 }, *got;

	if (me.rank != late)
		return PMIx_Get(&from, "late", NULL, 0, &got);
	require(!PMIx_Put(PMIX_GLOBAL, "late", &v), "put");
	return PMIx_Commit();
}

static pmix_status_t look_up(uint32_t late)
{
	pmix_info_t info = { .key = "late",
			     .value = { .type = PMIX_UINT32, .data.uint32 = 7 } };
	pmix_info_t wait;
	pmix_pdata_t data = { .key = "late" };
	int all = 0;

	if (me.rank == late)
		return PMIx_Publish(&info, 1);
	PMIX_INFO_LOAD(&wait, PMIX_WAIT, &all, PMIX_INT);
	return PMIx_Lookup(&data, 1, &wait, 1);
}

static pmix_status_t spawn(const char *program, const char *kind, const char *gate)
{
	char *argv[] = { (char *)program, (char *)kind, "0", (char *)gate, NULL };
	pmix_app_t app = { .cmd = (char *)program, .argv = argv, .maxprocs = 1 };
	pmix_proc_t both[2] = { me };
	pmix_status_t rc;

	if (me.rank)
		return PMIX_SUCCESS;
	rc = PMIx_Spawn(NULL, 0, &app, 1, both[1].nspace);
	both[1].rank = PMIX_RANK_WILDCARD;
	if (rc || strcmp(kind, "meet"))
		return rc;
	return PMIx_Connect(both, 2, NULL, 0);
}

static pmix_status_t enter(char **argv)
{
	pmix_proc_t all = proc_of(me.nspace, PMIX_RANK_WILDCARD);
	uint32_t late = (uint32_t)atoi(argv[2]);

	if (!strcmp(argv[1], "connect"))
		return PMIx_Connect(&all, 1, NULL, 0);
	if (!strcmp(argv[1], "group"))
		return group();
	if (!strcmp(argv[1], "some"))
		return fence_some(argv[3]);
	if (!strcmp(argv[1], "get"))
		return get(late);
	if (!strcmp(argv[1], "lookup"))
		return look_up(late);
	if (!strcmp(argv[1], "spawn") || !strcmp(argv[1], "meet"))
		return spawn(argv[0], argv[1], argv[3]);
	return PMIx_Fence(&all, 1, NULL, 0);
}

static void read_size(void)
{
	pmix_proc_t all = proc_of(me.nspace, PMIX_RANK_WILDCARD);
	pmix_value_t *v;

	require(!PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &v), "size");
	size = v->data.uint32;
	PMIX_VALUE_RELEASE(v);
}

/* A spawned process connects with the process that spawned it. */
static void be_spawned(const pmix_proc_t *parent, const char *kind, const char *gate)
{
	pmix_proc_t both[2] = { *parent, proc_of(me.nspace, PMIX_RANK_WILDCARD) };

	if (strcmp(kind, "meet"))
		return;
	await(gate);
	require(!PMIx_Connect(both, 2, NULL, 0), "connect of the spawned");
}

static bool is_spawned(pmix_proc_t *parent)
{
	pmix_proc_t all = proc_of(me.nspace, PMIX_RANK_WILDCARD);
	pmix_value_t *v;

	if (PMIx_Get(&all, PMIX_PARENT_ID, NULL, 0, &v))
		return false;
	*parent = *v->data.proc;
	PMIX_VALUE_RELEASE(v);
	return true;
}

int main(int argc, char **argv)
{
	bool spawns = !strcmp(argv[1], "spawn"), child = getenv("PMI_SPAWNED") != NULL;
	const char *rank = getenv("PMI_RANK");
	bool late = rank && atoi(rank) == atoi(argv[2]);
	pmix_proc_t parent;

	if (spawns ? child : late && !strcmp(argv[1], "start"))
		await(argv[3]);
	require(!PMIx_Init(&me, NULL, 0), "init");
	read_size();
	if (is_spawned(&parent)) {
		be_spawned(&parent, argv[1], argv[3]);
	} else {
		if (me.rank == (uint32_t)atoi(argv[2]) && strcmp(argv[1], "meet") && !spawns)
			await(argv[3]);
		require(!enter(argv), argv[1]);
	}
	require(!PMIx_Finalize(NULL, 0), "finalize");
	return 0;
}
