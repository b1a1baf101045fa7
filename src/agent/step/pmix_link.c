/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way to pmi2x-pmixd: a stream, or one of the host's. Its messages go to the engine,
 * which keeps what it needs of them.
 */
#include "agent/step/pmix_link.h"

#include <stdio.h>
#include <unistd.h>

#include "agent/pmix_stream.h"

/* The process that started it reports how it ended. */
void pmix_link_lost(struct service *s, const char *why)
{
	log_debug(s->node->log, "%s", why);
	pmi_server_pmix_lost(s->server, why);
}

int pmix_link_message(struct service *s, struct payload *message)
{
	return pmi_server_pmix_input(s->server, message);
}

static int on_message(void *arg, struct payload *message)
{
	return pmix_link_message(arg, message);
}

static void on_lost(void *arg, const char *how)
{
	struct service *s = arg;
	char why[NODE_WHY_MAX];

	snprintf(why, sizeof(why), "PMIx server of node %.64s %s",
		 node_own_name(s->node), how);
	pmix_link_lost(s, why);
}

/* When it has ended the engine is told, or the agent ends. */
void pmix_link_send(void *service, const void *head, size_t len,
		    struct payload *data)
{
	const struct service *s = service;
	const struct agent_host *host = s->node->host;

	if (s->pmix)
		pmix_stream_send(s->pmix, head, len, data);
	else if (host->pmix_send)
		host->pmix_send(host->arg, head, len, data);
}

/* ---- life ---- */

int pmix_link_open(struct service *s)
{
	static const struct pmix_stream_ops ops = {
		.message = on_message, .lost = on_lost,
	};
	int rc = 0, fd = s->pmix_fd;

	if (s->node->options->no_pmix)
		pmi_server_no_pmix(s->server, s->node->options->no_pmix);
	if (fd < 0 && !s->node->host->pmix_send)
		return 0;
	s->pmix_fd = -1;
	if (fd >= 0)
		rc = pmix_stream_open(&s->pmix, loop_uv(s->node->loop), fd,
				      s->step->budget, &ops, s);
	if (!rc)
		pmi_server_use_pmix(s->server, getuid(), getgid(),
				    s->node->options->stall_ms);
	return rc;
}

void pmix_link_close(struct service *s)
{
	pmix_stream_close(s->pmix);
}

void pmix_link_free(struct service *s)
{
	pmix_stream_destroy(s->pmix);
}
