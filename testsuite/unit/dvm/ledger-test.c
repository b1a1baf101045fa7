/* SPDX-License-Identifier: BSD-3-Clause */
/* The ledger of a DVM: what is placed where, and that nothing is given twice. */
#include "unit.h"

#include <errno.h>

#include "dvm/core/ledger.h"

#define NODES 7
#define TASKS 40
#define ROUNDS 20000

static void end(void *ledger)
{
	ledger_destroy(ledger);
}

static struct ledger *ledger_of(uint32_t nodes, uint32_t cores, uint32_t gpus)
{
	const struct ledger_resources has = { cores, gpus, 1000 };
	struct ledger *l;

	assert_int_equal(ledger_create(&l), 0);
	for (uint32_t i = 0; i < nodes; i++)
		assert_int_equal(ledger_add_node(l, &has), 0);
	return l;
}

#define LEDGER_TEST(name, nodes, cores, gpus) \
	TEST_ON(name, struct ledger *l, unit_at_end(end, ledger_of(nodes, cores, gpus)))

static struct ledger_placement *placed(struct ledger *l,
				       const struct ledger_shape *s)
{
	struct ledger_placement *p = NULL;

	assert_int_equal(ledger_place(l, s, &p), 0);
	return p;
}

static void release(struct ledger *l, const struct ledger_shape *s,
		    struct ledger_placement *p)
{
	ledger_release(l, s, p);
	free(p);
}

LEDGER_TEST(a_task_goes_where_it_leaves_least_over, 3, 8, 0)
{
	const struct ledger_shape large = { .ranks = 3, .cores = 2 };
	const struct ledger_shape small = { .ranks = 1, .cores = 2 };
	struct ledger_placement *a = placed(l, &large), *b = placed(l, &small);

	assert_int_equal(a->count, 1);
	assert_int_equal(b->parts[0].node, a->parts[0].node);
	assert_int_equal(ledger_free_cores(l), 16);
	release(l, &large, a);
	release(l, &small, b);
	assert_int_equal(ledger_free_cores(l), 24);
}

LEDGER_TEST(ranks_are_shared_out_over_nodes, 4, 4, 0)
{
	const struct ledger_shape few = { .ranks = 10, .cores = 1 };
	const struct ledger_shape even = { .ranks = 7, .cores = 1, .nodes = 3 };
	const struct ledger_shape thin = { .ranks = 3, .cores = 1, .per_node = 1 };
	struct ledger_placement *p = placed(l, &few);

	assert_int_equal(p->count, 3);
	assert_int_equal(p->parts[0].ranks + p->parts[1].ranks +
			 p->parts[2].ranks, 10);
	assert_int_equal(p->parts[1].first_rank, p->parts[0].ranks);
	release(l, &few, p);
	p = placed(l, &even);
	assert_int_equal(p->count, 3);
	assert_int_equal(p->parts[0].ranks, 3);
	assert_int_equal(p->parts[2].ranks, 2);
	release(l, &even, p);
	p = placed(l, &thin);
	assert_int_equal(p->count, 3);
	release(l, &thin, p);
}

LEDGER_TEST(exclusive_task_shares_its_nodes_with_none, 1, 4, 0)
{
	const struct ledger_shape alone = { .ranks = 1, .cores = 1, .exclusive = true };
	const struct ledger_shape one = { .ranks = 1, .cores = 1 };
	struct ledger_placement *p = placed(l, &alone), *none;

	assert_int_equal(ledger_place(l, &one, &none), -EAGAIN);
	release(l, &alone, p);
	p = placed(l, &one);
	assert_int_equal(ledger_place(l, &alone, &none), -EAGAIN);
	assert_true(ledger_can_ever(l, &alone));
	release(l, &one, p);
}

