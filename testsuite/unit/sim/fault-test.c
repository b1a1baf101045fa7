/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thousands of small random scenarios with faults: every operation ends for
 * every rank, in success or failure, everywhere alike as far as coll.h promises;
 * every result is right. SIM_SCENARIOS in the environment says how many.
 */
#include "unit.h"

#include <stdio.h>

#include "libcoll/tree.h"
#include "sim.h"

#define SCENARIOS 1000 /* make check-sim has 50,000 */
#define NODES_MAX 40
#define RUN_TIME (300 * SIM_US) /* of most scenarios; faults fall into it */

static struct sim_random draw;

static uint32_t up_to(uint32_t most)
{
	return random_below(&draw, most + 1);
}

/* ---- scenarios ---- */

static void add_run(struct scenario *sc)
{
	static const char *const names[] = {
		"fence", "fence", "allgather", "ring", "ifence", "iallgather",
	};
	const char *allowed, *name = names[up_to(5)];
	char run[128];

	snprintf(run, sizeof(run), "%s %u%s", name, up_to(200),
		 name[0] == 'i' ? " compute uniform 200us" : "");
	if (up_to(7) == 0)
		snprintf(run, sizeof(run), "compute uniform 50us");
	else if (up_to(15) == 0)
		snprintf(run, sizeof(run), "group %u", 1 + up_to(9));
	if (!scenario_parse_run(sc, run, 0, &allowed))
		fail_msg("%s: %s", run, allowed);
}

static void add_fault(struct scenario *sc)
{
	struct scenario_fault *f = &sc->faults[sc->nfaults++];
	struct tree_place place;

	f->kind = up_to(2);
	if (f->kind == FAULT_LINK && sc->nodes == 1)
		f->kind = FAULT_NODE;
	f->a = f->kind == FAULT_RANK ?
		       up_to(sc->nodes * sc->ranks_per_node - 1) :
		       up_to(sc->nodes - 1);
	if (f->kind == FAULT_LINK) {
		f->a = 1 + up_to(sc->nodes - 2);
		/* Nodes are in the order of their lowest ranks. */
		place = tree_place(sc->nodes, sc->tree_width, f->a);
		f->b = place.parent;
	}
	f->in_phase = up_to(1);
	f->phase = up_to(sc->nops - 1);
	f->at = up_to(RUN_TIME / SIM_NS) * SIM_NS;
}

/* Half of the steps have servers, whose ranks speak what they can use. */
static void choose_clients(struct scenario *sc)
{
	const char *allowed;

	if (up_to(1))
		return;
	sc->clients = CLIENTS_PMI1 + up_to(3);
	if (scenario_unable(sc, sc->clients, &allowed))
		sc->clients = CLIENTS_MIXED;
	if (scenario_unable(sc, sc->clients, &allowed))
		sc->clients = CLIENTS_NONE;
}

static void make_scenario(struct scenario *sc, uint32_t index)
{
	draw.state = index;
	scenario_defaults(sc);
	snprintf(sc->name, sizeof(sc->name), "scenario %u", index);
	sc->seed = index;
	sc->nodes = 1 + up_to(NODES_MAX - 1);
	sc->ranks_per_node = 1 + up_to(4);
	sc->layout = up_to(1); /* uneven ones may lack the rank of a fault */
	sc->tree_width = 2 + up_to(6);
	sc->piece = 16 + up_to(1000);
	sc->payload = PAYLOAD_BYTES;
	sc->finalize = up_to(1);
	sc->skew.kind = DISTRIBUTION_UNIFORM;
	sc->skew.a = up_to(2) * 50 * SIM_US;
	sc->network.detect = up_to(3) * 40 * SIM_US;
	for (uint32_t n = 1 + up_to(5); n; n--)
		add_run(sc);
	for (uint32_t n = up_to(3); n > 1; n--)
		add_fault(sc);
	choose_clients(sc);
}

/* ---- what must hold ---- */

static bool only_ranks_die(const struct scenario *sc)
{
	for (uint32_t i = 0; i < sc->nfaults; i++)
		if (sc->faults[i].kind != FAULT_RANK)
			return false;
	return true;
}

static void check_phase(const struct sim *s, uint32_t i, bool failed_before)
{
	const struct phase *p = &s->phases[i];

	if (!s->scenario->nfaults && (p->failed || p->succeeded != s->nranks))
		fail_msg("seed %u: operation %u failed without a fault: %s",
			 (unsigned int)s->scenario->seed, i + 1, p->reason);
	if (p->failed && p->succeeded && only_ranks_die(s->scenario))
		fail_msg("seed %u: operation %u: %u ranks succeeded and %u failed, though all nodes live",
			 (unsigned int)s->scenario->seed, i + 1, p->succeeded,
			 p->failed);
	if (failed_before && p->succeeded)
		fail_msg("seed %u: operation %u succeeded after one that failed",
			 (unsigned int)s->scenario->seed, i + 1);
	assert_true(!p->failed || p->reason[0]);
	/* A rank that lives to see a failure tells the user. */
	if (p->failed && s->servers && !s->reports)
		fail_msg("seed %u: operation %u failed (%s), and srun was not told",
			 (unsigned int)s->scenario->seed, i + 1, p->reason);
}

