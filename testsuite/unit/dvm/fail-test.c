/* SPDX-License-Identifier: BSD-3-Clause */
/* How tasks of a DVM fail, in their ranks or in their PMI, and what only seems to. */
#include "bed.h"

#include <errno.h>
#include <signal.h>

BED_TEST(one_rank_that_fails_ends_the_task)
{
	submit(b, "{'argv':['x'],'ranks':6}");
	assert_int_equal(b->nprocesses, 6);
	end_now(b, 2, 3 << 8);
	for (int64_t i = 1; i <= 6; i++)
		assert_true(i == 2 || b->processes[i].told);
	pass(b, 500); /* the grace time */
	for (int64_t i = 1; i <= 6; i++)
		if (b->processes[i].runs) {
			assert_true(b->processes[i].killed);
			end_process(b, i, SIGKILL);
		}
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 3);
	assert_int_equal(number(end_of(b, 1), "rank"), 1);
	assert_int_equal(free_cores(b), NODES * CORES);
}

BED_TEST(a_task_that_cannot_be_started_says_why)
{
	submit(b, "{'argv':['unstartable']},{'argv':['x']}");
	assert_int_equal(number(end_of(b, 1), "code"), 126);
	assert_string_equal(text(end_of(b, 1), "why"), strerror(EACCES));
	end_now(b, 1, 0);
	assert_int_equal(number(end_of(b, 2), "code"), 0);
}

/* The PMI of the last part that has one says that. */
static void say_failure(struct bed *b, bool asked, const char *why)
{
	const struct node_failure f = { 5 << 8, 1, asked, why };

	dvm_node_pmi_failed(b->pmi_node->node, b->pmi_part, &f, b->now);
	deliver_all(b);
}

static void say_fail(struct bed *b, const char *why)
{
	say_failure(b, false, why);
}

static void say_abort(struct bed *b)
{
	say_failure(b, true, "rank 1 called abort");
}

BED_TEST(a_task_of_several_ranks_has_pmi)
{
	submit(b, "{'argv':['x']},{'argv':['x'],'ranks':2,'nodes':1}");
	assert_int_equal(b->nprocesses, 3);
	assert_int_equal(b->pmis, 1);
	for (int64_t i = 1; i <= 3; i++)
		end_process(b, i, 0);
	assert_int_equal(b->pmi_ends, 2);
	assert_int_equal(b->pmis, 0);
	say_fail(b, "it comes too late");
	assert_int_equal(number(end_of(b, 2), "code"), 0);
}

BED_TEST(failure_in_pmi_ends_the_task)
{
	submit(b, "{'argv':['x'],'ranks':2}");
	say_abort(b);
	say_fail(b, "another reason");
	assert_true(b->processes[1].told && b->processes[2].told);
	end_process(b, 1, SIGTERM);
	end_now(b, 2, 7 << 8);
	assert_int_equal(number(end_of(b, 1), "code"), 5);
	assert_int_equal(number(end_of(b, 1), "rank"), 1);
	assert_string_equal(text(end_of(b, 1), "why"), "rank 1 called abort");
}

/* The ends of its processes are known first: their code counts, and the reason is added. */
BED_TEST(a_reason_that_comes_late_counts)
{
	b->pmi_is_slow = true;
	submit(b, "{'argv':['x'],'ranks':2}");
	end_process(b, 1, 3 << 8);
	end_now(b, 2, SIGTERM);
	assert_null(end_of(b, 1));
	say_fail(b, "fence 1 failed");
	say_pmi_over(b->pmi_node, b->pmi_part);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 3);
	assert_int_equal(number(end_of(b, 1), "rank"), 0);
	assert_string_equal(text(end_of(b, 1), "why"), "fence 1 failed");
}

/* A part that is ended for another's sake may be the first that is known to have ended. */
BED_TEST(the_part_that_failed_first_counts)
{
	submit(b, "{'argv':['x'],'ranks':4,'nodes':2}");
	assert_int_equal(b->nprocesses, 4);
	end_now(b, 1, 3 << 8);
	end_process(b, 3, SIGTERM);
	end_now(b, 4, SIGTERM);
	end_now(b, 2, SIGTERM);
	assert_int_equal(number(end_of(b, 1), "code"), 3);
	assert_int_equal(number(end_of(b, 1), "rank"), 0);
}

/* The PMI of task 1 reports a failure where its ranks have ended. */
static void say_failed(struct bed *b, uint32_t node, bool asked, const char *why)
{
	const struct dvm_msg m = {
		.type = DVM_FAILED,
		.failed = { 1, 0, 5 << 8, 3, asked, { why, strlen(why) } },
	};
	struct buf out;

	buf_init(&out, 4096);
	assert_int_equal(dvm_msg_pack(&out, &m), 0);
	dvm_head_node_input(b->head, node, out.data, out.len, b->now);
	buf_free(&out);
	deliver_all(b);
}

BED_TEST(a_task_may_fail_where_it_is_over)
{
	static const char why[] = "fence 0 failed";

	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	end_now(b, 1, 0);
	say_failed(b, b->processes[1].node, false, why);
	assert_true(b->processes[2].told);
	end_now(b, 2, SIGTERM);
	assert_int_equal(number(end_of(b, 1), "code"), 5);
	assert_int_equal(number(end_of(b, 1), "rank"), 3);
	assert_string_equal(text(end_of(b, 1), "why"), why);
}

/* The node that hears of an abort may be told by the head before that the task fails. */
BED_TEST(an_abort_is_heard_by_a_part_that_is_being_ended)
{
	submit(b, "{'argv':['x'],'ranks':4,'nodes':2}");
	end_now(b, 1, 7 << 8);
	assert_true(b->processes[3].told);
	say_fail(b, "fence 1 failed");
	say_abort(b);
	for (int64_t i = 2; i <= 4; i++)
		end_process(b, i, SIGTERM);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 7);
	assert_string_equal(text(end_of(b, 1), "why"), "rank 1 called abort");
}