LEDGER_TEST(gpus_memory_and_counters_are_limits_too, 1, 8, 2)
{
	struct ledger_shape s = { .ranks = 2, .cores = 1, .gpus = 1 };
	struct ledger_placement *p = placed(l, &s), *none;

	assert_int_equal(p->parts[0].gpus, 3);
	s.ranks = 1;
	assert_int_equal(ledger_place(l, &s, &none), -EAGAIN);
	s.ranks = 2;
	release(l, &s, p);

	s = (struct ledger_shape){ .ranks = 1, .cores = 1, .memory = 1001 };
	assert_false(ledger_can_ever(l, &s));
	s.memory = 600;
	p = placed(l, &s);
	assert_int_equal(ledger_place(l, &s, &none), -EAGAIN);
	release(l, &s, p);

	s = (struct ledger_shape){ .ranks = 1 };
	s.counters[ledger_add_counter(l, "licence", 1)] = 1;
	assert_int_equal(ledger_find_counter(l, "licence"), 0);
	assert_int_equal(ledger_add_counter(l, "licence", 1), -EEXIST);
	p = placed(l, &s);
	assert_int_equal(ledger_place(l, &s, &none), -EAGAIN);
	release(l, &s, p);
	s.counters[0] = 2;
	assert_false(ledger_can_ever(l, &s));
}

/* The ledger's user frees it. */
static struct ledger_placement *at(uint32_t node, uint32_t core, uint32_t count)
{
	struct ledger_placement *p = calloc(1, sizeof(*p) + sizeof(p->parts[0]));

	assert_non_null(p);
	p->count = 1;
	p->parts[0].node = node;
	p->parts[0].ranks = 1;
	for (uint32_t i = 0; i < count; i++)
		cores_add(&p->parts[0].cores, core + i);
	return p;
}

LEDGER_TEST(placed_tasks_get_these_cores_or_wait, 2, 4, 0)
{
	struct ledger_placement *where = at(1, 2, 2), *p, *none;
	const struct ledger_shape s = { .ranks = 1, .cores = 2, .placed = where };
	const struct ledger_shape all = { .ranks = 1, .cores = 4 };

	p = placed(l, &s);
	assert_true(cores_has(&p->parts[0].cores, 3));
	assert_int_equal(ledger_node_free_cores(l, 1), 2);
	assert_int_equal(ledger_place(l, &s, &none), -EAGAIN);
	release(l, &s, p);
	ledger_close_node(l, 0, true);
	p = placed(l, &all);
	assert_int_equal(ledger_place(l, &s, &none), -EAGAIN);
	release(l, &all, p);
	where->parts[0].node = 2;
	assert_false(ledger_can_ever(l, &s));
	free(where);
}

/* Nodes 1 and 2 of 4, with any cores there. */
static struct ledger_shape named_shape(uint32_t ranks, uint32_t nodes)
{
	struct ledger_placement *on =
		unit_at_end(free, calloc(1, sizeof(*on) + 2 * sizeof(on->parts[0])));

	on->count = 2;
	on->parts[0].node = 1;
	on->parts[1].node = 2;
	return (struct ledger_shape){
		.ranks = ranks, .cores = 1, .nodes = nodes, .placed = on, .named = true,
	};
}

LEDGER_TEST(named_nodes_get_the_ranks_on_any_free_cores, 4, 4, 0)
{
	const struct ledger_shape two = named_shape(3, 2), all = named_shape(8, 0);
	const struct ledger_shape more = named_shape(9, 0), three = named_shape(3, 3);
	struct ledger_placement *p = placed(l, &two), *none;

	assert_int_equal(p->count, 2);
	assert_int_equal(p->parts[0].node + p->parts[1].node, 3);
	assert_int_equal(ledger_node_free_cores(l, 0) + ledger_node_free_cores(l, 3), 8);
	assert_int_equal(ledger_place(l, &all, &none), -EAGAIN);
	assert_false(ledger_fits(l, &all));
	assert_true(ledger_can_ever(l, &all));
	assert_false(ledger_can_ever(l, &more));
	assert_false(ledger_can_ever(l, &three));
	assert_int_equal(ledger_node_takes(l, &two, 0), 0);
	release(l, &two, p);
	p = placed(l, &all);
	release(l, &all, p);
	assert_int_equal(ledger_free_cores(l), 16);
}

