/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers of groups in PMI-1 1.2. Ranks 0 and 3 run on node 0, ranks 1, 2 and 4 on
 * node 1, rank 5 on node 2.
 */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>

static struct net *create(const struct net_options *o)
{
	struct net *n = net_create(o);

	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
	return n;
}

#define GROUP_TEST(name) TEST_ON(name, struct net *n, create(NULL))

static void put(struct net *n, uint32_t rank, const char *key, const char *value)
{
	char line[1200];

	snprintf(line, sizeof(line), "cmd=put kvsname=17.2 key=%s value=%s", key,
		 value);
	assert_string_equal(net_pmi1(n, rank, line), "cmd=put_result rc=0");
}

/* The value that the rank reads, or NULL when there is no such key. */
static void assert_value(struct net *n, uint32_t rank, const char *key,
			 const char *value)
{
	char line[1200], expected[1200];

	snprintf(line, sizeof(line), "cmd=get kvsname=17.2 key=%s", key);
	if (value)
		snprintf(expected, sizeof(expected),
			 "cmd=get_result rc=0 value=%s", value);
	else
		snprintf(expected, sizeof(expected),
			 "cmd=get_result rc=-1 info=fail msg=key_%s_not_found",
			 key);
	assert_string_equal(net_pmi1(n, rank, line), expected);
}

static const char *enter(struct net *n, uint32_t rank, const char *group)
{
	char line[1200];

	snprintf(line, sizeof(line), "cmd=barrier_in group=%s", group);
	return net_pmi1(n, rank, line);
}

static void assert_out(const char *answer, int tag)
{
	char expected[60];

	snprintf(expected, sizeof(expected), "cmd=barrier_out rc=0 tag=%d", tag);
	assert_non_null(answer);
	assert_string_equal(answer, expected);
}

/* These `count` ranks, and nobody else, go through. */
static void barrier(struct net *n, const char *group, int tag,
		    const uint32_t *ranks, uint32_t count)
{
	for (uint32_t i = 0; i + 1 < count; i++)
		assert_null(enter(n, ranks[i], group));
	assert_out(enter(n, ranks[count - 1], group), tag);
	for (uint32_t i = 0; i + 1 < count; i++)
		assert_out(net_read(n, ranks[i]), tag);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		assert_null(net_read(n, r));
}

static void world(struct net *n)
{
	for (uint32_t r = 0; r + 1 < NET_RANKS; r++)
		assert_null(net_pmi1(n, r, "cmd=barrier_in"));
	assert_out(net_pmi1(n, NET_RANKS - 1, "cmd=barrier_in"), 0);
	for (uint32_t r = 0; r + 1 < NET_RANKS; r++)
		assert_out(net_read(n, r), 0);
}

GROUP_TEST(a_group_meets_without_the_others)
{
	barrier(n, "0,1,5:77", 77, (uint32_t[]){ 0, 1, 5 }, 3);
	barrier(n, "1,2:0", 0, (uint32_t[]){ 2, 1 }, 2);
	barrier(n, "5:9", 9, (uint32_t[]){ 5 }, 1);
}

GROUP_TEST(a_node_meets_without_a_message)
{
	size_t before = n->tail;

	put(n, 1, "k", "v");
	barrier(n, "NODE:4", 4, (uint32_t[]){ 1, 2, 4 }, 3);
	assert_value(n, 2, "k", "v");
	assert_int_equal(n->tail, before);
}

/* As everybody's barrier, but the two threads of a rank may come in any order. */
GROUP_TEST(worlds_of_two_tags_do_not_meet)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		assert_null(enter(n, r, r == 3 ? "WORLD:2" : "WORLD:1"));
	assert_out(enter(n, 3, "WORLD:1"), 1);
	assert_null(net_read(n, 3));
	for (uint32_t r = 0; r < NET_RANKS; r++)
		if (r != 3) {
			assert_out(net_read(n, r), 1);
			if (r < NET_RANKS - 1)
				assert_null(enter(n, r, "WORLD:2"));
		}
	assert_out(enter(n, 5, "WORLD:2"), 2);
	assert_out(net_read(n, 3), 2);
}

