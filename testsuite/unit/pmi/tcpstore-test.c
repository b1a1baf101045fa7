/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol of PyTorch's TCPStore: bytes as its releases send them, and their limits. */
#include "unit.h"

#include <errno.h>

#include "libpmi/tcpstore.h"

static struct tcpstore *session;
static struct buf bytes; /* what a client sends */

static int begin(void **state)
{
	(void)state;
	session = tcpstore_create(NULL);
	buf_init(&bytes, SIZE_MAX);
	return session ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	tcpstore_destroy(session);
	buf_free(&bytes);
	return 0;
}

/* ---- a client ---- */

static void put_byte(unsigned char byte)
{
	assert_int_equal(buf_append(&bytes, &byte, 1), 0);
}

static void put_u64(uint64_t number)
{
	assert_int_equal(buf_append(&bytes, &number, sizeof(number)), 0);
}

static void put_item(const char *text)
{
	put_u64(strlen(text));
	assert_int_equal(buf_puts(&bytes, text), 0);
}

static void put_greeting(void)
{
	static const unsigned char greeting[] = { 0, 0xce, 0xf7, 0x85, 0x3c };

	assert_int_equal(buf_append(&bytes, greeting, sizeof(greeting)), 0);
}

/* Give the session bytes [0, n) of what the client sends, in pieces. */
static void send_bytes(const void *data, size_t n, size_t piece)
{
	while (n) {
		void *to;
		size_t room = tcpstore_room(session, &to);

		assert_true(room > 0);
		room = room < n ? room : n;
		room = room < piece ? room : piece;
		memcpy(to, data, room);
		tcpstore_filled(session, room);
		data = (const char *)data + room;
		n -= room;
	}
}

static void send_all(void)
{
	send_bytes(bytes.data, bytes.len, SIZE_MAX);
	buf_clear(&bytes);
}

static void assert_item(const struct tcpstore_query *q, uint32_t item, const char *text)
{
	size_t len;
	const char *at = tcpstore_at(q, item, &len);

	assert_int_equal(len, strlen(text));
	assert_memory_equal(at, text, len);
}

/* The next query has this operation and these items, up to NULL. */
static void assert_query(enum tcpstore_op op, ...)
{
	struct tcpstore_query q;
	const char *text;
	uint32_t n = 0;
	va_list ap;

	assert_int_equal(tcpstore_next(session, &q), 1);
	assert_int_equal(q.op, op);
	va_start(ap, op);
	while ((text = va_arg(ap, const char *))) {
		assert_true(n < q.count);
		assert_item(&q, n++, text);
	}
	va_end(ap);
	assert_int_equal(q.count, n);
}

static void assert_no_query(void)
{
	struct tcpstore_query q;

	assert_int_equal(tcpstore_next(session, &q), 0);
}

static void assert_refused(const char *why)
{
	struct tcpstore_query q;

	assert_int_equal(tcpstore_next(session, &q), -EPROTO);
	if (!strstr(tcpstore_why(session), why))
		fail_msg("\"%s\" does not say \"%s\"", tcpstore_why(session), why);
	assert_int_equal(tcpstore_next(session, &q), -EPROTO);
}

/* ---- recorded: what init_process_group and a few calls of a store send ---- */

/*
 * PyTorch 1.13.1: TCPStore(..., is_master=False), then set, get, add, compare_set, wait,
 * num_keys and delete_key.
 */
static const char of_1_13[] =
	"\3\5\0\0\0\0\0\0\0init/\1\0\0\0\0\0\0\0"
	"\0\2\0\0\0\0\0\0\0/k\1\0\0\0\0\0\0\0v"
	"\5\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/k"
	"\2\2\0\0\0\0\0\0\0/k"
	"\3\2\0\0\0\0\0\0\0/n\7\0\0\0\0\0\0\0"
	"\1\2\0\0\0\0\0\0\0/k\1\0\0\0\0\0\0\0v\1\0\0\0\0\0\0\0w"
	"\5\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/k\2\0\0\0\0\0\0\0/n"
	"\6";
static const char delete_of_1_13[] = "\10\2\0\0\0\0\0\0\0/k";

static void assert_queries_of_1_13(void)
{
	struct tcpstore_query q;

	assert_int_equal(tcpstore_next(session, &q), 1);
	assert_int_equal(q.op, TCPSTORE_ADD);
	assert_item(&q, 0, "init/");
	assert_int_equal(q.delta, 1);
	assert_query(TCPSTORE_SET, "/k", "v", NULL);
	assert_query(TCPSTORE_WAIT, "/k", NULL);
	assert_query(TCPSTORE_GET, "/k", NULL);
	assert_query(TCPSTORE_ADD, "/n", NULL);
	assert_query(TCPSTORE_COMPARE_SET, "/k", "v", "w", NULL);
	assert_query(TCPSTORE_WAIT, "/k", "/n", NULL);
	assert_query(TCPSTORE_GETNUMKEYS, NULL);
	assert_no_query();
}

