/* SPDX-License-Identifier: BSD-3-Clause */
/* The name and secret of the DVM, and the lease of its ranks, as daemons hear them. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dvm/head/head_main.h"
#include "libio/protocol.h"
#include "libutil/decimal.h"
#include "pmi2x-build.h"

#define LEASE_MS 45000       /* of ranks, without an answer of this head: with the margin
                                less than a minute */
#define ASK_MS 5000          /* lease.c, ASK_MAX_MS */
#define MAX_MS ((uint32_t)INT32_MAX / 2)

/* In a test it is shorter. */
static uint32_t lease_ms(void)
{
	const char *text = getenv("PMI2X_DVM_LEASE");
	uint32_t ms = LEASE_MS;

	if (text)
		(void)decimal_u32(text, 1, LEASE_MS, &ms);
	return ms;
}

/*
 * How long ranks run without an answer of this head. With --orphan they wait its time for
 * another head, counted from the loss of this one: the last answer may be older by a tick.
 * A DVM of this machine needs no lease: no network can fail between its processes.
 */
static void set_lease(struct head_main *h)
{
	uint64_t orphan_ms = h->options.orphan_s * UINT64_C(1000);
	uint64_t early_ms = orphan_ms / 8 < ASK_MS ? orphan_ms / 8 : ASK_MS;

	h->welcome.peer_ms = lease_ms() / 3 * 4;
	if (h->options.local)
		return;
	h->welcome.lease_ms = lease_ms();
	if (!orphan_ms)
		return;
	h->welcome.lease_ms = orphan_ms + early_ms > MAX_MS ? MAX_MS :
			      (uint32_t)(orphan_ms + early_ms);
	h->welcome.grace_ms = h->options.grace_ms;
}

int head_new_identity(struct head_main *h)
{
	int rc = secret_create(&h->welcome.secret);

	snprintf(h->welcome.dvm, sizeof(h->welcome.dvm), "dvm.%.30s.%d",
		 h->options.name, (int)getpid());
	snprintf(h->welcome.slots, sizeof(h->welcome.slots), "%s",
		 h->options.slots);
	snprintf(h->welcome.gpus, sizeof(h->welcome.gpus), "%s",
		 h->options.gpus);
	snprintf(h->welcome.preload, sizeof(h->welcome.preload), "%s",
		 h->options.preload);
	h->welcome.within_ms = h->options.within_ms;
	h->welcome.share = h->options.share || h->options.local || h->options.launcher;
	secret_hide(&h->welcome.secret);
	h->welcome.orphan_s = h->options.orphan_s;
	set_lease(h);
	h->self.secret = h->welcome.secret;
	h->self.jobid = h->welcome.dvm;
	h->self.build = PMI2X_BUILD;
	h->self.position = HANDSHAKE_SRUN;
	h->self.protocol = PROTOCOL_VERSION;
	return rc;
}
