/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated sockets: pairs, which are at once at the other end, and TCP between hosts,
 * whose bytes take their time, in order on each connection. Host N is 10.0.0.N.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "testsuite/dst/world.h"

struct file;

/* Functions for files.c. */
uint32_t socket_events(struct file *f);
uint64_t socket_changes(struct file *f);
void socket_close(struct file *f);

/* A listening unix socket of this process; -1: errno says why not. */
int local_listen(void);
/* A connection with one, of any process; -1: errno says why there is none. */
int local_connect(int listener);

/* The address of a host; port in host order. */
void host_address(struct sockaddr_storage *out, uint32_t host, uint16_t port);

/* ---- faults ---- */

struct network {
	unsigned refuse_first;   /* connects that are refused, though somebody
	                            listens */
	unsigned lose_first;     /* ... whose first packet is lost */
	unsigned cut_early;      /* connections after these that are reset after
	                            a few bytes */
	unsigned cut_late;       /* 1 in N connections is reset after up to */
	uint64_t cut_bytes;      /* ... this number of bytes; 0: never */
	bool loses;              /* a byte now and then: to see that it is noticed */
};
extern struct network network;

/* The host has lost its power: nobody hears from it, and it hears of nobody. */
void network_host_is_down(uint32_t host);
void network_begin(void);
/* Connections and listeners that are left. */
unsigned network_left(void);