TEST_WITH(queries_of_1_13_are_read, begin, end)
{
	(void)state;
	send_bytes(of_1_13, sizeof(of_1_13) - 1, SIZE_MAX);
	assert_queries_of_1_13();
	send_bytes(delete_of_1_13, sizeof(delete_of_1_13) - 1, SIZE_MAX);
	assert_query(TCPSTORE_DELETE_KEY, "/k", NULL);
	assert_no_query();
}

/* PyTorch 2.6: a greeting, a ping, and what 1.13 has not. */
static const char of_2_6[] =
	"\0\xce\xf7\x85\x3c"
	"\15\1\2\3\4"
	"\4\5\0\0\0\0\0\0\0init/\1\0\0\0\0\0\0\0"
	"\1\2\0\0\0\0\0\0\0/k\1\0\0\0\0\0\0\0v"
	"\6\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/k"
	"\3\2\0\0\0\0\0\0\0/k"
	"\2\2\0\0\0\0\0\0\0/k\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0w"
	"\5\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/k"
	"\7"
	"\10\2\0\0\0\0\0\0\0/k"
	"\11\2\0\0\0\0\0\0\0/a\3\0\0\0\0\0\0\0xyz"
	"\12\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/a\2\0\0\0\0\0\0\0/k"
	"\13\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0/m\1\0\0\0\0\0\0\0u"
	"\14";

static void assert_queries_of_2_6(void)
{
	struct tcpstore_query q;

	assert_int_equal(tcpstore_next(session, &q), 1);
	assert_int_equal(q.op, TCPSTORE_PING);
	assert_int_equal(q.nonce, 0x04030201);
	assert_query(TCPSTORE_ADD, "init/", NULL);
	assert_query(TCPSTORE_SET, "/k", "v", NULL);
	assert_query(TCPSTORE_WAIT, "/k", NULL);
	assert_query(TCPSTORE_GET, "/k", NULL);
	assert_query(TCPSTORE_COMPARE_SET, "/k", "", "w", NULL);
	assert_query(TCPSTORE_CHECK, "/k", NULL);
	assert_query(TCPSTORE_GETNUMKEYS, NULL);
	assert_query(TCPSTORE_DELETE_KEY, "/k", NULL);
	assert_query(TCPSTORE_APPEND, "/a", "xyz", NULL);
	assert_query(TCPSTORE_MULTI_GET, "/a", "/k", NULL);
	assert_query(TCPSTORE_MULTI_SET, "/m", "u", NULL);
	assert_query(TCPSTORE_CANCEL_WAIT, NULL);
	assert_no_query();
}

TEST_WITH(queries_of_2_6_are_read, begin, end)
{
	(void)state;
	send_bytes(of_2_6, sizeof(of_2_6) - 1, SIZE_MAX);
	assert_queries_of_2_6();
}

TEST_WITH(queries_may_come_byte_by_byte, begin, end)
{
	struct tcpstore_query q;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(of_2_6) - 1; i++) {
		send_bytes(of_2_6 + i, 1, 1);
		n += tcpstore_next(session, &q) == 1;
	}
	assert_int_equal(n, 13);
	assert_no_query();
}

TEST_WITH(queries_may_be_cut_anywhere, begin, end)
{
	struct tcpstore_query q;

	(void)state;
	for (size_t cut = 1; cut < sizeof(of_1_13) - 1; cut++) {
		size_t n = 0;

		tcpstore_destroy(session);
		session = tcpstore_create(NULL);
		assert_non_null(session);
		send_bytes(of_1_13, cut, SIZE_MAX);
		while (tcpstore_next(session, &q) == 1)
			n++;
		send_bytes(of_1_13 + cut, sizeof(of_1_13) - 1 - cut, SIZE_MAX);
		while (tcpstore_next(session, &q) == 1)
			n++;
		assert_int_equal(n, 8);
	}
}

/* ---- releases that cannot be told apart, or are mixed ---- */

TEST_WITH(append_of_2_1_is_not_taken_for_delete_key, begin, end)
{
	(void)state;
	put_byte(8);
	put_item("k");
	put_item("value");
	send_all();
	assert_refused("APPEND of PyTorch 2.1");
}

TEST_WITH(query_7_without_greeting_names_both_releases, begin, end)
{
	(void)state;
	put_byte(7);
	put_item("k");
	send_all();
	assert_refused("WATCH_KEY of PyTorch 1.13 and 2.0, or DELETE_KEY of 2.1");
}

TEST_WITH(queries_of_2_1_alone_are_refused_by_name, begin, end)
{
	(void)state;
	put_byte(10);
	send_all();
	assert_refused("MULTI_SET of PyTorch 2.1");
}