BED_TEST(an_abort_is_heard_after_the_part_that_aborted_has_ended)
{
	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	end_now(b, 1, 7 << 8);
	say_failed(b, b->processes[2].node, false, "fence 1 failed");
	say_failed(b, b->processes[2].node, true, "rank 0 called abort");
	end_now(b, 2, SIGTERM);
	assert_int_equal(number(end_of(b, 1), "code"), 7);
	assert_string_equal(text(end_of(b, 1), "why"), "rank 0 called abort");
}

/* Failures that follow elsewhere may be heard first. */
BED_TEST(an_abort_is_heard_by_a_part_that_doubts)
{
	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	say_fail(b, "fence 1 failed");
	say_abort(b);
	assert_true(b->processes[1].told && b->processes[2].told);
	end_process(b, 1, SIGTERM);
	end_now(b, 2, SIGTERM);
	assert_string_equal(text(end_of(b, 1), "why"), "rank 1 called abort");
}

/* ---- nodes that Slurm ends ---- */

/* The daemon is ended a little later: the task runs again elsewhere. */
static void assert_was_lost(struct bed *b)
{
	const uint32_t node = b->processes[1].node;
	const int64_t before = b->nprocesses;

	pass(b, 1900);
	assert_null(end_of(b, 1));
	lose(b, node);
	for (int64_t i = 1; i <= before; i++)
		if (b->processes[i].runs)
			end_process(b, i, SIGKILL);
	deliver_all(b);
	assert_int_equal(b->nprocesses, 2 * before);
	for (int64_t i = before + 1; i <= b->nprocesses; i++)
		end_process(b, i, 0);
	deliver_all(b);
	assert_int_equal(number(end_of(b, 1), "code"), 0);
	assert_int_equal(number(end_of(b, 1), "instance"), 1);
	unit_end(b);
}

TEST(ranks_that_end_with_their_node_have_not_failed)
{
	static const int32_t ends[] = { SIGTERM, SIGKILL, (128 + SIGTERM) << 8 };
	struct bed *b;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		b = bed_create(100);
		submit(b, "{'argv':['x'],'ranks':2,'nodes':1}");
		end_now(b, 1, ends[i]);
		assert_false(b->processes[2].told);
		end_process(b, 2, 3 << 8);
		assert_was_lost(b);
	}
}

/* Slurm sends SIGCONT first: a program may end by SIGTERM with any code. */
BED_TEST(after_sigcont_any_end_may_be_slurms)
{
	submit(b, "{'argv':['x']}");
	dvm_node_continued(b->nodes[b->processes[1].node].node, b->now);
	end_process(b, 1, 3 << 8);
	assert_was_lost(b);
}

BED_TEST(failure_of_pmi_waits_for_news_of_the_other_node)
{
	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	assert_ptr_not_equal(b->pmi_node, &b->nodes[b->processes[1].node]);
	say_fail(b, "rank 0 was killed by signal 15");
	assert_false(b->processes[1].told || b->processes[2].told);
	end_process(b, 1, SIGTERM);
	assert_was_lost(b);
}

/* Nobody has ended the daemon. */
BED_TEST(an_end_by_a_signal_is_a_failure_in_the_end)
{
	uint64_t at;

	submit(b, "{'argv':['x'],'ranks':2,'time':1}");
	end_now(b, 1, SIGTERM);
	b->now.wall_ns += 1000000000;
	pass(b, 2000);
	assert_true(b->processes[2].told);
	end_now(b, 2, SIGTERM);
	assert_int_equal(number(end_of(b, 1), "code"), 128 + SIGTERM);
	assert_int_equal(number(end_of(b, 1), "rank"), 0);
	submit(b, "{'argv':['x']}");
	at = b->now.wall_ns;
	end_process(b, 3, SIGKILL);
	b->now.wall_ns += 1000000000;
	pass(b, 2000);
	assert_int_equal(number(end_of(b, 2), "code"), 128 + SIGKILL);
	assert_true(json_real_value(json_array_get(json_object_get(end_of(b, 2), "t"), 3)) ==
		    (double)at / 1e9);
	assert_int_equal(free_cores(b), NODES * CORES);
}

/* The other node reports its own failure, or never does. */
BED_TEST(a_doubt_about_others_has_an_end)
{
	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	say_fail(b, "fence 1 failed");
	assert_false(b->processes[1].told || b->processes[2].told);
	end_now(b, 1, 3 << 8);
	assert_true(b->processes[2].told);
	end_now(b, 2, SIGTERM);
	assert_int_equal(number(end_of(b, 1), "code"), 3);
	submit(b, "{'argv':['x'],'ranks':2,'nodes':2}");
	say_fail(b, "fence 2 failed");
	pass(b, 4000);
	assert_true(b->processes[3].told && b->processes[4].told);
	end_process(b, 3, SIGTERM);
	end_now(b, 4, SIGTERM);
	assert_int_equal(number(end_of(b, 2), "code"), 5);
	assert_string_equal(text(end_of(b, 2), "why"), "fence 2 failed");
}

BED_TEST(failure_after_a_cancel_is_not_the_reason)
{
	submit(b, "{'argv':['x'],'ranks':2}");
	request(b, "{'op':'cancel','ids':[1]}");
	end_process(b, 1, SIGTERM);
	say_fail(b, "fence 1 failed");
	end_now(b, 2, SIGTERM);
	assert_int_equal(number(end_of(b, 1), "code"), 128 + SIGTERM);
	assert_null(json_object_get(end_of(b, 1), "why"));
}
