/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-1 ranks: every command, barriers over nodes, what goes wrong. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>

NET_TEST(says_what_it_can_hold)
{
	net_init1(n, 0);
	assert_string_equal(net_pmi1(n, 0, "cmd=get_maxes"),
			    "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 "
			    "vallen_max=1024");
	assert_string_equal(net_pmi1(n, 0, "cmd=get_universe_size"),
			    "cmd=universe_size rc=0 size=12");
	assert_string_equal(net_pmi1(n, 0, "cmd=get_appnum"),
			    "cmd=appnum rc=0 appnum=-1");
	assert_string_equal(net_pmi1(n, 0, "cmd=get_my_kvsname"),
			    "cmd=my_kvsname rc=0 kvsname=17.2");
	assert_string_equal(
		net_pmi1(n, 0, "cmd=get kvsname=17.2 key=PMI_process_mapping"),
		"cmd=get_result rc=0 value=(vector,(0,3,2))");
	assert_string_equal(net_pmi1(n, 0, "cmd=finalize"),
			    "cmd=finalize_ack rc=0");
	assert_int_equal(n->nodes[0].links_wanted, 1);
}

/* All ranks enter a barrier and are let out together. */
static void barrier(struct net *n)
{
	for (uint32_t r = 0; r + 1 < NET_RANKS; r++)
		assert_null(net_pmi1(n, r, "cmd=barrier_in"));
	assert_string_equal(net_pmi1(n, NET_RANKS - 1, "cmd=barrier_in"),
			    "cmd=barrier_out rc=0 tag=0");
	for (uint32_t r = 0; r + 1 < NET_RANKS; r++)
		assert_string_equal(net_read(n, r), "cmd=barrier_out rc=0 tag=0");
}

static void init_all(struct net *n)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init1(n, r);
}

static void put_all(struct net *n, int round)
{
	char line[100];

	for (uint32_t r = 0; r < NET_RANKS; r++) {
		snprintf(line, sizeof(line),
			 "cmd=put kvsname=17.2 key=k%u-%d value=v=%u;%d", r,
			 round, r, round);
		assert_string_equal(net_pmi1(n, r, line),
				    "cmd=put_result rc=0");
	}
}

static void get_all(struct net *n, int round)
{
	char line[100], expected[100];

	for (uint32_t r = 0; r < NET_RANKS; r++)
		for (uint32_t of = 0; of < NET_RANKS; of++) {
			snprintf(line, sizeof(line),
				 "cmd=get kvsname=17.2 key=k%u-%d", of, round);
			snprintf(expected, sizeof(expected),
				 "cmd=get_result rc=0 value=v=%u;%d", of,
				 round);
			assert_string_equal(net_pmi1(n, r, line), expected);
		}
}

static void check_rounds(struct net *n)
{
	init_all(n);
	for (int round = 0; round < 12; round++) {
		put_all(n, round);
		assert_string_equal(net_pmi1(n, 0, "cmd=get key=k9"),
				    "cmd=get_result rc=-1 info=fail "
				    "msg=key_k9_not_found");
		barrier(n);
		barrier(n);
		get_all(n, round);
		get_all(n, 0);
	}
}

NET_TEST(barriers_exchange_what_was_put)
{
	const struct net_options heap = {.heap = true};

	check_rounds(n);
	unit_end(n);
	n = net_create(&heap);
	check_rounds(n);
}

NET_TEST(puts_are_not_seen_before_the_barrier)
{
	init_all(n);
	net_pmi1(n, 0, "cmd=put key=a value=b");
	assert_string_equal(net_pmi1(n, 0, "cmd=get key=a"),
			    "cmd=get_result rc=-1 info=fail "
			    "msg=key_a_not_found");
	barrier(n);
	assert_string_equal(net_pmi1(n, 5, "cmd=get key=a"),
			    "cmd=get_result rc=0 value=b");
}

TEST(preput_is_there_from_the_start)
{
	static const char record[] = "\1\0\0\0\1\0\0\0k\0v";
	const struct net_options o = {.preput = record, .preput_len = 12};
	struct net *n = net_create(&o);

	net_init1(n, 4);
	assert_string_equal(net_pmi1(n, 4, "cmd=get key=k"),
			    "cmd=get_result rc=0 value=v");
	unit_end(n);
}

