/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The welcome of a daemon of a DVM comes on its standard input, so that nothing of it
 * is in an argument or the environment, which others may see: lines of a word and its
 * value, up to an empty line. Clients on other nodes find the same in a file.
 *
 *   pmi2x-dvm VERSION
 *   dvm       name and number of this DVM, which the handshake compares
 *   secret    hexadecimal
 *   head      ADDRESS PORT; one line for each address, the likeliest first
 *   first     K: the daemon's position is K more than its number in the step
 *   slots     core, thread or a number
 *   gpus      found or a number
 *   preload   CODE of up --preload; without it there is none
 *   width     W: the nodes are a tree (core/tree_layout.h); 0: a star
 *   relays    K: the first K positions have children. Their daemons connect to the head;
 *             for the others the addresses of these follow the empty line, when they are
 *             known: lines "relay POSITION ADDRESS PORT" and an empty line
 *   share     0 or 1: other DVMs of the job may be on the node
 *   orphan    SECONDS: how long it waits for another head when this one is lost
 *   within    MILLISECONDS: how long it tries to reach the head
 *   peer      MILLISECONDS: a link whose other side is silent for this time has failed
 *   lease     MILLISECONDS: how long ranks run without an answer of the head (lease.h);
 *             0: there is no lease
 *   grace     MILLISECONDS: that ranks then have to end by themselves
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "dvm/core/dvm_msg.h"
#include "libio/handshake.h"

#define WELCOME_CLIENT (HANDSHAKE_SRUN - 1) /* position of a client; the head's is
						   HANDSHAKE_SRUN */
#define WELCOME_HEADS_MAX 16
#define WELCOME_TEXT_MAX 64
#define WELCOME_CODE_MAX 1024

struct welcome {
	char dvm[HANDSHAKE_JOBID_MAX];
	struct secret secret;
	struct sockaddr_storage heads[WELCOME_HEADS_MAX];
	uint32_t nheads;
	uint32_t first;
	uint32_t orphan_s;
	uint32_t within_ms, peer_ms, lease_ms, grace_ms;
	char slots[WELCOME_TEXT_MAX];
	char gpus[WELCOME_TEXT_MAX];
	uint32_t share;
	char preload[WELCOME_CODE_MAX]; /* one line */
	uint32_t width, relays;
};

/* The address of a daemon in the form of connect(). */
void welcome_sockaddr(struct sockaddr_storage *out, const struct dvm_address *a);

/* The text, to be freed and forgotten by the caller, or NULL. */
char *welcome_format(const struct welcome *w);
/*
 * Reads a stream from which nothing has been read; it has no buffer from now on. 0,
 * -EPROTO, or -EPROTONOSUPPORT: another version. Blocks. Nothing behind the empty line
 * is read.
 */
int welcome_read(struct welcome *w, FILE *in);