GROUP_TEST(a_world_without_a_tag_is_the_barrier)
{
	put(n, 2, "k", "v");
	for (uint32_t r = 0; r < NET_RANKS - 1; r++)
		assert_null(net_pmi1(n, r, r % 2 ? "cmd=barrier_in" :
						   "cmd=barrier_in group=WORLD:0"));
	assert_out(enter(n, NET_RANKS - 1, "WORLD:0"), 0);
	for (uint32_t r = 0; r < NET_RANKS - 1; r++)
		assert_out(net_read(n, r), 0);
	assert_value(n, 5, "k", "v");
}

TEST(members_see_what_members_have_put)
{
	const struct net_options heap = { .heap = true };

	for (int i = 0; i < 2; i++) {
		struct net *n = create(i ? &heap : NULL);

		put(n, 0, "a", "of-0");
		put(n, 5, "b", "of-5");
		put(n, 2, "c", "of-2");
		barrier(n, "0,5:1", 1, (uint32_t[]){ 0, 5 }, 2);
		assert_value(n, 0, "b", "of-5");
		assert_value(n, 5, "a", "of-0");
		assert_value(n, 5, "c", NULL); /* its rank was not there */
		world(n);
		for (uint32_t r = 0; r < NET_RANKS; r++) {
			assert_value(n, r, "a", "of-0");
			assert_value(n, r, "b", "of-5");
			assert_value(n, r, "c", "of-2");
		}
		unit_end(n);
	}
}

/* Values that another group has had are still new to this one. */
GROUP_TEST(every_group_gets_all_that_is_not_fenced)
{
	put(n, 0, "a", "1");
	barrier(n, "0,1:1", 1, (uint32_t[]){ 0, 1 }, 2);
	put(n, 0, "b", "2");
	barrier(n, "0,5:1", 1, (uint32_t[]){ 0, 5 }, 2);
	assert_value(n, 5, "a", "1");
	assert_value(n, 5, "b", "2");
	assert_value(n, 1, "b", NULL);
	barrier(n, "0,1:2", 2, (uint32_t[]){ 1, 0 }, 2);
	assert_value(n, 1, "b", "2");
}

GROUP_TEST(only_what_is_new_travels_again)
{
	char big[1001];
	size_t once;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	put(n, 5, "a", big);
	barrier(n, "0,5:1", 1, (uint32_t[]){ 0, 5 }, 2);
	once = n->node_bytes;
	for (int i = 0; i < 20; i++)
		barrier(n, "0,5:1", 1, (uint32_t[]){ 0, 5 }, 2);
	assert_in_range(n->node_bytes - once, 0, 100);
	put(n, 5, "b", "2");
	barrier(n, "0,5:3", 3, (uint32_t[]){ 0, 5 }, 2);
	assert_value(n, 0, "a", big);
	assert_value(n, 0, "b", "2");
	assert_in_range(n->node_bytes - once, 0, 500);
}

GROUP_TEST(a_newer_value_wins_before_and_after_the_fence)
{
	put(n, 0, "a", "old");
	world(n);
	put(n, 0, "a", "new");
	barrier(n, "0,5:1", 1, (uint32_t[]){ 0, 5 }, 2);
	assert_value(n, 5, "a", "new");
	assert_value(n, 1, "a", "old");
	world(n);
	assert_value(n, 1, "a", "new");
	put(n, 0, "a", "newest");
	world(n);
	assert_value(n, 5, "a", "newest"); /* the group's is gone */
}

/* One thread waits in the world's barrier while another meets a group. */
GROUP_TEST(records_in_an_open_fence_reach_the_group)
{
	put(n, 0, "a", "1");
	assert_null(enter(n, 0, "WORLD:0"));
	put(n, 0, "b", "2");
	assert_null(enter(n, 0, "0,5:1"));
	assert_out(enter(n, 5, "0,5:1"), 1);
	assert_out(net_read(n, 0), 1);
	assert_value(n, 5, "a", "1");
	assert_value(n, 5, "b", "2");
	for (uint32_t r = 1; r < NET_RANKS; r++)
		net_pmi1(n, r, "cmd=barrier_in");
	net_forget(n);
	assert_value(n, 1, "a", "1");
	assert_value(n, 1, "b", NULL);
	assert_value(n, 5, "b", "2"); /* not lost with the first fence */
	world(n);
	assert_value(n, 1, "b", "2");
}

