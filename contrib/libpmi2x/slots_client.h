/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rank's side of the slots (libshm/slots.h): the transport that enters
 * collectives, and waits for their end, through memory shared with the agent of
 * the node.
 */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshm/region.h"
#include "libshm/slots_layout.h"

struct conn;
struct slots_client;
struct transport;

/* Values that the agent has sent. */
struct slots_place {
	const struct region *region;
	uint64_t board;  /* offset in the region */
	uint64_t size;   /* bytes of the slot region */
	uint32_t slot;
	int memory_fd;   /* of the slot region; stays the caller's */
	int wake_fd;     /* taken over, also on failure */
};

/* 0; -EPROTO (what was told cannot be), -ENOMEM, or the errno of mmap. */
int slots_client_open(struct slots_client **out, struct conn *conn,
		      const struct slots_place *at);
void slots_client_close(struct slots_client *sc);

/*
 * Show records to the agent: it may look at them when this returns. False: there is no
 * room until slots_client_show_anew, which forgets all that was shown; the agent must
 * have it by then. One thread at a time.
 */
bool slots_client_show(struct slots_client *sc, const void *records, size_t len);
void slots_client_show_anew(struct slots_client *sc);

struct transport *slots_client_transport(struct slots_client *sc);
