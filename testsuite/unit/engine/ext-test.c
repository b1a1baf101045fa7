/* SPDX-License-Identifier: BSD-3-Clause */
/* The pmi2x extension on the wire: negotiation, batches, allgather, reading. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>

#include "libcoll/coll.h"
#include "libpmi/extension.h"
#include "libshm/records.h"

static void init_all(struct net *n)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init_ext(n, r, 0);
}

NET_TEST(regions_are_offered_and_passed)
{
	struct region *r;
	const char *answer;
	char *size;

	answer = net_init_ext(n, 1, 9);
	assert_non_null(strstr(answer, "pmi2x=1;pmi2x-build=test;"
				       "pmi2x-nodes=3;pmi2x-groups=TRUE;pmi2x-fetch=TRUE;"
				       "pmi2x-region=1;"));
	size = net_field(answer, EXT_KEY_REGION_SIZE);
	assert_true(n->ranks[1].fd >= 0);
	assert_int_equal(region_attach(&r, n->ranks[1].fd, atol(size)), 0);
	region_detach(r);
	free(size);
	answer = net_init_ext(n, 2, 0);
	assert_null(strstr(answer, "pmi2x-region"));
	assert_int_equal(n->ranks[2].fd, -1);
	net_init2(n, 4);
}

TEST(no_region_is_offered_without_one)
{
	const struct net_options heap = {.heap = true};
	struct net *n = net_create(&heap);

	assert_null(strstr(net_init_ext(n, 1, 1), "pmi2x-region"));
	assert_int_equal(n->ranks[1].fd, -1);
}

NET_TEST(records_of_any_size_are_fenced)
{
	struct region *region;
	const char *value;
	char big[3000];
	struct buf b;
	size_t len;

	init_all(n);
	memset(big, ';', sizeof(big));
	buf_init(&b, 100000);
	record_append(&b, "big", 3, big, sizeof(big));
	assert_string_equal(net_pmi2_bytes(n, 5, EXT_CMD_PUT, EXT_KEY_RECORDS,
					   b.data, b.len),
			    "cmd=pmi2x-put-response;rc=0;");
	buf_clear(&b);
	record_append(&b, "small", 5, "\0x", 2);
	assert_null(net_pmi2_bytes(n, 5, EXT_CMD_FENCE, EXT_KEY_RECORDS, b.data,
				   b.len));
	for (uint32_t r = 0; r < 5; r++)
		net_pmi2(n, r, "cmd=pmi2x-fence;");
	assert_string_equal(net_read(n, 5), "cmd=pmi2x-fence-response;rc=0;");
	region_attach(&region, region_writer_fd(n->nodes[0].region),
		      region_writer_size(n->nodes[0].region));
	assert_true(region_find(region, "big", 3, &value, &len));
	assert_int_equal(len, sizeof(big));
	assert_true(region_find(region, "small", 5, &value, &len));
	assert_memory_equal(value, "\0x", 2);
	region_detach(region);
	buf_free(&b);
}

NET_TEST(malformed_records_are_refused)
{
	net_init_ext(n, 0, 0);
	assert_string_equal(net_pmi2_bytes(n, 0, EXT_CMD_PUT, EXT_KEY_RECORDS,
					   "\377\377\377\377xxxx", 8),
			    "cmd=pmi2x-put-response;rc=3;"
			    "errmsg=records: malformed data;");
	assert_string_equal(net_pmi2_bytes(n, 0, EXT_CMD_FENCE, EXT_KEY_RECORDS,
					   "x", 1),
			    "cmd=pmi2x-fence-response;rc=3;"
			    "errmsg=records: malformed data;");
}

/* All ranks gather "v<rank>"; every answer is left to be read. */
static void gather_all(struct net *n, const char *more)
{
	char body[200];

	for (uint32_t r = 0; r < NET_RANKS; r++) {
		snprintf(body, sizeof(body),
			 "cmd=pmi2x-allgather;thrid=%u;value=v%u;%s", r, r,
			 more);
		if (r + 1 < NET_RANKS)
			assert_null(net_pmi2(n, r, body));
		else
			assert_non_null(net_pmi2(n, r, body));
	}
}

static void check_strided(struct net *n, uint32_t rank, const char *answer)
{
	char *offset = net_field(answer, "offset");
	char *length = net_field(answer, "length");
	char body[200];

	assert_int_equal(atoi(length), 4 * NET_RANKS);
	snprintf(body, sizeof(body), "cmd=pmi2x-read;offset=%s;length=24;",
		 offset);
	answer = net_pmi2(n, rank, body);
	assert_memory_equal(answer, "cmd=pmi2x-read-response;rc=0;data=", 34);
	assert_memory_equal(answer + 34,
			    "v0\0\0v1\0\0v2\0\0v3\0\0v4\0\0v5\0\0", 24);
	free(offset);
	free(length);
}