NET_TEST(lengths_are_checked)
{
	char line[2000], x[1100];

	memset(x, 'x', sizeof(x));
	net_init1(n, 0);
	snprintf(line, sizeof(line), "cmd=put key=%.63s value=%.1023s", x, x);
	assert_string_equal(net_pmi1(n, 0, line), "cmd=put_result rc=0");
	snprintf(line, sizeof(line), "cmd=put key=%.64s value=v", x);
	assert_string_equal(net_pmi1(n, 0, line),
			    "cmd=put_result rc=5 info=fail "
			    "msg=key_has_64_bytes,_the_limit_is_63");
	snprintf(line, sizeof(line), "cmd=put key=k value=%.1024s", x);
	assert_string_equal(net_pmi1(n, 0, line),
			    "cmd=put_result rc=7 info=fail "
			    "msg=value_has_1024_bytes,_the_limit_is_1023");
	assert_string_equal(net_pmi1(n, 0, "cmd=put key=k"),
			    "cmd=put_result rc=3 info=fail "
			    "msg=value_is_missing");
	assert_string_equal(net_pmi1(n, 0, "cmd=put value=k"),
			    "cmd=put_result rc=4 info=fail msg=key_is_missing");
}

NET_TEST(everything_is_answered)
{
	static const char *const lines[][2] = {
		{"cmd=create_kvs", "cmd=newkvs rc=-1 "},
		{"cmd=destroy_kvs kvsname=a", "cmd=kvs_destroyed rc=-1 "},
		{"cmd=getbyidx idx=0", "cmd=getbyidx_results rc=-1 "},
		{"cmd=nonsense", "cmd=nonsense_result rc=3 "},
		{"cmd=non sense", "cmd=non sense_result rc=3 "},
		{"cmd=", "cmd=_result rc=3 "},
		{"cmd=spawn", "cmd=spawn_result rc=10 "},
		{"mcmd=what\nendcmd", "cmd=what_result rc=3 "},
		{"mcmd=spawn\nnprocs\nendcmd", "cmd=spawn_result rc=3 "},
		{"cmd=publish_name", "cmd=publish_result rc=4 "},
		{"cmd=init pmi_version=2", "cmd=response_to_init rc=1 "},
	};

	net_init1(n, 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *answer = net_pmi1(n, 0, lines[i][0]);

		assert_non_null(answer);
		assert_memory_equal(answer, lines[i][1], strlen(lines[i][1]));
		assert_null(net_read(n, 0));
	}
}

NET_TEST(nothing_works_before_init_or_after_finalize)
{
	assert_string_equal(net_pmi1(n, 0, "cmd=get_maxes"),
			    "cmd=maxes rc=1 info=fail "
			    "msg=get_maxes_is_not_allowed_before_init");
	net_init1(n, 0);
	net_pmi1(n, 0, "cmd=finalize");
	assert_string_equal(net_pmi1(n, 0, "cmd=barrier_in"),
			    "cmd=barrier_failed rc=1 info=fail "
			    "msg=barrier_in_is_not_allowed_after_finalize");
}

/* As a client reads it whose words end at one of the ends: the first of that name. */
static int first_number(const char *line, const char *ends, const char *key)
{
	size_t len = strlen(key);

	for (; *line; line += strspn(line, ends)) {
		if (strncmp(line, key, len) == 0 && line[len] == '=')
			return atoi(line + len + 1);
		line += strcspn(line, ends);
	}
	return -1;
}

NET_TEST(clients_of_1_1_and_of_1_2_each_read_their_version)
{
	const char *answer =
		net_pmi1(n, 0, "cmd=init pmi_version=1 pmi_subversion=1");

	assert_int_equal(first_number(answer, " \t\n", "pmi_version"), 1);
	assert_int_equal(first_number(answer, " \t\n", "pmi_subversion"), 1);
	assert_int_equal(first_number(answer, " \n", "pmi_version"), 1);
	assert_int_equal(first_number(answer, " \n", "pmi_subversion"), 2);
}

NET_TEST(unsupported_versions_are_refused)
{
	assert_string_equal(
		net_pmi1(n, 0, "cmd=init pmi_version=3 pmi_subversion=0"),
		"cmd=response_to_init rc=-1 pmi_version=2 pmi_subversion=0");
	net_init1(n, 0);
}