/* Ranks that are no members go on, and earlier failures do not matter to the group. */
static void check_group(const struct sim *s, uint32_t i)
{
	const struct phase *p = &s->phases[i];

	if (!s->scenario->nfaults && p->succeeded != s->nranks)
		fail_msg("seed %u: group %u failed without a fault: %s",
			 (unsigned int)s->scenario->seed, i + 1, p->reason);
	assert_true(!p->failed || p->reason[0]);
}

static void check_end(const struct sim *s)
{
	bool failed = false;

	for (uint32_t i = 0; i < s->scenario->nops; i++) {
		if (s->scenario->ops[i].kind == OP_COMPUTE)
			continue;
		if (s->scenario->ops[i].kind == OP_GROUP) {
			check_group(s, i);
			continue;
		}
		check_phase(s, i, failed);
		failed |= s->phases[i].failed > 0;
	}
	for (uint32_t p = 0; p < s->nnodes; p++)
		if (!s->nodes[p].dead)
			assert_int_equal(s->nodes[p].queued, 0);
}

static struct sim *run(const struct scenario *sc)
{
	char error[SCENARIO_ERROR_MAX];
	struct sim *s = sim_new(sc, error);

	if (!s)
		fail_msg("seed %u: %s", (unsigned int)sc->seed, error);
	if (sim_run(s))
		fail_msg("seed %u: %s", (unsigned int)sc->seed, s->error);
	return s;
}

static uint32_t how_many(void)
{
	const char *wanted = getenv("SIM_SCENARIOS");

	return wanted ? strtoul(wanted, NULL, 10) : SCENARIOS;
}

TEST(everything_ends_everywhere_alike)
{
	static struct scenario sc;
	uint32_t n = how_many(), faulty = 0, failed = 0, servers = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct sim *s;
		bool any = false;

		make_scenario(&sc, i);
		s = run(&sc);
		check_end(s);
		for (uint32_t op = 0; op < sc.nops; op++)
			any |= s->phases[op].failed > 0;
		faulty += sc.nfaults > 0;
		failed += any;
		servers += s->servers && sc.nfaults > 0;
		sim_free(s);
	}
	print_message("%u scenarios, %u with faults, in %u of which operations failed; %u of these with libengine's servers\n",
		      n, faulty, failed, servers);
	/* Faults that come too late to matter prove nothing. */
	assert_true(failed > faulty / 4);
	assert_true(servers > faulty / 4);
}

TEST(a_seed_gives_one_history)
{
	static struct scenario sc;

	for (uint32_t i = 0; i < 50; i++) {
		struct sim *a, *b;

		make_scenario(&sc, i);
		a = run(&sc);
		b = run(&sc);
		assert_int_equal(a->handled, b->handled);
		assert_int_equal(a->now, b->now);
		for (uint32_t op = 0; op < sc.nops; op++) {
			assert_int_equal(a->phases[op].last_exit,
					 b->phases[op].last_exit);
			assert_int_equal(a->phases[op].bytes,
					 b->phases[op].bytes);
		}
		sim_free(a);
		sim_free(b);
	}
}

/* Sizes alone lead to the same messages at the same times as bytes. */
TEST(sizes_are_those_of_bytes)
{
	static struct scenario sc;

	for (uint32_t i = 0; i < 300; i++) {
		struct sim *a, *b;

		make_scenario(&sc, i);
		sc.clients = CLIENTS_NONE;
		a = run(&sc);
		sc.payload = PAYLOAD_SIZES;
		b = run(&sc);
		for (uint32_t op = 0; op < a->nphases; op++) {
			assert_int_equal(a->phases[op].messages,
					 b->phases[op].messages);
			assert_int_equal(a->phases[op].bytes,
					 b->phases[op].bytes);
			assert_int_equal(a->phases[op].last_exit,
					 b->phases[op].last_exit);
		}
		for (uint32_t p = 0; p < a->nnodes; p++)
			assert_int_equal(a->nodes[p].held_peak,
					 b->nodes[p].held_peak);
		sim_free(a);
		sim_free(b);
	}
}

static void assert_same_phase(const struct sim *a, const struct sim *b,
			      uint32_t i)
{
	assert_int_equal(a->phases[i].messages, b->phases[i].messages);
	assert_int_equal(a->phases[i].bytes, b->phases[i].bytes);
	assert_int_equal(a->phases[i].steps, b->phases[i].steps);
	assert_int_equal(a->phases[i].succeeded, b->phases[i].succeeded);
	assert_int_equal(a->phases[i].last_exit, b->phases[i].last_exit);
}

/*
 * Parts that large scenarios leave out change nothing in what nodes send and when: as
 * long as nobody dies, since the reasons that are then told read differently, and
 * requests that are no collectives take no time.
 */
TEST(servers_send_what_libcoll_alone_sends)
{
	static struct scenario sc;
	uint32_t compared = 0;

	for (uint32_t i = 0; i < 300; i++) {
		struct sim *a, *b;

		make_scenario(&sc, i);
		if (sc.clients == CLIENTS_NONE)
			continue;
		sc.nfaults = 0;
		sc.finalize = false;
		sc.node.request = 0;
		a = run(&sc);
		sc.clients = CLIENTS_NONE;
		b = run(&sc);
		for (uint32_t op = 0; op < a->nphases; op++)
			assert_same_phase(a, b, op);
		compared++;
		sim_free(a);
		sim_free(b);
	}
	assert_true(compared > 100);
}
