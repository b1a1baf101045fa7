/* SPDX-License-Identifier: BSD-3-Clause */
/* First messages of PMIx clients, and whatever else comes to that port. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>

#include "helpers/pmixd/client_hello.h"

struct hello {
	char bytes[CLIENT_HELLO_MAX + 64];
	size_t len;
};

static void put(struct hello *h, const void *data, size_t len)
{
	memcpy(h->bytes + h->len, data, len);
	h->len += len;
}

static void put_u32(struct hello *h, uint32_t v)
{
	v = htonl(v);
	put(h, &v, sizeof(v));
}

static void set_length(struct hello *h)
{
	uint32_t length = h->len - 16;

	memcpy(h->bytes + 8, &length, sizeof(length));
}

/* As libpmix 4.2.2 of rank 7 says it. */
static void client(struct hello *h, char kind, size_t credential)
{
	static const char zeros[CLIENT_HELLO_MAX];

	h->len = 0;
	put(h, zeros, 16);
	put(h, "native", 7);
	put_u32(h, credential);
	put(h, zeros, credential);
	put(h, &kind, 1);
	put(h, "pmi2x.17.2", 11);
	put_u32(h, 7);
	put(h, "4.2.2", 6);
	set_length(h);
}

TEST(rank_of_a_client_is_read)
{
	struct client_hello out;
	struct hello h;

	for (size_t credential = 0; credential < 600; credential += 299) {
		client(&h, 0, credential);
		assert_int_equal(client_hello_read(h.bytes, h.len, &out), 1);
		assert_string_equal(out.nspace, "pmi2x.17.2");
		assert_int_equal(out.rank, 7);
	}
}

TEST(user_of_a_client_is_read)
{
	const uint32_t user = 1234;
	struct client_hello out;
	struct hello h;

	client(&h, 0, 8);
	memcpy(h.bytes + 16 + 7 + 4, &user, sizeof(user));
	assert_int_equal(client_hello_read(h.bytes, h.len, &out), 1);
	assert_true(out.has_uid);
	assert_int_equal(out.uid, 1234);
	client(&h, 0, 7);
	assert_int_equal(client_hello_read(h.bytes, h.len, &out), 1);
	assert_false(out.has_uid);
	client(&h, 0, 8);
	h.bytes[16] = 'm';
	assert_int_equal(client_hello_read(h.bytes, h.len, &out), 1);
	assert_false(out.has_uid);
}

TEST(a_part_of_it_is_waited_for)
{
	struct client_hello out;
	struct hello h;

	client(&h, 0, 3);
	for (size_t len = 0; len < h.len; len++)
		assert_int_equal(client_hello_read(h.bytes, len, &out), 0);
}

TEST(tools_and_strange_bytes_are_no_clients)
{
	struct client_hello out;
	struct hello h;

	client(&h, 1, 0);
	assert_int_equal(client_hello_read(h.bytes, h.len, &out), -EPROTO);
	client(&h, 0, 0);
	h.len = 16 + 7 + 4 + 1 + 5; /* the name has no end */
	set_length(&h);
	assert_int_equal(client_hello_read(h.bytes, h.len, &out), -EPROTO);
	client(&h, 0, 0);
	memset(h.bytes + 16 + 7, 0xff, 4); /* a credential that is not there */
	assert_int_equal(client_hello_read(h.bytes, h.len, &out), -EPROTO);
	memset(h.bytes, 0xff, 16);
	assert_int_equal(client_hello_read(h.bytes, h.len, &out), -EPROTO);
}

TEST(every_cut_is_survived)
{
	struct client_hello out;
	struct hello h;

	client(&h, 0, 3);
	for (size_t len = h.len; len > 16; len--) {
		h.len = len;
		set_length(&h);
		(void)client_hello_read(h.bytes, h.len, &out);
	}
}