NET_TEST(a_second_program_starts_a_new_session)
{
	init_all(n);
	put_all(n, 0);
	barrier(n);
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		net_pmi1(n, r, "cmd=put key=lost value=x");
		net_pmi1(n, r, "cmd=finalize");
	}
	init_all(n);
	put_all(n, 1);
	barrier(n);
	get_all(n, 0);
	get_all(n, 1);
	assert_string_equal(net_pmi1(n, 0, "cmd=get key=lost"),
			    "cmd=get_result rc=-1 info=fail "
			    "msg=key_lost_not_found");
}

/* As of MPICH 5, once for each of its sessions. */
NET_TEST(a_program_may_start_again)
{
	init_all(n);
	put_all(n, 0);
	init_all(n);
	barrier(n);
	get_all(n, 0);
	init_all(n);
	get_all(n, 0);
}

TEST(input_may_be_split_anywhere)
{
	static const char text[] = "cmd=init pmi_version=1 pmi_subversion=1\n"
				   "cmd=put key=a value=b\ncmd=get_appnum\n";

	for (size_t cut = 0; cut < strlen(text); cut++) {
		struct net *n = net_create(NULL);

		net_input(n, 0, text, cut);
		net_input(n, 0, text + cut, strlen(text) - cut);
		net_read(n, 0);
		assert_string_equal(net_read(n, 0), "cmd=put_result rc=0");
		assert_string_equal(net_read(n, 0),
				    "cmd=appnum rc=0 appnum=-1");
		unit_end(n);
	}
}

NET_TEST(garbage_ends_the_connection_and_the_barrier)
{
	init_all(n);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		if (r != 2)
			assert_null(net_pmi1(n, r, "cmd=barrier_in"));
	assert_string_equal(net_pmi1(n, 2, "GET / HTTP/1.0"),
			    "cmd=error rc=3 info=fail "
			    "msg=sent_bytes_that_are_not_a_PMI_message");
	assert_true(n->ranks[2].closed);
	assert_string_equal(net_read(n, 5),
			    "cmd=barrier_failed rc=14 info=fail "
			    "msg=fence_0_failed:_rank_2_(node_n1)_sent_bytes_"
			    "that_are_not_a_PMI_message");
	net_input(n, 2, "more", 4);
	assert_null(net_read(n, 2));
	net_eof(n, 2);
}

NET_TEST(endless_lines_end_the_connection)
{
	char chunk[4096];

	net_init1(n, 0);
	memset(chunk, 'x', sizeof(chunk));
	net_input(n, 0, "cmd=", 4);
	for (size_t i = 0; i < PMI1_LINE_MAX / sizeof(chunk); i++)
		net_input(n, 0, chunk, sizeof(chunk));
	assert_true(n->ranks[0].closed);
}

NET_TEST(a_death_fails_the_barrier_by_name)
{
	const char *answer;

	init_all(n);
	barrier(n);
	for (uint32_t r = 0; r + 1 < NET_RANKS; r++)
		net_pmi1(n, r, "cmd=barrier_in");
	net_hang_up(n, 5);
	answer = "cmd=barrier_failed rc=14 info=fail msg=fence_1_failed:_rank_5_"
		 "(node_n2)_closed_PMI_FD_without_finalizing_PMI";
	for (uint32_t r = 0; r + 1 < NET_RANKS; r++)
		assert_string_equal(net_read(n, r), answer);
	answer = net_pmi1(n, 0, "cmd=barrier_in");
	assert_non_null(strstr(answer, "msg=fence_2_failed:_rank_5_(node_n2)"));
	assert_int_equal(n->reports, 1); /* not one a node, rank or barrier */
	assert_string_equal(n->report, "fence 1 failed: rank 5 (node n2) "
				       "closed PMI_FD without finalizing PMI");
}

NET_TEST(rank_that_ends_before_it_has_started_fails_a_barrier)
{
	for (uint32_t r = 1; r < NET_RANKS; r++) {
		net_init1(n, r);
		assert_null(net_pmi1(n, r, "cmd=barrier_in"));
	}
	pmi_server_client_exit(n->nodes[0].server, 0, NULL);
	pmi_server_client_eof(n->nodes[0].server, 0);
	net_run(n);
	assert_string_equal(net_read(n, 1),
			    "cmd=barrier_failed rc=14 info=fail "
			    "msg=fence_0_failed:_rank_0_(node_n0)_exited_"
			    "without_starting_PMI");
}