GROUP_TEST(a_group_may_meet_again_before_all_have_left)
{
	static const char twice[] = "cmd=barrier_in group=0,5:1\n"
				    "cmd=barrier_in group=0,5:1\n";

	net_input(n, 0, twice, sizeof(twice) - 1);
	net_run(n);
	assert_null(net_read(n, 0));
	assert_out(enter(n, 5, "0,5:1"), 1);
	assert_out(net_read(n, 0), 1);
	assert_null(net_read(n, 0));
	assert_out(enter(n, 5, "0,5:1"), 1);
	assert_out(net_read(n, 0), 1);
}

/* The others of node 1, or of all nodes, once; rank 4 has been there. */
static void others_enter(struct net *n, const char *group)
{
	bool node = group[0] == 'N';

	for (uint32_t r = 0; r < NET_RANKS; r++)
		if (r != 4 && (!node || r == 1 || r == 2))
			enter(n, r, group);
}

GROUP_TEST(forms_without_a_list_may_be_pipelined)
{
	static const struct {
		const char *group, *twice;
		int tag;
	} forms[] = {
#define FORM(text, tag) { text, "cmd=barrier_in group=" text "\n" \
				"cmd=barrier_in group=" text "\n", tag }
		FORM("NODE:3", 3), FORM("WORLD:7", 7), FORM("WORLD:0", 0),
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		net_input(n, 4, forms[i].twice, strlen(forms[i].twice));
		net_run(n);
		for (int round = 0; round < 2; round++) {
			assert_null(net_read(n, 4));
			others_enter(n, forms[i].group);
			assert_out(net_read(n, 4), forms[i].tag);
			net_forget(n);
		}
	}
}

GROUP_TEST(threads_of_two_ranks_may_cross)
{
	assert_null(enter(n, 0, "0,5:1"));
	assert_null(enter(n, 0, "0,5:2"));
	assert_null(enter(n, 0, "0,1:1"));
	assert_out(enter(n, 5, "0,5:2"), 2);
	assert_out(net_read(n, 0), 2);
	assert_out(enter(n, 1, "0,1:1"), 1);
	assert_out(net_read(n, 0), 1);
	assert_out(enter(n, 5, "0,5:1"), 1);
	assert_out(net_read(n, 0), 1);
}

GROUP_TEST(bad_groups_are_refused_and_harm_nobody)
{
	static const char *const groups[] = {
		"0,0:1", "0,6:1", "1,2:1", "0,1:-1", "0,1", "", "0,,1:1", "x:1",
		"0,1:99999999999",
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		const char *answer = enter(n, 0, groups[i]);

		assert_non_null(answer);
		assert_non_null(strstr(answer, "cmd=barrier_out rc=3 tag="));
		assert_non_null(strstr(answer, "msg=invalid_group:_"));
		assert_null(net_read(n, 0));
	}
	assert_string_equal(enter(n, 0, "1,2:8"),
			    "cmd=barrier_out rc=3 tag=8 info=fail "
			    "msg=invalid_group:_the_rank_itself_is_not_"
			    "in_the_group");
	assert_int_equal(n->reports, 1);
	assert_string_equal(n->report,
			    "rank 0 (node n0) sent barrier_in with an invalid group: rank 0 is named twice");
	barrier(n, "0,1:1", 1, (uint32_t[]){ 0, 1 }, 2);
	world(n);
}

GROUP_TEST(long_lines_come_in_pieces)
{
	static char line[200000];
	size_t len;

	/* A list with one rank again and again is no group, but is read to its end. */
	strcpy(line, "cmd=barrier_in group=");
	len = strlen(line);
	while (len < sizeof(line) - 20) {
		memcpy(line + len, "000001,", 7);
		len += 7;
	}
	memcpy(line + len, "0:5\n", 4);
	len += 4;
	for (size_t i = 0; i < len; i += 1000)
		net_input(n, 0, line + i, len - i < 1000 ? len - i : 1000);
	assert_non_null(strstr(net_read(n, 0), "cmd=barrier_out rc=3 tag=5"));
	world(n);
}

