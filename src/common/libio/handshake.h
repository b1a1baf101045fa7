/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutual proof between two processes of a step before a link carries frames.
 * Bytes in, bytes out; no system calls.
 *
 *   connector -> acceptor  hello:  build, protocol, jobid, from, to, nonce
 *   acceptor -> connector  answer: build, protocol, status, nonce, proof
 *   connector -> acceptor  proof
 *
 * A proof is an HMAC with the step's secret over the direction, both builds and
 * protocols, jobid, from, to, both nonces and both socket addresses (IP and port as
 * each side sees them): it cannot be replayed, reflected, relayed or used for
 * another node. Every message starts with the magic, HANDSHAKE_VERSION
 * and its length, and every hello and answer of any version begins with the
 * build, so that a mixed step can be refused with an error that names it. The protocol afterwards has a
 * version of its own, protocol.h, which both ends compare when both are proved.
 *
 * A hello of another version is answered with build, protocol, STATUS_VERSION and an
 * HMAC over "pmi2x link: another version", that whole hello and the answer's body so
 * far. All versions do this alike, and have something random in the hello: so the
 * connector knows at once that its own step answers, and not somebody else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "libio/proof.h"
#include "libutil/buf.h"

#define HANDSHAKE_VERSION 3 /* raise PROTOCOL_VERSION with it: people are told that */
#define HANDSHAKE_BUILD_MAX 64   /* bytes of a build's version text */
#define HANDSHAKE_JOBID_MAX 64
#define HANDSHAKE_MESSAGE_MAX 512 /* bytes of a message */
#define HANDSHAKE_SRUN UINT32_MAX /* srun's "position" */

/* The identity of this process. Shared by all its connections and outlives them. */
struct handshake_self {
	struct secret secret;
	const char *jobid;
	const char *build; /* reported; decides nothing */
	uint32_t position; /* HANDSHAKE_SRUN: srun */
	uint16_t protocol; /* PROTOCOL_VERSION, but in tests */
};

struct handshake_peer {
	uint32_t position;
	uint16_t protocol;
	char build[HANDSHAKE_BUILD_MAX + 1]; /* printable; "" until known */
};

enum handshake_state {
	HANDSHAKE_UNDER_WAY,
	HANDSHAKE_PROVED, /* both sides have proved themselves */
	HANDSHAKE_FAILED, /* see handshake_error */
};

struct handshake;

/*
 * Begin as the one who connects to position `to`, or as the one who accepts.
 * `local` and `remote` are the socket's addresses. 0, -EINVAL (a text is too
 * long), -ENOMEM or -EIO (no randomness).
 */
int handshake_connect(struct handshake **out, const struct handshake_self *self,
		      uint32_t to, const struct sockaddr_storage *local,
		      const struct sockaddr_storage *remote);
int handshake_accept(struct handshake **out, const struct handshake_self *self,
		     const struct sockaddr_storage *local,
		     const struct sockaddr_storage *remote);
void handshake_destroy(struct handshake *h);

/*
 * The place of the next input, and its size: the bytes that belong to the handshake, so
 * that none behind it is read. 0: the handshake has ended.
 */
size_t handshake_room(struct handshake *h, void **at);
/* `n` bytes have been put there. */
enum handshake_state handshake_input(struct handshake *h, size_t n);

/* The other end's IP as the socket says it: 16 bytes, IPv4 in its mapped form. */
const uint8_t *handshake_source(const struct handshake *h);

/* Bytes to send (also after a failure); the caller clears them. */
struct buf *handshake_output(struct handshake *h);

/*
 * The other side, as far as it has said: proved when the state is PROVED or the
 * error is -EPROTONOSUPPORT.
 */
const struct handshake_peer *handshake_peer(const struct handshake *h);

/*
 * Why it failed:
 *   -EPROTO          the other side speaks something else, or garbage
 *   -EACCES          a proof is wrong: another step, another user, a relay
 *   -EADDRNOTAVAIL   it is not the node (or step) that was looked for
 *   -EPROTONOSUPPORT it is proved, but uses another protocol, or another version of
 *                    the handshake
 *   -ENOPROTOOPT     not proved: it speaks another version of the handshake
 *   -ENOMEM, -EIO
 */
int handshake_error(const struct handshake *h);

/*
 * After -EPROTONOSUPPORT, for people: which side speaks what, and what to do. `them`
 * and `us` are their names.
 */
void handshake_explain(char *out, size_t size, const char *them,
		       const struct handshake_peer *peer, const char *us,
		       const struct handshake_self *self);
/* True: a proved peer runs another build with the same protocol. */
bool handshake_other_build(const struct handshake_peer *peer,
			   const struct handshake_self *self);
