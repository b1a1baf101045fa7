/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the host, or looks by itself in a turn of its own. */
#include "agent/step/holder_wait.h"

#include <unistd.h>

#include "agent/step/service.h"
#include "agent/step/service_internal.h"

/* The engine is not called from within its own call. */
static void on_look(uv_timer_t *timer)
{
	struct service *s = timer->data;

	pmi_server_holder_found(s->server, holder_find(&s->holder_question));
}

void holder_wait_begin(void *service, const unsigned char *socket, uint32_t near, bool all)
{
	struct service *s = service;
	struct holder_question *q = &s->holder_question;
	const struct agent_host *host = s->node->host;

	*q = (struct holder_question){ .uid = getuid(), .near = (pid_t)near, .all = all };
	owner_unpack(socket, &q->peer);
	if (!host->find_holder || host->find_holder(host->arg, q))
		uv_timer_start(&s->holder, on_look, 0, 0);
}

void service_holder_found(struct service *s, int found)
{
	pmi_server_holder_found(s->server, found);
}
