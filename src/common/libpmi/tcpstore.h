/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of PyTorch's TCPStore, the server's end: bytes in, queries out. No system
 * calls.
 *
 * A query is a byte with its number, and its arguments. Lengths and numbers are in the
 * byte order of the host. Three forms are in use:
 *
 *   1.13, 2.0   no greeting; DELETE_KEY is 8
 *   2.1         no greeting; its 7 and 8 are others than those of 1.13
 *   2.2 on      VALIDATE (0) and a magic number first; all other numbers are one higher
 *
 * A connection whose first five bytes are not the greeting is of the old form. Up to
 * number 6 the two old forms are the same. From there on, only DELETE_KEY of 1.13 is
 * served. A connection that sends another number, or that mixes the forms, is to be
 * closed: tcpstore_why says what came.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/buf.h"

#define TCPSTORE_MAGIC 0x3C85F7CEu
#define TCPSTORE_KEY_MAX 8192u              /* bytes */
#define TCPSTORE_VALUE_MAX (8u << 20)       /* bytes */
#define TCPSTORE_KEYS_MAX (128u << 10)      /* of one query */
#define TCPSTORE_QUERY_MAX ((size_t)64 << 20) /* bytes of one query */
#define TCPSTORE_WHY_MAX 200

/*
 * Behind each operation: its arguments, and its answer. A value is its length (u64) and its
 * bytes, empty for a key that does not exist; a number is an int64_t.
 */
enum tcpstore_op {
	TCPSTORE_SET,         /* key, value; no answer */
	TCPSTORE_COMPARE_SET, /* key, expected, desired; a value */
	TCPSTORE_GET,         /* key; a value */
	TCPSTORE_ADD,         /* key, delta; a number */
	TCPSTORE_CHECK,       /* keys; a byte: 0 all are there, 1 not all */
	TCPSTORE_WAIT,        /* keys; a byte: TCPSTORE_STOP_WAITING, when all are there */
	TCPSTORE_GETNUMKEYS,  /* a number */
	TCPSTORE_DELETE_KEY,  /* key; a number: 0 or 1 */
	TCPSTORE_APPEND,      /* key, value; no answer */
	TCPSTORE_MULTI_GET,   /* keys; as many values */
	TCPSTORE_MULTI_SET,   /* keys and values in turn; no answer */
	TCPSTORE_CANCEL_WAIT, /* a byte: TCPSTORE_WAIT_CANCELED */
	TCPSTORE_PING,        /* nonce (u32); the same */
};

enum tcpstore_wait { TCPSTORE_STOP_WAITING, TCPSTORE_WAIT_CANCELED };

struct tcpstore_item {
	uint32_t at, len;
};

struct tcpstore_query {
	enum tcpstore_op op;
	uint32_t count;  /* of the items: keys and values in the order above */
	const struct tcpstore_item *items;
	const char *bytes; /* where items are */
	int64_t delta;
	uint32_t nonce;
};

/* The bytes of an item. Valid until the next call with the session. */
static inline const char *tcpstore_at(const struct tcpstore_query *q, uint32_t item,
				      size_t *len)
{
	*len = q->items[item].len;
	return q->bytes + q->items[item].at;
}

/* A connection. */
struct tcpstore;

/* Unread bytes count against `budget`, unless it is NULL. NULL: no memory. */
struct tcpstore *tcpstore_create(struct budget *budget);
void tcpstore_destroy(struct tcpstore *t);

/*
 * Where the next bytes of the connection are to be put: how many fit; 0: no memory,
 * tcpstore_why says so.
 */
size_t tcpstore_room(struct tcpstore *t, void **at);
/* `len` bytes have been put there. */
void tcpstore_filled(struct tcpstore *t, size_t len);

/*
 * The next whole query: 1; 0: more bytes are needed; -EPROTO or -ENOMEM: close the
 * connection, and say why. After an error there is no other result.
 */
int tcpstore_next(struct tcpstore *t, struct tcpstore_query *q);
const char *tcpstore_why(const struct tcpstore *t);
