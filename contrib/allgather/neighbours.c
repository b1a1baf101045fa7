/* SPDX-License-Identifier: BSD-3-Clause */
/* The text by which the elements of a ring introduce themselves over PMI. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "join.h"
#include "libutil/hex.h"

/* Changes with the frames and bundles; the letter is the byte order. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define VERSION "1l"
#else
#define VERSION "1b"
#endif

#define NONCE_DIGITS (2 * TRANSPORT_NONCE_LEN)

void value_print(const struct element_value *v, char *out)
{
	char nonce[NONCE_DIGITS + 1];

	hex_print(v->nonce, TRANSPORT_NONCE_LEN, nonce);
	snprintf(out, GROUP_VALUE_MAX, "%s,%s,%d,%s,%s,%s", VERSION,
		 v->transport, v->rank, v->node, nonce, v->address);
}

/* Take the text up to the next comma, or the rest when it is the last field. */
static int take(const char **text, char *out, size_t size)
{
	size_t n = strcspn(*text, ",");

	if (!n || n >= size)
		return -EPROTO;
	memcpy(out, *text, n);
	out[n] = '\0';
	*text += n;
	if (**text == ',')
		(*text)++;
	return 0;
}

static int parse_rank(const char *text, int *rank)
{
	char *end;
	long v = strtol(text, &end, 10);

	*rank = (int)v;
	return *end || v < 0 || v > INT32_MAX ? -EPROTO : 0;
}

static int parse_nonce(const char *text, unsigned char *nonce)
{
	if (strlen(text) != NONCE_DIGITS)
		return -EPROTO;
	return hex_decode(text, TRANSPORT_NONCE_LEN, nonce);
}

static int parse_fields(struct element_value *v, const char *text)
{
	char number[16], nonce[NONCE_DIGITS + 1];

	return take(&text, v->transport, sizeof(v->transport)) ||
	       take(&text, number, sizeof(number)) ||
	       parse_rank(number, &v->rank) ||
	       take(&text, v->node, sizeof(v->node)) ||
	       take(&text, nonce, sizeof(nonce)) ||
	       parse_nonce(nonce, v->nonce) ||
	       take(&text, v->address, sizeof(v->address)) || *text
		       ? -EPROTO : 0;
}

void value_print_absent(int rank, char *out)
{
	snprintf(out, GROUP_VALUE_MAX, "-%d", rank);
}

static void clear(struct element_value *v)
{
	memset(v, 0, sizeof(*v));
	v->rank = -1;
	snprintf(v->node, sizeof(v->node), "?");
}

int value_parse(struct element_value *v, const char *text, char *why)
{
	char version[8];

	clear(v);
	if (text[0] == '-' && parse_rank(text + 1, &v->rank) == 0) {
		snprintf(why, TRANSPORT_REASON_MAX, "could not join");
		return -ENOTCONN;
	}
	if (take(&text, version, sizeof(version)) == 0 &&
	    strcmp(version, VERSION) == 0 && parse_fields(v, text) == 0)
		return 0;
	clear(v);
	snprintf(why, TRANSPORT_REASON_MAX, "its value is truncated, or from another version of libpmi2x-allgather");
	return -EPROTO;
}
