/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "Connect to me": where a neighbour could not be reached, one message over a
 * path that the site authenticates says where to connect to. It is proved with
 * the step's secret as well, and does no harm when it comes twice.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "libio/stream.h"

#define TELL_MAGIC 0x6d743270u /* "p2tm" */
#define TELL_BYTES_MAX 4096    /* of a message */
#define TELL_HEADER_BYTES 8    /* u32 uid, u32 length, in network order */
#define TELL_CONNECTIONS_MAX 16

/* A connection of slurmd that brings a message. */
struct tell_conn {
	struct tell_conn *next;
	struct agent *agent;
	struct stream *stream;
	uv_timer_t limit;
	size_t have;
	unsigned char in[TELL_HEADER_BYTES + TELL_BYTES_MAX];
};

struct agent_tell {
	struct listener *listener;
	struct tell_conn *conns;
	unsigned nconns;
};

/* ---- the message ---- */

/* u8 bytes of an IP, 0: that of the node; the IP. */
static int pack_ip(struct buf *b, const struct agent *a)
{
	const struct sockaddr_storage *at = &a->options.bind;
	const void *ip = &((const struct sockaddr_in6 *)at)->sin6_addr;
	uint8_t len = !a->options.addresses_told ? 0 :
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

static int pack_proved_part(struct buf *b, const struct agent *a, uint32_t to)
{
	int rc = pack_u32(b, TELL_MAGIC);

	rc = rc ? rc : pack_str(b, a->step->jobid);
	rc = rc ? rc : pack_u32(b, a->step->position);
	rc = rc ? rc : pack_u32(b, to);
	rc = rc ? rc : pack_u16(b, a->port);
	return rc ? rc : pack_ip(b, a);
}

static int make_message(const struct agent *a, uint32_t to, struct buf *b)
{
	uint8_t proof[PROOF_BYTES];
	int rc = pack_proved_part(b, a, to);

	if (rc)
		return rc;
	proof_create(&a->self.secret, b->data, b->len, proof);
	return buf_append(b, proof, sizeof(proof));
}

int agent_tell_check(const struct agent *a, const void *data, size_t len,
		     struct whereabouts *out)
{
	const void *proof;
	struct cursor c;
	size_t jobid_len;
	uint32_t to;
	bool has_ip;

	cursor_init(&c, data, len);
	if (unpack_u32(&c) != TELL_MAGIC)
		return -EPROTO;
	unpack_bytes(&c, HANDSHAKE_JOBID_MAX, &jobid_len);
	out->from = unpack_u32(&c);
	to = unpack_u32(&c);
	out->port = unpack_u16(&c);
	has_ip = unpack_ip(&c, &out->addr);
	proof = unpack_raw(&c, PROOF_BYTES);
	if (!cursor_done(&c) || !out->port || !has_ip)
		return -EPROTO;
	if (to != a->step->position ||
	    !proof_check(&a->self.secret, data, len - PROOF_BYTES, proof))
		return -EACCES;
	return 0;
}

/* ---- sending it, and ending the step: the host does ---- */

bool agent_tell_neighbour(struct agent *a, uint32_t position, bool answer)
{
	struct buf b;
	int rc;

	if (!a->host.tell_node)
		return false;
	log_debug(a->log, "telling node %s to connect to port %u",
		  agent_node_name(a, position), a->port);
	buf_init(&b, TELL_BYTES_MAX);
	rc = make_message(a, position, &b);
	rc = rc ? rc : a->host.tell_node(a->host.arg,
					 layout_node_id(a->step->layout, position),
					 b.data, b.len, answer);
	buf_free(&b);
	return rc == 0;
}

void agent_node_told(struct agent *a, uint32_t node_id, int rc)
{
	struct neighbour *n = NULL;

	if (node_id < layout_nodes(a->step->layout))
		n = agent_neighbour(a, layout_position(a->step->layout, node_id));
	/* Otherwise it may have arrived though the call failed. */
	if (n)
		agent_missing_told(a, n->position,
				   rc != -ENOENT && rc != -ECONNREFUSED);
}

void agent_tell_kill(struct agent *a, const char *why)
{
	if (a->host.kill_step)
		a->host.kill_step(a->host.arg, why);
}

/* ---- what comes from other nodes ---- */

static void take_message(struct agent *a, const void *data, size_t len)
{
	struct whereabouts where;

	if (agent_tell_check(a, data, len, &where))
		log_debug(a->log, "ignored a message that proves nothing");
	else if (a->stage == AGENT_SERVING)
		agent_wireup_told(a, &where);
}

static void on_limit_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void drop(struct tell_conn *c)
{
	struct agent_tell *tell = c->agent->tell;
	struct tell_conn **at = &tell->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	tell->nconns--;
	stream_close(c->stream);
	uv_close((uv_handle_t *)&c->limit, on_limit_closed);
}

static void on_limit(uv_timer_t *timer)
{
	drop(timer->data);
}

static size_t on_room(void *arg, void **at)
{
	struct tell_conn *c = arg;

	*at = c->in + c->have;
	return sizeof(c->in) - c->have;
}

static void on_input(void *arg, size_t n)
{
	struct tell_conn *c = arg;
	uint32_t uid, len;

	c->have += n;
	if (c->have < TELL_HEADER_BYTES)
		return;
	memcpy(&uid, c->in, 4);
	memcpy(&len, c->in + 4, 4);
	len = ntohl(len);
	if (!refusals_user_counts(ntohl(uid), c->agent->options.tell_uid) ||
	    len > TELL_BYTES_MAX) {
		drop(c);
		return;
	}
	if (c->have < TELL_HEADER_BYTES + len)
		return;
	take_message(c->agent, c->in + TELL_HEADER_BYTES, len);
	drop(c);
}

static void on_end(void *arg, int error)
{
	drop(arg);
}

static int open_conn(struct agent *a, struct tell_conn *c, int fd)
{
	static const struct stream_ops ops = {
		.room = on_room,
		.input = on_input,
		.end = on_end,
	};
	static const struct stream_limits limits = { 0 };

	return stream_open(&c->stream, loop_uv(a->loop), fd, &limits, &ops, c);
}

static void on_accept(void *arg, int fd)
{
	struct agent *a = arg;
	struct tell_conn *c = NULL;

	if (refusals_let_in(&a->refused, fd, a->options.tell_uid,
			     "this socket") &&
	    a->tell->nconns < TELL_CONNECTIONS_MAX)
		c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->agent = a;
	if (open_conn(a, c, fd)) {
		free(c);
		return;
	}
	uv_timer_init(loop_uv(a->loop), &c->limit);
	c->limit.data = c;
	uv_timer_start(&c->limit, on_limit, a->options.handshake_ms, 0);
	c->next = a->tell->conns;
	a->tell->conns = c;
	a->tell->nconns++;
}

int agent_tell_open(struct agent *a)
{
	int fd = a->fds.tell;

	a->tell = calloc(1, sizeof(*a->tell));
	if (!a->tell)
		return -ENOMEM;
	if (fd < 0)
		return 0;
	a->fds.tell = -1; /* the listener's from here on */
	return listener_open(&a->tell->listener, loop_uv(a->loop), fd,
			     on_accept, a);
}

void agent_tell_close(struct agent *a)
{
	if (!a->tell)
		return;
	listener_close(a->tell->listener);
	a->tell->listener = NULL;
	while (a->tell->conns)
		drop(a->tell->conns);
}

void agent_tell_free(struct agent *a)
{
	free(a->tell);
}
