/* SPDX-License-Identifier: BSD-3-Clause */
/* srun's services for a step: names, spawns, aborts and reports. */
#include "step-services-bed.h"

#include <errno.h>
#include <stdio.h>

#include "libpmi/rc.h"

STEP_TEST(names_are_published_and_found)
{
	assert_int_not_equal(ask(CONTROL_LOOKUP, "a", NULL), 0);
	assert_string_not_equal(seen.reply.text, "");
	assert_int_equal(ask(CONTROL_PUBLISH, "a", "port of a"), 0);
	assert_int_equal(ask(CONTROL_PUBLISH, "b", "port of b"), 0);
	assert_int_equal(ask(CONTROL_LOOKUP, "a", NULL), 0);
	assert_string_equal(seen.reply.text, "port of a");
	assert_int_equal(ask(CONTROL_LOOKUP, "b", NULL), 0);
	assert_string_equal(seen.reply.text, "port of b");
	assert_int_equal(ask(CONTROL_UNPUBLISH, "a", NULL), 0);
	assert_int_not_equal(ask(CONTROL_LOOKUP, "a", NULL), 0);
	assert_int_not_equal(ask(CONTROL_UNPUBLISH, "a", NULL), 0);
	assert_int_equal(ask(CONTROL_LOOKUP, "b", NULL), 0);
}

STEP_TEST(a_name_is_published_once)
{
	assert_int_equal(ask(CONTROL_PUBLISH, "a", "first"), 0);
	assert_int_not_equal(ask(CONTROL_PUBLISH, "a", "second"), 0);
	assert_int_equal(ask(CONTROL_LOOKUP, "a", NULL), 0);
	assert_string_equal(seen.reply.text, "first");
	assert_int_not_equal(ask(CONTROL_PUBLISH, "", "x"), 0);
}

STEP_TEST(names_have_a_limit)
{
	char name[16];

	for (int i = 0; i < STEP_SERVICES_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(ask(CONTROL_PUBLISH, name, "p"), 0);
	}
	assert_int_not_equal(ask(CONTROL_PUBLISH, "one more", "p"), 0);
	assert_int_equal(ask(CONTROL_UNPUBLISH, "0", NULL), 0);
	assert_int_equal(ask(CONTROL_PUBLISH, "one more", "p"), 0);
}

STEP_TEST(names_go_with_the_step_that_has_published_them)
{
	const struct control_msg of_b = {
		.type = CONTROL_PUBLISH, .name = (char *)"b", .text = (char *)"port of b",
	};

	assert_int_equal(ask(CONTROL_PUBLISH, "a", "port of a"), 0);
	assert_int_equal(receive(&link_b, &of_b), 0);
	assert_int_equal(seen.reply.code, 0);
	step_services_step_lost(seen.services, &link_a);
	assert_int_not_equal(ask(CONTROL_LOOKUP, "a", NULL), 0);
	assert_int_equal(ask(CONTROL_LOOKUP, "b", NULL), 0);
}

/* ---- spawn ---- */

STEP_TEST(spawns_are_answered_when_they_end)
{
	request_spawn(&link_a, 1);
	request_spawn(&link_b, 2);
	assert_int_equal(seen.spawns, 2);
	assert_string_equal(seen.text, "worker");
	assert_int_equal(seen.replies, 0);
	step_services_spawned(seen.services, seen.tokens[1], 0, "12.3");
	assert_int_equal(seen.replies, 1);
	assert_ptr_equal(seen.reply_link, &link_b);
	assert_int_equal(seen.reply.origin, 9);
	assert_int_equal(seen.reply.id, 2);
	assert_int_equal(seen.reply.code, 0);
	assert_string_equal(seen.reply.text, "12.3");
	step_services_spawned(seen.services, seen.tokens[0], PMI_RC_FAIL, "no such file");
	assert_int_equal(seen.replies, 2);
	assert_int_equal(seen.reply.id, 1);
	assert_int_equal(seen.reply.code, PMI_RC_FAIL);
	step_services_spawned(seen.services, seen.tokens[0], 0, "twice");
	step_services_spawned(seen.services, 4711, 0, "unknown");
	assert_int_equal(seen.replies, 2);
}

STEP_TEST(a_spawn_that_cannot_start_is_answered)
{
	seen.spawn_rc = -ENOENT;
	request_spawn(&link_a, 1);
	assert_int_equal(seen.replies, 1);
	assert_int_not_equal(seen.reply.code, 0);
	assert_string_not_equal(seen.reply.text, "");
}

STEP_TEST(nothing_is_sent_on_a_lost_link)
{
	request_spawn(&link_a, 1);
	request_spawn(&link_b, 1);
	step_services_link_lost(seen.services, &link_a);
	step_services_spawned(seen.services, seen.tokens[0], 0, "12.3");
	assert_int_equal(seen.replies, 0);
	step_services_spawned(seen.services, seen.tokens[1], 0, "12.4");
	assert_int_equal(seen.replies, 1);
}

STEP_TEST(spawns_in_progress_have_a_limit)
{
	for (int i = 0; i < STEP_SERVICES_SPAWNS_MAX; i++)
		request_spawn(&link_a, i);
	assert_int_equal(seen.replies, 0);
	request_spawn(&link_a, 5000);
	assert_int_equal(seen.replies, 1);
	assert_int_equal(seen.reply.id, 5000);
	assert_int_not_equal(seen.reply.code, 0);
	assert_int_equal(seen.spawns, STEP_SERVICES_SPAWNS_MAX);
	step_services_spawned(seen.services, seen.tokens[0], 0, "");
	request_spawn(&link_a, 5001);
	assert_int_equal(seen.spawns, STEP_SERVICES_SPAWNS_MAX + 1);
}

