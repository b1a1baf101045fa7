/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes messages out of a stream of bytes. */
#include "libpmi/pmix_frame.h"

#include <errno.h>
#include <string.h>

#include "libpmi/pmix_msg.h"

#define FIRST_GROWTH 262144 /* bytes of a message that memory is first taken for */

_Static_assert(PMIX_FRAME_AHEAD <= FIRST_GROWTH, "what was read ahead has room");

void pmix_frame_init(struct pmix_frame *f, struct budget *budget)
{
	memset(f, 0, sizeof(*f));
	f->budget = budget;
}

void pmix_frame_free(struct pmix_frame *f)
{
	payload_unref(f->message);
	pmix_frame_init(f, f->budget);
}

size_t pmix_frame_room(struct pmix_frame *f, void **at)
{
	if (f->message) {
		*at = f->message->data + f->filled;
		return f->message->len - f->filled;
	}
	*at = f->ahead + f->to;
	return sizeof(f->ahead) - f->to;
}

void pmix_frame_filled(struct pmix_frame *f, size_t n)
{
	if (f->message)
		f->filled += n;
	else
		f->to += n;
}

/* The bytes of the message that have been read ahead become its first. */
static int begin(struct pmix_frame *f)
{
	int64_t size = pmix_msg_size(f->ahead + f->from);
	size_t have = f->to - f->from;

	if (size < 0)
		return (int)size;
	f->size = (size_t)size;
	f->message = payload_new_in(f->budget,
				    f->size < FIRST_GROWTH ? f->size : FIRST_GROWTH);
	if (!f->message)
		return -ENOMEM;
	f->filled = have < f->size ? have : f->size;
	memcpy(f->message->data, f->ahead + f->from, f->filled);
	f->from += f->filled;
	return 0;
}

/* By as much again: what has come is not less than half of what is held. */
static int grow(struct pmix_frame *f)
{
	size_t len = f->size - f->filled > f->filled ? 2 * f->filled : f->size;
	struct payload *grown = payload_resize(f->message, len);

	if (!grown)
		return -ENOMEM;
	f->message = grown;
	return 0;
}

/* Part of a length, or nothing, is left: more is read behind it. */
static void keep_rest(struct pmix_frame *f)
{
	f->to -= f->from;
	memmove(f->ahead, f->ahead + f->from, f->to);
	f->from = 0;
}

int pmix_frame_next(struct pmix_frame *f, struct payload **out)
{
	int rc = 0;

	if (!f->message && f->to - f->from >= PMIX_MSG_LENGTH_BYTES)
		rc = begin(f);
	if (rc)
		return rc;
	if (!f->message || f->filled < f->size) {
		keep_rest(f);
		return f->message && f->filled == f->message->len ? grow(f) : 0;
	}
	*out = f->message;
	f->message = NULL;
	return 1;
}