GROUP_TEST(lines_may_be_cut_anywhere)
{
	static const char text[] = "cmd=put key=a value=b\n"
				   "cmd=barrier_in group=0:6\ncmd=get key=a\n";

	for (size_t cut = 0; cut < strlen(text); cut++) {
		net_input(n, 0, text, cut);
		net_input(n, 0, text + cut, strlen(text) - cut);
		assert_string_equal(net_read(n, 0), "cmd=put_result rc=0");
		assert_out(net_read(n, 0), 6);
		assert_string_equal(net_read(n, 0),
				    "cmd=get_result rc=0 value=b");
	}
}

/* The barrier of a group of one, in a line of `len` bytes. */
static void write_line(char *line, size_t len)
{
	static const char begin[] = "cmd=barrier_in group=", end[] = "0:6\n";

	memset(line, '0', len);
	memcpy(line, begin, strlen(begin));
	memcpy(line + len - strlen(end), end, strlen(end));
}

static void cut_line(struct net *n, size_t len, size_t places)
{
	char *line = malloc(len);

	write_line(line, len);
	for (size_t i = 0; i < places; i++) {
		size_t cut = i * len / places;

		net_input(n, 0, line, cut);
		assert_null(net_read(n, 0));
		net_input(n, 0, line + cut, len - cut);
		assert_out(net_read(n, 0), 6);
	}
	free(line);
}

GROUP_TEST(long_lines_may_be_cut_anywhere)
{
	cut_line(n, 4096, 4096);
	cut_line(n, PMI1_LINE_MAX, 1000);
	world(n);
}

#define DEATH "barrier of a group of 3 ranks failed: rank 5 (node n2) closed "

/* Ranks that wait get no answer; the step ends, and srun prints the reason. */
TEST(a_death_ends_the_step_by_name)
{
	const struct net_options ends = { .ends = true };

	for (int i = 0; i < 2; i++) {
		struct net *n = create(i ? &ends : NULL);

		assert_null(enter(n, 0, "0,2,5:3"));
		assert_null(enter(n, 2, "0,2,5:3"));
		net_hang_up(n, 5);
		if (i) {
			assert_int_equal(n->nodes[0].ends, 1);
			assert_memory_equal(n->nodes[0].end_why, DEATH,
					    strlen(DEATH));
		} else {
			assert_int_equal(n->abort_code, 1);
			assert_non_null(strstr(n->abort_text, "barrier of a"));
		}
		for (uint32_t r = 0; r < NET_RANKS; r++)
			assert_null(net_read(n, r));
		assert_null(enter(n, 2, "2,5:1")); /* nor later */
		unit_end(n);
	}
}

TEST(member_that_finalizes_and_exits_fails_the_group)
{
	const struct net_options ends = { .ends = true };
	struct net *n = create(&ends);

	assert_string_equal(net_pmi1(n, 1, "cmd=finalize"),
			    "cmd=finalize_ack rc=0");
	assert_null(enter(n, 2, "1,2:3"));
	net_hang_up(n, 1);
	assert_int_equal(n->nodes[1].ends, 1);
	assert_non_null(strstr(n->nodes[1].end_why, "rank 1 (node n1)"));
	assert_non_null(strstr(n->nodes[1].end_why, "after finalizing"));
	assert_null(net_read(n, 2));
}

/* A step that nobody ends: no answer would be understood. */
TEST(without_an_end_the_connection_is_closed)
{
	const struct net_options ends = { .ends = true };
	struct net *n = create(&ends);

	assert_null(enter(n, 0, "0,5:3"));
	net_hang_up(n, 5);
	assert_false(n->ranks[0].closed);
	pmi_server_answer_failed(n->nodes[0].server);
	assert_true(n->ranks[0].closed);
	assert_null(net_read(n, 0));
}

GROUP_TEST(other_groups_go_on_after_a_death)
{
	net_hang_up(n, 5);
	put(n, 4, "k", "v");
	barrier(n, "0,3,4:3", 3, (uint32_t[]){ 0, 4, 3 }, 3);
	assert_value(n, 3, "k", "v");
	assert_int_equal(n->reports, 0);
}

