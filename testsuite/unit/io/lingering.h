/* SPDX-License-Identifier: BSD-3-Clause */
/* A descriptor of which the last close waits until its peer ends. */
#pragma once

#include <stddef.h>

struct lingering {
	int fd;   /* a TCP connection with SO_LINGER, and data that its peer */
	int peer; /* does not read */
};

void lingering_open(struct lingering *l);
/*
 * Send it over `to`, with `len` bytes, so that the message has the only descriptor.
 */
void lingering_give(struct lingering *l, int to, const char *bytes, size_t len);
/* The close returns. */
void lingering_close(struct lingering *l);
