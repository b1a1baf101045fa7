/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two neighbours find each other over TCP and prove that they are the ones.
 *
 * The caller (left end of the link) connects to the addresses of the other, one
 * after the other until one of them answers as it should, and sends GREETING
 * and the other's nonce. The listener (right end) drops who sends anything else
 * or nothing for some seconds, and answers GREETING and the caller's nonce.
 */
#pragma once

#include <poll.h>

#include "tcp_address.h"
#include "transport.h"

#define TCP_CALLERS_MAX 8 /* unproved callers; more must wait */
#define TCP_GREETING_LEN (8 + TRANSPORT_NONCE_LEN)

struct tcp_caller {
	int fd; /* -1: free */
	int64_t deadline;
	size_t have;
	unsigned char got[TCP_GREETING_LEN];
};

enum tcp_call_state { CALL_NONE, CALL_CONNECTING, CALL_GREETED, CALL_OVER };

struct tcp_greet {
	unsigned char nonce[TRANSPORT_NONCE_LEN];        /* own */
	unsigned char peers[SIDES][TRANSPORT_NONCE_LEN]; /* the neighbours' */
	int silent_s;                 /* until a silent host counts as dead */
	int listener;                                    /* -1: no longer */
	bool expected;                                   /* left peer is known */
	struct tcp_caller callers[TCP_CALLERS_MAX];
	enum tcp_call_state state;    /* of the call to the right neighbour */
	struct tcp_caller call;
	struct tcp_address address;
	int next;                     /* address to try next */
	char why[TRANSPORT_REASON_MAX];
};

void tcp_greet_init(struct tcp_greet *g, const unsigned char *nonce);
void tcp_greet_close(struct tcp_greet *g);

/*
 * Listen on a port of the kernel's choice, or of PMI2X_ALLGATHER_TCP_PORTS. 0, or
 * negative errno and `why`, also for PMI2X_ALLGATHER_TCP_TIMEOUT.
 */
int tcp_greet_listen(struct tcp_greet *g, uint16_t *port, char *why);

/* The left neighbour may come. */
void tcp_greet_expect(struct tcp_greet *g, const unsigned char *nonce);
/* Call the right neighbour. */
void tcp_greet_call(struct tcp_greet *g, const struct tcp_address *address,
		    const unsigned char *nonce);

/*
 * The descriptor of that side's connection, once, which the caller then owns;
 * -EAGAIN: not yet, or handed out before; another error: there will be none,
 * `why` says why (once as well).
 */
int tcp_greet_progress(struct tcp_greet *g, enum ring_side side);

/* Fill in what to poll, at most 2 + TCP_CALLERS_MAX entries; how many. */
int tcp_greet_poll(const struct tcp_greet *g, struct pollfd *fds);
