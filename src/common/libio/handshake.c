/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake of a link: messages, proofs, states. */
#include "libio/handshake.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/pack.h"

#define MAGIC "pmi2x\r\n"    /* 8 bytes with its NUL */
#define MAGIC_BYTES 8
#define HEADER_BYTES (MAGIC_BYTES + 4) /* then u16 version, u16 length */
#define TRANSCRIPT_MAX 1024

enum status { STATUS_OK, STATUS_NOT_HERE, STATUS_VERSION };

/* connector: ANSWER -> end; acceptor: HELLO -> PROOF -> end. */
enum awaited { AWAIT_HELLO, AWAIT_ANSWER, AWAIT_PROOF };

/* An address as both sides see it: IPv4 as its IPv6-mapped form. */
struct endpoint {
	uint8_t ip[16];
	uint16_t port;
};

struct handshake {
	const struct handshake_self *self;
	struct handshake_peer peer;
	bool connector;
	enum awaited awaited;
	enum handshake_state state;
	int error;
	uint32_t from; /* position of the connector */
	uint32_t to;   /* position of the acceptor */
	uint8_t nonces[2][NONCE_BYTES];  /* connector's, acceptor's */
	struct endpoint ends[2];         /* the same order */
	unsigned char in[HANDSHAKE_MESSAGE_MAX];
	size_t have;
	struct buf out;
};

static struct endpoint endpoint_of(const struct sockaddr_storage *addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	struct endpoint e = { .port = 0 };

	if (addr->ss_family == AF_INET) {
		memcpy(e.ip, mapped, sizeof(mapped));
		memcpy(e.ip + 12, &in4->sin_addr, 4);
		e.port = ntohs(in4->sin_port);
	} else if (addr->ss_family == AF_INET6) {
		memcpy(e.ip, &in6->sin6_addr, 16);
		e.port = ntohs(in6->sin6_port);
	}
	return e;
}

static int create(struct handshake **out, const struct handshake_self *self,
		  bool connector, const struct sockaddr_storage *local,
		  const struct sockaddr_storage *remote)
{
	struct handshake *h;
	int rc;

	if (strlen(self->build) > HANDSHAKE_BUILD_MAX ||
	    strlen(self->jobid) > HANDSHAKE_JOBID_MAX)
		return -EINVAL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->self = self;
	h->connector = connector;
	h->ends[!connector] = endpoint_of(local);
	h->ends[connector] = endpoint_of(remote);
	buf_init(&h->out, 2 * HANDSHAKE_MESSAGE_MAX);
	rc = nonce_create(h->nonces[!connector]);
	if (rc) {
		handshake_destroy(h);
		return rc;
	}
	*out = h;
	return 0;
}

void handshake_destroy(struct handshake *h)
{
	if (!h)
		return;
	buf_free(&h->out);
	free(h);
}

static enum handshake_state fail(struct handshake *h, int error)
{
	h->error = error;
	return h->state = HANDSHAKE_FAILED;
}

/* ---- messages ---- */

/* Append a message with this body. 0 or an error of buf_append. */
static int put_message(struct buf *out, const struct buf *body)
{
	int rc = buf_append(out, MAGIC, MAGIC_BYTES);

	rc = rc ? rc : pack_u16(out, HANDSHAKE_VERSION);
	rc = rc ? rc : pack_u16(out, body->len);
	return rc ? rc : buf_append(out, body->data, body->len);
}

static int put_hello(const struct handshake *h, struct buf *out)
{
	struct buf b;
	int rc;

	buf_init(&b, HANDSHAKE_MESSAGE_MAX - HEADER_BYTES);
	rc = pack_str(&b, h->self->build);
	rc = rc ? rc : pack_u16(&b, h->self->protocol);
	rc = rc ? rc : pack_str(&b, h->self->jobid);
	rc = rc ? rc : pack_u32(&b, h->from);
	rc = rc ? rc : pack_u32(&b, h->to);
	rc = rc ? rc : buf_append(&b, h->nonces[0], NONCE_BYTES);
	rc = rc ? rc : put_message(out, &b);
	buf_free(&b);
	return rc;
}