/* Rank 0's next message is of this process. */
static const char *say_as(struct net *n, uint32_t pid, const char *line)
{
	pmi_server_client_writes(n->nodes[0].server, 0, pid);
	return net_pmi1(n, 0, line);
}

#define INIT "cmd=init pmi_version=1 pmi_subversion=1"

/* The answer to a process that was refused, a second later. */
static const char *late_answer(struct net *n)
{
	assert_true(pmi_server_client_refused(n->nodes[0].server, 0));
	pmi_server_client_answer_refused(n->nodes[0].server, 0);
	return net_read(n, 0);
}

NET_TEST(second_process_is_refused_while_the_first_uses_pmi)
{
	assert_non_null(strstr(say_as(n, 100, INIT), "rc=0"));
	assert_null(say_as(n, 200, INIT));
	assert_non_null(strstr(late_answer(n), "another_process_of_the_rank_uses_PMI"));
	assert_non_null(strstr(say_as(n, 200, "cmd=put kvsname=17.2 key=a value=b"),
			       "another_process"));
	/* MPICH puts what it has not been given. */
	assert_non_null(strstr(say_as(n, 200, "cmd=put kvsname= key=\n\xe4t value=b"),
			       "cmd=put_result"));
	assert_null(net_read(n, 0));
	assert_int_equal(n->reports, 1);
	assert_non_null(strstr(n->report, "rank 0 (node n0): a second process started PMI while"));
	assert_non_null(strstr(n->report, "process 200; first"));
	net_input(n, 0, "cmd=pu", 6);
	assert_non_null(strstr(say_as(n, 100, "cmd=get_maxes"), "cmd=maxes"));
	assert_non_null(strstr(say_as(n, 100, INIT), "rc=0")); /* its next session */
}

NET_TEST(part_of_a_message_is_not_mixed_with_another_process_s)
{
	say_as(n, 100, INIT);
	net_input(n, 0, "cmd=get_", 8);
	assert_null(say_as(n, 200, INIT));
	assert_non_null(strstr(late_answer(n), "another_process"));
	pmi_server_client_writes(n->nodes[0].server, 0, 200);
	net_input(n, 0, "cmd=pu", 6);
	assert_non_null(strstr(say_as(n, 100, "maxes"), "cmd=maxes"));
}

NET_TEST(part_of_a_message_does_not_spoil_the_next_session)
{
	say_as(n, 100, INIT);
	say_as(n, 100, "cmd=finalize");
	net_input(n, 0, "cmd=get_", 8);
	assert_non_null(strstr(say_as(n, 200, INIT), "rc=0"));
	assert_non_null(strstr(say_as(n, 200, "cmd=get_maxes"), "cmd=maxes"));
}

/* The abort is not the rank's, and gets an answer only if the process waits for it. */
NET_TEST(abort_of_a_refused_process_ends_no_step)
{
	n->abort_code = -1;
	say_as(n, 100, INIT);
	assert_null(say_as(n, 200, INIT));
	assert_non_null(strstr(late_answer(n), "another_process"));
	assert_false(pmi_server_client_refused(n->nodes[0].server, 0));
	assert_null(say_as(n, 200, "cmd=abort exitcode=-1"));
	assert_int_equal(n->abort_code, -1);
	assert_non_null(strstr(late_answer(n), "cmd=abort_result"));
	assert_false(pmi_server_client_refused(n->nodes[0].server, 0));
}

/* ---- two processes that read from one connection ---- */

#define ENDING_TEST(name) \
	TEST_ON(name, struct net *n, net_create(&(struct net_options){ .ends = true }))

static const char SHARED[] = "rank 0 (node n0): two programs use PMI at the same time (process 200; first process 100)";

ENDING_TEST(process_that_comes_while_the_first_waits_ends_the_step)
{
	say_as(n, 100, INIT);
	assert_null(say_as(n, 100, "cmd=barrier_in"));
	assert_null(say_as(n, 200, INIT));
	assert_int_equal(n->nodes[0].ends, 1);
	assert_non_null(strstr(n->nodes[0].end_why, SHARED));
}

ENDING_TEST(first_process_that_goes_on_beside_a_second_ends_the_step)
{
	say_as(n, 100, INIT);
	assert_null(say_as(n, 200, INIT));
	assert_null(say_as(n, 100, "cmd=get_maxes"));
	assert_int_equal(n->nodes[0].ends, 1);
	assert_non_null(strstr(n->nodes[0].end_why, SHARED));
}

