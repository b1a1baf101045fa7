/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of PyTorch's TCPStore. A query is parsed while it comes: the parser keeps
 * its place, so that a query of many keys costs no more when it comes in many pieces.
 */
#include "libpmi/tcpstore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"

#define ROOM_MIN ((size_t)16 << 10)  /* bytes asked for at once */
#define KEEP_MAX ((size_t)256 << 10) /* bytes, and */
#define KEEP_ITEMS 1024              /* items, that stay allocated between queries */

enum form { FORM_UNKNOWN, FORM_OLD, FORM_NEW };

/* An argument of a query; LIST and PAIRS are a number and as many of the rest. */
enum argument {
	ARGUMENT_END,
	ARGUMENT_KEY,
	ARGUMENT_VALUE,
	ARGUMENT_DELTA,
	ARGUMENT_NONCE,
	ARGUMENT_KEYS,
	ARGUMENT_PAIRS,
};

#define ARGUMENTS_MAX 4 /* with the end */

struct shape {
	const char *name;
	bool served;
	enum tcpstore_op op;
	enum argument arguments[ARGUMENTS_MAX];
};

#define QUERY(name, ...) { #name, true, TCPSTORE_##name, { __VA_ARGS__ } }
#define REFUSED(name) { name, false, TCPSTORE_SET, { ARGUMENT_END } }

/* By the numbers of 1.13. */
static const struct shape old_shapes[] = {
	QUERY(SET, ARGUMENT_KEY, ARGUMENT_VALUE),
	QUERY(COMPARE_SET, ARGUMENT_KEY, ARGUMENT_VALUE, ARGUMENT_VALUE),
	QUERY(GET, ARGUMENT_KEY),
	QUERY(ADD, ARGUMENT_KEY, ARGUMENT_DELTA),
	QUERY(CHECK, ARGUMENT_KEYS),
	QUERY(WAIT, ARGUMENT_KEYS),
	QUERY(GETNUMKEYS, ARGUMENT_END),
	REFUSED("WATCH_KEY of PyTorch 1.13 and 2.0, or DELETE_KEY of 2.1"),
	QUERY(DELETE_KEY, ARGUMENT_KEY),
	REFUSED("MULTI_GET of PyTorch 2.1"),
	REFUSED("MULTI_SET of PyTorch 2.1"),
	REFUSED("CANCEL_WAIT of PyTorch 2.1"),
};

#define OLD_DELETE 8u

