/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of nodes about themselves, and together about who waits for whom. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "libpmi/status.h"
#include "libutil/pack.h"

static const char *name_of(void *arg, uint32_t position)
{
	static char names[64][8];

	snprintf(names[position % 64], sizeof(names[0]), "n%u", position + 1);
	return names[position % 64];
}

/* As an agent does, with a link that is lost. */
static void pack(struct buf *b, const struct node_status *n)
{
	buf_init(b, STATUS_NODE_MAX);
	assert_int_equal(status_pack(b, n), 0);
	assert_int_equal(pack_u32(b, 1), 0);
	assert_int_equal(status_pack_link(b, 0, true, STATUS_LINK_LOST, 77), 0);
	assert_int_equal(status_pack_waits(b, n), 0);
}

static void add(struct step_status *s, uint32_t position,
		const struct node_status *n)
{
	struct buf b;

	pack(&b, n);
	assert_int_equal(step_status_add(s, position, b.data, b.len), 0);
	buf_free(&b);
}

/* Ranks first..last; those from `late` on have not entered fence `seq`. */
static void add_node(struct step_status *s, uint32_t position, uint32_t first,
		     uint32_t last, uint32_t late, uint32_t seq,
		     uint32_t age_ms)
{
	struct status_run runs[2], rank = { .phase = STATUS_ACTIVE };
	struct node_status n = { .age_ms = age_ms, .runs = runs };

	n.ended[COLL_FENCE] = seq;
	for (uint32_t r = first; r <= last; r++) {
		rank.first = rank.last = r;
		rank.entered[COLL_FENCE] = seq + (r < late);
		status_add_rank(&n, &rank);
	}
	add(s, position, &n);
}

static void end(void *status)
{
	step_status_destroy(status);
}

static struct step_status *step_of(uint32_t nodes)
{
	struct step_status *s;

	assert_int_equal(step_status_create(&s, nodes, name_of, NULL), 0);
	return unit_at_end(end, s);
}

#define STEP_TEST(name, nodes) TEST_ON(name, struct step_status *s, step_of(nodes))

static void expect_text(const struct step_status *s, const char *want)
{
	char text[STATUS_TEXT_MAX];
	struct stalled what;

	assert_true(step_status_stalled(s, COLL_FENCE, &what));
	assert_string_equal(step_status_text(s, &what, text), want);
	assert_false(step_status_stalled(s, COLL_GATHER, &what));
}

STEP_TEST(missing_ranks_are_named, 3)
{
	add_node(s, 0, 0, 3, 4, 3, 12500);
	add_node(s, 1, 4, 7, 7, 3, 11000);
	add_node(s, 2, 8, 11, 10, 3, 12900);
	assert_true(step_status_complete(s));
	expect_text(s, "fence 3: 12 s, waiting for 3 of 12 ranks: 7, 10-11 "
		       "(nodes n2, n3)");
}

/* Runs of neighbouring nodes join, and a node where nobody is in counts. */
STEP_TEST(ranges_span_nodes, 3)
{
	add_node(s, 0, 0, 3, 4, 0, 2000);
	add_node(s, 1, 4, 7, 4, 0, 0);
	add_node(s, 2, 8, 11, 8, 0, 0);
	expect_text(s, "fence 0: 2 s, waiting for 8 of 12 ranks: 4-11 "
		       "(nodes n2, n3)");
}

STEP_TEST(long_lists_are_cut, 60)
{
	char want[] = "waiting for 60 of 120 ranks: 1, 3, 5, 7, 9, 11, 13, 15, "
		      "17, 19, 21, 23, 25, 27, 29, 31 and 44 more (nodes n1, "
		      "n2, n3, n4, n5, n6, n7, n8 and 52 more)";
	char text[STATUS_TEXT_MAX];
	struct stalled what;

	for (uint32_t i = 0; i < 60; i++)
		add_node(s, i, 2 * i, 2 * i + 1, 2 * i + 1, 0, 5000);
	assert_true(step_status_stalled(s, COLL_FENCE, &what));
	assert_int_equal(what.missing, 60);
	assert_non_null(strstr(step_status_text(s, &what, text), want));
}

