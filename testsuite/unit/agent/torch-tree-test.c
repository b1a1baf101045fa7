/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports and failures that the agents of a step tell each other for PyTorch. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/step/torch_tree.h"
#include "libcoll/tree.h"
#include "libstore/store.h"

#define NODES 2

/* The nodes share one store: the way between stores has tests of its own. */
struct bed {
	struct layout *layout;
	struct store *store;
	struct pmi_step step[NODES];
	struct agent_options options[NODES];
	struct agent_host host[NODES];
	struct node node[NODES];
	struct service service[NODES];
	uint16_t ports[NODES][TORCH_PORTS]; /* that the host has been told */
	unsigned told[NODES], failed, used;
	char why[NODE_WHY_MAX];
	char ends[NODES][NODE_WHY_MAX]; /* why the node has the step ended */
	int code;
};

static const char *const names[] = { "n0", "n1" };
static struct bed bed;

static void on_ports(void *arg, const uint16_t ports[])
{
	size_t i = (size_t)((struct service *)arg - bed.service);

	bed.told[i]++;
	memcpy(bed.ports[i], ports, sizeof(bed.ports[i]));
}

static void on_kill(void *arg, const char *why)
{
	size_t i = (size_t)((struct service *)arg - bed.service);

	snprintf(bed.ends[i], sizeof(bed.ends[i]), "%s", why);
}

static void on_failed(struct service *s, const char *why, int code)
{
	assert_ptr_equal(s, &bed.service[0]);
	bed.failed++;
	bed.code = code;
	snprintf(bed.why, sizeof(bed.why), "%s", why);
}

static void on_used(struct service *s)
{
	assert_ptr_equal(s, &bed.service[0]);
	bed.used++;
}

static void set_up_node(uint32_t i)
{
	bed.step[i] = (struct pmi_step){ .layout = bed.layout, .position = i };
	bed.host[i] = (struct agent_host){
		.arg = &bed.service[i], .torch_ports_known = on_ports, .kill_step = on_kill,
	};
	bed.options[i].torch_ports_wanted = i > 0;
	bed.node[i] = (struct node){
		.options = &bed.options[i], .host = &bed.host[i], .layout = bed.layout,
		.names = names, .self.position = i,
	};
	bed.service[i] = (struct service){
		.node = &bed.node[i], .step = &bed.step[i], .store = bed.store,
	};
}

static void set_up(uint32_t nodes)
{
	static const struct store_options options;
	static const struct store_ops none;
	const struct tree_place place = tree_place(1, 2, 0);
	const uint32_t one = 1, first = 0, second = 1;
	const uint32_t counts[] = { one, one }, *ranks[] = { &first, &second };

	bed = (struct bed){ 0 };
	assert_int_equal(layout_create(&bed.layout, nodes, nodes, counts, ranks), 0);
	assert_int_equal(store_create(&bed.store, bed.layout, &place, names, &options, &none), 0);
	for (uint32_t i = 0; i < nodes; i++)
		set_up_node(i);
	bed.options[0].torch_ports[0] = 28700;
	bed.options[0].torch_ports[1] = 28701;
}

static void open_node(uint32_t i)
{
	assert_int_equal(torch_tree_open(&bed.service[i], on_failed, on_used), 0);
}

static void tear_down(void)
{
	for (uint32_t i = 0; i < NODES; i++) {
		torch_tree_close(&bed.service[i]);
		torch_tree_free(&bed.service[i]);
	}
	store_destroy(bed.store);
	layout_destroy(bed.layout);
}

static void assert_told(void)
{
	assert_int_equal(bed.told[0], 0);
	assert_int_equal(bed.told[1], 1);
	assert_int_equal(bed.ports[1][0], 28700);
	assert_int_equal(bed.ports[1][1], 28701);
}

TEST(other_node_waits_for_the_ports_of_the_first)
{
	set_up(NODES);
	open_node(1);
	assert_true(torch_tree_waits(&bed.service[1]));
	assert_int_equal(bed.told[1], 0);
	open_node(0);
	assert_false(torch_tree_waits(&bed.service[0]));
	assert_false(torch_tree_waits(&bed.service[1]));
	assert_told();
	tear_down();
}

