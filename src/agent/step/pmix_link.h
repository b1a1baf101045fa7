/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to who serves the node's PMIx clients: libpmi/pmix_msg.h. */
#pragma once

#include "agent/step/service_internal.h"

/*
 * A stream over service.pmix_fd, or the host's way; where there is neither there is no
 * PMIx. 0 or a negative errno.
 */
int pmix_link_open(struct service *s);
void pmix_link_close(struct service *s); /* handles and descriptors */
void pmix_link_free(struct service *s);  /* memory, after the loop has ended */

/* For messages of the host: see agent.h. */
int pmix_link_message(struct service *s, struct payload *message);
void pmix_link_lost(struct service *s, const char *why);

/* Operation of the engine; `service` is one. */
void pmix_link_send(void *service, const void *head, size_t len,
		    struct payload *data);
