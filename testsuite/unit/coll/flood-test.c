/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that one node sends to all others. */
#include "unit.h"

#include <errno.h>

#include "bed.h"

static int tell(struct bed *bed, uint32_t position, const char *text)
{
	struct payload *p = payload_copy(text, strlen(text));
	int rc = coll_flood(bed->nodes[position].coll, p);

	payload_unref(p);
	return rc;
}

TEST(comes_once_to_every_other)
{
	for (uint32_t nnodes = 1; nnodes < 24; nnodes++) {
		struct bed *bed = new_bed(nnodes, nnodes + 3, 2 + nnodes % 4, 0);
		uint32_t teller = nnodes / 2;

		assert_int_equal(tell(bed, teller, "one"), 0);
		assert_int_equal(tell(bed, teller, "two"), 0);
		bed_deliver_all(bed);
		for (uint32_t p = 0; p < nnodes; p++)
			assert_string_equal(bed->nodes[p].flooded,
					    p == teller ? "" : "onetwo");
		assert_int_equal(bed->record->sent[COLL_MSG_FLOOD], 2 * (nnodes - 1));
		bed_check_settled(bed);
		unit_end(bed);
	}
}

BED_TEST(does_not_come_over_a_lost_link, 7, 14) /* 0: 1 (2 3), 4 (5 6) */
{
	bed_break(bed, 1);
	bed_detect_all(bed);
	assert_int_equal(tell(bed, 2, "x"), 0);
	bed_deliver_all(bed);
	assert_string_equal(bed->nodes[3].flooded, "x");
	assert_string_equal(bed->nodes[0].flooded, "");
}

BED_TEST(messages_over_the_limits_are_rejected, 2, 2)
{
	const struct coll_msg msg = { .type = COLL_MSG_FLOOD };
	struct payload *much = payload_virtual(COLL_FLOOD_BYTES_MAX + 1);

	assert_int_equal(tell(bed, 0, ""), -EMSGSIZE);
	assert_int_equal(coll_flood(bed->nodes[0].coll, much), -EMSGSIZE);
	assert_int_equal(coll_receive(bed->nodes[0].coll, 1, &msg, much), -EPROTO);
	assert_int_equal(coll_receive(bed->nodes[0].coll, 1, &msg, NULL), -EPROTO);
	assert_int_equal(bed->record->sent[COLL_MSG_FLOOD], 0);
	payload_unref(much);
}
