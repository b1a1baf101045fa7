/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a link: the same ones come, however the bytes are cut. */
#include "fuzz.h"

#include <xxhash.h>

#include "libio/frames.h"

struct seen {
	XXH64_hash_t hash; /* of all frames */
	size_t count;
};

static void note(struct seen *seen, const void *data, size_t len)
{
	seen->hash = XXH3_64bits_withSeed(data, len, seen->hash + len);
}

static int on_frame(void *arg, enum frame_type type, struct payload *body)
{
	struct seen *seen = arg;

	FUZZ_CHECK(type < FRAME_TYPES && body->len <= FRAME_BODY_MAX);
	note(seen, &type, sizeof(type));
	note(seen, body->data, body->len);
	seen->count++;
	return 0;
}

static int on_message(void *arg, const void *head, size_t head_len,
		      struct payload *body)
{
	FUZZ_CHECK(head_len > 0 && head_len <= FRAME_HEAD_MAX);
	note(arg, head, head_len);
	return on_frame(arg, FRAME_COLLECTIVE, body);
}

/* Sometimes there is a place where the body is to stay. */
static struct payload *on_room(void *arg, const void *head, size_t head_len,
			       size_t len)
{
	FUZZ_CHECK(head_len > 0 && head_len <= FRAME_HEAD_MAX && len > 0);
	return len % 2 && len < FRAME_STAGE_BYTES * 2 ? payload_new(len) : NULL;
}

static const struct frame_ops ops = {
	.frame = on_frame,
	.message = on_message,
	.room = on_room,
};

/* Read all in pieces of up to `piece` bytes. */
static int read_all(const uint8_t *data, size_t size, size_t piece,
		    struct seen *seen)
{
	struct frame_reader *r = malloc(sizeof(*r));
	int rc = 0;

	FUZZ_CHECK(r);
	memset(seen, 0, sizeof(*seen));
	frame_reader_init(r);
	while (!rc && size) {
		void *to;
		size_t n = frame_reader_room(r, &to);

		FUZZ_CHECK(n > 0);
		n = n < size ? n : size;
		n = n < piece ? n : piece;
		memcpy(to, data, n);
		data += n;
		size -= n;
		rc = frame_reader_input(r, n, &ops, seen);
	}
	frame_reader_free(r);
	free(r);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	size_t piece = fuzz_u16(&in) + 1;
	struct seen whole, cut;
	int rc = read_all(in.at, in.left, SIZE_MAX, &whole);

	FUZZ_CHECK(read_all(in.at, in.left, piece, &cut) == rc);
	FUZZ_CHECK(whole.count == cut.count && whole.hash == cut.hash);
	return 0;
}