TEST(node_that_comes_later_gets_the_ports_at_once)
{
	set_up(NODES);
	open_node(0);
	open_node(1);
	assert_false(torch_tree_waits(&bed.service[1]));
	assert_told();
	tear_down();
}

TEST(step_without_pytorch_asks_nothing)
{
	set_up(NODES);
	bed.options[0].torch_ports[0] = bed.options[0].torch_ports[1] = 0;
	bed.options[1].torch_ports_wanted = false;
	open_node(0);
	open_node(1);
	assert_null(bed.service[0].torch_tree);
	assert_null(bed.service[1].torch_tree);
	torch_tree_rank_failed(&bed.service[1], "rank 1 failed", 5);
	assert_int_equal(bed.failed, 0);
	tear_down();
}

/* mpi.conf differs between the nodes. */
TEST(first_node_without_pytorch_ends_the_step_by_name)
{
	set_up(NODES);
	bed.options[0].torch_ports[0] = bed.options[0].torch_ports[1] = 0;
	open_node(0);
	open_node(1);
	torch_tree_asked(&bed.service[0]);
	assert_false(torch_tree_waits(&bed.service[1]));
	assert_int_equal(bed.told[1], 0);
	assert_string_equal(bed.ends[1], "Pmi2xTorch is set on node n1 and off on node n0, the first one: "
			    "give all nodes the same mpi.conf, then run \"scontrol reconfigure\"");
	torch_tree_asked(&bed.service[0]);
	torch_tree_rank_failed(&bed.service[0], "rank 0 failed", 5);
	assert_int_equal(bed.failed, 0);
	tear_down();
}

TEST(first_node_with_pytorch_answers_as_before)
{
	set_up(NODES);
	open_node(0);
	torch_tree_asked(&bed.service[0]);
	open_node(1);
	torch_tree_asked(&bed.service[1]);
	assert_told();
	assert_string_equal(bed.ends[1], "");
	tear_down();
}

TEST(failure_on_another_node_reaches_the_first_once)
{
	set_up(NODES);
	open_node(0);
	open_node(1);
	torch_tree_rank_failed(&bed.service[1], "rank 1 (node n1) exited with exit code 5", 5);
	torch_tree_rank_failed(&bed.service[1], "rank 3 (node n1) was killed", 137);
	assert_int_equal(bed.failed, 1);
	assert_int_equal(bed.code, 5);
	assert_string_equal(bed.why, "rank 1 (node n1) exited with exit code 5");
	tear_down();
}

TEST(failure_before_the_first_node_has_come_is_kept)
{
	set_up(NODES);
	open_node(1);
	torch_tree_rank_failed(&bed.service[1], "rank 1 failed", 7);
	assert_int_equal(bed.failed, 0);
	open_node(0);
	assert_int_equal(bed.failed, 1);
	assert_int_equal(bed.code, 7);
	tear_down();
}

TEST(failure_on_the_first_node_needs_no_store)
{
	set_up(1);
	open_node(0);
	torch_tree_rank_failed(&bed.service[0], "rank 0 failed", 9);
	assert_int_equal(bed.failed, 1);
	assert_int_equal(bed.code, 9);
	tear_down();
}

TEST(client_on_another_node_reaches_the_first)
{
	set_up(NODES);
	open_node(1);
	torch_tree_used(&bed.service[1]);
	assert_int_equal(bed.used, 0);
	open_node(0);
	assert_int_equal(bed.used, 1);
	tear_down();
}

TEST(client_on_the_first_node_needs_no_store)
{
	set_up(1);
	open_node(0);
	torch_tree_used(&bed.service[0]);
	assert_int_equal(bed.used, 1);
	tear_down();
}

TEST(node_that_leaves_is_told_nothing)
{
	set_up(NODES);
	open_node(1);
	torch_tree_close(&bed.service[1]);
	assert_false(torch_tree_waits(&bed.service[1]));
	open_node(0);
	assert_int_equal(bed.told[1], 0);
	tear_down();
}