LEDGER_TEST(closed_nodes_get_nothing_and_lost_ones_never_will, 1, 4, 0)
{
	const struct ledger_shape s = { .ranks = 1, .cores = 4 };
	struct ledger_placement *p;

	ledger_close_node(l, 0, true);
	assert_int_equal(ledger_place(l, &s, &p), -EAGAIN);
	assert_true(ledger_can_ever(l, &s));
	assert_int_equal(ledger_all_cores(l), 0);
	ledger_close_node(l, 0, false);
	p = placed(l, &s);
	ledger_lose_node(l, 0);
	release(l, &s, p);
	assert_int_equal(ledger_place(l, &s, &p), -EAGAIN);
	assert_false(ledger_can_ever(l, &s));
}

LEDGER_TEST(running_task_is_placed_on_a_closed_node_and_on_no_lost_one, 2, 4, 0)
{
	struct ledger_placement *where = at(1, 2, 2), *p, *none;
	const struct ledger_shape s = { .ranks = 1, .cores = 2, .placed = where };

	ledger_close_node(l, 1, true);
	assert_int_equal(ledger_place_running(l, &s, &p), 0);
	assert_int_equal(ledger_node_free_cores(l, 1), 2);
	assert_int_equal(ledger_node_tasks(l, 1), 1);
	assert_int_equal(ledger_free_cores(l), 4);
	assert_int_equal(ledger_place_running(l, &s, &none), -EAGAIN);
	release(l, &s, p);
	assert_int_equal(ledger_node_free_cores(l, 1), 4);
	ledger_lose_node(l, 1);
	assert_int_equal(ledger_place_running(l, &s, &none), -EAGAIN);
	free(where);
}

/* ---- nothing is given twice ---- */

struct running {
	struct ledger_shape shape;
	struct ledger_placement *placement;
};

static struct ledger_shape random_shape(void)
{
	struct ledger_shape s = {
		.ranks = 1 + rand() % 12,
		.cores = rand() % 4,
		.gpus = rand() % 3 ? 0 : 1,
		.memory = rand() % 3 ? 0 : 100,
		.exclusive = rand() % 10 == 0,
	};

	if (rand() % 4 == 0)
		s.nodes = 1 + rand() % s.ranks;
	if (rand() % 4 == 0)
		s.per_node = 1 + rand() % 3;
	return s;
}

/* Sum up what all have, and compare with what there is. */
static void check(struct ledger *l, const struct running *all)
{
	struct dvm_cores cores[NODES] = { 0 };
	uint64_t gpus[NODES] = { 0 }, memory[NODES] = { 0 };
	uint32_t used = 0, free_cores = 0;

	for (int i = 0; i < TASKS; i++)
		for (uint32_t k = 0; all[i].placement &&
				     k < all[i].placement->count; k++) {
			const struct ledger_part *p = &all[i].placement->parts[k];

			for (uint32_t c = cores_next(&p->cores, 0);
			     c < DVM_CORES_MAX; c = cores_next(&p->cores, c + 1)) {
				assert_false(cores_has(&cores[p->node], c));
				cores_add(&cores[p->node], c);
				used++;
			}
			assert_int_equal(gpus[p->node] & p->gpus, 0);
			gpus[p->node] |= p->gpus;
			memory[p->node] += p->ranks * all[i].shape.memory;
			assert_true(memory[p->node] <= 1000);
			assert_int_equal(cores_count(&p->cores),
					 p->ranks * all[i].shape.cores);
		}
	for (uint32_t i = 0; i < NODES; i++)
		free_cores += ledger_node_free_cores(l, i);
	assert_int_equal(free_cores + used, NODES * 9);
	assert_int_equal(ledger_free_cores(l), free_cores);
}

TEST(nothing_is_given_twice)
{
	struct ledger *l = ledger_of(NODES, 9, 3);
	struct running all[TASKS] = { 0 };

	srand(1);
	for (int round = 0; round < ROUNDS; round++) {
		struct running *r = &all[rand() % TASKS];

		if (r->placement) {
			release(l, &r->shape, r->placement);
			r->placement = NULL;
		} else {
			r->shape = random_shape();
			(void)ledger_place(l, &r->shape, &r->placement);
		}
		if (round % 16 == 0)
			check(l, all);
	}
	for (int i = 0; i < TASKS; i++)
		if (all[i].placement)
			release(l, &all[i].shape, all[i].placement);
	assert_int_equal(ledger_free_cores(l), NODES * 9);
	ledger_destroy(l);
}
