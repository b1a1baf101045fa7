/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link: a connection between two processes of a step that proves both ends
 * (handshake.h) and then carries frames (frames.h). Used between agents and
 * between an agent and srun.
 *
 * All calls and callbacks are in the loop's thread. link_send and link_shutdown
 * never call back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "libio/frames.h"
#include "libio/handshake.h"

#define LINK_QUEUE_MAX ((size_t)4 << 30) /* bytes of output; then it breaks */

struct link;

struct link_ops {
	/* Both ends are proved; frames may be sent now. May close the link. */
	void (*proved)(void *arg, struct link *l);
	/*
	 * A frame has come; `body` is referenced by the callee if kept.
	 * Non-zero ends the link with that error. May close the link.
	 */
	int (*frame)(void *arg, struct link *l, enum frame_type type,
		     struct payload *body);
	/* As frame_ops.message and frame_ops.room; both may be NULL. */
	int (*message)(void *arg, struct link *l, const void *head,
		       size_t head_len, struct payload *body);
	struct payload *(*room)(void *arg, struct link *l, const void *head,
				size_t head_len, size_t len);
	/*
	 * Over: 0 for the peer's orderly end after it was proved, else a
	 * negative errno, see link_strerror. At most once; the owner then
	 * calls link_close.
	 */
	void (*end)(void *arg, struct link *l, int error);
	/* The queued bytes have been written. May be NULL. */
	void (*drained)(void *arg, struct link *l);
};

struct link_options {
	uint32_t handshake_ms; /* to be connected, and again for each message
	                          until both are proved */
	uint32_t dead_peer_ms; /* TCP_USER_TIMEOUT, keep-alive; 0: system's */
	struct budget *budget; /* of what comes, and of bytes copied to be sent;
	                          or NULL */
};

/*
 * Connect to position `to`, which should be at `addr`. 0, or a negative errno
 * when it cannot even begin.
 */
int link_connect(struct link **out, uv_loop_t *loop,
		 const struct handshake_self *self, uint32_t to,
		 const struct sockaddr_storage *addr,
		 const struct link_options *options,
		 const struct link_ops *ops, void *arg);
/* Take over an accepted socket, also on failure. 0 or a negative errno. */
int link_accept(struct link **out, uv_loop_t *loop,
		const struct handshake_self *self, int fd,
		const struct link_options *options,
		const struct link_ops *ops, void *arg);

/* From now on it is another's, who has these; one that is proved and has not ended. */
void link_hand_over(struct link *l, const struct link_ops *ops, void *arg);

/* The other side; proved as handshake_peer says. */
const struct handshake_peer *link_peer(const struct link *l);
bool link_is_proved(const struct link *l);
/* The link's socket. */
int link_fd(const struct link *l);
/* The IP it comes from, as handshake_source. */
const uint8_t *link_source(const struct link *l);

/*
 * Send a frame; `body` (NULL: empty) is referenced, not copied. 0, -ENOTCONN
 * (not proved), -EMSGSIZE (over FRAME_BODY_MAX), or the errors of stream_write.
 */
int link_send(struct link *l, enum frame_type type,
	      const struct payload_vec *body);
/* As above, with a front that frame_header has made. */
int link_send_front(struct link *l, struct payload *front,
		    const struct payload_vec *body);
/* As above, from memory, which is copied. */
int link_send_bytes(struct link *l, enum frame_type type, const void *data,
		    size_t len);
size_t link_queued(const struct link *l);

/* Send nothing more after what is queued; frames still come until the end. */
void link_shutdown(struct link *l);
/* Read no more; it ends when what is queued has been written. */
void link_finish(struct link *l);
/* Close at once; no callback comes any more. NULL is allowed. */
void link_close(struct link *l);

/* Why a link ended, for people: "connection refused". */
const char *link_strerror(int error);
