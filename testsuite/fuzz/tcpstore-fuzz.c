/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queries of PyTorch's TCPStore: the same ones come, however the bytes are cut, and none
 * has more than is allowed.
 */
#include "fuzz.h"

#include <stdbool.h>

#include <xxhash.h>

#include "libpmi/tcpstore.h"

struct seen {
	XXH64_hash_t hash;
	size_t queries;
	int end;          /* of tcpstore_next */
	bool has_append;  /* of 2.1, which is DELETE_KEY of 1.13 when it comes in pieces */
};

static void note(struct seen *seen, const void *data, size_t len)
{
	seen->hash = XXH3_64bits_withSeed(data, len, seen->hash + len);
}

static void note_query(struct seen *seen, const struct tcpstore_query *q)
{
	FUZZ_CHECK(q->op <= TCPSTORE_PING);
	FUZZ_CHECK(q->count <= 2 * TCPSTORE_KEYS_MAX);
	note(seen, &q->op, sizeof(q->op));
	for (uint32_t i = 0; i < q->count; i++) {
		size_t len;
		const char *at = tcpstore_at(q, i, &len);

		FUZZ_CHECK(len <= TCPSTORE_VALUE_MAX);
		note(seen, at, len);
	}
	if (q->op == TCPSTORE_ADD)
		note(seen, &q->delta, sizeof(q->delta));
	if (q->op == TCPSTORE_PING)
		note(seen, &q->nonce, sizeof(q->nonce));
	seen->queries++;
}

/* All in pieces of up to `piece` bytes. */
static void read_all(const uint8_t *data, size_t size, size_t piece, struct seen *seen)
{
	struct tcpstore *t = tcpstore_create(NULL);
	struct tcpstore_query q;

	FUZZ_CHECK(t);
	memset(seen, 0, sizeof(*seen));
	while (size && !seen->end) {
		void *to;
		size_t n = tcpstore_room(t, &to);

		FUZZ_CHECK(n > 0);
		n = n < size ? n : size;
		n = n < piece ? n : piece;
		memcpy(to, data, n);
		tcpstore_filled(t, n);
		data += n;
		size -= n;
		while ((seen->end = tcpstore_next(t, &q)) > 0)
			note_query(seen, &q);
	}
	FUZZ_CHECK(!seen->end == !tcpstore_why(t)[0]);
	seen->has_append = strstr(tcpstore_why(t), "APPEND of PyTorch 2.1");
	tcpstore_destroy(t);
}

/* The first two bytes are the size of the pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	size_t piece = fuzz_u16(&in) + 1;
	struct seen cut, again;

	read_all(in.at, in.left, piece, &cut);
	read_all(in.at, in.left, piece == 1 ? 2 : piece - 1, &again);
	if (!cut.has_append && !again.has_append)
		FUZZ_CHECK(cut.queries == again.queries && cut.hash == again.hash &&
			   cut.end == again.end);
	return 0;
}
