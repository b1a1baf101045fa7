/* SPDX-License-Identifier: BSD-3-Clause */
/* Where messages that other nodes send over the site's authenticated path come in. */
#ifndef PMI2X_DOORBELL_H
#define PMI2X_DOORBELL_H

#include "agent/node.h"
#include "libio/refusals.h"

struct doorbell;

/* A message has come, which nobody has looked at yet. */
typedef void (*doorbell_fn)(void *arg, const void *data, size_t len);

/* Takes over the listening unix socket `fd`, also on failure. 0 or a negative errno. */
int doorbell_open(struct doorbell **out, const struct node *node, int fd,
		  struct refusals *refused, doorbell_fn message, void *arg);
/* Close at once; NULL is allowed. */
void doorbell_close(struct doorbell *d);

#endif
