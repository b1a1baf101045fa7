/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what a PMIx client says first. Any process of the user may have written it. */
#include "helpers/pmixd/client_hello.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define HEADER_BYTES 16
#define LENGTH_AT 8 /* in the header */
#define SIMPLE_CLIENT 0
#define NATIVE_BYTES 8 /* of a credential of "native": user and group */

struct reader {
	const char *at;
	size_t left;
	int rc; /* 1, or why there is no more: 0 or -EPROTO */
};

static const char *take(struct reader *r, size_t len)
{
	const char *at = r->at;

	if (len > r->left && r->rc > 0)
		r->rc = -EPROTO;
	if (r->rc <= 0)
		return NULL;
	r->at += len;
	r->left -= len;
	return at;
}

static uint32_t take_u32(struct reader *r)
{
	const char *at = take(r, 4);
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, 4);
	return ntohl(v);
}

static const char *take_name(struct reader *r)
{
	const char *end = r->rc > 0 ? memchr(r->at, 0, r->left) : NULL;

	return take(r, end ? (size_t)(end - r->at) + 1 : r->left + 1);
}

static void take_credential(struct reader *r, struct client_hello *out)
{
	const char *module = take_name(r);
	uint32_t len = take_u32(r);
	const char *at = take(r, len);

	out->has_uid = at && len == NATIVE_BYTES && !strcmp(module, "native");
	if (out->has_uid)
		memcpy(&out->uid, at, sizeof(out->uid));
}

int client_hello_read(const void *bytes, size_t len, struct client_hello *out)
{
	struct reader r = { .rc = 1 };
	const char *kind;
	uint32_t length;

	if (len < HEADER_BYTES)
		return 0;
	memcpy(&length, (const char *)bytes + LENGTH_AT, 4);
	if (length > CLIENT_HELLO_MAX - HEADER_BYTES)
		return -EPROTO;
	if (len - HEADER_BYTES < length)
		return 0;
	r.at = (const char *)bytes + HEADER_BYTES;
	r.left = length;
	take_credential(&r, out);
	kind = take(&r, 1);
	if (kind && *kind != SIMPLE_CLIENT)
		return -EPROTO;
	out->nspace = take_name(&r);
	out->rank = take_u32(&r);
	return r.rc;
}