/* Collects the bytes that a proof covers. `by_connector`: whose proof it is. */
static int transcript(const struct handshake *h, bool by_connector,
		      struct buf *b)
{
	const char *mine = h->self->build, *its = h->peer.build;
	const uint16_t protocols[] = { h->self->protocol, h->peer.protocol };
	int rc;

	buf_init(b, TRANSCRIPT_MAX);
	rc = pack_str(b, by_connector ? "pmi2x link: connector" :
					"pmi2x link: acceptor");
	rc = rc ? rc : pack_u16(b, HANDSHAKE_VERSION);
	rc = rc ? rc : pack_str(b, h->connector ? mine : its);
	rc = rc ? rc : pack_str(b, h->connector ? its : mine);
	rc = rc ? rc : pack_u16(b, protocols[!h->connector]);
	rc = rc ? rc : pack_u16(b, protocols[h->connector]);
	rc = rc ? rc : pack_str(b, h->self->jobid);
	rc = rc ? rc : pack_u32(b, h->from);
	rc = rc ? rc : pack_u32(b, h->to);
	for (int i = 0; !rc && i < 2; i++) {
		rc = buf_append(b, h->nonces[i], NONCE_BYTES);
		rc = rc ? rc : buf_append(b, h->ends[i].ip, 16);
		rc = rc ? rc : pack_u16(b, h->ends[i].port);
	}
	return rc;
}

/* The transcript that a refusal of another version proves: see handshake.h. */
static int refusal_transcript(const struct handshake *h, const void *answer,
			      size_t len, struct buf *b)
{
	int rc;

	buf_init(b, TRANSCRIPT_MAX);
	rc = pack_str(b, "pmi2x link: another version");
	if (!rc)
		rc = h->connector ? put_hello(h, b) :
				    buf_append(b, h->in, h->have);
	return rc ? rc : buf_append(b, answer, len);
}

/* These two free what is covered; `rc` says whether it is whole. */
static int append_proof(const struct handshake *h, struct buf *covered, int rc,
			struct buf *out)
{
	uint8_t proof[PROOF_BYTES];

	if (!rc) {
		proof_create(&h->self->secret, covered->data, covered->len,
			     proof);
		rc = buf_append(out, proof, sizeof(proof));
	}
	buf_free(covered);
	return rc;
}

static bool is_proof(const struct handshake *h, struct buf *covered, int rc,
		     const uint8_t *proof)
{
	bool right = !rc && proof_check(&h->self->secret, covered->data,
					covered->len, proof);

	buf_free(covered);
	return right;
}

static int append_own_proof(const struct handshake *h, struct buf *out)
{
	struct buf b;
	int rc = transcript(h, h->connector, &b);

	return append_proof(h, &b, rc, out);
}

static bool peer_proved(const struct handshake *h, const uint8_t *proof)
{
	struct buf b;
	int rc = transcript(h, !h->connector, &b);

	return is_proof(h, &b, rc, proof);
}

static int append_refusal_proof(const struct handshake *h, struct buf *out)
{
	struct buf b;
	int rc = refusal_transcript(h, out->data, out->len, &b);

	return append_proof(h, &b, rc, out);
}

/* STATUS_NOT_HERE carries no proof: it is for strangers. */
static int send_answer(struct handshake *h, enum status status)
{
	struct buf b;
	int rc;

	buf_init(&b, HANDSHAKE_MESSAGE_MAX - HEADER_BYTES);
	rc = pack_str(&b, h->self->build);
	rc = rc ? rc : pack_u16(&b, h->self->protocol);
	rc = rc ? rc : pack_u8(&b, status);
	if (!rc && status == STATUS_OK) {
		rc = buf_append(&b, h->nonces[1], NONCE_BYTES);
		rc = rc ? rc : append_own_proof(h, &b);
	} else if (!rc && status == STATUS_VERSION) {
		rc = append_refusal_proof(h, &b);
	}
	rc = rc ? rc : put_message(&h->out, &b);
	buf_free(&b);
	return rc;
}