TEST_WITH(greeting_after_old_queries_is_refused, begin, end)
{
	(void)state;
	put_byte(6);
	put_greeting();
	put_u64(0);
	send_all();
	assert_query(TCPSTORE_GETNUMKEYS, NULL);
	assert_refused("two releases share a connection");
}

TEST_WITH(old_set_after_greeting_is_refused, begin, end)
{
	(void)state;
	put_greeting();
	put_byte(0);
	send_all();
	assert_refused("two releases share a connection");
}

TEST_WITH(queues_are_refused_by_name, begin, end)
{
	(void)state;
	put_greeting();
	put_byte(14);
	send_all();
	assert_refused("QUEUE_PUSH");
}

TEST_WITH(unknown_queries_are_refused_by_number, begin, end)
{
	(void)state;
	put_byte('G'); /* as of GET / HTTP/1.1 */
	send_all();
	assert_refused("query 71");
}

TEST_WITH(unknown_queries_of_new_releases_are_refused_by_number, begin, end)
{
	(void)state;
	put_greeting();
	put_byte(200);
	send_all();
	assert_refused("query 200");
}

/* ---- limits ---- */

TEST_WITH(key_of_8_kib_is_taken_and_a_longer_one_is_not, begin, end)
{
	char *key = calloc(1, TCPSTORE_KEY_MAX + 1);

	(void)state;
	memset(key, 'k', TCPSTORE_KEY_MAX);
	put_byte(2);
	put_item(key);
	send_all();
	assert_query(TCPSTORE_GET, key, NULL);
	free(key);
	put_byte(2);
	put_u64(TCPSTORE_KEY_MAX + 1);
	send_all();
	assert_refused("a key of 8193 bytes");
}

TEST_WITH(value_over_8_mib_is_refused_by_its_length, begin, end)
{
	(void)state;
	put_byte(0);
	put_item("k");
	put_u64(TCPSTORE_VALUE_MAX + 1);
	send_all();
	assert_refused("a value of 8388609 bytes");
}

TEST_WITH(value_of_8_mib_is_taken, begin, end)
{
	char *value = calloc(1, TCPSTORE_VALUE_MAX + 1);

	(void)state;
	memset(value, 'v', TCPSTORE_VALUE_MAX);
	put_byte(0);
	put_item("k");
	put_item(value);
	send_bytes(bytes.data, bytes.len, 100000);
	assert_query(TCPSTORE_SET, "k", value, NULL);
	free(value);
}

TEST_WITH(too_many_keys_are_refused_by_their_number, begin, end)
{
	(void)state;
	put_byte(5);
	put_u64(TCPSTORE_KEYS_MAX + 1);
	send_all();
	assert_refused("131073 keys");
}

TEST_WITH(many_keys_are_taken, begin, end)
{
	struct tcpstore_query q;

	(void)state;
	put_byte(5);
	put_u64(TCPSTORE_KEYS_MAX);
	for (uint32_t i = 0; i < TCPSTORE_KEYS_MAX; i++)
		put_item("k");
	send_bytes(bytes.data, bytes.len, 5000);
	assert_int_equal(tcpstore_next(session, &q), 1);
	assert_int_equal(q.count, TCPSTORE_KEYS_MAX);
	assert_item(&q, TCPSTORE_KEYS_MAX - 1, "k");
}

/* Keys may be any bytes, and none. */
TEST_WITH(keys_may_hold_any_bytes, begin, end)
{
	struct tcpstore_query q;
	size_t len;

	(void)state;
	put_byte(0);
	put_u64(3);
	assert_int_equal(buf_append(&bytes, "\0\n\xff", 3), 0);
	put_u64(0);
	send_all();
	assert_int_equal(tcpstore_next(session, &q), 1);
	assert_memory_equal(tcpstore_at(&q, 0, &len), "\0\n\xff", 3);
	assert_int_equal(len, 3);
	tcpstore_at(&q, 1, &len);
	assert_int_equal(len, 0);
}

TEST_WITH(query_larger_than_the_budget_fails_with_a_reason, begin, end)
{
	struct budget small;
	struct tcpstore_query q;
	void *to;
	size_t room;

	(void)state;
	budget_init(&small, 100000, "an option", NULL);
	tcpstore_destroy(session);
	session = tcpstore_create(&small);
	assert_non_null(session);
	put_byte(0);
	put_item("k");
	put_u64(TCPSTORE_VALUE_MAX);
	send_all();
	while ((room = tcpstore_room(session, &to))) {
		memset(to, 0, room);
		tcpstore_filled(session, room);
		assert_int_equal(tcpstore_next(session, &q), 0);
	}
	assert_int_equal(tcpstore_next(session, &q), -ENOMEM);
	assert_non_null(strstr(tcpstore_why(session), "no memory"));
	tcpstore_destroy(session);
	session = NULL;
	assert_int_equal(small.used, 0);
}
