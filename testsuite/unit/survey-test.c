/* SPDX-License-Identifier: BSD-3-Clause */
/* States of nodes, and what they say together about who waits for whom. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libpmi/survey.h"

static const char *name_of(void *arg, uint32_t position)
{
	static char names[64][8];

	snprintf(names[position % 64], sizeof(names[0]), "n%u", position + 1);
	return names[position % 64];
}

static void add(struct survey *s, uint32_t position,
		const struct node_state *state)
{
	struct buf b;

	buf_init(&b, STATE_BYTES_MAX);
	assert_int_equal(state_pack(&b, state), 0);
	assert_int_equal(survey_add(s, position, b.data, b.len), 0);
	buf_free(&b);
}

/* Ranks first..last; those from `late` on have not entered fence `seq`. */
static void add_node(struct survey *s, uint32_t position, uint32_t first,
		     uint32_t last, uint32_t late, uint32_t seq,
		     uint32_t age_ms)
{
	struct state_run runs[2], rank = { .phase = STATE_ACTIVE };
	struct node_state n = { .age_ms = age_ms, .runs = runs };

	n.ended[COLL_FENCE] = seq;
	for (uint32_t r = first; r <= last; r++) {
		rank.first = rank.last = r;
		rank.entered[COLL_FENCE] = seq + (r < late);
		state_add_rank(&n, &rank);
	}
	add(s, position, &n);
}

static struct survey *survey_of(uint32_t nodes)
{
	struct survey *s;

	assert_int_equal(survey_create(&s, nodes, name_of, NULL), 0);
	return s;
}

static void expect_text(const struct survey *s, const char *want)
{
	char text[SURVEY_TEXT_MAX];
	struct stalled what;

	assert_true(survey_stalled(s, COLL_FENCE, &what));
	assert_string_equal(survey_text(s, &what, text), want);
	assert_false(survey_stalled(s, COLL_GATHER, &what));
}

static void missing_ranks_are_named(void **state)
{
	struct survey *s = survey_of(3);

	add_node(s, 0, 0, 3, 4, 3, 12500);
	add_node(s, 1, 4, 7, 7, 3, 11000);
	add_node(s, 2, 8, 11, 10, 3, 12900);
	assert_true(survey_complete(s));
	expect_text(s, "fence 3: 12 s, waiting for 3 of 12 ranks: 7, 10-11 "
		       "(nodes n2, n3)");
	survey_destroy(s);
}

/* Runs of neighbouring nodes join, and a node where nobody is in counts. */
static void ranges_span_nodes(void **state)
{
	struct survey *s = survey_of(3);

	add_node(s, 0, 0, 3, 4, 0, 2000);
	add_node(s, 1, 4, 7, 4, 0, 0);
	add_node(s, 2, 8, 11, 8, 0, 0);
	expect_text(s, "fence 0: 2 s, waiting for 8 of 12 ranks: 4-11 "
		       "(nodes n2, n3)");
	survey_destroy(s);
}

static void long_lists_are_cut(void **state)
{
	char want[] = "waiting for 60 of 120 ranks: 1, 3, 5, 7, 9, 11, 13, 15, "
		      "17, 19, 21, 23, 25, 27, 29, 31 and 44 more (nodes n1, "
		      "n2, n3, n4, n5, n6, n7, n8 and 52 more)";
	struct survey *s = survey_of(60);
	char text[SURVEY_TEXT_MAX];
	struct stalled what;

	for (uint32_t i = 0; i < 60; i++)
		add_node(s, i, 2 * i, 2 * i + 1, 2 * i + 1, 0, 5000);
	assert_true(survey_stalled(s, COLL_FENCE, &what));
	assert_int_equal(what.missing, 60);
	assert_non_null(strstr(survey_text(s, &what, text), want));
	survey_destroy(s);
}

static void silent_nodes_are_named(void **state)
{
	struct survey *s = survey_of(3);

	add_node(s, 0, 0, 3, 4, 1, 3000);
	assert_false(survey_complete(s));
	expect_text(s, "fence 1: 3 s, no rank that answers is missing; no "
		       "answer from nodes n2, n3");
	add_node(s, 2, 8, 11, 11, 1, 3000);
	expect_text(s, "fence 1: 3 s, waiting for 1 of 8 ranks: 11 (node n3); "
		       "no answer from node n2");
	survey_destroy(s);
}

/* All are in: then it is the agents' turn, and the nodes are named. */
static void a_missing_result_is_said(void **state)
{
	struct survey *s = survey_of(2);
	struct state_run run = { .last = 1, .phase = STATE_ACTIVE,
				 .entered = { 5 } };
	struct node_state done = { .ended = { 5 }, .runs = &run, .nruns = 1 };

	add(s, 0, &done);
	add_node(s, 1, 2, 3, 4, 4, 8000);
	expect_text(s, "fence 4: 8 s, all ranks are in, no result yet on node "
		       "n2");
	survey_destroy(s);
}

