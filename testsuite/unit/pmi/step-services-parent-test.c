/* SPDX-License-Identifier: BSD-3-Clause */
/* srun's services: names of PMIx, and a step whose parent's srun has the names. */
#include "step-services-bed.h"

#include <errno.h>
#include <stdlib.h>

#include "libpmi/names.h"

/* ---- a step that was spawned ---- */

static void parent_replies(unsigned n, struct control_msg msg)
{
	struct buf b;

	msg.type = CONTROL_REPLY;
	msg.id = seen.tokens[n];
	buf_init(&b, CONTROL_FRAME_MAX);
	assert_int_equal(control_pack(&b, &msg), 0);
	step_services_forwarded(seen.services, seen.tokens[n], b.data, b.len);
	buf_free(&b);
}

static void parent_answers(unsigned n, int code,
			   const char *text)
{
	parent_replies(n, (struct control_msg){ .code = code,
						   .text = (char *)text });
}

PARENT_TEST(names_of_a_spawned_step_are_its_parents)
{
	struct control_msg msg = {
		.type = CONTROL_LOOKUP, .origin = 6, .id = 8, .name = "server",
	};

	assert_int_equal(receive(&link_a, &msg), 0);
	assert_int_equal(seen.forwards, 1);
	assert_string_equal(seen.text, "server");
	msg.id = 9;
	assert_int_equal(receive(&link_a, &msg), 0);
	assert_int_equal(seen.replies, 0);
	parent_answers(1, 0, "port");
	assert_int_equal(seen.replies, 1);
	assert_int_equal(seen.reply.origin, 6);
	assert_int_equal(seen.reply.id, 9);
	assert_int_equal(seen.reply.code, 0);
	assert_string_equal(seen.reply.text, "port");
	step_services_forwarded(seen.services, seen.tokens[0], "garbage", 7);
	assert_int_equal(seen.replies, 2);
	assert_int_equal(seen.reply.id, 8);
	assert_int_not_equal(seen.reply.code, 0);
}

PARENT_TEST(a_lost_parent_fails_what_waits_for_it)
{
	struct control_msg msg = { .type = CONTROL_LOOKUP, .name = "server" };

	request_spawn(&link_a, 1);
	assert_int_equal(receive(&link_a, &msg), 0);
	assert_int_equal(receive(&link_b, &msg), 0);
	step_services_parent_lost(seen.services);
	assert_int_equal(seen.replies, 2); /* not the spawn */
	assert_int_not_equal(seen.reply.code, 0);
}

PARENT_TEST(a_parent_that_is_gone_fails_the_request)
{
	seen.spawn_rc = -EPIPE;
	assert_int_not_equal(ask(CONTROL_PUBLISH, "a", "p"), 0);
}

/* ---- names of PMIx ---- */

/* A look-up of the key "x" that waits, or its publication. */
static int ask_pmix(enum names_op op, void *link, uint32_t wait)
{
	struct names_item item = { .key = "x" };
	const struct names_request r = {
		.op = op, .range = NAMES_OF_SESSION, .items = &item, .count = 1,
		.wait = wait, .timeout_ms = wait ? 50 : 0,
	};
	struct control_msg msg = {
		.type = CONTROL_NAMES, .origin = 4, .id = 5, .name = "pmi2x.1.0",
		.text = "n4", .rank = 6,
	};
	struct buf b;
	int rc;

	item.value = op == NAMES_PUBLISH ? "a\0b" : NULL;
	item.len = op == NAMES_PUBLISH ? 3 : 0;
	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	msg.body = b.data;
	msg.body_len = b.len;
	rc = receive(link, &msg);
	buf_free(&b);
	return rc;
}

/* The error in the last reply. */
static int error_of_pmix(uint32_t found)
{
	struct names_answer a;

	assert_int_equal(seen.reply.origin, 4);
	assert_int_equal(seen.reply.id, 5);
	assert_int_equal(seen.reply.code, 0);
	assert_int_equal(names_unpack_answer(&a, seen.body, seen.body_len), 0);
	assert_int_equal(a.count, found);
	if (found) {
		assert_int_equal(a.items[0].len, 3);
		assert_memory_equal(a.items[0].value, "a\0b", 3);
		assert_string_equal(a.items[0].from.nspace, "pmi2x.1.0");
		assert_int_equal(a.items[0].from.rank, 6);
	}
	free(a.items);
	return a.error;
}

STEP_TEST(names_of_pmix_are_not_those_of_pmi)
{
	assert_int_equal(ask(CONTROL_PUBLISH, "x", "port"), 0);
	assert_int_equal(ask_pmix(NAMES_LOOKUP, &link_a, 0), 0);
	assert_int_equal(error_of_pmix(0), -ENOENT);
	assert_int_equal(ask_pmix(NAMES_PUBLISH, &link_a, 0), 0);
	assert_int_equal(error_of_pmix(0), 0);
	assert_int_equal(ask_pmix(NAMES_LOOKUP, &link_b, 0), 0);
	assert_ptr_equal(seen.reply_link, &link_b);
	assert_int_equal(error_of_pmix(1), 0);
	assert_int_equal(ask(CONTROL_LOOKUP, "x", NULL), 0);
	assert_string_equal(seen.reply.text, "port");
}

STEP_TEST(a_lookup_of_pmix_may_wait)
{
	assert_int_equal(ask_pmix(NAMES_LOOKUP, &link_a, 1), 0);
	assert_int_equal(ask_pmix(NAMES_LOOKUP, &link_b, 1), 0);
	assert_int_equal(seen.replies, 0);
	assert_true(step_services_expire(seen.services, 100) == 150);
	step_services_link_lost(seen.services, &link_a);
	assert_true(step_services_expire(seen.services, 150) == UINT64_MAX);
	assert_int_equal(seen.replies, 1);
	assert_ptr_equal(seen.reply_link, &link_b);
	assert_int_equal(error_of_pmix(0), -ETIMEDOUT);
	assert_int_equal(receive(&link_a, &(struct control_msg){
					 .type = CONTROL_NAMES }), -EPROTO);
}

/* The whole answer comes back. */
PARENT_TEST(names_of_pmix_are_the_parents)
{
	struct buf b;
	struct names_answer a = { .error = -ENOENT };

	assert_int_equal(ask_pmix(NAMES_LOOKUP, &link_a, 0), 0);
	assert_int_equal(seen.forwards, 1);
	assert_string_equal(seen.text, "pmi2x.1.0");
	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_answer(&b, &a), 0);
	parent_replies(0, (struct control_msg){ .body = b.data,
						    .body_len = b.len });
	assert_int_equal(error_of_pmix(0), -ENOENT);
	buf_free(&b);
}

/* The parent's srun keeps the names, and is told; its answer is nobody's. */
PARENT_TEST(a_step_that_has_ended_is_the_parents_news)
{
	step_services_namespace_ended(seen.services, "pmi2x.1.7");
	assert_int_equal(seen.forwards, 1);
	assert_string_equal(seen.text, "pmi2x.1.7");
	parent_answers(0, 0, "");
	step_services_namespace_ended(seen.services, "pmi2x.1.8");
	step_services_parent_lost(seen.services);
	assert_int_equal(seen.replies, 0);
}
