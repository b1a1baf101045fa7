/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmi2x-lend.so, which each process of a task loads by LD_PRELOAD. It does nothing before
 * MPI_Init. One library serves every MPI: it needs no header of MPI, and finds the functions
 * of the program's MPI by name. A profiler calls PMPI_Init, also from its own MPI_Init, so
 * both are here, and the outermost call counts.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lend/abi.h"
#include "lend/calls.h"
#include "lend/cores.h"
#include "lend/own_facts.h"
#include "lend/real.h"
#include "lend/report.h"
#include "lend/request.h"
#include "lend/table.h"
#include "lend/team.h"

#define COLLECT_MS 2000 /* for ranks that come later than the one that reports */
#define NODE_MAX 256
#define EXPORTED __attribute__((visibility("default")))

static _Thread_local int depth; /* of calls of MPI_Init and PMPI_Init */
static struct lender lender;
static struct lend_abi abi;
static uint32_t team;           /* threads; 0: the rank only lends */
static const char *team_why;    /* why it only lends */

/* ---- before main, behind the constructor of the OpenMP library ---- */

/* Ranks that may run on all cores of a node share them, so nothing is lent. */
__attribute__((constructor)) static void widen_team(void)
{
	struct lend_place place;
	struct lend_facts facts;

	team_why = "it opens MPI by dlopen";
	if (!lend_place_read(getenv(LEND_TABLE_ENV), &place) || place.mode != LEND_CORES ||
	    place.ranks < 2 || !dlsym(RTLD_NEXT, "MPI_Init"))
		return;
	lend_own_facts(&facts, place.rank);
	if (lend_cores_count(&facts.cores) < place.cores)
		team = team_widen(&facts, place.factor, &team_why);
}

/* ---- the table and the report ---- */

/* `node` has NODE_MAX bytes. */
static const char *node_name(char *node)
{
	const char *name = getenv("SLURMD_NODENAME");

	if (name)
		return name;
	if (gethostname(node, NODE_MAX - 1))
		strcpy(node, "?");
	return node;
}

static void report(struct lend_table *table, const struct lend_place *place)
{
	struct lend_facts *facts = calloc(place->ranks, sizeof(*facts));
	char node[NODE_MAX] = "", *text;
	size_t done = 0, len;
	ssize_t n;

	if (!facts)
		return;
	text = lend_report(facts, lend_table_collect(table, place->ranks, COLLECT_MS, facts),
			   place->ranks, node_name(node));
	len = text ? strlen(text) : 0;
	while (done < len && (n = write(STDERR_FILENO, text + done, len - done)) > 0)
		done += (size_t)n;
	free(text);
	free(facts);
}

/* Only one of the ranks that share cores may find that out. */
static bool explains(const struct lend_place *place, struct lend_table *table)
{
	return place->explains && !atomic_exchange(&table->explained, 1);
}

/* Say once a step why a rank does not lend, or only lends. */
static void start_lender(const struct lend_place *place, struct lend_table *table,
			 const struct lend_facts *facts, const void *caller)
{
	const char *why = "the MPI library is neither MPICH nor Open MPI";

	if (lend_abi_find(&abi, caller))
		why = lender_start(&lender, place, table, &facts->cores, team);
	if (why && explains(place, table))
		fprintf(stderr, "PMI2X_LEND: rank %u lends no cores: %s\n", place->rank, why);
	else if (!why && !team && team_why && place->reports && place->mode == LEND_CORES)
		fprintf(stderr, "PMI2X_LEND: rank %u uses no cores of others: %s\n", place->rank,
			team_why);
}

/* Before MPI_Init: MPI may change the cores of its caller. */
static struct lend_table *enter(struct lend_place *place, const void *caller)
{
	struct lend_table *table;
	struct lend_facts facts;

	if (!lend_place_read(getenv(LEND_TABLE_ENV), place))
		return NULL;
	unsetenv(LEND_TABLE_ENV); /* a child is no rank */
	table = lend_table_map(place);
	if (!table)
		return NULL;
	lend_own_facts(&facts, place->rank);
	lend_table_enter(table, place->slot, &facts);
	if (place->mode != LEND_NOTHING)
		start_lender(place, table, &facts, caller);
	return table;
}

/* ---- MPI ---- */

struct call {
	const char *name;
	const void *caller;
	void *argc, *argv;
	bool with_threads; /* MPI_Init_thread */
	int required;
	void *provided;
};

static int call_real(const struct call *c)
{
	void *real = lend_need(c->name, c->caller);

	if (c->with_threads)
		return ((int (*)(void *, void *, int, void *))real)(c->argc, c->argv, c->required,
								     c->provided);
	return ((int (*)(void *, void *))real)(c->argc, c->argv);
}

static int init(const struct call *c)
{
	struct lend_table *table = NULL;
	struct lend_place place;
	int rc;

	if (!depth++)
		table = enter(&place, c->caller);
	rc = call_real(c);
	depth--;
	if (table && place.mode != LEND_NOTHING && !rc)
		calls_begin(&lender, &abi, c->caller);
	else if (table && place.reports && !rc)
		report(table, &place);
	return rc;
}

#define CALLER __builtin_return_address(0)

EXPORTED int MPI_Init(void *argc, void *argv);
EXPORTED int PMPI_Init(void *argc, void *argv);
EXPORTED int MPI_Init_thread(void *argc, void *argv, int required, void *provided);
EXPORTED int PMPI_Init_thread(void *argc, void *argv, int required, void *provided);

int MPI_Init(void *argc, void *argv)
{
	return init(&(struct call){ "MPI_Init", CALLER, argc, argv, false, 0, NULL });
}

int PMPI_Init(void *argc, void *argv)
{
	return init(&(struct call){ "PMPI_Init", CALLER, argc, argv, false, 0, NULL });
}

int MPI_Init_thread(void *argc, void *argv, int required, void *provided)
{
	return init(&(struct call){ "MPI_Init_thread", CALLER, argc, argv, true, required,
				    provided });
}

int PMPI_Init_thread(void *argc, void *argv, int required, void *provided)
{
	return init(&(struct call){ "PMPI_Init_thread", CALLER, argc, argv, true, required,
				    provided });
}