static int send_proof(struct handshake *h)
{
	struct buf b;
	int rc;

	buf_init(&b, PROOF_BYTES);
	rc = append_own_proof(h, &b);
	rc = rc ? rc : put_message(&h->out, &b);
	buf_free(&b);
	return rc;
}

/* ---- what comes ---- */

static void read_build(struct handshake *h, struct cursor *c)
{
	size_t len;
	const char *text = unpack_bytes(c, HANDSHAKE_BUILD_MAX, &len);

	for (size_t i = 0; text && i < len; i++)
		h->peer.build[i] =
			isgraph((unsigned char)text[i]) ? text[i] : '?';
}

static bool same_text(const void *data, size_t len, const char *text)
{
	return data && len == strlen(text) && !memcmp(data, text, len);
}

static enum handshake_state refuse(struct handshake *h, enum status status,
				   int error)
{
	int rc = send_answer(h, status);

	return fail(h, rc ? rc : error);
}

static enum handshake_state take_hello(struct handshake *h, struct cursor *c)
{
	size_t len;
	const void *jobid, *nonce;
	int rc;

	h->peer.protocol = unpack_u16(c);
	jobid = unpack_bytes(c, HANDSHAKE_JOBID_MAX, &len);
	h->from = h->peer.position = unpack_u32(c);
	h->to = unpack_u32(c);
	nonce = unpack_raw(c, NONCE_BYTES);
	if (!cursor_done(c))
		return fail(h, -EPROTO);
	if (!same_text(jobid, len, h->self->jobid) ||
	    h->to != h->self->position)
		return refuse(h, STATUS_NOT_HERE, -EADDRNOTAVAIL);
	memcpy(h->nonces[0], nonce, NONCE_BYTES);
	rc = send_answer(h, STATUS_OK);
	if (rc)
		return fail(h, rc);
	h->awaited = AWAIT_PROOF;
	return HANDSHAKE_UNDER_WAY;
}

/* Proved; what remains is that both speak the same protocol. */
static enum handshake_state conclude(struct handshake *h)
{
	if (h->peer.protocol != h->self->protocol)
		return fail(h, -EPROTONOSUPPORT);
	return h->state = HANDSHAKE_PROVED;
}

static enum handshake_state take_answer(struct handshake *h, struct cursor *c)
{
	const void *nonce, *proof;
	uint8_t status;
	int rc;

	h->peer.protocol = unpack_u16(c);
	status = unpack_u8(c);
	if (status != STATUS_OK)
		return fail(h, !cursor_ok(c) ? -EPROTO : -EADDRNOTAVAIL);
	nonce = unpack_raw(c, NONCE_BYTES);
	proof = unpack_raw(c, PROOF_BYTES);
	if (!cursor_done(c))
		return fail(h, -EPROTO);
	memcpy(h->nonces[1], nonce, NONCE_BYTES);
	if (!peer_proved(h, proof))
		return fail(h, -EACCES);
	rc = send_proof(h);
	return rc ? fail(h, rc) : conclude(h);
}

static enum handshake_state take_proof(struct handshake *h, struct cursor *c)
{
	const void *proof = unpack_raw(c, PROOF_BYTES);

	if (!cursor_done(c))
		return fail(h, -EPROTO);
	return peer_proved(h, proof) ? conclude(h) : fail(h, -EACCES);
}

/* The answer of another version. */
static enum handshake_state take_refusal(struct handshake *h, struct cursor *c)
{
	const void *proof;
	struct buf b;
	int rc;

	h->peer.protocol = unpack_u16(c);
	unpack_u8(c); /* STATUS_VERSION */
	proof = unpack_raw(c, PROOF_BYTES);
	if (!cursor_done(c))
		return fail(h, -ENOPROTOOPT);
	rc = refusal_transcript(h, h->in + HEADER_BYTES,
				h->have - HEADER_BYTES - PROOF_BYTES, &b);
	return fail(h, is_proof(h, &b, rc, proof) ? -EPROTONOSUPPORT :
						     -ENOPROTOOPT);
}

