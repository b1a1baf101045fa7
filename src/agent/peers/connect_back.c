/* SPDX-License-Identifier: BSD-3-Clause */
/* "Connect to me": the message, and sending it. */
#include "agent/peers/connect_back.h"

#include <errno.h>
#include <string.h>

#include "libcoll/layout.h"

#define CONNECT_BACK_MAGIC 0x6d743270u /* "p2tm" */

/* u8 bytes of an IP, 0: that of the node; the IP. */
static int pack_ip(struct buf *b, const struct agent_options *o)
{
	const struct sockaddr_storage *at = &o->bind;
	const void *ip = &((const struct sockaddr_in6 *)at)->sin6_addr;
	uint8_t len = !o->addresses_told ? 0 :
		      at->ss_family == AF_INET ? 4 : 16;
	int rc = pack_u8(b, len);

	if (at->ss_family == AF_INET)
		ip = &((const struct sockaddr_in *)at)->sin_addr;
	return rc ? rc : buf_append(b, ip, len);
}

static bool unpack_ip(struct cursor *c, struct sockaddr_storage *out)
{
	uint8_t len = unpack_u8(c);
	const void *ip = len ? unpack_raw(c, len) : NULL;

	memset(out, 0, sizeof(*out));
	if (len == 4)
		out->ss_family = AF_INET;
	else if (len == 16)
		out->ss_family = AF_INET6;
	if (ip && len == 4)
		memcpy(&((struct sockaddr_in *)out)->sin_addr, ip, 4);
	else if (ip && len == 16)
		memcpy(&((struct sockaddr_in6 *)out)->sin6_addr, ip, 16);
	return !len || (ip && out->ss_family != AF_UNSPEC);
}

static int pack_proved_part(struct buf *b, const struct node *node, uint32_t to)
{
	int rc = pack_u32(b, CONNECT_BACK_MAGIC);

	rc = rc ? rc : pack_str(b, node->self.jobid);
	rc = rc ? rc : pack_u32(b, node->self.position);
	rc = rc ? rc : pack_u32(b, to);
	rc = rc ? rc : pack_u16(b, node->port);
	return rc ? rc : pack_ip(b, node->options);
}

static int make_message(const struct node *node, uint32_t to, struct buf *b)
{
	uint8_t proof[PROOF_BYTES];
	int rc = pack_proved_part(b, node, to);

	if (rc)
		return rc;
	proof_create(&node->self.secret, b->data, b->len, proof);
	return buf_append(b, proof, sizeof(proof));
}

int connect_back_check(const struct node *node, const void *data, size_t len,
		     struct whereabouts *out)
{
	const void *proof;
	struct cursor c;
	size_t jobid_len;
	uint32_t to;
	bool has_ip;

	cursor_init(&c, data, len);
	if (unpack_u32(&c) != CONNECT_BACK_MAGIC)
		return -EPROTO;
	unpack_bytes(&c, HANDSHAKE_JOBID_MAX, &jobid_len);
	out->from = unpack_u32(&c);
	to = unpack_u32(&c);
	out->port = unpack_u16(&c);
	has_ip = unpack_ip(&c, &out->addr);
	proof = unpack_raw(&c, PROOF_BYTES);
	if (!cursor_done(&c) || !out->port || !has_ip)
		return -EPROTO;
	if (to != node->self.position ||
	    !proof_check(&node->self.secret, data, len - PROOF_BYTES, proof))
		return -EACCES;
	return 0;
}

bool connect_back_call(const struct neighbour *n, bool answer)
{
	const struct node *node = n->peers->node;
	const struct agent_host *host = node->host;
	struct buf b;
	int rc;

	log_debug(node->log, "telling node %s to connect to port %u",
		  neighbour_name(n), node->port);
	buf_init(&b, CONNECT_BACK_MAX);
	rc = make_message(node, n->position, &b);
	rc = rc ? rc : host->connect_back(host->arg,
				       layout_node_id(node->layout, n->position),
				       b.data, b.len, answer);
	buf_free(&b);
	return rc == 0;
}