/* The client library, by its extension of PMI-2, with ranks that speak PMI-1. */
NET_TEST(both_protocols_meet_in_a_group)
{
	net_init1(n, 0);
	net_init_ext(n, 5, 1);
	assert_non_null(strstr(net_pmi2(n, 5, "cmd=kvs-put;key=b;value=2;"),
			       "rc=0;"));
	put(n, 0, "a", "1");
	assert_null(enter(n, 0, "0,5:1"));
	assert_non_null(strstr(net_pmi2(n, 5, "cmd=pmi2x-barrier;group=0,5:1;"),
			       "cmd=pmi2x-barrier-response;rc=0;"));
	assert_out(net_read(n, 0), 1);
	assert_value(n, 0, "b", "2");
	assert_non_null(strstr(net_pmi2(n, 5, "cmd=kvs-get;key=a;"),
			       "found=TRUE;value=1;"));
	assert_non_null(strstr(net_pmi2(n, 5, "cmd=pmi2x-barrier;group=0:1;"),
			       "rc=3;errmsg=invalid group: "));
	assert_non_null(strstr(net_pmi2(n, 5, "cmd=pmi2x-barrier;"), "rc=3;"));
}

GROUP_TEST(a_long_wait_is_told_by_name)
{
	char text[PMI_WAIT_TEXT_MAX];

	pmi_server_tell_wait(n->nodes[0].server, 60, text);
	assert_string_equal(text, "");
	assert_null(enter(n, 0, "0,3,5:1"));
	pmi_server_tell_wait(n->nodes[0].server, 60, text);
	assert_string_equal(text,
			    "barrier of a group of 3 ranks (tag 1): 60 s, node n0 waits for "
			    "rank 3 of its own, and for ranks of or below these "
			    "nodes: n2");
	assert_null(enter(n, 5, "0,3,5:1"));
	pmi_server_tell_wait(n->nodes[2].server, 60, text);
	assert_string_equal(text, "");
	pmi_server_tell_own_wait(n->nodes[2].server, 60, text);
	assert_string_equal(text,
			    "barrier of a group of 3 ranks (tag 1): 60 s, node n2 waits for "
			    "ranks of other nodes; its own are in");
}

/* The node where all meet has heard of it, but not of whom it is. */
GROUP_TEST(node_whose_ranks_have_not_entered_a_group_says_so)
{
	char text[PMI_WAIT_TEXT_MAX];

	assert_null(enter(n, 5, "0,3,5:1"));
	assert_true(pmi_server_waits(n->nodes[0].server));
	assert_false(pmi_server_expires(n->nodes[0].server));
	pmi_server_tell_wait(n->nodes[0].server, 60, text);
	assert_string_equal(text,
			    "barrier of some ranks, which ranks of nodes below have entered: 60 s, "
			    "node n0 waits for its own ranks: some must enter, and none has");
}

/* Two nodes below have members, one of which has entered. */
GROUP_TEST(node_without_members_tells_of_a_group_below_it)
{
	char text[PMI_WAIT_TEXT_MAX];

	assert_null(enter(n, 5, "4,5:1"));
	pmi_server_tell_wait(n->nodes[0].server, 60, text);
	assert_string_equal(text, "barrier of some ranks, which ranks of nodes below have entered: "
				  "60 s, node n0 waits for ranks of nodes below it");
}

GROUP_TEST(a_wait_can_be_given_up)
{
	assert_null(enter(n, 0, "0,5:1"));
	pmi_server_expire_all(n->nodes[0].server, "it took too long");
	net_run(n);
	assert_non_null(strstr(n->abort_text, "failed: it took"));
	assert_null(net_read(n, 0));
}

GROUP_TEST(a_second_program_finds_groups_as_new)
{
	put(n, 0, "a", "1");
	barrier(n, "0,5:1", 1, (uint32_t[]){ 0, 5 }, 2);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi1(n, r, "cmd=finalize");
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
	put(n, 0, "a", "2");
	barrier(n, "0,5:1", 1, (uint32_t[]){ 0, 5 }, 2);
	assert_value(n, 5, "a", "2");
}