static void check_gathers(struct net *n)
{
	char done[100] = "stride=4;";

	init_all(n);
	for (int round = 0; round < 5; round++) {
		gather_all(n, done);
		for (uint32_t r = 0; r + 1 < NET_RANKS; r++) {
			const char *answer = net_read(n, r);
			char *offset = net_field(answer, "offset");

			snprintf(done, sizeof(done), "stride=4;done=%s;",
				 offset);
			check_strided(n, r, answer);
			free(offset);
		}
	}
}

NET_TEST(gathers_come_in_rank_order)
{
	const struct net_options heap = {.heap = true};

	check_gathers(n);
	unit_end(n);
	n = net_create(&heap);
	check_gathers(n);
}

NET_TEST(space_of_a_gather_is_given_back_by_all)
{
	struct region_writer *w = n->nodes[1].region;
	size_t before = region_writer_used(w);
	char *offset, body[100];

	init_all(n);
	gather_all(n, "stride=65536;");
	offset = net_field(net_read(n, 1), "offset");
	assert_true(region_writer_used(w) > before);
	/* Rank 1 says so, rank 2 finalizes, rank 4 goes away. */
	snprintf(body, sizeof(body), "cmd=pmi2x-allgather;value=;done=%s,%s;",
		 offset, offset);
	net_pmi2(n, 1, body);
	net_pmi2(n, 2, "cmd=finalize;");
	assert_true(region_writer_used(w) > before);
	net_eof(n, 4);
	assert_int_equal(region_writer_used(w), before);
	free(offset);
}

static void fence_all(struct net *n)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi2(n, r, "cmd=pmi2x-fence;");
}

/*
 * A fence leaves that work, until no rank waits for another collective; whenever
 * it is done, every key is found.
 */
NET_TEST(indexes_are_joined_when_all_is_quiet)
{
	struct net_node *node = &n->nodes[1];
	struct region_writer *w = node->region;

	init_all(n);
	for (int i = 0; i < 3; i++) {
		char body[64];

		snprintf(body, sizeof(body), "cmd=kvs-put;key=k%d;value=v;", i);
		net_pmi2(n, 0, body);
		node->tidies = 0;
		fence_all(n);
		assert_true(node->tidies > 0);
	}
	for (uint32_t r = 2; r < 8; r++) { /* the first is of this node */
		net_pmi2(n, r % 6, "cmd=pmi2x-fence;");
		if (r == 2)
			assert_false(pmi_server_tidy(node->server));
		assert_true(region_untidy(w));
	}
	while (net_read(n, 1)) /* what the fences were answered */
		;
	assert_int_equal(region_writer_merged(w), 0);
	while (pmi_server_tidy(node->server))
		;
	assert_true(region_writer_merged(w) > 0);
	assert_false(region_untidy(w));
	for (int i = 0; i < 3; i++) {
		char body[64];

		snprintf(body, sizeof(body), "cmd=kvs-get;key=k%d;", i);
		assert_non_null(strstr(net_pmi2(n, 1, body), "value=v;"));
	}
}

/* After two fences, whose indexes nobody has joined. */
static struct net *create_untidy(void)
{
	struct net *n = net_create(NULL);

	init_all(n);
	for (int i = 0; i < 2; i++) {
		char body[64];

		snprintf(body, sizeof(body), "cmd=kvs-put;key=k%d;value=v;", i);
		net_pmi2(n, 0, body);
		fence_all(n);
	}
	assert_true(region_untidy(n->nodes[1].region));
	net_forget(n);
	return n;
}

/* A put tells that there will be a fence. */
TEST_ON(a_put_asks_for_it_soon, struct net *n, create_untidy())
{
	struct net_node *node = &n->nodes[1];

	assert_int_equal(node->tidies_soon, 0);
	net_pmi2(n, 1, "cmd=kvs-put;key=k;value=v;");
	assert_true(node->tidies_soon > 0);
	node->tidies_soon = 0;
	net_pmi2(n, 2, "cmd=kvs-get;key=k0;");
	assert_true(node->tidies_soon > 0);
	fence_all(n);
	node->tidies = node->tidies_soon = 0;
	net_pmi2(n, 1, "cmd=kvs-get;key=k;");
	assert_true(node->tidies > 0);
	assert_int_equal(node->tidies_soon, 0);
}

