/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that PMIx clients publish: who finds them, who waits, and what is refused. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "libpmi/name_store.h"

/* A store, and its last answer. */
static struct {
	struct name_store *store;
	int lost; /* what the sending of an answer returns */
	unsigned answers;
	uint32_t id;
	int error;
	uint32_t count;
	char text[256]; /* "key=value by namespace.rank " of each */
} f;

static int on_answer(void *arg, const struct name_asker *to,
		     const struct names_answer *a)
{
	size_t len = 0;

	f.answers++;
	f.id = to->id;
	f.error = a->error;
	f.count = a->count;
	f.text[0] = '\0';
	for (uint32_t i = 0; i < a->count; i++)
		len += snprintf(f.text + len, sizeof(f.text) - len,
				"%s=%.*s by %s.%u ", a->items[i].key,
				(int)a->items[i].len, (const char *)a->items[i].value,
				a->items[i].from.nspace, a->items[i].from.rank);
	return f.lost;
}

static int open_store(void **state)
{
	memset(&f, 0, sizeof(f));
	f.error = 1;
	return name_store_create(&f.store, 0, on_answer, NULL);
}

static int close_store(void **state)
{
	name_store_destroy(f.store);
	return 0;
}

#define STORE_TEST(name) TEST_WITH(name, open_store, close_store)

/* "job.rank@node" is one who asks. */
static struct name_asker asker(const char *who, uint32_t id)
{
	static char nspace[4][16], node[4][16];
	static unsigned next;
	struct name_asker a = { .link = &nspace, .id = id };
	unsigned i = next++ % 4;

	assert_int_equal(sscanf(who, "%15[^.].%u@%15s", nspace[i], &a.proc.rank,
				node[i]), 3);
	a.proc.nspace = nspace[i];
	a.proc.node = node[i];
	return a;
}

/* Keys are single letters, each of which has itself as value. */
static int ask(const char *who, struct names_request r,
	       const char *keys)
{
	struct name_asker a = asker(who, f.answers + 100);
	struct names_item items[8] = {};
	char texts[8][2] = {};
	struct buf b;
	int rc;

	r.items = items;
	r.range = r.range ? r.range : NAMES_OF_SESSION;
	for (; keys[r.count]; r.count++) {
		texts[r.count][0] = keys[r.count];
		items[r.count].key = texts[r.count];
		if (r.op == NAMES_PUBLISH) {
			items[r.count].value = texts[r.count];
			items[r.count].len = 1;
		}
	}
	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	f.error = 1;
	rc = name_store_ask(f.store, &a, b.data, b.len);
	buf_free(&b);
	assert_int_equal(rc, 0);
	return f.error;
}

static int publish(const char *who, const char *keys)
{
	return ask(who, (struct names_request){ .op = NAMES_PUBLISH }, keys);
}

static int publish_in(const char *who, enum names_range range,
		      const char *keys)
{
	return ask(who, (struct names_request){ .op = NAMES_PUBLISH, .range = range },
		   keys);
}

static int unpublish(const char *who, const char *keys)
{
	return ask(who, (struct names_request){ .op = NAMES_UNPUBLISH }, keys);
}

static int look_up(const char *who, const char *keys)
{
	return ask(who, (struct names_request){ .op = NAMES_LOOKUP }, keys);
}

/* 1: there is no answer yet. */
static int wait_for(const char *who, uint32_t wait, uint32_t ms,
		    const char *keys)
{
	return ask(who,
		   (struct names_request){ .op = NAMES_LOOKUP, .wait = wait,
					   .timeout_ms = ms },
		   keys);
}

/* ---- publish, look up, unpublish ---- */

STORE_TEST(published_names_are_found)
{
	assert_int_equal(look_up("a.1@n1", "x"), -ENOENT);
	assert_int_equal(publish("a.0@n0", "xy"), 0);
	assert_int_equal(look_up("a.1@n1", "yx"), 0);
	assert_string_equal(f.text, "y=y by a.0 x=x by a.0 ");
	assert_int_equal(look_up("a.1@n1", "zx"), 0);
	assert_string_equal(f.text, "x=x by a.0 ");
}

STORE_TEST(only_its_publisher_takes_it_back)
{
	assert_int_equal(publish("a.0@n0", "xyz"), 0);
	assert_int_equal(unpublish("a.1@n0", "x"), -ENOENT);
	assert_int_equal(unpublish("b.0@n0", ""), 0);
	assert_int_equal(look_up("a.1@n1", "xyz"), 0);
	assert_int_equal(f.count, 3);
	assert_int_equal(unpublish("a.0@n0", "x"), 0);
	assert_int_equal(look_up("a.1@n1", "xyz"), 0);
	assert_int_equal(f.count, 2);
	assert_int_equal(unpublish("a.0@n0", ""), 0);
	assert_int_equal(look_up("a.1@n1", "xyz"), -ENOENT);
}