STEP_TEST(silent_nodes_are_named, 3)
{
	add_node(s, 0, 0, 3, 4, 1, 3000);
	assert_false(step_status_complete(s));
	expect_text(s, "fence 1: 3 s, every rank on the nodes that answer is in; no "
		       "answer from nodes n2, n3");
	add_node(s, 2, 8, 11, 11, 1, 3000);
	expect_text(s, "fence 1: 3 s, waiting for 1 of 8 ranks: 11 (node n3); "
		       "no answer from node n2");
}

/* All are in: then it is the agents' turn, and the nodes are named. */
STEP_TEST(a_missing_result_is_said, 2)
{
	struct status_run run = { .last = 1, .phase = STATUS_ACTIVE,
				 .entered = { 5 } };
	struct node_status done = { .ended = { 5 }, .runs = &run, .nruns = 1 };

	add(s, 0, &done);
	add_node(s, 1, 2, 3, 4, 4, 8000);
	expect_text(s, "fence 4: 8 s, all ranks are in, no result yet on node "
		       "n2");
}

STEP_TEST(status_names_the_state_of_ranks, 2)
{
	struct status_run run = { .first = 2, .last = 2, .phase = STATUS_ACTIVE,
				 .stopped = true };
	struct node_status n = { .runs = &run, .nruns = 1 };

	add_node(s, 0, 0, 1, 2, 0, 4000);
	add(s, 1, &n);
	expect_text(s, "fence 0: 4 s, waiting for 1 of 3 ranks: 2 (node n2; "
		       "stopped)");
	unit_end(s);
	s = step_of(2);
	run.stopped = false;
	run.phase = STATUS_FRESH;
	add_node(s, 0, 0, 1, 2, 0, 4000);
	add(s, 1, &n);
	expect_text(s, "fence 0: 4 s, waiting for 1 of 3 ranks: 2 (node n2; "
		       "PMI not started)");
}

/* Between collectives, and after one has failed, nothing waits. */
STEP_TEST(nothing_is_stalled, 1)
{
	struct stalled what;

	add_node(s, 0, 0, 3, 2, 0, 0);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		assert_false(step_status_stalled(s, kind, &what));
}

static void expect_str(struct cursor *c, const char *want)
{
	size_t len;
	const char *text = unpack_bytes(c, STATUS_TEXT_MAX, &len);

	assert_non_null(text);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(text, want, len);
}

/* A tool gets the names, the texts and what each node has packed, links included. */
STEP_TEST(a_tool_gets_it_all, 3)
{
	struct status_run run = { .last = 1, .phase = STATUS_ACTIVE };
	struct node_status n = { .requests = 2, .runs = &run, .nruns = 1 };
	struct buf b, answer;
	struct cursor c;

	add_node(s, 2, 4, 5, 5, 3, 2500);
	add(s, 0, &n);
	buf_init(&answer, STATUS_ANSWER_MAX);
	assert_int_equal(step_status_pack(s, "7.0", &answer), 0);
	cursor_init(&c, answer.data, answer.len);
	expect_str(&c, "pmi2x-status 3");
	expect_str(&c, "7.0");
	assert_int_equal(unpack_u32(&c), 3);
	expect_str(&c, "n1");
	expect_str(&c, "n2");
	expect_str(&c, "n3");
	assert_int_equal(unpack_u32(&c), 1);
	expect_str(&c, "fence 3: 2 s, waiting for 3 of 4 ranks: 0-1, 5 "
		       "(nodes n1, n3); no answer from node n2");
	assert_int_equal(unpack_u32(&c), 2);
	unpack_bytes(&c, STATUS_NODE_MAX, &(size_t){ 0 });
	assert_int_equal(unpack_u32(&c), 0);
	pack(&b, &n);
	assert_int_equal(unpack_u32(&c), b.len);
	assert_int_equal(cursor_left(&c), b.len);
	assert_memory_equal(unpack_raw(&c, b.len), b.data, b.len);
	assert_true(cursor_done(&c));
	buf_free(&b);
	buf_free(&answer);
}

