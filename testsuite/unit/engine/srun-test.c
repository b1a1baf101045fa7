/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of srun, through a real launcher: names, spawn, abort, its loss. */
#include "net.h"

#include <stdlib.h>

NET_TEST(names_are_shared_by_both_protocols)
{
	net_init1(n, 0);
	net_init2(n, 5);
	assert_string_equal(
		net_pmi1(n, 0, "cmd=publish_name service=s port=tag#0$p"),
		"cmd=publish_result rc=0 info=ok msg=success");
	assert_string_equal(
		net_pmi2(n, 5, "cmd=name-lookup;thrid=2;name=s;"),
		"cmd=name-lookup-response;thrid=2;rc=0;found=TRUE;"
		"value=tag#0$p;port=tag#0$p;");
	assert_string_equal(net_pmi1(n, 0, "cmd=lookup_name service=s"),
			    "cmd=lookup_result rc=0 info=ok msg=success "
			    "port=tag#0$p");
	assert_non_null(strstr(
		net_pmi2(n, 5, "cmd=name-publish;name=s;port=x;"), "errmsg="));
	assert_string_equal(net_pmi2(n, 5, "cmd=name-unpublish;name=s;"),
			    "cmd=name-unpublish-response;rc=0;");
	assert_non_null(strstr(net_pmi1(n, 0, "cmd=lookup_name service=s"),
			       " info=fail msg="));
}

NET_TEST(a_spawn_is_answered_when_it_has_ended)
{
	net_init2(n, 4);
	assert_null(net_pmi2(n, 4, "cmd=spawn;thrid=9;ncmds=1;preputcount=0;"
				   "subcmd=a.out;maxprocs=3;argc=0;"));
	assert_int_equal(n->spawn_procs, 3);
	step_services_spawned(n->launcher, n->spawn_token, 0, "17.3");
	net_run(n);
	assert_string_equal(net_read(n, 4),
			    "cmd=spawn-response;thrid=9;rc=0;jobid=17.3;"
			    "nerrs=0;");
	unit_end(n);
}

NET_TEST(a_pmi1_spawn_of_two_commands_has_one_answer)
{
	net_init1(n, 0);
	assert_null(net_pmi1(n, 0, "mcmd=spawn\nnprocs=1\nexecname=a\n"
				   "totspawns=2\nspawnssofar=1\nargcnt=0\n"
				   "preput_num=0\ninfo_num=0\nendcmd"));
	assert_null(net_pmi1(n, 0, "mcmd=spawn\nnprocs=2\nexecname=b\n"
				   "totspawns=2\nspawnssofar=2\nargcnt=1\n"
				   "arg1=x y=z\npreput_num=0\ninfo_num=0\n"
				   "endcmd"));
	assert_int_equal(n->spawn_procs, 3);
	step_services_spawned(n->launcher, n->spawn_token, PMI_RC_FAIL, "no room");
	net_run(n);
	assert_string_equal(net_read(n, 0),
			    "cmd=spawn_result rc=-1 info=fail msg=no_room");
	unit_end(n);
}

NET_TEST(a_broken_pmi1_spawn_has_one_answer)
{
	net_init1(n, 0);
	assert_non_null(strstr(
		net_pmi1(n, 0, "mcmd=spawn\nnprocs=x\nexecname=a\n"
			       "totspawns=2\nspawnssofar=1\nendcmd"),
		"cmd=spawn_result rc=10 "));
	assert_null(net_pmi1(n, 0, "mcmd=spawn\nnprocs=2\nexecname=b\n"
				   "totspawns=2\nspawnssofar=2\nendcmd"));
	assert_null(net_pmi1(n, 0, "mcmd=spawn\nnprocs=2\nexecname=b\n"
				   "totspawns=1\nspawnssofar=1\nendcmd"));
	assert_int_equal(n->spawn_procs, 2);
}

NET_TEST(an_abort_reaches_srun_and_is_not_answered)
{
	net_init1(n, 3);
	net_init2(n, 5);
	assert_null(net_pmi1(n, 3, "cmd=abort exitcode=7"));
	assert_int_equal(n->abort_code, 7);
	assert_null(net_pmi2(n, 5, "cmd=abort;isworld=TRUE;msg=no\033way;"));
	net_eof(n, 5);
	net_init1(n, 0);
	assert_string_equal(net_pmi1(n, 0, "cmd=barrier_in"),
			    "cmd=barrier_failed rc=14 info=fail "
			    "msg=fence_0_failed:_rank_5_(node_n2)_aborted:_"
			    "no?way");
}

NET_TEST(a_pmi2_abort_may_carry_its_exit_code)
{
	net_init2(n, 4);
	assert_null(net_pmi2(n, 4, "cmd=abort;isworld=TRUE;exitcode=9;msg=x;"));
	assert_int_equal(n->abort_code, 9);
}

NET_TEST(an_abort_of_one_rank_leaves_the_step)
{
	net_init2(n, 5);
	assert_null(net_pmi2(n, 5, "cmd=abort;isworld=FALSE;msg=only me;"));
	assert_string_equal(n->abort_text, "");
}

TEST(without_srun_requests_fail)
{
	const struct net_options o = {.no_launcher = true};
	struct net *n = net_create(&o);

	net_init2(n, 0);
	assert_null(net_pmi2(n, 0, "cmd=name-lookup;name=s;"));
	pmi_server_control_lost(n->nodes[0].server, "it was killed");
	assert_string_equal(net_read(n, 0),
			    "cmd=name-lookup-response;rc=-1;"
			    "errmsg=srun cannot be reached: it was killed;");
	assert_string_equal(net_pmi2(n, 0, "cmd=name-lookup;name=s;"),
			    "cmd=name-lookup-response;rc=-1;"
			    "errmsg=srun cannot be reached;");
}

TEST(late_or_foreign_replies_are_harmless)
{
	const struct net_options o = {.no_launcher = true};
	struct net *n = net_create(&o);
	struct control_msg reply = {.type = CONTROL_REPLY};
	struct control_msg other = {.type = CONTROL_REPLY, .origin = 1};
	struct buf b;

	net_init2(n, 0);
	net_pmi2(n, 0, "cmd=name-lookup;name=s;");
	net_eof(n, 0);
	buf_init(&b, 1000);
	control_pack(&b, &reply);
	assert_int_equal(pmi_server_control_input(n->nodes[0].server, b.data,
						  b.len), 0);
	buf_clear(&b);
	control_pack(&b, &other);
	assert_true(pmi_server_control_input(n->nodes[0].server, b.data,
					     b.len) < 0);
	assert_true(pmi_server_control_input(n->nodes[0].server, "x", 1) < 0);
	buf_free(&b);
}

TEST(a_spawned_step_says_so)
{
	const struct net_options o = {.spawned = true};
	struct net *n = net_create(&o);
	const char *answer;

	net_init1(n, 3);
	assert_int_equal(n->ready, 0);
	net_init1(n, 0);
	assert_int_equal(n->ready, 1);
	assert_string_equal(net_pmi1(n, 0, "cmd=get_appnum"),
			    "cmd=appnum rc=0 appnum=0");
	answer = net_init_ext(n, 2, 0);
	assert_non_null(strstr(answer, "appnum=1;"));
	assert_non_null(strstr(answer, "spawner-jobid=17.1;"));
}
