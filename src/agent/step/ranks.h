/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of a node's ranks, and how they end. */
#pragma once

#include <sys/types.h>

#include "agent/step/service_internal.h"
#include "libio/registration.h"

/* 0 or a negative errno; then, too, ranks_close and ranks_free are due. */
int ranks_open(struct service *s);
void ranks_close(struct service *s); /* handles and descriptors */
void ranks_free(struct service *s);  /* memory, after the loop has ended */

/* Operations of the engine; `service` is one. */
void ranks_send(void *service, uint32_t slot, const void *data, size_t len,
		const struct passed_fds *fds);
void ranks_finish(void *service, uint32_t slot);

bool ranks_process(void *service, uint32_t pid, char name[PMI_PROCESS_NAME_MAX]);
bool ranks_pmi_rank(void *service, uint32_t pid, uint32_t *number);

/* From the host; the descriptors are taken over, and -1 then. */
void ranks_register(struct service *s, struct registration *reg);
/* From the host; `end` may be NULL. */
void ranks_ended(struct service *s, uint32_t slot, const struct pmi_exit *end);

uint32_t ranks_count(const struct service *s);
/* The process of a rank that lives, as far as is known; else 0. */
pid_t ranks_pid(const struct service *s, uint32_t slot);
/* No rank has a connection any more. */
bool ranks_have_ended(const struct service *s);