/* libpmix does not tell which of the ranks that have started are in. */
STEP_TEST(ranks_without_pmix_are_late_for_its_fence, 2)
{
	struct status_run runs[2] = {
		{ .first = 0, .last = 2, .phase = STATUS_ACTIVE },
		{ .first = 3, .last = 3, .phase = STATUS_FRESH },
	};
	struct node_status n = { .runs = runs, .nruns = 2 };
	struct status_run in = { .first = 4, .last = 5, .phase = STATUS_ACTIVE,
				 .entered[COLL_PMIX] = 1 };
	struct node_status other = { .age_ms = 2000, .runs = &in, .nruns = 1 };
	char text[STATUS_TEXT_MAX];
	struct stalled what;

	add(s, 0, &n);
	add(s, 1, &other);
	assert_true(step_status_stalled(s, COLL_PMIX, &what));
	assert_string_equal(step_status_text(s, &what, text),
			    "PMIx fence 0: 2 s, waiting for 1 of 6 ranks: 3 (node n1; PMIx not started)");
	unit_end(s);
	s = step_of(2);
	runs[1].phase = STATUS_ACTIVE;
	add(s, 0, &n);
	add(s, 1, &other);
	assert_true(step_status_stalled(s, COLL_PMIX, &what));
	assert_string_equal(step_status_text(s, &what, text),
			    "PMIx fence 0: 2 s, waiting for 4 of 6 ranks: 0-3 (node n1; "
			    "some of them: libpmix does not report which)");
}

/* Rank 0 waits in a fence, the other one in a fence of PMIx or (`in` 0) before it. */
static struct step_status *mixed_step(uint32_t in)
{
	struct status_run pmi = { .phase = STATUS_IN_PMI, .entered = { 1 } };
	struct status_run pmix = { .first = 1, .last = 1, .phase = STATUS_IN_PMIX,
				   .entered[COLL_PMIX] = in };
	struct node_status n = { .age_ms = 60000, .runs = &pmi, .nruns = 1 };
	struct step_status *s = step_of(2);

	add(s, 0, &n);
	n.runs = &pmix;
	add(s, 1, &n);
	return s;
}

TEST(ranks_that_use_the_other_interface_are_named_so)
{
	struct step_status *s = mixed_step(1);
	char text[STATUS_TEXT_MAX];
	struct stalled what;

	expect_text(s, "fence 0: 60 s, waiting for 1 of 2 ranks: 1 (node n2; PMIx started, not PMI: all ranks of a step must use the same one)");
	assert_true(step_status_stalled(s, COLL_PMIX, &what));
	assert_string_equal(step_status_text(s, &what, text),
			    "PMIx fence 0: 60 s, waiting for 1 of 2 ranks: 0 (node n1; PMI started, not PMIx: all ranks of a step must use the same one)");
}

TEST(ranks_of_two_interfaces_wait_for_each_other_only_inside_both)
{
	struct step_status *s = mixed_step(1);
	struct stalled what;

	assert_true(step_status_crossed(s, &what));
	assert_int_equal(what.kind, COLL_FENCE);
	s = mixed_step(0);
	assert_false(step_status_crossed(s, &what));
}

/* The text comes after those of the links. */
STEP_TEST(wait_of_a_node_is_among_the_texts, 1)
{
	struct status_run run = { .last = 1, .phase = STATUS_ACTIVE };
	struct node_status n = { .runs = &run, .nruns = 1, .wait = (char *)"rank 1 is\nlate" };
	struct buf b, answer;
	struct cursor c;

	pack(&b, &n);
	assert_int_equal(step_status_add(s, 0, b.data, b.len - 1), -EPROTO);
	assert_int_equal(step_status_add(s, 0, b.data, b.len), 0);
	buf_init(&answer, STATUS_ANSWER_MAX);
	assert_int_equal(step_status_pack(s, "7.0", &answer), 0);
	cursor_init(&c, answer.data, answer.len);
	expect_str(&c, "pmi2x-status 3");
	expect_str(&c, "7.0");
	assert_int_equal(unpack_u32(&c), 1);
	expect_str(&c, "n1");
	assert_int_equal(unpack_u32(&c), 1);
	expect_str(&c, "rank 1 is?late");
	buf_free(&b);
	buf_free(&answer);
}