static void what_the_ranks_are_is_said(void **state)
{
	struct survey *s = survey_of(2);
	struct state_run run = { .first = 2, .last = 2, .phase = STATE_ACTIVE,
				 .stopped = true };
	struct node_state n = { .runs = &run, .nruns = 1 };

	add_node(s, 0, 0, 1, 2, 0, 4000);
	add(s, 1, &n);
	expect_text(s, "fence 0: 4 s, waiting for 1 of 3 ranks: 2 (node n2; "
		       "stopped)");
	survey_destroy(s);
	s = survey_of(2);
	run.stopped = false;
	run.phase = STATE_FRESH;
	add_node(s, 0, 0, 1, 2, 0, 4000);
	add(s, 1, &n);
	expect_text(s, "fence 0: 4 s, waiting for 1 of 3 ranks: 2 (node n2; "
		       "PMI not started)");
	survey_destroy(s);
}

/* Between collectives, and after one has failed, nothing waits. */
static void nothing_is_stalled(void **state)
{
	struct survey *s = survey_of(1);
	struct stalled what;

	add_node(s, 0, 0, 3, 2, 0, 0);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		assert_false(survey_stalled(s, kind, &what));
	survey_destroy(s);
}

static void json_has_it_all(void **state)
{
	struct survey *s = survey_of(2);
	struct state_link link = { .position = 0, .is_parent = true,
				   .state = STATE_LINK_LOST, .queued = 77 };
	struct node_state n = { .age_ms = 1, .requests = 2, .links = &link,
				.nlinks = 1 };
	const char *text;
	struct buf b;

	add(s, 1, &n);
	buf_init(&b, SURVEY_JSON_MAX);
	assert_int_equal(survey_json(s, "7.0", &b), 0);
	text = buf_cstr(&b);
	assert_non_null(strstr(text, "{\"step\":\"7.0\",\"waiting\":[],"));
	assert_non_null(strstr(text, "{\"node\":\"n1\",\"answered\":false"));
	assert_non_null(strstr(text, "{\"to\":\"n1\",\"parent\":true,"
				     "\"state\":\"lost\",\"queued\":77}"));
	buf_free(&b);
	survey_destroy(s);
}

static void equal_ranks_are_one_run(void **state)
{
	struct state_run runs[4], rank = { .phase = STATE_ACTIVE };
	struct node_state n = { .runs = runs };

	for (uint32_t r = 5; r < 9; r++) {
		rank.first = rank.last = r;
		rank.stopped = r == 8;
		state_add_rank(&n, &rank);
	}
	rank.first = rank.last = 10; /* not the next */
	state_add_rank(&n, &rank);
	assert_int_equal(n.nruns, 3);
	assert_int_equal(runs[0].last, 7);
}

/* Cut at each byte, and with counts that are not there. */
static void a_damaged_state_is_refused(void **state)
{
	struct state_run run = { .last = 3, .phase = STATE_ACTIVE };
	struct state_link link = { .state = STATE_LINK_UP };
	struct node_state n = { .runs = &run, .nruns = 1, .links = &link,
				.nlinks = 1 }, out;
	struct survey *s = survey_of(1);
	struct buf b;

	buf_init(&b, STATE_BYTES_MAX);
	assert_int_equal(state_pack(&b, &n), 0);
	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(state_unpack(b.data, len, &out), -EPROTO);
	assert_int_equal(survey_add(s, 1, b.data, b.len), -EPROTO);
	assert_int_equal(survey_add(s, 0, b.data, b.len), 0);
	assert_int_equal(survey_add(s, 0, b.data, b.len), -EEXIST);
	memset(b.data + 20, 0xff, 4); /* the count of runs */
	assert_int_equal(state_unpack(b.data, b.len, &out), -EPROTO);
	buf_clear(&b);
	run.phase = STATE_PHASES;
	assert_int_equal(state_pack(&b, &n), 0);
	assert_int_equal(state_unpack(b.data, b.len, &out), -EPROTO);
	buf_free(&b);
	survey_destroy(s);
	assert_int_equal(survey_create(&s, 0, name_of, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_ranks_are_named),
		cmocka_unit_test(ranges_span_nodes),
		cmocka_unit_test(long_lists_are_cut),
		cmocka_unit_test(silent_nodes_are_named),
		cmocka_unit_test(a_missing_result_is_said),
		cmocka_unit_test(what_the_ranks_are_is_said),
		cmocka_unit_test(nothing_is_stalled),
		cmocka_unit_test(json_has_it_all),
		cmocka_unit_test(equal_ranks_are_one_run),
		cmocka_unit_test(a_damaged_state_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
