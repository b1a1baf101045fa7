/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transports move messages between the neighbours of the ring: one operations table a
 * transport. A ring element (a node's leader) has one neighbour on each side; with two
 * elements both sides are the same neighbour, over two links.
 *
 * Life: open, address, connect on both sides, progress until both sides are
 * connected, then send, progress and wait until close. Everything but wait
 * returns at once. The caller serialises all calls for one transport; upcalls
 * come only from inside progress, and may call send but nothing else.
 *
 * Links are reliable and keep order and message boundaries, each side apart.
 * Lengths are bytes, times are milliseconds, errors are negative errno.
 * `why` and `reason` say what went wrong without naming the neighbour, which the
 * caller adds: "connection refused", "retry counter exceeded".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define TRANSPORT_MESSAGE_MAX 32768 /* longest message, headers included */
#define TRANSPORT_ADDRESS_MAX 512   /* of an address, its NUL included */
#define TRANSPORT_REASON_MAX 160    /* of a reason, its NUL included */
#define TRANSPORT_NONCE_LEN 16
#define TRANSPORT_IOV_MAX 4

enum ring_side { SIDE_LEFT, SIDE_RIGHT, SIDES };

/* The link to a neighbour pairs with the other side's link back. */
static inline enum ring_side other_side(enum ring_side side)
{
	return side == SIDE_LEFT ? SIDE_RIGHT : SIDE_LEFT;
}

struct transport; /* each transport's own */

/* Upcalls from a transport to its owner. */
struct transport_events {
	void *arg;
	/*
	 * A message has arrived; `data` is valid until the call returns.
	 * 0: taken. -EAGAIN: cannot be taken yet; the transport keeps it,
	 * delivers nothing more from this side, and offers it again in every
	 * later progress. Anything else: the side is unusable; no more upcalls.
	 */
	int (*message)(void *arg, enum ring_side side, const void *data,
		       size_t len);
	/*
	 * The link has broken or was never made, or the neighbour has closed
	 * it. At most once a side; messages that arrived before it have been
	 * delivered (or are being kept: then it comes after them).
	 */
	void (*broken)(void *arg, enum ring_side side, const char *reason);
};

/* A neighbour, as far as a transport needs to know it. */
struct transport_peer {
	const char *address; /* made by its transport's address() */
	/*
	 * Random numbers that both learned over PMI. A transport whose fabric
	 * does not prove who is at the other end (TCP) sends the other's and
	 * expects its own before it takes a message.
	 */
	unsigned char nonce[TRANSPORT_NONCE_LEN];
};

struct transport_params {
	struct transport_events events; /* copied */
	unsigned char nonce[TRANSPORT_NONCE_LEN]; /* of this element */
};

struct transport_ops {
	const char *name; /* in PMI2X_ALLGATHER_TRANSPORT, lower case */

	/*
	 * Make what an address needs: a listening socket; device, queue pairs
	 * and registered buffers. 0 and *out, which the caller closes; or
	 * -ENODEV (nothing here to use: no devices, no port that is up),
	 * -ENOMEM, or another errno; then `why` (TRANSPORT_REASON_MAX bytes)
	 * says what was missing and what to do. Reads its own settings from the
	 * environment (PMI2X_ALLGATHER_<NAME>_...), before all else; -EINVAL is
	 * for one that is invalid, -ENODEV for one that cannot be met here.
	 */
	int (*open)(struct transport **out,
		    const struct transport_params *params, char *why);

	/*
	 * The address to give to both neighbours: printable ASCII without
	 * space, ';' or ','. `out` has TRANSPORT_ADDRESS_MAX bytes.
	 */
	void (*address)(const struct transport *t, char *out);

	/*
	 * Start to connect one side. `peer` is copied as far as needed. The
	 * two elements of a link start at different times, possibly seconds
	 * apart, and neither waits for the other here. -EINVAL and `why`: the
	 * address is wrong, truncated or of another version. It comes from
	 * another process: check all of it.
	 */
	int (*connect)(struct transport *t, enum ring_side side,
		       const struct transport_peer *peer, char *why);

	/* Both directions of this side work: messages can be sent. */
	bool (*connected)(const struct transport *t, enum ring_side side);

	/*
	 * Send the concatenation of n (1 to TRANSPORT_IOV_MAX) pieces, together
	 * 1 to TRANSPORT_MESSAGE_MAX bytes, as one message; all or nothing.
	 * The bytes are copied (or gone) when it returns. -EAGAIN: no room or
	 * no credit; try again after progress. -EPIPE: broken, or not
	 * connected. For the last message of a side, once, there is always
	 * room.
	 */
	int (*send)(struct transport *t, enum ring_side side,
		    const struct iovec *iov, int n, bool last);

	/*
	 * No message that send has taken still needs this process: the rest
	 * happens in the kernel or the adapter. Only then may the owner stop
	 * calling progress for long.
	 */
	bool (*flushed)(const struct transport *t);

	/*
	 * Make progress without waiting: accept, connect, send, deliver. Returns the number
	 * of things done. Failures are reported by events.broken only.
	 */
	int (*progress)(struct transport *t);

	/*
	 * Block until progress may find something to do, at most timeout_ms (0:
	 * do not block). A message that is being kept for -EAGAIN does not
	 * count. A transport may poll for some microseconds before it blocks
	 * in the kernel. Returning early is allowed.
	 */
	void (*wait)(struct transport *t, int timeout_ms);

	/*
	 * Close all and free. Messages that are flushed still arrive. NULL is
	 * allowed.
	 */
	void (*close)(struct transport *t);
};

/* The transports of this build, ended by NULL. */
extern const struct transport_ops *const transports[];

/*
 * The names of all transports, best first, ended by NULL: builds that differ
 * must prefer the same.
 */
#define TRANSPORT_NAMES_MAX 4
extern const char *const transport_names[TRANSPORT_NAMES_MAX];

/* NULL when this build has none of that name. */
const struct transport_ops *transport_find(const char *name);

extern const struct transport_ops tcp_transport;
extern const struct transport_ops verbs_transport; /* with HAVE_VERBS */