/* Nobody would look up what is joined then. */
TEST_ON(nothing_is_joined_when_ranks_leave, struct net *n, create_untidy())
{
	struct net_node *node = &n->nodes[1];

	net_pmi2(n, 1, "cmd=finalize;"); /* the first of this node */
	node->tidies = 0;
	for (uint32_t r = 0; r < 6; r++)
		if (r != 1)
			net_pmi2(n, r, "cmd=finalize;");
	for (uint32_t r = 0; r < 6; r++)
		net_eof(n, r);
	assert_int_equal(node->tidies, 0);
	assert_false(pmi_server_tidy(node->server));
	assert_true(region_untidy(node->region));
}

/* Another program may use the same connection afterwards. */
NET_TEST(finalize_is_not_answered_if_the_rank_wants_none)
{
	net_init_ext(n, 1, 0);
	assert_null(net_pmi2(n, 1, "cmd=finalize;pmi2x-silent=TRUE;"));
	net_init_ext(n, 1, 0);
	assert_non_null(net_pmi2(n, 1, "cmd=finalize;pmi2x-silent=FALSE;"));
	net_init2(n, 2);
	assert_non_null(net_pmi2(n, 2, "cmd=finalize;pmi2x-silent=TRUE;"));
}

NET_TEST(odd_gathers_are_refused)
{
	static const char *const bodies[] = {
		"cmd=pmi2x-allgather;",
		"cmd=pmi2x-allgather;value=a;stride=-1;",
		"cmd=pmi2x-allgather;value=a;stride=x;",
		"cmd=pmi2x-allgather;value=a;stride=1048577;",
		"cmd=pmi2x-allgather;value=a;done=1,x;",
		"cmd=pmi2x-allgather;value=a;done=99999999999999999999;",
		"cmd=pmi2x-read;offset=0;",
		"cmd=pmi2x-read;offset=0;length=262145;",
		"cmd=pmi2x-read;offset=-1;length=1;",
		"cmd=pmi2x-read;offset=18446744073709551615;length=1;",
		"cmd=pmi2x-read;offset=18446744073709551615;length=2;",
	};

	net_init_ext(n, 0, 0);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		const char *answer = net_pmi2(n, 0, bodies[i]);
		char *rc = net_field(answer, "rc");

		assert_int_not_equal(atoi(rc), 0);
		free(rc);
	}
	assert_int_equal(pmi_server_pending(n->nodes[0].server), 0);
}

NET_TEST(puts_of_a_rank_have_a_limit)
{
	const size_t len = 500000;
	char *value = calloc(1, len);
	const char *answer;
	struct buf b;
	size_t put = 0;

	buf_init(&b, 2 * len);
	record_append(&b, "k", 1, value, len);
	net_init_ext(n, 0, 0);
	for (;;) {
		answer = net_pmi2_bytes(n, 0, EXT_CMD_PUT, EXT_KEY_RECORDS,
					b.data, b.len);
		if (!strstr(answer, "rc=0;"))
			break;
		put += b.len;
		assert_true(put <= PMI_PENDING_MAX);
	}
	assert_string_equal(answer, "cmd=pmi2x-put-response;rc=2;"
				    "errmsg=records: too much data before a "
				    "fence;");
	assert_true(put > PMI_PENDING_MAX - 2 * len);
	/* Values on their way count as well. */
	assert_null(net_pmi2(n, 0, "cmd=pmi2x-fence;"));
	answer = net_pmi2_bytes(n, 0, EXT_CMD_PUT, EXT_KEY_RECORDS, b.data,
				b.len);
	assert_non_null(strstr(answer, "rc=2;"));
	buf_free(&b);
	free(value);
}

NET_TEST(several_collectives_are_in_flight)
{
	init_all(n);
	for (uint32_t r = 0; r + 1 < NET_RANKS; r++) {
		net_pmi2(n, r, "cmd=pmi2x-fence;thrid=1;");
		net_pmi2(n, r, "cmd=kvs-fence;thrid=2;");
		net_pmi2(n, r, "cmd=pmi2x-allgather;thrid=3;value=x;");
	}
	assert_int_equal(pmi_server_pending(n->nodes[0].server), 3);
	net_pmi2(n, 5, "cmd=pmi2x-allgather;value=x;");
	assert_non_null(strstr(net_read(n, 0),
			       "cmd=pmi2x-allgather-response;thrid=3;rc=0;"));
	assert_null(net_read(n, 0));
	net_pmi2(n, 5, "cmd=pmi2x-fence;");
	assert_string_equal(net_read(n, 0),
			    "cmd=pmi2x-fence-response;thrid=1;rc=0;");
	net_hang_up(n, 5);
	assert_non_null(strstr(net_read(n, 0),
			       "cmd=kvs-fence-response;thrid=2;rc=14;"));
}