STORE_TEST(a_doubled_key_is_refused_with_its_call)
{
	assert_int_equal(publish("a.0@n0", "x"), 0);
	assert_int_equal(publish("a.0@n0", "x"), -EEXIST);
	assert_int_equal(publish("a.1@n1", "yzx"), -EEXIST);
	assert_int_equal(look_up("a.1@n1", "yz"), -ENOENT);
	assert_int_equal(publish("a.1@n1", "yy"), -EEXIST);
	assert_int_equal(look_up("a.1@n1", "y"), -ENOENT);
}

STORE_TEST(name_to_be_read_once_is_gone_after_a_read)
{
	assert_int_equal(ask("a.0@n0",
			     (struct names_request){ .op = NAMES_PUBLISH, .once = true },
			     "xy"), 0);
	assert_int_equal(look_up("a.1@n1", "x"), 0);
	assert_int_equal(look_up("a.1@n1", "x"), -ENOENT);
	assert_int_equal(look_up("a.1@n1", "y"), 0);
}

STORE_TEST(an_answer_that_is_lost_takes_nothing_away)
{
	assert_int_equal(ask("a.0@n0",
			     (struct names_request){ .op = NAMES_PUBLISH, .once = true },
			     "x"), 0);
	f.lost = -ENOMEM;
	assert_int_equal(look_up("a.1@n1", "x"), 0);
	f.lost = 0;
	assert_int_equal(look_up("a.1@n1", "x"), 0);
	assert_int_equal(f.answers, 3);
	assert_int_equal(look_up("a.1@n1", "x"), -ENOENT);
}

/* ---- ranges ---- */