/* ---- waits for a key of the store ---- */

/* `gone`: how many of the ranks have ended, the last ones. */
static void add_ranks(struct step_status *s, uint32_t position, uint32_t first, uint32_t last,
		      uint32_t gone, const struct status_keys *keys)
{
	struct status_run runs[] = {
		{ .first = first, .last = last - gone, .phase = STATUS_FRESH },
		{ .first = last - gone + 1, .last = last, .phase = STATUS_GONE },
	};
	struct node_status n = { .runs = runs, .nruns = 1 + (gone > 0), .keys = *keys };

	add(s, position, &n);
}

static void expect_key(const struct step_status *s, const char *want)
{
	char text[STATUS_TEXT_MAX];
	uint32_t age_s;

	assert_true(step_status_key(s, 1, text, &age_s));
	assert_string_equal(text, want);
	assert_int_equal(age_s, 60);
}

/* The first node has the TCPStore, and each node knows the ports of its ranks. */
STEP_TEST(ranks_of_connections_that_wait_for_a_key_are_named, 3)
{
	struct status_waiter waiters[] = {
		{ .position = 1, .id = 40001 }, { .position = 2, .id = 40002 },
	};
	struct status_comer first = { 0, 40000 }, second = { 1, 40001 };
	struct status_comer third[] = { { 2, 40003 }, { 2, 40002 } };
	const struct status_keys keys[] = {
		{ .key = (char *)"late", .age_s = 60, .torch = true, .nwaiters = 2,
		  .waiters = waiters, .ncomers = 1, .comers = &first },
		{ .ncomers = 1, .comers = &second },
		{ .ncomers = 2, .comers = third },
	};

	add_ranks(s, 0, 0, 0, 0, &keys[0]);
	add_ranks(s, 1, 1, 1, 0, &keys[1]);
	add_ranks(s, 2, 2, 4, 1, &keys[2]);
	expect_key(s, "key late: 60 s, ranks 1-2 (nodes n2, n3) wait for it, and it has no value; "
		      "rank 0 (node n1) is connected, and does not wait; "
		      "rank 3 (node n3) is not connected to the TCPStore");
}

STEP_TEST(connections_of_unknown_ranks_are_counted, 2)
{
	struct status_waiter waiters[] = {
		{ .position = 0, .id = 40000 }, { .position = 1, .id = 40001 }, { .position = 9 },
	};
	struct status_comer comer = { 0, 40000 };
	struct status_keys keys = {
		.key = (char *)"late", .age_s = 60, .torch = true, .nwaiters = 3,
		.waiters = waiters, .ncomers = 1, .comers = &comer,
	};

	add_ranks(s, 0, 0, 0, 0, &keys);
	expect_key(s, "key late: 60 s, rank 0 (node n1) waits for it and 2 more connections of PyTorch wait for it, "
		      "and it has no value; no answer from 1 node");
}

STEP_TEST(ranks_whose_connections_are_hidden_are_left_out, 1)
{
	struct status_waiter waiter = { .position = 0, .id = 40000 };
	struct status_comer comer = { 0, STATUS_PORT_HIDDEN };
	struct status_keys keys = {
		.key = (char *)"late", .age_s = 60, .torch = true, .nwaiters = 1,
		.waiters = &waiter, .ncomers = 1, .comers = &comer,
	};

	add_ranks(s, 0, 0, 0, 0, &keys);
	expect_key(s, "key late: 60 s, 1 connection of PyTorch waits for it, and it has no value");
}

/* Several slurmd of one machine. */
STEP_TEST(ranks_of_nodes_at_the_address_of_the_server_are_named, 2)
{
	struct status_waiter waiter = { .position = 0, .id = 40001 };
	struct status_comer comer = { 1, 40001 };
	const struct status_keys keys[] = {
		{ .key = (char *)"late", .age_s = 60, .torch = true, .nwaiters = 1, .waiters = &waiter },
		{ .ncomers = 1, .comers = &comer },
	};

	add_ranks(s, 0, 0, 0, 0, &keys[0]);
	add_ranks(s, 1, 1, 1, 0, &keys[1]);
	expect_key(s, "key late: 60 s, rank 1 (node n2) waits for it, and it has no value; "
		      "rank 0 (node n1) is not connected to the TCPStore");
}