/* The second process has read what the first one was answered. */
ENDING_TEST(second_process_that_goes_on_without_an_answer_ends_the_step)
{
	n->abort_code = -1;
	say_as(n, 100, INIT);
	assert_null(say_as(n, 200, INIT));
	assert_null(say_as(n, 200, "cmd=abort exitcode=3"));
	assert_int_equal(n->abort_code, -1);
	assert_int_equal(n->nodes[0].ends, 1);
	assert_non_null(strstr(n->nodes[0].end_why, SHARED));
}

ENDING_TEST(second_process_gets_its_answer_when_the_first_goes_on_later)
{
	say_as(n, 100, INIT);
	assert_null(say_as(n, 200, INIT));
	assert_non_null(strstr(late_answer(n), "another_process"));
	assert_non_null(strstr(say_as(n, 100, "cmd=get_maxes"), "cmd=maxes"));
	assert_int_equal(n->nodes[0].ends, 0);
}

/* ---- numbers of ranks in the environment ---- */

/* Process 100 and the slot has PMI_RANK; NET_RANKS: it has none. */
static const char *init_as(struct net *n, uint32_t slot, uint32_t number)
{
	struct net_node *node = &n->nodes[0];

	node->numbers[slot] = number < NET_RANKS ? number + 1 : 0;
	pmi_server_client_writes(node->server, slot, 100 + slot);
	return net_pmi1(n, slot ? 3 : 0, INIT);
}

static void expect_doubles(struct net *n)
{
	assert_int_equal(n->nodes[0].ends, 1);
	assert_non_null(strstr(n->nodes[0].end_why, "ranks 0 and 3 (node n0): the programs of both have PMI_RANK=0 in the environment"));
}

ENDING_TEST(ranks_of_one_number_end_the_step)
{
	init_as(n, 0, 0);
	assert_int_equal(n->nodes[0].ends, 0);
	init_as(n, 1, 0);
	expect_doubles(n);
}

ENDING_TEST(rank_that_starts_after_another_of_its_number_ends_the_step)
{
	init_as(n, 1, 0);
	assert_int_equal(n->nodes[0].ends, 0);
	init_as(n, 0, 0);
	expect_doubles(n);
}

NET_TEST(rank_of_another_number_is_noted_once_a_node)
{
	init_as(n, 0, 3);
	init_as(n, 1, 0);
	assert_int_equal(n->reports, 1);
	assert_non_null(strstr(n->report, "rank 0 (node n0): its program has PMI_RANK=3 in the environment, and takes itself for rank 3"));
}

NET_TEST(rank_of_its_own_number_or_of_none_is_not_noted)
{
	init_as(n, 0, 0);
	init_as(n, 1, NET_RANKS);
	net_pmi1(n, 3, "cmd=finalize");
	init_as(n, 1, 3);
	assert_int_equal(n->reports, 0);
}

NET_TEST(second_process_may_start_when_the_first_has_finalized)
{
	say_as(n, 100, INIT);
	say_as(n, 100, "cmd=finalize");
	assert_non_null(strstr(say_as(n, 200, INIT), "rc=0"));
	assert_non_null(strstr(say_as(n, 200, "cmd=get_maxes"), "cmd=maxes"));
	assert_int_equal(n->reports, 0);
}

static int reports_after_finalize(int status, bool closes)
{
	const struct pmi_exit end = { .status = status };
	struct net *n = net_create(NULL);
	int reports;

	for (uint32_t slot = 0; slot < 2; slot++) {
		net_init1(n, slot ? 3 : 0);
		net_pmi1(n, slot ? 3 : 0, "cmd=finalize");
		if (closes)
			pmi_server_client_eof(n->nodes[0].server, slot);
	}
	for (uint32_t slot = 0; slot < 2; slot++)
		pmi_server_client_exit(n->nodes[0].server, slot, &end);
	reports = n->reports;
	if (reports)
		assert_non_null(strstr(n->report, "could not use it: start each program by an srun"));
	unit_end(n);
	return reports;
}

TEST(program_that_finds_pmi_fd_closed_is_told_of_once)
{
	assert_int_equal(reports_after_finalize(141 << 8, true), 1);
	assert_int_equal(reports_after_finalize(13, true), 1);
	assert_int_equal(reports_after_finalize(141 << 8, false), 0);
	assert_int_equal(reports_after_finalize(3 << 8, true), 0);
	assert_int_equal(reports_after_finalize(0, true), 0);
}

