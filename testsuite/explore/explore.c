/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every order in which the events of a small step can happen, with a death or a
 * broken link at every moment: libcoll ends what was entered, tells nobody
 * something wrong, and fails what comes after an error on every node.
 *
 * Depth first over all states; one that has been met before, but for where its
 * blocks of memory lie, is not entered again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "world.h"

#define DEPTH_MAX 400 /* events; a run that is longer does not end */
#define TABLE_FIRST ((size_t)1 << 16)

static const struct scenario scenarios[] = {
	{ "2 nodes, one rank each, a death", 2, 2, 2, 2, 0,
	  "ff", true, true, true, true },
	{ "3 nodes, all kinds, a death", 3, 3, 2, 2, 0,
	  "fgr", true, true, true, true },
	{ "3 nodes, fetches, a death", 3, 3, 2, 1, 0,
	  "x", true, true, true, true },
	{ "3 nodes, subsets, a death", 3, 3, 2, 2, 0,
	  "eue", true, true, true, true },
	{ "4 nodes in a row, a link breaks", 4, 4, 2, 1, 0,
	  "ff", false, false, true, true },
	{ "2 nodes, two ranks each, all kinds, a death", 2, 4, 2, 2, 0,
	  "fgrf", true, true, true, false },
	{ "3 nodes, two in flight, a death", 3, 3, 2, 2, 0,
	  "fff", true, true, true, false },
	{ "3 nodes, two ranks on each, a death", 3, 6, 2, 1, 0,
	  "ff", true, true, true, false },
	{ "4 nodes, messages in pieces, a death", 4, 4, 2, 1, 3,
	  "fg", true, true, true, false },
	{ "4 nodes, rings, a death", 4, 4, 3, 1, 0,
	  "rr", true, true, true, false },
	{ "4 nodes, two in flight, a death", 4, 4, 3, 2, 0,
	  "fr", true, true, true, false },
	{ "5 nodes, binary, a death", 5, 5, 2, 1, 0,
	  "ff", true, true, true, false },
	{ "5 nodes, ternary, a death", 5, 5, 3, 1, 0,
	  "fg", true, true, true, false },
	{ "5 nodes, flat, a ring, a death", 5, 5, 4, 1, 0,
	  "r", true, true, true, false },
	{ "5 nodes, fetches, a death", 5, 5, 2, 1, 0,
	  "x", true, true, true, false },
	{ "4 nodes, subsets and a fence, a death", 4, 4, 2, 1, 0,
	  "ef", true, true, true, false },
	{ "4 nodes, a subset twice in flight, a death", 4, 4, 2, 2, 0,
	  "uu", true, true, true, false },
	{ "3 nodes, two ranks on each, subsets, a death", 3, 6, 2, 1, 0,
	  "eu", true, true, true, false },
	{ "5 nodes, a subset, a death", 5, 5, 2, 1, 0,
	  "e", true, true, true, false },
	{ "5 nodes, two in flight, a link breaks", 5, 5, 2, 2, 0,
	  "ff", false, false, true, false },
};

static struct {
	const struct scenario *scenario;
	bool must_break;      /* a breach is what is looked for */
	struct world *world;
	struct event trail[DEPTH_MAX];
	uint32_t depth;
	uint64_t *table;      /* digests of states; 0: free */
	size_t size, states, ends;
} run;

/* ---- states that have been met ---- */

static bool insert(uint64_t digest)
{
	size_t i = digest & (run.size - 1);

	while (run.table[i] && run.table[i] != digest)
		i = (i + 1) & (run.size - 1);
	if (run.table[i])
		return false;
	run.table[i] = digest;
	return true;
}

static void grow(void)
{
	uint64_t *old = run.table;
	size_t old_size = run.size;

	run.size = run.size ? 2 * run.size : TABLE_FIRST;
	run.table = calloc(run.size, sizeof(*run.table));
	if (!run.table)
		abort();
	for (size_t i = 0; i < old_size; i++)
		if (old[i])
			insert(old[i]);
	free(old);
}

