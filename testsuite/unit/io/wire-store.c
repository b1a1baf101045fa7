/* SPDX-License-Identifier: BSD-3-Clause */
/* The section of the wire reference for messages of the store. */
#include "unit.h"

#include <stdio.h>

#include "libstore/store_msg.h"
#include "wire-lines.h"

void store_section(struct buf *out)
{
	static const struct store_bytes keys[] = { { "k", 1 }, { "key", 3 } };
	static const uint64_t numbers[] = { 3, 1ull << 40 };
	struct payload *value = payload_copy("value", 5);
	struct payload *values[] = { value, NULL };
	const struct store_msg messages[] = {
		{ .type = STORE_MSG_ASK, .number = 1ull << 40, .space = STORE_TORCH,
		  .rq = { .op = STORE_MEET, .local = true, .gather = true, .keys = keys,
			  .nkeys = 2, .rank = 5, .number = -2, .expected = { "old", 3 },
			  .value = { "new", 3 } } },
		{ .type = STORE_MSG_ANSWER, .number = 7,
		  .answer = { .status = STORE_FULL, .number = -1, .text = "why",
			      .values = values, .nvalues = 2 } },
		{ .type = STORE_MSG_CANCEL, .number = 7 },
		{ .type = STORE_MSG_GONE, .rank = 3, .text = "exited" },
		{ .type = STORE_MSG_OPEN },
		{ .type = STORE_MSG_HELLO, .version = 9, .rank = 3 },
		{ .type = STORE_MSG_CREDIT, .number = 1ull << 33 },
		{ .type = STORE_MSG_ASK, .rq = { .op = STORE_COUNT, .behind = true } },
		{ .type = STORE_MSG_ANSWERS, .numbers = numbers, .nnumbers = 2,
		  .answer = { .status = STORE_FAILED, .text = "gone" } },
		{ .type = STORE_MSG_ANSWER, .number = 7,
		  .answer = { .text = "", .values = values, .nvalues = 1, .copy = true } },
		{ .type = STORE_MSG_RECALL, .space = STORE_TORCH,
		  .rq = { .op = STORE_GET, .keys = keys, .nkeys = 1 } },
		{ .type = STORE_MSG_RECALLED },
	};
	struct buf b;
	char name[20];

	section(out, "store", STORE_CLIENT_VERSION);
	buf_init(&b, LINE_MAX_BYTES);
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
		assert_int_equal(store_msg_pack(&b, &messages[i]), 0);
		snprintf(name, sizeof(name), "store-%zu", i);
		buf_line(out, name, &b);
	}
	for (unsigned op = 0; op < STORE_OPS; op++) { /* each has its number */
		const struct store_msg m = { .type = STORE_MSG_ASK, .rq = { .op = op } };

		assert_int_equal(store_msg_pack(&b, &m), 0);
		snprintf(name, sizeof(name), "store-op-%u", op);
		buf_line(out, name, &b);
	}
	buf_free(&b);
	payload_unref(value);
}