/* Process 100 has used PMI in a task of `process`, which ends so. */
static int reports_of_task(uint32_t process, struct pmi_exit end)
{
	struct net *n = net_create(NULL);
	int reports;

	end.process = process;
	say_as(n, 100, INIT);
	assert_false(pmi_server_client_is_outlived(n->nodes[0].server, 0, process));
	say_as(n, 100, "cmd=finalize");
	assert_int_equal(pmi_server_client_is_outlived(n->nodes[0].server, 0, process),
			 process && process != 100);
	pmi_server_client_eof(n->nodes[0].server, 0);
	pmi_server_client_exit(n->nodes[0].server, 0, &end);
	reports = n->reports;
	if (reports)
		assert_non_null(strstr(n->report, "a later one that needs PMI could not use it"));
	unit_end(n);
	return reports;
}

TEST(task_that_fails_after_its_program_closed_pmi_fd_is_told_of)
{
	const struct pmi_exit fails = { .status = 1 << 8 };
	const struct pmi_exit killed = { .status = 15, .by_launcher = true };

	assert_int_equal(reports_of_task(50, fails), 1);
	assert_int_equal(reports_of_task(100, fails), 0);
	assert_int_equal(reports_of_task(0, fails), 0);
	assert_int_equal(reports_of_task(50, (struct pmi_exit){ .status = 0 }), 0);
	assert_int_equal(reports_of_task(50, killed), 0);
}

/* Both ranks of the node end so after their connections were closed. */
static int reports_of_closer(const struct pmi_exit *end, bool starts, uint32_t node)
{
	const char *said = end->closed_by ? "csh had closed PMI_FD" : "an MPICH program fails so";
	struct net *n = net_create(NULL);
	struct pmi_server *s = n->nodes[node].server;
	int reports;

	for (uint32_t slot = 0; slot < 2; slot++) {
		if (starts)
			net_init1(n, slot ? 3 : 0);
		pmi_server_client_eof(s, slot);
		pmi_server_client_exit(s, slot, end);
	}
	reports = n->reports;
	if (reports) {
		assert_non_null(strstr(n->report, "exited with exit code 15 without starting PMI: "));
		assert_non_null(strstr(n->report, said));
	}
	unit_end(n);
	return reports;
}

TEST(process_that_closed_pmi_fd_is_named_once_when_it_fails)
{
	const struct pmi_exit failed = { .status = 15 << 8, .closed_by = "csh" };
	const struct pmi_exit killed = {
		.status = 15 << 8, .closed_by = "csh", .by_launcher = true,
	};
	const struct pmi_exit well = { .closed_by = "csh" };
	const struct pmi_exit unknown = { .status = 15 << 8 };
	const struct pmi_exit lacked = { .status = 15 << 8, .lacked_fd = true };

	assert_int_equal(reports_of_closer(&lacked, false, 0), 1);
	assert_int_equal(reports_of_closer(&lacked, true, 0), 0);
	assert_int_equal(reports_of_closer(&lacked, false, 1), 0);
	assert_int_equal(reports_of_closer(&failed, false, 0), 1);
	assert_int_equal(reports_of_closer(&failed, true, 0), 0);
	assert_int_equal(reports_of_closer(&failed, false, 1), 0);
	assert_int_equal(reports_of_closer(&killed, false, 0), 0);
	assert_int_equal(reports_of_closer(&well, false, 0), 0);
	assert_int_equal(reports_of_closer(&unknown, false, 0), 0);
}

TEST(a_full_region_fails_the_barrier)
{
	const struct net_options o = {.region_size = REGION_SIZE_MIN};
	struct net *n = net_create(&o);
	char line[2000], x[1001];

	memset(x, 'x', sizeof(x) - 1);
	x[1000] = '\0';
	init_all(n);
	for (int i = 0; i < 100; i++) {
		snprintf(line, sizeof(line), "cmd=put key=k%d value=%s", i, x);
		net_pmi1(n, 0, line);
	}
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi1(n, r, "cmd=barrier_in");
	/* Rank 5 read its answer already. */
	assert_string_equal(net_read(n, 1),
			    "cmd=barrier_failed rc=14 info=fail "
			    "msg=fence_0_failed:_node_n1:_the_results_region_of_the_"
			    "node_is_full:_raise_Pmi2xRegionSize");
}