static enum handshake_state take_message(struct handshake *h)
{
	struct cursor c;
	uint16_t version;

	cursor_init(&c, h->in + MAGIC_BYTES, h->have - MAGIC_BYTES);
	version = unpack_u16(&c);
	unpack_u16(&c); /* the length, already used */
	if (h->awaited != AWAIT_PROOF)
		read_build(h, &c);
	if (version != HANDSHAKE_VERSION && h->awaited == AWAIT_HELLO)
		return refuse(h, STATUS_VERSION, -ENOPROTOOPT);
	if (version != HANDSHAKE_VERSION && h->awaited == AWAIT_ANSWER)
		return take_refusal(h, &c);
	if (version != HANDSHAKE_VERSION)
		return fail(h, -ENOPROTOOPT);
	h->have = 0;
	if (h->awaited == AWAIT_HELLO)
		return take_hello(h, &c);
	if (h->awaited == AWAIT_ANSWER)
		return take_answer(h, &c);
	return take_proof(h, &c);
}

/* Bytes of the message under way, or of its header while that is not there. */
static size_t message_bytes(const struct handshake *h)
{
	struct cursor c;

	if (h->have < HEADER_BYTES)
		return HEADER_BYTES;
	cursor_init(&c, h->in + HEADER_BYTES - 2, 2);
	return HEADER_BYTES + unpack_u16(&c);
}

size_t handshake_room(struct handshake *h, void **at)
{
	*at = h->in + h->have;
	if (h->state != HANDSHAKE_UNDER_WAY)
		return 0;
	return message_bytes(h) - h->have;
}

enum handshake_state handshake_input(struct handshake *h, size_t n)
{
	h->have += n;
	if (h->state != HANDSHAKE_UNDER_WAY)
		return h->state;
	if (memcmp(h->in, MAGIC, h->have < MAGIC_BYTES ? h->have : MAGIC_BYTES))
		return fail(h, -EPROTO);
	if (h->have < HEADER_BYTES)
		return h->state;
	if (message_bytes(h) > sizeof(h->in))
		return fail(h, -EPROTO);
	if (h->have < message_bytes(h))
		return h->state;
	return take_message(h);
}

/* ---- the two beginnings ---- */

int handshake_connect(struct handshake **out, const struct handshake_self *self,
		      uint32_t to, const struct sockaddr_storage *local,
		      const struct sockaddr_storage *remote)
{
	struct handshake *h;
	int rc = create(&h, self, true, local, remote);

	if (rc)
		return rc;
	h->awaited = AWAIT_ANSWER;
	h->from = self->position;
	h->to = h->peer.position = to;
	rc = put_hello(h, &h->out);
	if (rc) {
		handshake_destroy(h);
		return rc;
	}
	*out = h;
	return 0;
}

int handshake_accept(struct handshake **out, const struct handshake_self *self,
		     const struct sockaddr_storage *local,
		     const struct sockaddr_storage *remote)
{
	struct handshake *h;
	int rc = create(&h, self, false, local, remote);

	if (rc)
		return rc;
	h->awaited = AWAIT_HELLO;
	*out = h;
	return 0;
}

struct buf *handshake_output(struct handshake *h)
{
	return &h->out;
}

const uint8_t *handshake_source(const struct handshake *h)
{
	return h->ends[h->connector].ip;
}

const struct handshake_peer *handshake_peer(const struct handshake *h)
{
	return &h->peer;
}

int handshake_error(const struct handshake *h)
{
	return h->error;
}

void handshake_explain(char *out, size_t size, const char *them,
		       const struct handshake_peer *peer, const char *us,
		       const struct handshake_self *self)
{
	snprintf(out, size,
		 "%.64s speaks protocol %u (build %s), %.64s protocol %u (build %s): install one version of pmi2x on all nodes, and where srun runs",
		 them, peer->protocol, peer->build, us, self->protocol,
		 self->build);
}

bool handshake_other_build(const struct handshake_peer *peer,
			   const struct handshake_self *self)
{
	return strcmp(peer->build, self->build) != 0;
}
