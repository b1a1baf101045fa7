/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of collectives, and control messages: what reads can be rewritten. */
#include "fuzz.h"

#include "libcoll/coll.h"
#include "libpmi/control.h"

static void coll_header(struct fuzz_input *in)
{
	struct coll_msg msg, again;
	struct cursor c;
	struct buf b;

	cursor_init(&c, in->at, in->left);
	if (coll_msg_unpack(&c, &msg))
		return;
	buf_init(&b, in->left);
	FUZZ_CHECK(!coll_msg_pack(&b, &msg));
	FUZZ_CHECK(b.len == in->left - cursor_left(&c));
	cursor_init(&c, b.data, b.len);
	FUZZ_CHECK(!coll_msg_unpack(&c, &again) && cursor_done(&c));
	FUZZ_CHECK(!memcmp(&msg, &again, sizeof(msg)));
	buf_free(&b);
}

static void control(struct fuzz_input *in)
{
	struct control_msg msg;
	enum control_type type;
	uint32_t origin;
	struct buf b;
	int rc = control_unpack(in->at, in->left, &msg);

	FUZZ_CHECK(rc || !control_peek(in->at, in->left, &type, &origin));
	if (rc)
		return;
	FUZZ_CHECK(type == msg.type && origin == msg.origin);
	buf_init(&b, CONTROL_FRAME_MAX);
	FUZZ_CHECK(!control_pack(&b, &msg));
	FUZZ_CHECK(b.len == in->left && !memcmp(b.data, in->at, b.len));
	control_has_reply(msg.type);
	buf_free(&b);
	control_free(&msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };

	if (fuzz_u8(&in) % 2)
		control(&in);
	else
		coll_header(&in);
	return 0;
}
