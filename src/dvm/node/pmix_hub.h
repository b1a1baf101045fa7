/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-pmixd of a node, which serves the PMIx clients of all its tasks. The first client
 * starts it; if it has died, the next client starts it again. Until then there is a
 * listening socket only. A part is a namespace of its own, known by the part's number. Each
 * part has one address of the loopback device, which tells the part of a client that
 * connects. All calls and callbacks are in the loop's thread.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "dvm/common/pmix_offer.h"
#include "libio/loop.h"
#include "libutil/log.h"
#include "libutil/payload.h"

struct pmix_hub;

struct pmix_hub_ops {
	/* True: a part has this address. */
	bool (*find)(void *arg, uint32_t address, uint32_t *part);
	/* A message of pmi2x-pmixd for a part. Non-zero: it is invalid. */
	int (*message)(void *arg, uint32_t part, struct payload *message);
	/* pmi2x-pmixd serves the clients of a part no more; `why` is for messages. */
	void (*lost)(void *arg, uint32_t part, const char *why);
};

/*
 * Listen, if there are a libpmix and pmi2x-pmixd; `directory` is that of this
 * program, `node` its name. Both and `log` outlive the hub. 0 or a negative errno.
 */
int pmix_hub_open(struct pmix_hub **out, struct loop *loop, const char *directory,
		  const char *node, const struct pmix_hub_ops *ops, void *arg,
		  const struct log_hook *log);
/* The PMIx server that ranks find in their environment. */
const struct pmix_offer *pmix_hub_offer(const struct pmix_hub *h);
/* Send a message of a part's agent (without its data), and the data, or NULL. */
void pmix_hub_send(struct pmix_hub *h, uint32_t part, const void *head, size_t len,
		   struct payload *data);
/* The part is over. */
void pmix_hub_drop(struct pmix_hub *h, uint32_t part);
/* End it, and remove its directory. NULL is allowed. */
void pmix_hub_close(struct pmix_hub *h);
/* Free the hub, after the loop has ended. NULL is allowed. */
void pmix_hub_destroy(struct pmix_hub *h);
