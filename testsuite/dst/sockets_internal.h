/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the files of the sockets share: sockets.c, socket_connect.c,
 * socket_io.c.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "testsuite/dst/files.h"
#include "testsuite/dst/memory.h"
#include "testsuite/dst/sockets.h"

#define BACKLOG 64
#define HOSTS_MAX 64
#define PASSED_MAX 16

/* Data on the way to a socket, or there. No bytes: the end, or a reset. */
struct segment {
	struct segment *next;
	uint64_t arrival;
	int error;     /* a reset */
	size_t len;
	size_t taken;
	unsigned nfds;
	struct file *fds[PASSED_MAX];
	char bytes[];
};

enum socket_state { SOCKET_NEW, SOCKET_LISTENS, SOCKET_CONNECTS,
		    SOCKET_CONNECTED, SOCKET_DEAD };

struct socket {
	struct socket *next, **at;  /* all of them */
	struct file *file;
	int family, type;
	enum socket_state state;
	uint32_t host;
	uint16_t port;              /* own; 0: none */
	char name[108];             /* of a unix socket that listens, in the abstract namespace */
	size_t name_len;            /* 0: none */
	uint32_t peer_host;
	uint16_t peer_port;
	struct socket *peer;        /* NULL: closed, or never there */
	struct process *maker;      /* for credentials */
	struct segment *first, **last; /* incoming */
	size_t bytes;               /* in those */
	size_t room;                /* for them */
	uint64_t last_arrival;
	uint64_t changes;           /* of what can be written, or an error */
	int error;                  /* SO_ERROR */
	bool had_reset;
	bool wrote_end;             /* shut down for writing */
	bool no_more_input;
	int peek_offset;            /* -1: not used */
	uint64_t sent;
	uint64_t cut_after;         /* bytes sent; 0: never */
	uint64_t dead_peer_ns;
	struct socket *waiting[BACKLOG]; /* of a listener: to be accepted */
	uint64_t arrivals[BACKLOG];
	unsigned nwaiting;
	uint64_t connections;       /* of a listener, so far */
	int connect_error;          /* result of the connect under way, */
	uint64_t connect_end;       /* ... then */
};

/* ---- sockets.c ---- */

struct socket *socket_new(int family, int type);
/* Behind a descriptor; NULL: errno says what it is. */
struct socket *socket_of(int fd);
struct socket *socket_first(void);
uint16_t network_next_port(uint32_t host);
uint64_t socket_travel_time(const struct socket *s);
/* Append to what is on its way to it. No bytes: the end. */
struct segment *socket_deliver(struct socket *s, const void *data, size_t len);
void socket_drop_segment(struct socket *s);
/* A reset is on its way to it; what was sent before may still come. */
void socket_reset(struct socket *s, int error);
/* True: the host of the socket or of its peer is down. */
bool socket_is_down(const struct socket *s);

/* ---- socket_connect.c ---- */

/* Take the answer to its connect, if it has come. */
void socket_settle(struct socket *s);
bool socket_has_connection(const struct socket *s);

/* ---- socket_io.c ---- */

/* A reset that has come is its error now. */
void socket_take_reset(struct socket *s);
int socket_take_error(struct socket *s, int otherwise);

static inline int fails(int error)
{
	errno = error;
	return -1;
}