static bool is_new(uint64_t digest)
{
	if (2 * run.states >= run.size)
		grow();
	if (!insert(digest ? digest : 1))
		return false;
	run.states++;
	return true;
}

/* ---- the search ---- */

static void print_event(struct event e)
{
	static const char *const names[] = {
		[EVENT_ENTER] = "rank %u enters",
		[EVENT_DELIVER] = "a message of node %u arrives at node %u",
		[EVENT_ANSWER] = "the host of node %u answers a fetch",
		[EVENT_DETECT] = "the link from node %u is lost for node %u",
		[EVENT_RANK_DIES] = "rank %u dies",
		[EVENT_NODE_DIES] = "node %u dies",
		[EVENT_LINK_BREAKS] = "the link of node %u and node %u breaks",
	};

	fputs("  ", stderr);
	if (e.type == EVENT_DELIVER || e.type == EVENT_DETECT ||
	    e.type == EVENT_LINK_BREAKS)
		fprintf(stderr, names[e.type], e.which / WORLD_NODES,
			e.which % WORLD_NODES);
	else
		fprintf(stderr, names[e.type], e.which);
	fputc('\n', stderr);
}

static void broken(const char *what)
{
	if (run.must_break) {
		printf("ok: a breach is found: %s\n", what);
		exit(0);
	}
	fprintf(stderr, "FAILED: %s: %s, after\n", run.scenario->name, what);
	for (uint32_t i = 0; i < run.depth; i++)
		print_event(run.trail[i]);
	exit(1);
}

static void at_end(void)
{
	run.ends++;
	world_check_end(run.world);
	world_free(run.world);
	if (arena_live())
		broken("memory is lost");
}

static void explore(void)
{
	struct event events[WORLD_EVENTS];
	uint32_t n = world_events(run.world, events);
	struct snapshot *here = arena_save();
	bool moves = false;

	for (uint32_t i = 0; i < n; i++) {
		moves |= events[i].type < EVENT_RANK_DIES;
		if (i)
			arena_restore(here);
		if (run.depth == DEPTH_MAX)
			broken("it does not end");
		run.trail[run.depth++] = events[i];
		arena_on(true);
		world_apply(run.world, events[i]);
		arena_on(false);
		if (is_new(arena_digest(run.world)))
			explore();
		run.depth--;
	}
	if (!moves) {
		arena_restore(here);
		at_end();
	}
	snapshot_free(here);
}

static void explore_scenario(const struct scenario *s, uint32_t deaf)
{
	run.scenario = s;
	run.states = run.ends = run.depth = 0;
	free(run.table);
	run.table = NULL;
	run.size = 0;
	arena_clear();
	arena_on(true);
	run.world = world_new(s, deaf, broken);
	arena_on(false);
	explore();
	printf("ok: %s: %zu states, %zu ends\n", s->name, run.states, run.ends);
	fflush(stdout);
}

static void usage(void)
{
	puts("usage: explore [--all | --break]\n\n"
	     "Explores libcoll on small steps, each with every order of events;\n"
	     "without an option a part that takes a few seconds.\n\n"
	     "  --all    everything: some minutes\n"
	     "  --break  lose the messages about faults to one node: a breach\n"
	     "           must be found");
}

int main(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : "";
	bool all = !strcmp(option, "--all");

	run.must_break = !strcmp(option, "--break");
	if (argc > 2 || (*option && !all && !run.must_break)) {
		usage();
		return strcmp(option, "--help") != 0;
	}
	arena_open();
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (all || scenarios[i].small)
			explore_scenario(&scenarios[i],
					 run.must_break ? 1 : UINT32_MAX);
	if (run.must_break)
		fputs("FAILED: lost messages about faults go unnoticed\n",
		      stderr);
	return run.must_break;
}