/* ---- what is not answered ---- */

STEP_TEST(aborts_and_ready_count_once)
{
	struct control_msg abort = { .type = CONTROL_ABORT, .rank = 5 };
	const struct control_msg ready = { .type = CONTROL_READY };

	for (int i = 0; i < 3; i++) {
		assert_int_equal(receive(&link_a, &abort), 0);
		assert_int_equal(receive(&link_a, &ready), 0);
		abort.rank++;
	}
	assert_int_equal(seen.aborts, 1);
	assert_int_equal(seen.abort_rank, 5);
	assert_int_equal(seen.readies, 1);
	assert_int_equal(seen.replies, 0);
}

STEP_TEST(step_that_ended_is_reported_as_not_ready)
{
	struct control_msg ready = { .type = CONTROL_READY, .code = 1, .text = "why" };

	assert_int_equal(receive(&link_a, &ready), 0);
	assert_int_equal(seen.readies, 100);
	assert_string_equal(seen.text, "why");
	ready.code = 0;
	assert_int_equal(receive(&link_a, &ready), 0);
	assert_int_equal(seen.readies, 100);
}

/* As long as the answer is no there is none. */
STEP_TEST(started_step_is_confirmed_to_the_node_that_asks)
{
	struct control_msg msg = { .type = CONTROL_STARTED, .origin = 3 };

	seen.started = 70000;
	msg.id = 5;
	assert_int_equal(receive(&link_a, &msg), 0);
	assert_int_equal(seen.replies, 0);
	msg.id = 70000;
	assert_int_equal(receive(&link_b, &msg), 0);
	assert_int_equal(seen.replies, 1);
	assert_ptr_equal(seen.reply_link, &link_b);
	assert_int_equal(seen.reply.type, CONTROL_STARTED);
	assert_int_equal(seen.reply.id, 70000);
}

/* A node is not trusted with the user's terminal. */
STEP_TEST(reports_are_plain_text)
{
	struct control_msg report = { .type = CONTROL_REPORT };
	char text[] = "a\x1b[2J\nb\xff";

	report.text = text;
	assert_int_equal(receive(&link_a, &report), 0);
	assert_string_equal(seen.text, "a?[2J?b?");
}

/* No line: the first has said why. */
STEP_TEST(rank_that_gave_up_after_a_report_is_remembered)
{
	struct control_msg report = { .type = CONTROL_REPORT };
	char why[] = "fence 3 failed";

	report.text = why;
	assert_int_equal(receive(&link_a, &report), 0);
	assert_int_equal(seen.gave_ups, 0);
	report.text = NULL;
	report.code = 1;
	assert_int_equal(receive(&link_a, &report), 0);
	assert_int_equal(seen.gave_ups, 1);
	assert_int_equal(seen.reports, 1);
}

STEP_TEST(the_user_reads_each_report_once_and_few)
{
	const struct control_msg abort = { .type = CONTROL_ABORT };
	struct control_msg report = { .type = CONTROL_REPORT };
	char text[32];

	report.text = text;
	for (int i = 0; i < 2; i++) {
		strcpy(text, "fence 3 failed");
		assert_int_equal(receive(&link_a, &report), 0);
	}
	assert_int_equal(seen.reports, 1);
	for (int i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "ring %d failed", i);
		assert_int_equal(receive(&link_a, &report), 0);
	}
	assert_int_equal(seen.reports, STEP_SERVICES_REPORTS_MAX);
	end_test(NULL);
	begin_test(NULL);
	assert_int_equal(receive(&link_a, &abort), 0);
	assert_int_equal(receive(&link_a, &report), 0);
	assert_int_equal(seen.reports, 0); /* the abort says it all */
}

/* A program was refused, say; a collective may fail later. */
STEP_TEST(notes_use_up_no_report)
{
	struct control_msg note = { .type = CONTROL_NOTE };
	struct control_msg report = { .type = CONTROL_REPORT };
	char text[] = "rank 1: a second process\n", why[] = "fence 3 failed";

	note.text = text;
	for (int i = 0; i < STEP_SERVICES_NOTES_MAX + 3; i++)
		assert_int_equal(receive(&link_a, &note), 0);
	assert_string_equal(seen.text, "rank 1: a second process?");
	assert_int_equal(seen.reports, STEP_SERVICES_NOTES_MAX);
	report.text = why;
	assert_int_equal(receive(&link_a, &report), 0);
	assert_string_equal(seen.text, why);
}

STEP_TEST(nonsense_breaks_the_link)
{
	const struct control_msg reply = { .type = CONTROL_REPLY };
	struct control_msg spawn = { .type = CONTROL_SPAWN };

	assert_int_equal(step_services_receive(seen.services, &link_a, "x", 1), -EPROTO);
	assert_int_equal(receive(&link_a, &reply), -EPROTO);
	assert_int_equal(receive(&link_a, &spawn), -EPROTO);
	spawn.body = "\1\0\0\0\1\0\0\0\1\0\0\0a\0\0\0\0\0\0\0\0\0\0\0\0tail";
	spawn.body_len = 13 + 12 + 4;
	assert_int_equal(receive(&link_a, &spawn), -EPROTO);
	assert_int_equal(seen.spawns, 0);
	spawn.body_len -= 4;
	assert_int_equal(receive(&link_a, &spawn), 0);
	assert_int_equal(seen.spawns, 1);
}
