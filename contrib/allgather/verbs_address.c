/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "verbs1+" and 48 bytes in hexadecimal: fabric and MTU (1 each), LID (2),
 * GID (16), queue pair and key for datagrams (4 each), queue pair and first
 * packet number of the left and of the right side (4 each, 16 in all), and a sum
 * of what is before it (4). Numbers are big-endian.
 */
#include "verbs_address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libutil/hex.h"

#define PREFIX "verbs1+"
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define BODY_LEN 44
#define SUM_LEN 4
#define BYTES (BODY_LEN + SUM_LEN)
#define TEXT_LEN (PREFIX_LEN + 2 * BYTES)
#define QPN_MAX 0xffffff

_Static_assert(TEXT_LEN < TRANSPORT_ADDRESS_MAX, "it must fit in a value");

/* FNV-1a: finds mistakes, not attacks. */
static uint32_t sum(const unsigned char *bytes, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ bytes[i]) * 16777619u;
	return h;
}

static unsigned char *put(unsigned char *p, uint32_t value, int len)
{
	for (int i = len - 1; i >= 0; i--)
		*p++ = value >> (8 * i);
	return p;
}

static uint32_t take(const unsigned char **p, int len)
{
	uint32_t value = 0;

	for (int i = 0; i < len; i++)
		value = value << 8 | *(*p)++;
	return value;
}

void verbs_address_print(const struct verbs_address *a,
			 char out[TRANSPORT_ADDRESS_MAX])
{
	unsigned char bytes[BYTES], *p = bytes;

	p = put(p, a->fabric, 1);
	p = put(p, a->mtu, 1);
	p = put(p, a->lid, 2);
	memcpy(p, a->gid.raw, sizeof(a->gid.raw));
	p += sizeof(a->gid.raw);
	p = put(p, a->ready_qpn, 4);
	p = put(p, a->qkey, 4);
	for (int side = 0; side < SIDES; side++) {
		p = put(p, a->qpn[side], 4);
		p = put(p, a->first_psn[side], 4);
	}
	put(p, sum(bytes, BODY_LEN), SUM_LEN);
	out += sprintf(out, PREFIX);
	hex_print(bytes, BYTES, out);
}

static int decode(unsigned char bytes[BYTES], const char *text)
{
	if (strnlen(text, TEXT_LEN + 1) != TEXT_LEN ||
	    memcmp(text, PREFIX, PREFIX_LEN) != 0)
		return -EINVAL;
	text += PREFIX_LEN;
	return hex_decode(text, BYTES, bytes);
}

/* Bounds of the numbers: a right checksum proves nothing about them. */
static bool is_possible(const struct verbs_address *a)
{
	return a->fabric > FABRIC_NONE && a->fabric < FABRICS &&
	       a->mtu >= IBV_MTU_256 && a->mtu <= IBV_MTU_4096 &&
	       a->ready_qpn <= QPN_MAX &&
	       a->qpn[SIDE_LEFT] <= QPN_MAX && a->qpn[SIDE_RIGHT] <= QPN_MAX &&
	       a->first_psn[SIDE_LEFT] <= QPN_MAX &&
	       a->first_psn[SIDE_RIGHT] <= QPN_MAX;
}

int verbs_address_parse(struct verbs_address *a, const char *text)
{
	unsigned char bytes[BYTES];
	const unsigned char *p = bytes, *end = bytes + BODY_LEN;

	memset(a, 0, sizeof(*a));
	if (decode(bytes, text) || take(&end, SUM_LEN) != sum(bytes, BODY_LEN))
		return -EINVAL;
	a->fabric = take(&p, 1);
	a->mtu = take(&p, 1);
	a->lid = take(&p, 2);
	memcpy(a->gid.raw, p, sizeof(a->gid.raw));
	p += sizeof(a->gid.raw);
	a->ready_qpn = take(&p, 4);
	a->qkey = take(&p, 4);
	for (int side = 0; side < SIDES; side++) {
		a->qpn[side] = take(&p, 4);
		a->first_psn[side] = take(&p, 4);
	}
	return is_possible(a) ? 0 : -EINVAL;
}
