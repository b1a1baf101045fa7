/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-pmixd of a node, which serves the PMIx clients of all its tasks. It is started
 * when the first client connects, and again, with the next, when it has died. Until then
 * there is a listening socket only.
 *
 * A part is a namespace of its own, known by the part's number. Which part a client belongs
 * to is told by the address that it connects to: each has one of the loopback device's.
 *
 * All calls and callbacks are in the loop's thread.
 */
#ifndef PMI2X_DVM_PMIX_HUB_H
#define PMI2X_DVM_PMIX_HUB_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "dvm/common/pmix_offer.h"
#include "libio/loop.h"
#include "libutil/log.h"
#include "libutil/payload.h"

struct pmix_hub;

struct pmix_hub_ops {
	/* Is there a part with such an address? */
	bool (*find)(void *arg, uint32_t address, uint32_t *part);
	/* A message of pmi2x-pmixd for a part. Non-zero: it is invalid. */
	int (*message)(void *arg, uint32_t part, struct payload *message);
	/* Nobody serves the clients of a part any more; for people. */
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
/* A part's agent sends a message without its data, and these, or NULL. */
void pmix_hub_send(struct pmix_hub *h, uint32_t part, const void *head, size_t len,
		   struct payload *data);
/* The part is over. */
void pmix_hub_drop(struct pmix_hub *h, uint32_t part);
/* End it, and remove its directory. NULL is allowed. */
void pmix_hub_close(struct pmix_hub *h);
/* After the loop has ended. NULL is allowed. */
void pmix_hub_destroy(struct pmix_hub *h);

#endif