/* By the numbers of 2.2, less one. */
static const struct shape new_shapes[] = {
	QUERY(SET, ARGUMENT_KEY, ARGUMENT_VALUE),
	QUERY(COMPARE_SET, ARGUMENT_KEY, ARGUMENT_VALUE, ARGUMENT_VALUE),
	QUERY(GET, ARGUMENT_KEY),
	QUERY(ADD, ARGUMENT_KEY, ARGUMENT_DELTA),
	QUERY(CHECK, ARGUMENT_KEYS),
	QUERY(WAIT, ARGUMENT_KEYS),
	QUERY(GETNUMKEYS, ARGUMENT_END),
	QUERY(DELETE_KEY, ARGUMENT_KEY),
	QUERY(APPEND, ARGUMENT_KEY, ARGUMENT_VALUE),
	QUERY(MULTI_GET, ARGUMENT_KEYS),
	QUERY(MULTI_SET, ARGUMENT_PAIRS),
	QUERY(CANCEL_WAIT, ARGUMENT_END),
	QUERY(PING, ARGUMENT_NONCE),
	REFUSED("QUEUE_PUSH of a newer PyTorch"),
	REFUSED("QUEUE_POP of a newer PyTorch"),
	REFUSED("QUEUE_LEN of a newer PyTorch"),
	REFUSED("LIST_KEYS of a newer PyTorch"),
	REFUSED("BARRIER of a newer PyTorch"),
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct tcpstore {
	enum form form;
	struct buf in;
	size_t begin;  /* of the query that is being read, in `in` */
	size_t at;     /* what is before it has been parsed */
	const struct shape *shape; /* NULL: its number has not come */
	unsigned argument;         /* the next one, of the shape */
	bool counted;              /* the number of a list has come */
	uint64_t left;             /* items of the list that have not */
	struct tcpstore_item *items;
	size_t count, cap;
	int64_t delta;
	uint32_t nonce;
	int error;
	char why[TCPSTORE_WHY_MAX];
};

struct tcpstore *tcpstore_create(struct budget *budget)
{
	struct tcpstore *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	buf_init(&t->in, 2 * TCPSTORE_QUERY_MAX);
	t->in.budget = budget;
	return t;
}

void tcpstore_destroy(struct tcpstore *t)
{
	if (!t)
		return;
	buf_free(&t->in);
	free(t->items);
	free(t);
}

const char *tcpstore_why(const struct tcpstore *t)
{
	return t->why;
}

static int fail(struct tcpstore *t, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct tcpstore *t, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
	t->error = error;
	return error;
}

/* ---- input ---- */

/* Drop the bytes of queries that were given out, and memory that one large query needed. */
static void drop_old_bytes(struct tcpstore *t)
{
	buf_consume(&t->in, t->begin);
	t->at -= t->begin;
	t->begin = 0;
	if (!t->in.len && t->in.cap > KEEP_MAX)
		buf_free(&t->in);
	if (!t->count && t->cap > KEEP_ITEMS) {
		free(t->items);
		t->items = NULL;
		t->cap = 0;
	}
}

size_t tcpstore_room(struct tcpstore *t, void **at)
{
	drop_old_bytes(t);
	if (!buf_room(&t->in) && buf_reserve(&t->in, ROOM_MIN)) {
		fail(t, -ENOMEM, "no memory for a query of %zu bytes and more", t->in.len);
		return 0;
	}
	*at = t->in.data + t->in.len;
	return buf_room(&t->in);
}

void tcpstore_filled(struct tcpstore *t, size_t len)
{
	t->in.len += len;
}

static bool take(struct tcpstore *t, void *to, size_t len)
{
	if (t->in.len - t->at < len)
		return false;
	memcpy(to, t->in.data + t->at, len);
	t->at += len;
	return true;
}

/* ---- the form ---- */

/*
 * 1, 0 or an error. The number 0 is VALIDATE or the SET of an older release. The magic
 * number would be the lower half of the length of a key, and is over the limit for it.
 */
static int choose_form(struct tcpstore *t)
{
	unsigned char first;
	uint32_t magic = 0;

	if (t->in.len == t->at)
		return 0;
	first = (unsigned char)t->in.data[t->at];
	if (!first && t->in.len - t->at < 1 + sizeof(magic))
		return 0;
	if (!first)
		memcpy(&magic, t->in.data + t->at + 1, sizeof(magic));
	if (first || magic != TCPSTORE_MAGIC) {
		t->form = FORM_OLD;
		return 1;
	}
	t->form = FORM_NEW;
	t->at += 1 + sizeof(magic);
	t->begin = t->at;
	return 1;
}

static int choose_shape(struct tcpstore *t)
{
	bool is_old = t->form == FORM_OLD;
	const struct shape *shapes = is_old ? old_shapes : new_shapes;
	size_t n = is_old ? COUNT_OF(old_shapes) : COUNT_OF(new_shapes);
	unsigned char number;
	unsigned index;

	if (!take(t, &number, sizeof(number)))
		return 0;
	index = is_old ? number : number - 1u; /* of 0 it is beyond the end */
	if (!is_old && !number)
		return fail(t, -EPROTO,
			    "query 0 after the greeting of PyTorch 2.2 and later: two releases share a connection");
	if (index >= n)
		return fail(t, -EPROTO, "query %u, which no release of PyTorch that is known sends %s",
			    number, is_old ? "without a greeting" : "after a greeting");
	if (!shapes[index].served)
		return fail(t, -EPROTO, "query %u (%s), which is not served", number,
			    shapes[index].name);
	t->shape = &shapes[index];
	return 1;
}

/* ---- arguments: 1, 0 (more bytes are needed) or an error ---- */

static int too_long(struct tcpstore *t, const char *what, uint64_t len, uint32_t most)
{
	if (t->form == FORM_OLD && (uint32_t)len == TCPSTORE_MAGIC)
		return fail(t, -EPROTO,
			    "the greeting of PyTorch 2.2 and later after queries without one: two releases share a connection");
	return fail(t, -EPROTO, "%s: %s of %" PRIu64 " bytes, and %u are allowed",
		    t->shape->name, what, len, most);
}

/* The length is read again if the bytes of the item have not come. */
static int take_item(struct tcpstore *t, const char *what, uint32_t most)
{
	const size_t start = t->at;
	uint64_t len;

	if (!take(t, &len, sizeof(len)))
		return 0;
	if (len > most)
		return too_long(t, what, len, most);
	if (t->at - t->begin + len > TCPSTORE_QUERY_MAX)
		return fail(t, -EPROTO, "%s: over %zu bytes in one query", t->shape->name,
			    TCPSTORE_QUERY_MAX);
	if (t->in.len - t->at < len) {
		t->at = start;
		return 0;
	}
	if (array_grow(&t->items, t->count, &t->cap, sizeof(*t->items)))
		return fail(t, -ENOMEM, "no memory for the keys of a query");
	t->items[t->count++] = (struct tcpstore_item){
		(uint32_t)(t->at - t->begin), (uint32_t)len,
	};
	t->at += len;
	return 1;
}

static int take_key(struct tcpstore *t)
{
	return take_item(t, "a key", TCPSTORE_KEY_MAX);
}

static int take_value(struct tcpstore *t)
{
	return take_item(t, "a value", TCPSTORE_VALUE_MAX);
}

static int take_list(struct tcpstore *t, bool pairs)
{
	int rc = 1;

	if (!t->counted) {
		if (!take(t, &t->left, sizeof(t->left)))
			return 0;
		if (t->left > TCPSTORE_KEYS_MAX)
			return fail(t, -EPROTO, "%s: %" PRIu64 " keys, and %u are allowed",
				    t->shape->name, t->left, TCPSTORE_KEYS_MAX);
		t->counted = true;
		t->left *= pairs ? 2 : 1;
	}
	while (t->left && rc > 0) {
		rc = pairs && t->left % 2 ? take_value(t) : take_key(t);
		t->left -= rc > 0;
	}
	return rc;
}

static int take_argument(struct tcpstore *t, enum argument argument)
{
	switch (argument) {
	case ARGUMENT_KEY: return take_key(t);
	case ARGUMENT_VALUE: return take_value(t);
	case ARGUMENT_DELTA: return take(t, &t->delta, sizeof(t->delta));
	case ARGUMENT_NONCE: return take(t, &t->nonce, sizeof(t->nonce));
	case ARGUMENT_KEYS: return take_list(t, false);
	case ARGUMENT_PAIRS: return take_list(t, true);
	default: return 1;
	}
}

/*
 * A client of 1.13 waits for the answer to DELETE_KEY before it sends more. Bytes that
 * follow at once are the value of APPEND, which has the same number in 2.1.
 */
static int check_delete(struct tcpstore *t)
{
	if (t->form == FORM_OLD && t->shape == &old_shapes[OLD_DELETE] && t->at < t->in.len)
		return fail(t, -EPROTO, "query %u (APPEND of PyTorch 2.1), which is not served",
			    OLD_DELETE);
	return 1;
}

static void begin_query(struct tcpstore *t)
{
	t->begin = t->at;
	t->shape = NULL;
	t->argument = 0;
	t->counted = false;
	t->count = 0;
}

static int take_arguments(struct tcpstore *t)
{
	int rc = 1;

	while (rc > 0 && t->shape->arguments[t->argument] != ARGUMENT_END) {
		rc = take_argument(t, t->shape->arguments[t->argument]);
		t->argument += rc > 0;
	}
	return rc > 0 ? check_delete(t) : rc;
}

int tcpstore_next(struct tcpstore *t, struct tcpstore_query *q)
{
	int rc = t->error;

	if (rc)
		return rc;
	if (t->shape && t->shape->arguments[t->argument] == ARGUMENT_END)
		begin_query(t); /* the last one has been given out */
	rc = t->form == FORM_UNKNOWN ? choose_form(t) : 1;
	if (rc > 0 && !t->shape)
		rc = choose_shape(t);
	if (rc > 0)
		rc = take_arguments(t);
	if (rc <= 0)
		return rc;
	*q = (struct tcpstore_query){
		.op = t->shape->op,
		.count = (uint32_t)t->count,
		.items = t->items,
		.bytes = t->in.data + t->begin,
		.delta = t->delta,
		.nonce = t->nonce,
	};
	return 1;
}