STORE_TEST(a_range_says_who_may_see_it)
{
	static const struct {
		enum names_range range;
		bool own, node, nspace, other;
	} rows[] = {
		{ NAMES_OF_PROCESS, true, false, false, false },
		{ NAMES_OF_NODE, true, true, false, false },
		{ NAMES_OF_NAMESPACE, true, true, true, false },
		{ NAMES_OF_SESSION, true, true, true, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			assert_int_equal(publish_in("a.0@n0", rows[i].range, "x"), 0);
		assert_int_equal(!look_up("a.0@n0", "x"), rows[i].own);
		assert_int_equal(!look_up("a.1@n0", "x"), rows[i].node);
		assert_int_equal(!look_up("a.1@n1", "x"), rows[i].nspace);
		assert_int_equal(!look_up("b.0@n1", "x"), rows[i].other);
		close_store(NULL);
		open_store(NULL);
	}
}

STORE_TEST(a_range_says_whose_are_wanted)
{
	assert_int_equal(publish("a.0@n0", "x"), 0);
	for (enum names_range r = NAMES_OF_PROCESS; r < NAMES_RANGES; r++)
		assert_int_equal(ask("b.0@n1",
				     (struct names_request){ .op = NAMES_LOOKUP,
							     .range = r },
				     "x"),
				 r == NAMES_OF_SESSION ? 0 : -ENOENT);
}

STORE_TEST(a_key_may_be_had_by_those_who_do_not_meet)
{
	assert_int_equal(publish_in("a.0@n0", NAMES_OF_PROCESS, "x"), 0);
	assert_int_equal(publish_in("a.1@n0", NAMES_OF_PROCESS, "x"), 0);
	assert_int_equal(publish_in("b.0@n0", NAMES_OF_NAMESPACE, "x"), 0);
	assert_int_equal(publish_in("a.2@n0", NAMES_OF_NAMESPACE, "x"), -EEXIST);
	assert_int_equal(publish_in("c.0@n0", NAMES_OF_SESSION, "x"), -EEXIST);
	assert_int_equal(look_up("a.1@n0", "x"), 0);
	assert_string_equal(f.text, "x=x by a.1 ");
	assert_int_equal(unpublish("a.0@n0", "x"), 0);
	assert_int_equal(look_up("a.1@n0", "x"), 0);
	assert_int_equal(look_up("b.7@n0", "x"), 0);
}

/* ---- waiting ---- */

STORE_TEST(a_lookup_waits_for_so_many)
{
	unsigned before;

	assert_int_equal(wait_for("a.1@n1", 2, 0, "xyz"), 1);
	assert_int_equal(publish("a.0@n0", "x"), 0);
	before = f.answers;
	assert_int_equal(publish("a.2@n2", "z"), 0);
	assert_int_equal(f.answers, before + 2);
	assert_int_equal(f.id, 100); /* of the one who waits */
	assert_string_equal(f.text, "x=x by a.0 z=z by a.2 ");
	assert_int_equal(publish("a.0@n0", "y"), 0);
	assert_int_equal(f.answers, before + 3);
	assert_int_equal(wait_for("a.1@n1", 3, 0, "xyz"), 0);
}

STORE_TEST(lookup_waits_no_longer_than_its_timeout)
{
	assert_true(name_store_expire(f.store, 1000) == UINT64_MAX);
	assert_int_equal(wait_for("a.1@n1", 1, 0, "x"), 1);
	assert_true(name_store_expire(f.store, 1000) == UINT64_MAX);
	assert_int_equal(wait_for("a.1@n1", 1, 500, "x"), 1);
	assert_true(name_store_expire(f.store, 2000) == 2500);
	assert_int_equal(wait_for("a.1@n1", 1, 100, "x"), 1);
	assert_true(name_store_expire(f.store, 2300) == 2400);
	assert_int_equal(f.answers, 0);
	assert_true(name_store_expire(f.store, 2400) == 2500);
	assert_int_equal(f.answers, 1);
	assert_int_equal(f.error, -ETIMEDOUT);
	assert_true(name_store_expire(f.store, 2600) == UINT64_MAX);
	assert_int_equal(f.answers, 2);
	assert_int_equal(publish("a.0@n0", "x"), 0);
	assert_int_equal(f.answers, 4);
}

STORE_TEST(nobody_waits_on_a_lost_link)
{
	struct name_asker a = asker("a.1@n1", 0);

	assert_int_equal(wait_for("a.1@n1", 1, 0, "x"), 1);
	name_store_link_lost(f.store, &f);
	name_store_link_lost(f.store, a.link);
	assert_int_equal(publish("a.0@n0", "x"), 0);
	assert_int_equal(f.answers, 1);
}

/* Waits for "x" of the first namespace and "y" of the second. 1: there is no answer yet. */
static int wait_for_both(const char *first, const char *second)
{
	struct name_asker a = asker("a.1@n1", 7);
	struct names_item items[] = {
		{ .key = "x", .from.nspace = first },
		{ .key = "y", .from.nspace = second },
	};
	struct names_request r = {
		.op = NAMES_LOOKUP, .range = NAMES_OF_SESSION, .items = items,
		.count = 2, .wait = 2,
	};
	struct buf b;

	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	f.error = 1;
	assert_int_equal(name_store_ask(f.store, &a, b.data, b.len), 0);
	buf_free(&b);
	return f.error;
}

/* A rank of a namespace. */
static int end_rank(const char *who)
{
	return ask(who, (struct names_request){ .op = NAMES_ENDED }, "");
}

static int end(const char *nspace)
{
	char who[16];

	snprintf(who, sizeof(who), "%s.%u@n0", nspace, NAMES_ALL_RANKS);
	return end_rank(who);
}

STORE_TEST(nobody_waits_for_a_namespace_that_has_ended)
{
	assert_int_equal(wait_for_both("b", "c"), 1);
	assert_int_equal(wait_for_both("b", NULL), 1);
	assert_int_equal(end("d"), 0);
	assert_int_equal(f.answers, 1);
	assert_int_equal(end("c"), -ECONNRESET); /* one of the two, at last */
	assert_int_equal(f.answers, 3);
	assert_int_equal(wait_for_both("b", "c"), -ECONNRESET);
	assert_int_equal(f.id, 7);
	assert_string_equal(f.text, "y= by c.4294967295 ");
	assert_int_equal(publish("b.0@n0", "x"), 0);
	assert_int_equal(end("b"), 0);
	assert_int_equal(end("b"), 0);
	assert_int_equal(f.answers, 7);
	assert_int_equal(publish("e.0@n0", "y"), 0);
	assert_int_equal(f.answers, 9); /* of any namespace: "y" has come */
}

STORE_TEST(names_of_an_ended_namespace_are_found_by_one_that_waits)
{
	assert_int_equal(publish("b.0@n0", "x"), 0);
	assert_int_equal(end("b"), 0);
	assert_int_equal(wait_for_both("b", "c"), 1);
	assert_int_equal(publish("c.0@n0", "y"), 0);
	assert_int_equal(f.answers, 4);
	assert_int_equal(end("c"), 0);
	assert_int_equal(wait_for_both("b", "c"), 0);
	assert_string_equal(f.text, "x=x by b.0 y=y by c.0 ");
}

/* Waits for "x", which those of these ranks of "b" are to publish; 1: there is no answer yet. */
static int wait_for_ranks(const char *ranks, size_t len)
{
	struct name_asker a = asker("a.1@n1", 7);
	struct names_item item = {
		.key = "x", .from.nspace = "b", .ranks = ranks, .ranks_len = len,
	};
	struct names_request r = {
		.op = NAMES_LOOKUP, .range = NAMES_OF_SESSION, .items = &item,
		.count = 1, .wait = 1,
	};
	struct buf b;

	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	f.error = 1;
	assert_int_equal(name_store_ask(f.store, &a, b.data, b.len), 0);
	buf_free(&b);
	return f.error;
}

#define ONE_AND_SEVEN "\1\0\0\0\7\0\0\0"

STORE_TEST(nobody_waits_for_a_rank_that_has_ended)
{
	assert_int_equal(wait_for_ranks(ONE_AND_SEVEN, 8), 1);
	assert_int_equal(end_rank("c.7@n2"), 0);
	assert_int_equal(end_rank("b.2@n2"), 0);
	assert_int_equal(f.answers, 2);
	assert_int_equal(end_rank("b.7@n2"), -ECONNRESET);
	assert_int_equal(f.answers, 4);
	assert_int_equal(f.id, 7);
	assert_string_equal(f.text, "x= by b.7 ");
	assert_int_equal(wait_for_ranks("\1\0\0\0", 4), 1);
	assert_int_equal(wait_for_ranks("\7\0\0", 3), 1); /* no rank */
	assert_int_equal(wait_for_ranks(NULL, 0), -ECONNRESET); /* all of them */
	assert_int_equal(end("b"), -ECONNRESET);
	assert_int_equal(f.answers, 8);
}

STORE_TEST(number_of_kept_ends_is_limited)
{
	char who[32];

	for (unsigned i = 0; i < NAME_STORE_ENDED_MAX; i++) {
		snprintf(who, sizeof(who), "b.%u@n0", i);
		assert_int_equal(end_rank(who), 0);
	}
	assert_int_equal(end_rank("c.0@n0"), -ENOSPC);
	assert_int_equal(end("b"), 0); /* one for all of its ranks */
	assert_int_equal(end_rank("c.0@n0"), 0);
}

/* ---- limits ---- */

STORE_TEST(published_names_have_a_limit)
{
	const uint32_t len = NAMES_BYTES_MAX / 2;
	char *value = calloc(1, len), key[16];
	struct names_item item = { .key = key, .value = value, .len = len };
	const struct names_request r = {
		.op = NAMES_PUBLISH, .range = NAMES_OF_SESSION, .items = &item, .count = 1,
	};
	struct name_asker a = asker("a.0@n0", 0);
	struct buf b;
	unsigned i;

	for (f.error = 0, i = 0; !f.error; i++) {
		snprintf(key, sizeof(key), "%u", i);
		buf_init(&b, NAMES_BYTES_MAX);
		assert_int_equal(names_pack_request(&b, &r), 0);
		assert_int_equal(name_store_ask(f.store, &a, b.data, b.len), 0);
		buf_free(&b);
	}
	assert_int_equal(f.error, -ENOSPC);
	assert_int_equal(i, NAME_STORE_BYTES_MAX / len);
	assert_int_equal(unpublish("a.0@n0", ""), 0);
	assert_int_equal(publish("a.0@n0", "x"), 0);
	free(value);
}

STORE_TEST(nonsense_is_refused)
{
	struct names_item item = { .key = "x" };
	struct names_request r = {
		.op = NAMES_LOOKUP, .range = NAMES_OF_NODE, .items = &item, .count = 1,
	}, back;
	struct buf b;
	char *copy;

	buf_init(&b, NAMES_BYTES_MAX);
	assert_int_equal(names_pack_request(&b, &r), 0);
	for (size_t len = 0; len < b.len; len++) {
		copy = malloc(len + 1);
		memcpy(copy, b.data, len);
		assert_int_equal(names_unpack_request(&back, copy, len), -EPROTO);
		free(copy);
	}
	r.wait = 2; /* for more than there are */
	buf_clear(&b);
	assert_int_equal(names_pack_request(&b, &r), 0);
	assert_int_equal(names_unpack_request(&back, b.data, b.len), -EPROTO);
	item.key = "";
	assert_int_equal(names_pack_request(&b, &r), -EMSGSIZE);
	buf_free(&b);
}
