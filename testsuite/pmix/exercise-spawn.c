/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are spawned, of which some end and others wait. */
#include "exercise.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* As the parents of those that a fifo holds: until these are let go they run. */
void do_held(int argc, char **argv)
{
	char byte;

	(void)!read(open(argv[0], O_RDONLY), &byte, 1);
}

static void let_go(const char *fifo)
{
	close(open(fifo, O_WRONLY));
}

/*
 * Spawns the command of argv[1], of which processes end, and others are held by the fifo
 * argv[0], if it is one: who waits to connect with those is told, also when it has asked
 * for their data.
 */
void do_deserted(int argc, char **argv)
{
	pmix_app_t app = { .cmd = argv[1], .argv = argv + 1, .maxprocs = 2 };
	pmix_proc_t both[] = { me, { .rank = PMIX_RANK_WILDCARD } }, child = { 0 };
	pmix_value_t *v;

	if (!me.rank) {
		CHECK(PMIx_Spawn(NULL, 0, &app, 1, both[1].nspace));
		PMIX_LOAD_PROCID(&child, both[1].nspace, 0);
		check(PMIx_Get(&child, "early", NULL, 0, &v) != PMIX_SUCCESS,
		      "there is something of a process that has not connected");
		check(PMIx_Connect(both, 2, NULL, 0) == PMIX_ERR_LOST_CONNECTION,
		      "somebody is waited for who has died");
		check(PMIx_Disconnect(both, 2, NULL, 0) == PMIX_ERR_LOST_CONNECTION,
		      "somebody is waited for again");
		let_go(argv[0]);
	}
	fence_all(false);
	printf("deserted\n");
}

/* As above, with a first process that ends badly: none has been spawned. */
void do_unspawned(int argc, char **argv)
{
	pmix_app_t app = { .cmd = argv[1], .argv = argv + 1, .maxprocs = 2 };
	pmix_nspace_t nspace;

	if (!me.rank) {
		check(PMIx_Spawn(NULL, 0, &app, 1, nspace) != PMIX_SUCCESS,
		      "who has ended is spawned");
		let_go(argv[0]);
	}
	fence_all(false);
	printf("unspawned\n");
}

/* Spawns the command of argv[1], and goes; the others are held by the fifo argv[0]. */
void do_forsake(int argc, char **argv)
{
	pmix_app_t app = { .cmd = argv[1], .argv = argv + 1, .maxprocs = 1 };
	pmix_nspace_t nspace;

	if (me.rank)
		do_held(argc, argv);
	else
		CHECK(PMIx_Spawn(NULL, 0, &app, 1, nspace));
}

/*
 * The process that is spawned so, and wants to connect with the one that has spawned
 * it.
 */
void do_forsaken(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD), both[2] = { me };
	pmix_value_t *v;

	CHECK(PMIx_Get(&all, PMIX_PARENT_ID, NULL, 0, &v));
	both[1] = *v->data.proc;
	PMIX_VALUE_RELEASE(v);
	check(PMIx_Connect(both, 2, NULL, 0) == PMIX_ERR_LOST_CONNECTION,
	      "a parent is waited for that has ended");
	let_go(argv[0]);
	printf("forsaken\n");
}

/*
 * The others of this step go. The process that has spawned the command of argv[1] would
 * connect with it, and all of its own step; then it is held by the fifo argv[0].
 */
void do_strand(int argc, char **argv)
{
	pmix_app_t app = { .cmd = argv[1], .argv = argv + 1, .maxprocs = 1 };
	pmix_proc_t both[] = { proc_of(PMIX_RANK_WILDCARD),
			       { .rank = PMIX_RANK_WILDCARD } };

	if (me.rank)
		return;
	CHECK(PMIx_Spawn(NULL, 0, &app, 1, both[1].nspace));
	check(PMIx_Connect(both, 2, NULL, 0) != PMIX_SUCCESS,
	      "who has gone takes part in a connection");
	do_held(argc, argv);
}

/* The process that is spawned so, and would connect with all of that step. */
void do_stranded(int argc, char **argv)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD), both[2] = { all };
	pmix_value_t *v;

	CHECK(PMIx_Get(&all, PMIX_PARENT_ID, NULL, 0, &v));
	PMIX_LOAD_PROCID(&both[1], v->data.proc->nspace, PMIX_RANK_WILDCARD);
	PMIX_VALUE_RELEASE(v);
	check(PMIx_Connect(both, 2, NULL, 0) == PMIX_ERR_LOST_CONNECTION,
	      "parents are waited for that do not meet");
	let_go(argv[0]);
	printf("stranded\n");
}
