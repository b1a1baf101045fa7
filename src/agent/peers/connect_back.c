/* SPDX-License-Identifier: BSD-3-Clause */
/* "Connect to me": the message, and sending it. */
#include "agent/peers/connect_back.h"

#include <errno.h>
#include <stdio.h>
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

/* Nobody is there yet, or any more: missing.c decides. */
static bool says_nobody_listens(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED;
}

void connect_back_explain(const struct neighbour *n, char *out, size_t size)
{
	const char *spool = n->peers->node->options->spool_dir;
	int rc = n->calling ? -ETIMEDOUT : n->call_error;

	if (!rc)
		out[0] = '\0';
	else if (rc == -ENAMETOOLONG)
		snprintf(out, size,
			 "; no message through slurmd can ask it to connect: a socket in SlurmdSpoolDir=%.200s has too long a path: shorten that to %u bytes, %%n and %%h expanded",
			 spool ? spool : "", n->peers->node->options->spool_max);
	else if (rc == -EHOSTUNREACH || rc == -ETIMEDOUT)
		snprintf(out, size,
			 "; slurmd of node %s does not answer, which could ask it to connect: start slurmd there",
			 neighbour_name(n));
	else
		snprintf(out, size,
			 "; a message through slurmd of node %s, which asks it to connect, has failed (%s): see the logs of both slurmds",
			 neighbour_name(n), strerror(-rc));
}

static void failed(struct neighbour *n, int rc)
{
	const struct node *node = n->peers->node;
	char why[NODE_WHY_MAX];
	bool again = n->call_error == rc;

	n->call_error = rc;
	if (rc != -ENAMETOOLONG) /* slurmd may come back */
		n->called = false;
	if (again)
		return;
	connect_back_explain(n, why, sizeof(why));
	log_info(node->log, "node %s has no connection with node %s%s",
		 node_own_name(node), neighbour_name(n), why);
}

void connect_back_sent(struct neighbour *n, int rc)
{
	n->calling = false;
	if (!rc || says_nobody_listens(rc))
		n->call_error = 0;
	else if (n->state == NEIGHBOUR_WAITING && !n->peers->leaving)
		failed(n, rc);
}

void connect_back_call(struct neighbour *n)
{
	const struct node *node = n->peers->node;
	const struct agent_host *host = node->host;
	struct buf b;
	int rc;

	if (n->calling)
		return;
	log_debug(node->log, "telling node %s to connect to port %u",
		  neighbour_name(n), node->port);
	buf_init(&b, CONNECT_BACK_MAX);
	rc = make_message(node, n->position, &b);
	rc = rc ? rc : host->connect_back(host->arg,
				       layout_node_id(node->layout, n->position),
				       b.data, b.len);
	buf_free(&b);
	n->calling = rc == 0;
	n->called_in = n->absence;
	if (rc)
		failed(n, rc);
}