STEP_TEST(ranks_that_wait_for_a_key_of_sync_are_named, 2)
{
	struct status_waiter first[] = { { .id = 0 }, { .id = 1, .other = true } };
	struct status_waiter second = { .id = 3 };
	struct status_comer here[] = { { 0, 0 }, { 1, 0 }, { 2, 40000 } };
	struct status_comer there[] = { { 3, 0 }, { 4, 0 } };
	const struct status_keys keys[] = {
		{ .key = (char *)"k", .age_s = 60, .nwaiters = 2, .waiters = first,
		  .ncomers = 3, .comers = here },
		{ .key = (char *)"k", .age_s = 1, .nwaiters = 1, .waiters = &second,
		  .ncomers = 2, .comers = there },
	};

	add_ranks(s, 0, 0, 2, 0, &keys[0]);
	add_ranks(s, 1, 3, 4, 0, &keys[1]);
	expect_key(s, "key k: 60 s, ranks 0, 3 (nodes n1, n2) wait for it, and it has no value; "
		      "rank 1 (node n1) waits for another key; "
		      "rank 4 (node n2) has used pmi2x-sync, and does not wait for a key; "
		      "rank 2 (node n1) has not used pmi2x-sync");
}

STEP_TEST(wait_for_a_key_that_has_just_begun_is_not_told, 1)
{
	const struct status_keys keys = { .key = (char *)"k" };
	char text[STATUS_TEXT_MAX];
	uint32_t age_s;

	add_ranks(s, 0, 0, 2, 0, &keys);
	assert_false(step_status_key(s, 1, text, &age_s));
	assert_true(step_status_key(s, 0, text, &age_s));
}

/* A node can name any rank. */
STEP_TEST(ranks_beyond_any_step_are_left_out, 1)
{
	const struct status_keys keys = { .key = (char *)"k", .age_s = 60 };
	char text[STATUS_TEXT_MAX];
	uint32_t age_s;

	add_ranks(s, 0, 0, UINT32_MAX, 0, &keys);
	assert_false(step_status_key(s, 1, text, &age_s));
}

TEST(equal_ranks_are_one_run)
{
	struct status_run runs[4], rank = { .phase = STATUS_ACTIVE };
	struct node_status n = { .runs = runs };

	for (uint32_t r = 5; r < 9; r++) {
		rank.first = rank.last = r;
		rank.stopped = r == 8;
		status_add_rank(&n, &rank);
	}
	rank.first = rank.last = 10; /* not the next */
	status_add_rank(&n, &rank);
	assert_int_equal(n.nruns, 3);
	assert_int_equal(runs[0].last, 7);
}

/* Cut at each byte, and with counts that are not there. */
TEST(damage_is_refused)
{
	struct status_run run = { .last = 3, .phase = STATUS_ACTIVE };
	struct node_status n = { .runs = &run, .nruns = 1 }, out;
	struct step_status *s = step_of(1);
	struct buf b;

	pack(&b, &n);
	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(step_status_add(s, 0, b.data, len), -EPROTO);
	assert_int_equal(step_status_add(s, 1, b.data, b.len), -EPROTO);
	assert_int_equal(step_status_add(s, 0, b.data, b.len), 0);
	assert_int_equal(step_status_add(s, 0, b.data, b.len), -EEXIST);
	memset(b.data + 8 + 4 * COLL_KINDS, 0xff, 4); /* the count of runs */
	assert_int_equal(status_unpack(b.data, b.len, &out), -EPROTO);
	buf_free(&b);
	run.phase = STATUS_PHASES;
	pack(&b, &n);
	assert_int_equal(status_unpack(b.data, b.len, &out), -EPROTO);
	buf_free(&b);
	unit_end(s);
	assert_int_equal(step_status_create(&s, 0, name_of, NULL), -EINVAL);
}
